//! The shapes of the API's bodies. The OpenAPI document is made from them.

use crate::domain::audit::AuditRow;
use crate::domain::ids::Subject;
use crate::domain::interaction::{Claim, How, Sent, State};
use crate::domain::routing::{Approver, Route};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A task to watch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NewTask {
    /// The configured name of the runtime.
    pub(crate) runtime: String,
    /// The task's id there.
    #[schemars(length(min = 1, max = 1024))]
    pub(crate) task_id: String,
    /// The task's context there.
    #[schemars(length(min = 1, max = 1024))]
    pub(crate) context_id: String,
    /// Read the task as this subject. Once that has succeeded, the subject counts as the one for whom
    /// the agent works.
    #[serde(default)]
    pub(crate) subject: Option<String>,
}

/// The task will be read.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Registered {
    pub(crate) registered: bool,
}

/// A page of interactions, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Interactions {
    pub(crate) interactions: Vec<Interaction>,
    /// The `cursor` of the next page; null: this was the last one.
    pub(crate) next: Option<String>,
}

/// A page of the audit log.
#[derive(Debug, Serialize)]
pub(crate) struct AuditPage<'a> {
    pub(crate) rows: &'a [AuditRow],
    /// The `from` of the next page; null: this was the last one.
    pub(crate) next: Option<i64>,
}

/// An agent waiting for a person, or having waited.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the runtime's own word for its id")]
pub(crate) struct Interaction {
    id: String,
    /// As cards show it.
    short_id: String,
    runtime: String,
    agent: String,
    task_id: String,
    context_id: Option<String>,
    /// The runtime's own id of it.
    interaction: String,
    /// `approval`, `question`, `connection`, or `unknown` (shown, never answered).
    kind: &'static str,
    title: String,
    /// The agent's words.
    prompt: String,
    facts: Vec<Fact>,
    /// For whom the agent works, where known.
    owner: Option<String>,
    /// Of what is asked; cards and answers carry it.
    digest: String,
    /// `open`, `answering` (a decision is on its way) or `settled`.
    state: &'static str,
    /// How it ended: `approved`, `denied`, `answered`, `connected`, `declined`, `canceled`, `failed`,
    /// `elsewhere` (answered elsewhere) or `gone` (ended, and no reading says how).
    outcome: Option<&'static str>,
    /// The subject whose answer the runtime accepted; elsewhere: whom the runtime names, if anybody.
    by: Option<String>,
    opened_at: String,
    settled_at: Option<String>,
    /// Approvals counted so far, in order.
    votes: Vec<String>,
    /// The decision on its way.
    claim: Option<ClaimShown>,
    /// Where it is shown.
    cards: Vec<Card>,
    /// The route it goes by, as configured now; null: none matches, so it is shown nowhere new.
    route: Option<RouteShown>,
}

/// A label and a value from the runtime's fields.
#[derive(Debug, Serialize, JsonSchema)]
struct Fact {
    label: String,
    value: String,
}

/// A decision on its way to the runtime.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ClaimShown {
    subject: String,
    /// `approved`, `denied`, …
    decision: &'static str,
    /// `never`, `maybe` (it may have been received), `accepted` (and the runtime still shows it open)
    /// or `refused`.
    sent: &'static str,
    /// After this moment it is not sent any more.
    deliver_until: String,
}

/// One message showing it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Card {
    place: String,
    /// `queued`, `posting`, `live`, `gone`, `frozen`, `failed` or `unposted`.
    state: &'static str,
    channel: Option<String>,
    message: Option<String>,
    /// Used because another place refused.
    fallback: bool,
    /// The message shows the newest state that was decided.
    up_to_date: bool,
}

/// Where it goes and who may answer it there.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RouteShown {
    to: Vec<String>,
    fallback: Vec<String>,
    /// Names of groups, and `owner`; empty: nobody may answer.
    approvers: Vec<String>,
    approvals: u32,
    self_approval: bool,
    /// The hash that the audit log calls `policy`.
    policy: String,
}

impl Interaction {
    pub(super) fn new(
        from: &crate::bridge::operators::Interaction,
        cards: &[crate::bridge::operators::CardRow],
        route: Option<(&Route, &str)>,
    ) -> Self {
        let machine = &from.machine;
        let (state, claim, settled) = match &machine.state {
            State::Open => ("open", None, None),
            State::Answering(claim) => ("answering", Some(shown(claim)), None),
            State::Settled { how, at, .. } => ("settled", None, Some((how, at))),
        };
        Self {
            id: from.id.0.to_string(),
            short_id: from.id.short(),
            runtime: from.key.runtime.as_str().to_owned(),
            agent: from.key.agent.clone(),
            task_id: from.key.task.clone(),
            context_id: from.context.clone(),
            interaction: from.key.external.clone(),
            kind: from.form.kind.as_str(),
            title: from.form.title.clone(),
            prompt: from.form.prompt.clone(),
            facts: from
                .form
                .facts
                .iter()
                .map(|fact| Fact { label: fact.label.clone(), value: fact.value.clone() })
                .collect(),
            owner: from.owner.as_ref().map(|owner| owner.as_str().to_owned()),
            digest: machine.digest.as_str().to_owned(),
            state,
            outcome: settled.map(|(how, _)| how.outcome().as_str()),
            by: settled.and_then(|(how, _)| who(how)),
            opened_at: from.opened.rfc3339(),
            settled_at: settled.map(|(_, at)| at.rfc3339()),
            votes: machine.votes.iter().map(|vote| vote.subject.as_str().to_owned()).collect(),
            claim,
            cards: cards
                .iter()
                .map(|card| Card {
                    place: card.place.clone(),
                    state: card.word(),
                    channel: card.channel.clone(),
                    message: card.message.clone(),
                    fallback: card.fallback,
                    up_to_date: card.shown_rev == Some(from.rev),
                })
                .collect(),
            route: route.map(|(route, policy)| RouteShown {
                to: route.to.iter().map(ToString::to_string).collect(),
                fallback: route.fallback.iter().map(ToString::to_string).collect(),
                approvers: route.approvers.iter().map(Approver::as_str).map(str::to_owned).collect(),
                approvals: route.approvals,
                self_approval: route.self_approval,
                policy: policy.to_owned(),
            }),
        }
    }
}

fn who(how: &How) -> Option<String> {
    match how {
        How::Ours { subject, .. } => Some(Subject::as_str(subject).to_owned()),
        How::Elsewhere { who, .. } => who.clone(),
        How::Canceled | How::Failed | How::Rejected | How::Gone => None,
    }
}

fn shown(claim: &Claim) -> ClaimShown {
    ClaimShown {
        subject: claim.subject.as_str().to_owned(),
        decision: claim.decision.word(),
        sent: match claim.sent {
            Sent::Never => "never",
            Sent::Maybe => "maybe",
            Sent::Accepted => "accepted",
            Sent::Refused(_) => "refused",
        },
        deliver_until: claim.deliver_until.rfc3339(),
    }
}
