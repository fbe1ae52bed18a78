//! `explain <interaction> --as <subject>`: why somebody may answer, or not. 0 allow, 10 refuse, 11 could
//! not be checked.

use super::End;
use super::service::{self, Machine, Service};
use crate::bridge::explain::{Account, Explanation};
use crate::config::Config;
use crate::domain::ids::Subject;
use crate::domain::place::is_snowflake;
use crate::domain::policy::{Passed, Verdict};
use anyhow::Result;
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The interaction: the short id of its card, or the runtime's id.
    interaction: String,
    /// The subject to ask about.
    #[arg(long = "as", value_name = "SUBJECT", value_parser = subject)]
    subject: Subject,
    /// The chat account to ask about, `slack:<name>:<user>` or `discord:<user>`; without it every account
    /// linked to the subject is tried and the best verdict printed.
    #[arg(long, value_name = "CHAT USER", value_parser = account)]
    from: Option<From>,
    /// Ask about Deny instead of Approve.
    #[arg(long)]
    deny: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

fn subject(text: &str) -> Result<Subject, String> {
    Subject::parse(text).map_err(|error| error.to_string())
}

/// A chat account as it is written.
#[derive(Debug, Clone)]
enum From {
    Slack(Account),
    /// The same in every install.
    Discord(String),
}

fn account(text: &str) -> Result<From, String> {
    match text.split(':').collect::<Vec<_>>().as_slice() {
        ["slack", install, user] if !install.is_empty() && !user.is_empty() => {
            Ok(From::Slack(((*install).to_owned(), (*user).to_owned())))
        }
        ["discord", user] if is_snowflake(user) => Ok(From::Discord((*user).to_owned())),
        _ => Err("a chat user is written slack:<name>:<user> or discord:<user>".into()),
    }
}

pub(super) async fn run(config: Config, command: Explain) -> Result<End> {
    let machine = Machine::real();
    let store = service::connect(&config, &machine).await?;
    let service = Service::build(config, store, &machine).await?;
    let bridge = &service.bridge;
    let wanted = command.interaction.clone();
    let found =
        bridge.store.read(move |tx| Box::pin(async move { tx.find_interaction(&wanted).await })).await?;
    let interaction = match found {
        Some(id) => {
            bridge.store.read(move |tx| Box::pin(async move { tx.interaction(id, false).await })).await?
        }
        None => None,
    };
    let Some(interaction) = interaction else {
        eprintln!("countersign: no interaction {}; `countersign open` lists them", command.interaction);
        return Ok(End::Failed);
    };
    for install in bridge.platforms.keys() {
        bridge.identify_once(install).await?;
    }
    let from: Vec<Account> = match &command.from {
        None => vec![],
        Some(From::Slack(account)) => vec![account.clone()],
        Some(From::Discord(user)) => {
            let installs = service.config.discord.iter().map(|discord| discord.name.clone());
            installs.map(|install| (install, user.clone())).collect()
        }
    };
    let explanation = bridge.explain(&interaction, &command.subject, &from, command.deny).await?;
    if command.json {
        println!("{}", serde_json::to_string_pretty(&explanation)?);
    } else {
        print(&explanation);
    }
    bridge.store.close().await;
    Ok(match explanation.verdict {
        Verdict::Allow => End::Done,
        Verdict::Refuse => End::No,
        Verdict::Undetermined => End::Unknown,
    })
}

fn print(explanation: &Explanation) {
    let word = match explanation.verdict {
        Verdict::Allow => "allow",
        Verdict::Refuse => "refuse",
        Verdict::Undetermined => "could not be checked",
    };
    println!(
        "{word} ({}) for {} on {}",
        explanation.rule.as_str(),
        explanation.subject,
        explanation.interaction
    );
    for line in &explanation.trace {
        let mark = match line.result {
            Passed::Pass => "pass",
            Passed::Fail => "FAIL",
            Passed::Unknown => "?   ",
        };
        println!("  {mark}  {:<13}  {}", line.rule.as_str(), line.why);
    }
}
