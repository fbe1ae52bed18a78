//! `try <place>`: a test card and a real click, carried by the running service.
//!
//! Invariant: this process talks to no chat platform: it stores the test, watches the database, and ends
//! the test when it gives up.

use super::End;
use super::service::{self, Machine, Service};
use crate::bridge::trial::Trial as Seen;
use crate::config::Config;
use crate::domain::ids::{InteractionId, Platform};
use crate::domain::interaction::{How, State};
use crate::domain::place::Spot;
use crate::render::slack::TestCard;
use crate::store::cards::CardState;
use anyhow::Result;
use clap::Args;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(300);
/// A service that runs has looked at the card's job by then.
const NO_SERVICE: Duration = Duration::from_secs(15);

#[derive(Debug, Args)]
pub(super) struct Trial {
    /// Where: as in a route, `slack:<name>:#channel` or `discord:<name>:<channel id>`.
    place: String,
    /// How long to wait for somebody to press.
    #[arg(long, hide = true, value_name = "SECONDS", default_value_t = 300)]
    patience: u64,
}

pub(super) async fn run(config: Config, command: Trial) -> Result<End> {
    let place = match Spot::parse(&command.place) {
        Ok(place) => place,
        Err(error) => {
            eprintln!("countersign: {}: {error}", command.place);
            return Ok(End::Usage);
        }
    };
    let platform = place.target.platform();
    let known = match platform {
        Platform::Slack => config.slack.iter().any(|slack| slack.name == place.install),
        Platform::Discord => config.discord.iter().any(|discord| discord.name == place.install),
    };
    if !known {
        let section = platform.as_str();
        eprintln!("countersign: {}: no [[{section}]] is named `{}`", command.place, place.install);
        return Ok(End::Usage);
    }
    let machine = Machine::real();
    let store = service::connect(&config, &machine).await?;
    let service = Service::build(config, store, &machine).await?;
    let words = |part| service.templates.render(&TestCard { part }).trim().to_owned();
    let id = service.bridge.begin_trial(&place, words("title"), words("prompt")).await?;
    println!("a test card is on its way to {place}");
    let end = wait(&service, id, Duration::from_secs(command.patience)).await?;
    service.bridge.end_trial(id).await?;
    service.bridge.store.close().await;
    Ok(end)
}

async fn wait(service: &Service, id: InteractionId, patience: Duration) -> Result<End> {
    let began = Instant::now();
    let mut posted = false;
    loop {
        let Some(Seen { interaction, cards, taken }) = service.bridge.trial(id).await? else {
            eprintln!("countersign: the test is gone from the database");
            return Ok(End::Failed);
        };
        let state = cards.first().map(|card| card.state);
        if !posted && state == Some(CardState::Live) {
            posted = true;
            println!("posted; press a button there, as any linked person");
        }
        if let State::Settled { how, .. } = &interaction.machine.state {
            if let How::Ours { subject, .. } = how {
                println!("{} by {subject}; the way from the chat to here works", how.outcome().as_str());
                return Ok(End::Done);
            }
            eprintln!("countersign: it ended without a press");
            return Ok(End::Failed);
        }
        let why = match state {
            Some(CardState::Failed) => Some("the place refused the card: `countersign check` says why"),
            Some(CardState::Gone | CardState::Frozen) => Some("the card was deleted"),
            _ if !taken && began.elapsed() > NO_SERVICE => {
                Some("no service has taken it: is `countersign run` running with this database?")
            }
            _ if began.elapsed() > patience && posted => Some("nobody who is linked has pressed"),
            _ if began.elapsed() > patience => Some("it could not be posted in time"),
            _ => None,
        };
        if let Some(why) = why {
            eprintln!("countersign: {why}");
            return Ok(End::Failed);
        }
        tokio::time::sleep(LOOK).await;
    }
}
