//! `open`: what waits for a person.

use super::End;
use super::service::{self, Machine, Service};
use crate::bridge::incident::{EVERY, Pause};
use crate::bridge::trial::is_trial;
use crate::config::Config;
use crate::domain::ids::InteractionId;
use crate::domain::interaction::State;
use crate::domain::routing::{Approver, route};
use crate::store::cards::CardRow;
use crate::store::interactions::Interaction;
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use uuid::Uuid;

#[derive(Debug, Args)]
pub(super) struct Open {
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: Config, command: Open) -> Result<End> {
    let machine = Machine::real();
    let store = service::connect(&config, &machine).await?;
    let service = Service::build(config, store, &machine).await?;
    let pauses = service.bridge.pauses().await?;
    let mut after = InteractionId(Uuid::nil());
    let mut all = vec![];
    loop {
        let page = service
            .bridge
            .store
            .read(|tx| Box::pin(async move { tx.interactions_after(after, true, 200).await }))
            .await?;
        let Some(last) = page.last() else { break };
        after = last.id;
        for interaction in page {
            if is_trial(&interaction.key.runtime) {
                continue;
            }
            let id = interaction.id;
            let cards =
                service.bridge.store.read(|tx| Box::pin(async move { tx.cards_of(id).await })).await?;
            all.push(describe(&service, &interaction, &cards, &pauses));
        }
    }
    all.sort_by_key(|row| row.get("opened").and_then(Value::as_str).map(ToOwned::to_owned));
    if command.json {
        println!("{}", serde_json::to_string_pretty(&all)?);
    } else {
        for pause in &pauses {
            let whom = if pause.runtime == EVERY { "every runtime" } else { &pause.runtime };
            println!("answers to {whom} are paused since {}", pause.since.rfc3339());
        }
        if all.is_empty() {
            println!("nothing is open");
        }
        for row in &all {
            let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let list = |key: &str| {
                let items = row.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
                items.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect::<Vec<_>>().join(", ")
            };
            let places = list("places");
            let shown = if places.is_empty() { "nowhere: no route matches".to_owned() } else { places };
            println!(
                "{}  {}  {}  {}/{}  since {}  may answer: {}  shown in: {shown}",
                text("id"),
                text("kind"),
                text("state"),
                text("runtime"),
                crate::domain::text::line(&text("title")),
                text("opened"),
                list("approvers"),
            );
        }
    }
    service.bridge.store.close().await;
    Ok(End::Done)
}

fn describe(service: &Service, interaction: &Interaction, cards: &[CardRow], pauses: &[Pause]) -> Value {
    let found = route(&service.bridge.rules.routes, &interaction.key, &interaction.form);
    let approvers: Vec<&str> =
        found.map(|r| r.approvers.iter().map(Approver::as_str).collect()).unwrap_or_default();
    let runtime = interaction.key.runtime.as_str();
    let is_stopped = pauses.iter().any(|pause| pause.runtime == runtime || pause.runtime == EVERY);
    let state = match &interaction.machine.state {
        State::Open if interaction.machine.votes.is_empty() => "open".to_owned(),
        State::Open => format!(
            "open, {} of {}",
            interaction.machine.votes.len(),
            found.map_or(1, |route| route.approvals)
        ),
        State::Answering(claim) if is_stopped => format!("answering as {}, paused", claim.subject),
        State::Answering(claim) => format!("answering as {}", claim.subject),
        State::Settled { how, .. } => how.outcome().as_str().to_owned(),
    };
    json!({
        "id": interaction.id.short(),
        "interaction": interaction.key.external,
        "runtime": interaction.key.runtime,
        "agent": interaction.key.agent,
        "task": interaction.key.task,
        "kind": interaction.form.kind,
        "title": interaction.form.title,
        "state": state,
        "paused": is_stopped,
        "opened": interaction.opened.rfc3339(),
        "approvers": approvers,
        "places": cards.iter().map(|card| format!("{} ({})", card.place, card.word())).collect::<Vec<_>>(),
    })
}
