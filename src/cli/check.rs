//! `check`: looks at everything a start depends on and says what is wrong and what to do.
//!
//! Opens no socket towards a chat platform, so it takes no clicks; works beside a running service.

use super::End;
use super::service::{self, Machine, Service};
use crate::bridge::findings::{Finding, Severity};
use crate::bridge::ports::Tracker;
use crate::chat::slack::sign;
use crate::config::{Config, ProcessEnv, SlackInbound};
use crate::domain::place::{Place, Spot};
use crate::net;
use anyhow::Result;
use clap::Args;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

#[derive(Debug, Args)]
pub(super) struct Check {
    /// As JSON: a list of `{severity, about, text, fix}`.
    #[arg(long)]
    json: bool,
}

/// A finding and what it is about.
#[derive(Debug, Serialize)]
struct Line {
    about: String,
    #[serde(flatten)]
    finding: Finding,
}

/// What was found, in the order in which it was looked at.
#[derive(Debug, Default)]
struct Report(Vec<Line>);

impl Report {
    fn add(&mut self, about: impl Into<String>, finding: Finding) {
        self.0.push(Line { about: about.into(), finding });
    }

    fn all(&mut self, about: &str, findings: Vec<Finding>) {
        for finding in findings {
            self.add(about, finding);
        }
    }

    /// Prints everything; an error makes the exit code 1.
    fn end(&self, as_json: bool) -> Result<End> {
        if as_json {
            println!("{}", serde_json::to_string_pretty(&self.0)?);
        } else {
            for Line { about, finding } in &self.0 {
                let fix = finding.fix.as_deref().map(|fix| format!("; {fix}")).unwrap_or_default();
                println!("{:<8} {about}: {}{fix}", finding.severity.as_str(), finding.text);
            }
        }
        let failed = self.0.iter().any(|line| line.finding.severity == Severity::Error);
        Ok(if failed { End::Failed } else { End::Done })
    }
}

pub(super) async fn run(path: &Path, command: &Check) -> Result<End> {
    let machine = Machine::real();
    let mut report = Report::default();
    let file = path.display().to_string();
    let config = match Config::load(path, &ProcessEnv) {
        Ok(config) => config,
        Err(findings) => {
            for finding in &findings.0 {
                report.add(&file, Finding::error(finding.to_string(), "mend the configuration"));
            }
            report.end(command.json)?;
            return Ok(End::Usage);
        }
    };
    report.add("configuration", Finding::ok(&file));
    for warning in config.warnings() {
        report.add("configuration", Finding::warning(warning.to_string(), "see whether that is meant"));
    }
    let store = match service::connect(&config, &machine).await {
        Ok(store) => store,
        Err(error) => {
            report.add("database", Finding::error(format!("{error:#}"), "mend database.url, or start it"));
            return report.end(command.json);
        }
    };
    if store.message_prefix().await.is_err() {
        let fix = "run `countersign migrate` (or `run`, which does it)";
        report.add("database", Finding::error("it is not migrated", fix));
        return report.end(command.json);
    }
    report.add("database", Finding::ok(config.database.url.to_string()));
    let service = match Service::build(config, store, &machine).await {
        Ok(service) => service,
        Err(error) => {
            report.add("service", Finding::error(format!("{error:#}"), "mend what is named"));
            return report.end(command.json);
        }
    };
    chats(&service, &mut report).await;
    for slack in &service.config.slack {
        report.all(&format!("slack {}", slack.name), way_in(&service, slack, &machine).await);
    }
    let somebody = service.config.persons.first().map(|person| person.subject.clone());
    for (runtime, connector) in &service.bridge.connectors {
        report.all(&format!("runtime {runtime}"), connector.examine(somebody.as_ref()).await);
        report.add(
            format!("runtime {runtime}"),
            followed(connector.tracker(), service.bridge.rules.hooks.is_some()),
        );
    }
    for pause in service.bridge.pauses().await? {
        let since = pause.since.rfc3339();
        let text = format!("answers to `{}` are paused since {since}", pause.runtime);
        report.add("incident", Finding::warning(text, "`countersign resume` sends them"));
    }
    for alert in service.bridge.store.read(|tx| Box::pin(async move { tx.alerts().await })).await? {
        let text = format!("since {}: {}", alert.since.rfc3339(), alert.text);
        report.add("alert", Finding::warning(text, "it ends with its cause"));
    }
    service.bridge.store.close().await;
    report.end(command.json)
}

/// How known tasks of a runtime are followed, and what keeps them from being followed better.
fn followed(by: Option<Tracker>, reachable: bool) -> Finding {
    match by {
        Some(Tracker::Stream) => Finding::ok("known tasks are followed by streams"),
        Some(Tracker::Push) if reachable => Finding::ok("it is asked to call us about known tasks"),
        Some(Tracker::Push) => Finding::warning(
            "it could call us about known tasks, but cannot reach us: they are polled",
            "set server.public_url to an https address of this service",
        ),
        Some(Tracker::Poll) | None => Finding::ok("known tasks are polled"),
    }
}

async fn chats(service: &Service, report: &mut Report) {
    for (install, platform) in &service.bridge.platforms {
        let findings = platform.examine().await;
        let refused = findings.iter().all(|finding| finding.severity == Severity::Error);
        report.all(&format!("{} {install}", platform.platform().as_str()), findings);
        if refused {
            continue;
        }
        let spots: BTreeSet<&Spot> = service
            .bridge
            .rules
            .routes
            .iter()
            .flat_map(|route| route.to.iter().chain(&route.fallback))
            .chain(&service.bridge.rules.alerts_to)
            .filter_map(|place| match place {
                Place::At(spot) if spot.install == *install => Some(spot),
                _ => None,
            })
            .collect();
        for spot in spots {
            report.all(&spot.to_string(), platform.examine_place(&spot.target).await);
        }
    }
}

/// Whether deliveries can arrive: a request signed like Slack's, to our own public address.
async fn way_in(service: &Service, slack: &crate::config::Slack, machine: &Machine) -> Vec<Finding> {
    let SlackInbound::Http { signing_secret, .. } = &slack.inbound else {
        let text =
            "clicks arrive over Socket Mode; `check` opens no socket, so it cannot tell whether they do";
        return vec![Finding::ok(text)];
    };
    let Some(public) = &service.config.server.public_url else {
        return vec![Finding::warning(
            "server.public_url is not set, so it cannot be looked at whether Slack's deliveries arrive",
            "set it",
        )];
    };
    vec![knock(&public.page("/slack/events"), signing_secret, machine).await]
}

/// Slack asks like this whether an address is ours (Slack: `url_verification`); it has no effect.
async fn knock(at: &str, secret: &SecretString, machine: &Machine) -> Finding {
    let challenge = data_encoding::HEXLOWER.encode(&machine.ids.random());
    let body = json!({ "type": "url_verification", "challenge": challenge }).to_string();
    let now = machine.clock.now().0 / 1000;
    let Ok(client) = net::client(machine.limits) else {
        return Finding::error("the system's trust store cannot be read", "install the CA certificates");
    };
    let sent = client
        .post(at)
        .header("content-type", "application/json")
        .header("x-slack-request-timestamp", now.to_string())
        .header("x-slack-signature", sign(secret, now, body.as_bytes()))
        .body(body)
        .send()
        .await;
    let Ok(answer) = sent else {
        return Finding::warning(
            format!("nothing answers at {at}"),
            "start the service, and see that the public address leads to server.listen",
        );
    };
    let status = answer.status().as_u16();
    let said = answer.bytes().await.ok().and_then(|body| serde_json::from_slice::<Value>(&body).ok());
    match (status, said.as_ref().and_then(|said| said.get("challenge")).and_then(Value::as_str)) {
        (200, Some(echo)) if echo == challenge => {
            Finding::ok(format!("a delivery signed like Slack's is taken at {at}"))
        }
        (401, _) => Finding::error(
            format!("{at} refuses our own signature"),
            "another configuration runs there: compare signing_secret",
        ),
        (404 | 405, _) => Finding::error(
            format!("{at} is not served there (http {status})"),
            "see that the proxy passes /slack/ on to server.listen",
        ),
        (status, _) => Finding::error(
            format!("what answers at {at} is not this service (http {status})"),
            "see where the public address leads",
        ),
    }
}
