//! The units of a run: each is one interaction that is opened, posted, pressed, answered and edited, once each and
//! rightly. What is wrong with any of them makes the run void.

use crate::figures::Times;
use crate::rig::{CHANNEL, PATIENCE, Rig};
use anyhow::{Context, Result};
use countersign::sandbox::a2a::{A2aWorld, Ask, Decision, Elsewhere, Open, Opened, State, TaskView};
use countersign::sandbox::slack::{Message, SlackWorld, Spot, acme, signature};
use countersign::sandbox::time::Time;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const DANA: &str = "dana@example.com";
/// Begins the name of every unit's tool, so that a message tells its unit.
const MARK: &str = "unit0";
const DIGITS: usize = 6;

/// How a unit must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Nobody has touched it.
    Open,
    Answered {
        by: &'static str,
        approved: bool,
    },
    /// A press that was not acknowledged: either open or so answered.
    Perhaps {
        by: &'static str,
        approved: bool,
    },
    Canceled,
    Elsewhere,
}

/// Who presses what in unit `number`: everybody and everything in turn, so that a mix-up shows.
pub(crate) fn presser(number: usize) -> (&'static str, &'static str, bool) {
    let (user, subject) =
        if number.is_multiple_of(2) { ("U0DANA", DANA) } else { ("U0KIM", "kim@example.com") };
    (user, subject, !number.is_multiple_of(3))
}

#[derive(Debug, Clone)]
struct Unit {
    opened: Opened,
    opened_ms: i64,
    /// When the press was scheduled, in epoch milliseconds.
    pressed_ms: f64,
    cards: Vec<String>,
    ending: Ending,
}

#[derive(Default)]
struct Inner {
    units: Vec<Unit>,
    /// The newest message seen.
    last: String,
    problems: Vec<String>,
}

/// The times of checked units.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub(crate) posted: Times,
    pub(crate) answered: Times,
    pub(crate) edited: Times,
    /// When the last of them had come to its end, in epoch milliseconds.
    pub(crate) last_ms: i64,
}

pub(crate) struct Board {
    slack: Arc<SlackWorld>,
    a2a: Arc<A2aWorld>,
    client: reqwest::Client,
    pub(crate) address: SocketAddr,
    inner: Mutex<Inner>,
}

fn now_ms() -> i64 {
    Time::System.now_ms()
}

impl Board {
    pub(crate) fn new(rig: &Rig) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            slack: Arc::clone(&rig.slack),
            a2a: Arc::clone(&rig.a2a),
            client: crate::rig::client()?,
            address: rig.address,
            inner: Mutex::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn problem(&self, what: String) {
        self.lock().problems.push(what);
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        self.lock().problems.clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().units.len()
    }

    /// An agent asks.
    pub(crate) fn open(&self) {
        let mut inner = self.lock();
        let number = inner.units.len();
        let opened_ms = now_ms();
        let opened = self.a2a.open(Open::new(DANA, Ask::approval("ci", &format!("{MARK}{number:0DIGITS$}"))));
        inner.units.push(Unit { opened, opened_ms, pressed_ms: 0.0, cards: vec![], ending: Ending::Open });
    }

    /// Takes note of new messages.
    pub(crate) fn look(&self) {
        let mut inner = self.lock();
        let new = self.slack.messages_after(CHANNEL, &inner.last);
        for message in new {
            match unit_of(&message) {
                Some(number) if number < inner.units.len() => {
                    inner.units[number].cards.push(message.ts.clone());
                }
                _ => inner.problems.push(format!("a message of no unit: {}", message.text)),
            }
            inner.last = message.ts;
        }
    }

    /// The units whose card is there, of these.
    fn shown(&self, of: &Range<usize>) -> usize {
        self.look();
        self.lock().units[of.clone()].iter().filter(|unit| !unit.cards.is_empty()).count()
    }

    /// Waits until each of these has its card.
    pub(crate) async fn posted(&self, of: Range<usize>) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            let shown = self.shown(&of);
            if shown == of.len() {
                return Ok(());
            }
            anyhow::ensure!(
                Instant::now() < end,
                "{} of {} cards were never posted",
                of.len() - shown,
                of.len()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The card of a unit, as soon as it is there; whether it was waited for.
    async fn card(&self, number: usize) -> Result<(String, bool)> {
        let end = Instant::now() + PATIENCE;
        let mut late = false;
        loop {
            if let Some(ts) = self.lock().units[number].cards.first() {
                return Ok((ts.clone(), late));
            }
            late = true;
            anyhow::ensure!(Instant::now() < end, "unit {number} has no card");
            self.look();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The body of a press of a unit by its presser, and whether its card was waited for.
    pub(crate) async fn body(&self, number: usize) -> Result<(Vec<u8>, bool)> {
        let (ts, late) = self.card(number).await?;
        let (user, _, approve) = presser(number);
        let control = if approve { "Approve" } else { "Deny" };
        let payload = self.slack.pressed(user, &Spot::message(CHANNEL, &ts), control)?;
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("payload", &payload.to_string());
        Ok((form.finish().into_bytes(), late))
    }

    /// Sends a press, signed now, to this address; the HTTP status.
    pub(crate) async fn send(&self, address: SocketAddr, body: Vec<u8>) -> Result<u16> {
        let timestamp = now_ms().div_euclid(1000).to_string();
        let signed = signature(acme::SIGNING_SECRET, &timestamp, &body);
        let response = self
            .client
            .post(format!("http://{address}/slack/interactivity"))
            .header("Content-Type", "application/x-www-form-urlencoded")
            .header("X-Slack-Request-Timestamp", timestamp)
            .header("X-Slack-Signature", signed)
            .body(body)
            .send()
            .await?;
        let status = response.status().as_u16();
        response.bytes().await?;
        Ok(status)
    }

    /// Presses a unit that was scheduled for `at`: how long after that the acknowledgement was there, and whether
    /// the card was late.
    pub(crate) async fn press(self: Arc<Self>, number: usize, at: Instant) -> Option<(Duration, bool)> {
        let scheduled_ms = ms(now_ms()) - at.elapsed().as_secs_f64() * 1000.0;
        let (_, by, approved) = presser(number);
        let pressed = async {
            let (body, late) = self.body(number).await?;
            let status = self.send(self.address, body).await?;
            anyhow::ensure!(status == 200, "answered {status}");
            Ok((at.elapsed(), late))
        }
        .await;
        let mut inner = self.lock();
        inner.units[number].pressed_ms = scheduled_ms;
        match pressed {
            Ok(done) => {
                inner.units[number].ending = Ending::Answered { by, approved };
                Some(done)
            }
            Err(error) => {
                inner.units[number].ending = Ending::Perhaps { by, approved };
                inner.problems.push(format!("the press of unit {number} was not acknowledged: {error}"));
                None
            }
        }
    }

    /// A press while the service may be dying: whether it was acknowledged.
    pub(crate) async fn press_perhaps(self: Arc<Self>, number: usize) -> bool {
        let (_, by, approved) = presser(number);
        let Ok((body, _)) = self.body(number).await else { return false };
        self.lock().units[number].ending = Ending::Perhaps { by, approved };
        let acked = matches!(self.send(self.address, body).await, Ok(200));
        if acked {
            self.lock().units[number].ending = Ending::Answered { by, approved };
        }
        acked
    }

    /// The press of this unit was acknowledged.
    pub(crate) fn acknowledged(&self, number: usize) {
        let (_, by, approved) = presser(number);
        self.lock().units[number].ending = Ending::Answered { by, approved };
    }

    /// The runtime's side ends a unit.
    pub(crate) fn cancel(&self, number: usize) {
        let mut inner = self.lock();
        let unit = &mut inner.units[number];
        unit.ending = Ending::Canceled;
        self.a2a.end(&unit.opened.task_id, State::Canceled, None);
    }

    /// Somebody answers a unit in the product.
    pub(crate) fn elsewhere(&self, number: usize) {
        let mut inner = self.lock();
        let unit = &mut inner.units[number];
        unit.ending = Ending::Elsewhere;
        let answer = Elsewhere {
            subject: "product@example.com".into(),
            decision: Decision::Approved(true),
            history: true,
            message_id: None,
        };
        self.a2a.answer_elsewhere(&unit.opened.interaction_id, answer);
    }

    /// Waits until every card of these shows the end it must have, then checks them; their times.
    pub(crate) async fn ended(&self, of: Range<usize>) -> Checked {
        let end = Instant::now() + PATIENCE;
        let mut waiting: Vec<usize> = of.clone().collect();
        loop {
            self.look();
            waiting.retain(|number| {
                let unit = self.lock().units[*number].clone();
                match unit.ending {
                    Ending::Open => unit.cards.is_empty(),
                    Ending::Perhaps { .. } => false,
                    _ => !unit
                        .cards
                        .first()
                        .is_some_and(|ts| self.slack.buttons(CHANNEL, ts).is_empty() && self.is_final(ts)),
                }
            });
            if waiting.is_empty() {
                break;
            }
            if Instant::now() > end {
                self.problem(format!("{} units never came to their end", waiting.len()));
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.check(of)
    }

    fn is_final(&self, ts: &str) -> bool {
        let head = self.slack.notice(CHANNEL, ts).to_lowercase();
        ["approved", "denied", "canceled", "answered elsewhere", "gone"]
            .iter()
            .any(|word| head.starts_with(word))
    }

    fn check(&self, of: Range<usize>) -> Checked {
        let tasks: HashMap<String, TaskView> =
            self.a2a.tasks().into_iter().map(|task| (task.id.clone(), task)).collect();
        let mut checked = Checked::default();
        for number in of {
            let unit = self.lock().units[number].clone();
            if let Err(what) = self.check_one(number, &unit, &tasks, &mut checked) {
                self.problem(format!("unit {number} ({:?}): {what}", unit.ending));
            }
        }
        checked
    }

    fn check_one(
        &self,
        number: usize,
        unit: &Unit,
        tasks: &HashMap<String, TaskView>,
        checked: &mut Checked,
    ) -> Result<()> {
        let cards: Vec<Message> = unit
            .cards
            .iter()
            .filter_map(|ts| self.slack.message(CHANNEL, ts))
            .filter(|card| !card.deleted)
            .collect();
        anyhow::ensure!(cards.len() == 1, "{} cards", cards.len());
        let card = cards.first().context("no card")?;
        anyhow::ensure!(unit_of(card) == Some(number), "the card shows another unit");
        checked.posted.add_ms(ms(micros(&card.ts)? / 1000 - unit.opened_ms));
        checked.last_ms = checked.last_ms.max(micros(&card.ts)? / 1000);
        let task = tasks.get(&unit.opened.task_id).context("no task")?;
        let interaction = task.interactions.first().context("no interaction")?;
        let answers = &interaction.answers;
        let ours: Vec<_> = answers.iter().filter(|answer| !answer.elsewhere).collect();
        let head = self.slack.notice(CHANNEL, &card.ts).to_lowercase();
        let buttons = self.slack.buttons(CHANNEL, &card.ts);
        let (by, approved) = match unit.ending {
            Ending::Open => {
                anyhow::ensure!(answers.is_empty(), "answered without a press: {answers:?}");
                anyhow::ensure!(!buttons.is_empty(), "no buttons on an open card");
                return Ok(());
            }
            Ending::Perhaps { .. } if ours.is_empty() => {
                anyhow::ensure!(!buttons.is_empty(), "no buttons on an open card");
                return Ok(());
            }
            Ending::Answered { by, approved } | Ending::Perhaps { by, approved } => (by, approved),
            Ending::Canceled | Ending::Elsewhere => {
                anyhow::ensure!(ours.is_empty(), "answered without a press: {answers:?}");
                let word = if unit.ending == Ending::Canceled { "canceled" } else { "elsewhere" };
                anyhow::ensure!(head.contains(word) && buttons.is_empty(), "the card says {head}");
                checked.last_ms = checked.last_ms.max(edited_ms(card)?);
                return Ok(());
            }
        };
        anyhow::ensure!(answers.len() == 1, "{} answers", answers.len());
        let answer = ours.first().context("somebody else's answer")?;
        anyhow::ensure!(answer.approved_by == by, "answered as {}", answer.approved_by);
        anyhow::ensure!(answer.decision == Decision::Approved(approved), "answered {:?}", answer.decision);
        let word = if approved { "approved" } else { "denied" };
        anyhow::ensure!(head.starts_with(word) && buttons.is_empty(), "the card says {head}");
        checked.answered.add_ms(ms(answer.at_ms) - unit.pressed_ms);
        let edited = edited_ms(card)?;
        checked.edited.add_ms(ms(edited - answer.at_ms));
        checked.last_ms = checked.last_ms.max(edited);
        Ok(())
    }

    /// Everything Slack would hold against the service, and everything private anybody was told (a refusal).
    pub(crate) fn complaints(&self) {
        for complaint in self.slack.complaints().into_iter().take(5) {
            self.problem(format!("Slack: {complaint}"));
        }
        for user in ["U0DANA", "U0KIM"] {
            for told in self.slack.told(user).into_iter().take(5) {
                self.problem(format!("{user} was told: {told}"));
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of this century are far below 2^52")]
fn ms(ms: i64) -> f64 {
    ms as f64
}

/// A message id in microseconds.
fn micros(ts: &str) -> Result<i64> {
    Ok(ts.replace('.', "").parse()?)
}

fn edited_ms(card: &Message) -> Result<i64> {
    Ok(micros(&card.edited.as_ref().context("never edited")?.ts)? / 1000)
}

/// The unit a card shows.
fn unit_of(message: &Message) -> Option<usize> {
    let find = |text: &str| {
        let (_, rest) = text.split_once(MARK)?;
        rest.get(..DIGITS)?.parse().ok()
    };
    find(&message.text).or_else(|| message.blocks.iter().find_map(|block| find(&block.to_string())))
}
