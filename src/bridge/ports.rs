//! What the bridge needs from runtimes and chat platforms, and the errors that decide.
//!
//! Invariant: no type of a protocol or of a library passes through here. An error says what to do
//! next (retry when, give up, unauthorized, outcome unknown), so that nobody matches on its text.

pub use super::findings::{Finding, Severity, clock};
use crate::domain::bulletin::Bulletin;
use crate::domain::card::{Card, Control};
use crate::domain::clock::Millis;
use crate::domain::form::{Decision, Form};
use crate::domain::ids::{CardId, ChatUser, InteractionKey, Platform, RuntimeName, Subject};
use crate::domain::interaction::{End, Outcome, Sent, Why};
use crate::domain::notice::Notice;
use crate::domain::place::Target;
pub use crate::domain::place::{Destination, Identity, MessageRef};
use crate::domain::policy::Standing;
use crate::domain::view::View;
use crate::domain::waiting::Waiting;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use secrecy::SecretString;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

// ---------------------------------------------------------------- agents' side

/// One runtime, spoken to in its own protocol.
pub trait Connector: Send + Sync {
    fn runtime(&self) -> &RuntimeName;

    /// One page of everything that finds tasks without being told of them. `cursor` is `None` at
    /// the start of a pass and what the page before said after it.
    fn list(&self, cursor: Option<String>) -> BoxFuture<'_, Result<Page, ConnectorError>>;

    /// Reads one task with the identity that may see it.
    fn read<'a>(&'a self, task: &'a TaskRef) -> BoxFuture<'a, Result<TaskReading, ConnectorError>>;

    /// The exact body of an answer and its idempotency key, made once when the claim is made and
    /// stored; pure. `Err` when the subject cannot be carried to this runtime.
    fn compose(&self, answer: &Compose<'_>) -> Result<Composed, Why>;

    /// Sends a stored body as the subject (or, where the runtime does not deduplicate and the
    /// interaction has ended, looks for it in the history instead).
    fn answer<'a>(&'a self, answer: &'a Outgoing) -> BoxFuture<'a, Answered>;

    /// How a task that is known is followed best: what the runtime says it has, and has not refused.
    /// `None`: it has not described itself yet, or may not be used now.
    fn tracker(&self) -> Option<Tracker> {
        Some(Tracker::Poll)
    }

    /// Follows one task as it changes, until it ends or the connection does. What is heard begins with
    /// the task as it is.
    fn follow<'a>(&'a self, _task: &'a TaskRef) -> BoxFuture<'a, Result<Followed, Unfollowed>> {
        Box::pin(async { Err(Unfollowed::Unsupported) })
    }

    /// Asks the runtime to call `hook` when the task changes.
    fn notify<'a>(&'a self, _task: &'a TaskRef, _hook: &'a Hook) -> BoxFuture<'a, Result<(), Unfollowed>> {
        Box::pin(async { Err(Unfollowed::Unsupported) })
    }

    /// Asks the runtime not to call any more; that there is nothing to end is success.
    fn forget<'a>(&'a self, _task: &'a TaskRef, _id: &'a str) -> BoxFuture<'a, Result<(), ConnectorError>> {
        Box::pin(async { Ok(()) })
    }

    /// The runtime's own page for this interaction, where configured.
    fn details_url(&self, key: &InteractionKey, context: Option<&str>) -> Option<String>;

    /// Reads what the connector needs of the runtime's self-description, if that is due.
    fn refresh(&self) -> BoxFuture<'_, Result<(), ConnectorError>>;

    /// Rises when the runtime's self-description has changed: what waits because credentials or
    /// configuration were wrong is tried again at once.
    fn generation(&self) -> u64 {
        0
    }

    /// Whether the connector watches as every linked subject and wants to be told of them.
    fn wants_linked(&self) -> bool {
        false
    }

    /// The subjects that have a link now, for a connector that wants them. Takes effect with the
    /// next pass.
    fn linked(&self, _subjects: Vec<Subject>) {}

    /// Looks at address, card, features, credentials and clocks, for `check`; changes nothing. `subject`:
    /// somebody whose answers would be carried, to see whether the runtime takes the credential.
    fn examine<'a>(&'a self, subject: Option<&'a Subject>) -> BoxFuture<'a, Vec<Finding>> {
        let _ = subject;
        Box::pin(async { vec![] })
    }
}

/// Says to a runtime who calls. Made anew for every attempt: never stored, never logged.
pub trait Carrier: Send + Sync {
    /// The headers that make a call the subject's, or (`None`) the watching credential's.
    fn carry(&self, subject: Option<&Subject>, at: Millis)
    -> Result<Vec<(String, SecretString)>, CarryError>;

    /// Whether an answer can be carried as this subject at all; pure.
    fn takes(&self, subject: &Subject) -> bool;
}

/// Why an identity cannot be put on a call.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CarryError {
    #[error("this person cannot be named to this runtime")]
    Unmappable,
    /// A credential or a key is missing or unreadable: for operators.
    #[error("{what}")]
    NotReady { what: String },
}

/// A page of readings; `next` is `None` at the end of the pass.
#[derive(Debug, Clone, Default)]
pub struct Page {
    pub readings: Vec<TaskReading>,
    pub next: Option<String>,
    /// Whether the runtime can be listed at all (a runtime that cannot is read task by task).
    pub supported: bool,
}

/// A task to read, and as whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRef {
    pub task: String,
    pub context: Option<String>,
    /// The subject whose view shows it; `None` = the watching credential.
    pub seen_as: Option<Subject>,
}

/// An authoritative reading of one task.
#[derive(Debug, Clone)]
pub struct TaskReading {
    pub agent: String,
    pub task: String,
    pub context: Option<String>,
    pub seen_as: Option<Subject>,
    /// When the request that gave this reading was sent.
    pub began: Millis,
    pub state: TaskState,
    /// Answers that the task's history tells of.
    pub history: Vec<PastAnswer>,
}

/// How a known task is followed, the fastest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracker {
    /// An open connection that tells of every change.
    Stream,
    /// The runtime calls us.
    Push,
    /// It is read again and again.
    Poll,
}

/// What is heard of a followed task; the end of the stream is the end of the connection.
pub type Followed = BoxStream<'static, Heard>;

/// One thing heard of a followed task.
#[derive(Debug, Clone)]
pub enum Heard {
    /// Its state. `began` is a moment before which this was not said: when the connection was asked
    /// for, or for an end, after which nothing can come, when it was received.
    Reading(Box<TaskReading>),
    /// The other side is there.
    Alive,
}

/// Why a task is not followed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Unfollowed {
    /// There is nothing to follow (any more); the reading that says so.
    #[error("the task has ended or is not there")]
    Over(Box<TaskReading>),
    /// The runtime does not do that; [`Connector::tracker`] now knows.
    #[error("not supported by the runtime")]
    Unsupported,
    #[error(transparent)]
    Failed(#[from] ConnectorError),
}

/// Where and with which secrets a runtime is asked to call. Made once, never stored, never logged.
#[derive(Debug, Clone)]
pub struct Hook {
    pub id: String,
    pub url: SecretString,
    /// The bearer credential of its calls.
    pub credential: SecretString,
    pub token: SecretString,
}

/// What the task was doing.
#[derive(Debug, Clone)]
pub enum TaskState {
    /// Paused for a person.
    Waiting(Box<Seen>),
    /// Going on: whatever it waited for is resolved.
    Running,
    Completed,
    Ended(End),
    NotFound,
    /// A state this version does not know: nothing is concluded from it.
    Unclear,
}

/// One open interaction as a reading shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub key: InteractionKey,
    pub form: Form,
    /// For whom the agent works, where this reading names one.
    pub owner: Option<Subject>,
}

/// An answer found in a task's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastAnswer {
    /// The interaction it answered (the runtime's id).
    pub external: String,
    pub message_id: Option<String>,
    pub who: Option<String>,
    pub what: Option<Outcome>,
}

/// What an answer's body is made of.
#[derive(Debug)]
pub struct Compose<'a> {
    pub key: &'a InteractionKey,
    pub context: Option<&'a str>,
    pub decision: &'a Decision,
    pub subject: &'a Subject,
    /// The deployment's prefix of idempotency keys.
    pub prefix: &'a str,
    /// 1 for the interaction's first claim, then 2, 3 …
    pub number: u32,
}

/// A body that will be sent exactly so, at every attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Composed {
    pub message_id: String,
    pub body: Value,
}

/// A stored answer on its way.
#[derive(Debug, Clone)]
pub struct Outgoing {
    pub key: InteractionKey,
    pub context: Option<String>,
    pub seen_as: Option<Subject>,
    pub subject: Subject,
    pub message_id: String,
    pub body: Value,
    pub sent: Sent,
    /// A reading has shown the interaction ended: this only finds out whose answer did it.
    pub probe: bool,
}

/// How an attempt ended, and in a few fixed words what the runtime said (for the log and the audit:
/// codes, no foreign text).
#[derive(Debug, Clone)]
pub struct Answered {
    pub outcome: AnswerOutcome,
    pub said: String,
}

#[derive(Debug, Clone)]
pub enum AnswerOutcome {
    /// Taken, with the task as the runtime returned it or as it was read right after.
    Accepted { after: Option<TaskReading> },
    /// A definite refusal of this subject or body, with the reading that followed.
    Refused { why: Why, after: Option<TaskReading> },
    /// Nothing reached the runtime.
    NotSent { retry_after: Option<Duration> },
    /// It may have been received.
    Unknown { retry_after: Option<Duration> },
    /// Credentials or configuration are wrong: the claim is kept and operators are alerted.
    Attention { what: String },
}

/// Why a runtime could not be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConnectorError {
    #[error("the runtime did not answer ({what})")]
    Unavailable { what: String, retry_after: Option<Duration> },
    #[error("the runtime refuses our credentials ({what})")]
    Unauthorized { what: String },
    #[error("the connection to the runtime is configured wrongly: {what}")]
    Configuration { what: String },
    #[error("the runtime's answer does not follow its protocol ({what})")]
    Protocol { what: String },
}

// ---------------------------------------------------------------- people's side

/// One install of a chat platform.
pub trait ChatPlatform: Send + Sync {
    /// The configured name.
    fn install(&self) -> &str;
    fn platform(&self) -> Platform;

    /// Asks the platform who we are there. Must have succeeded once before clicks can be attributed.
    fn identify(&self) -> BoxFuture<'_, Result<Identity, ChatError>>;

    /// Tells the platform what it shows of us (commands), unless that is what was told before: `known`.
    /// Returns what is to be kept, if anything was told.
    fn introduce<'a>(&'a self, known: Option<&'a str>) -> BoxFuture<'a, Result<Option<String>, ChatError>> {
        let _ = known;
        Box::pin(async { Ok(None) })
    }

    /// What operators should look at there, and what is well again. Asked now and then; says what is known.
    fn troubles(&self) -> Vec<Trouble> {
        vec![]
    }

    /// The channel id of a configured target.
    fn resolve<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<String, ChatError>>;

    /// Takes the right to make one such call now, or says how long to wait. A job that must wait goes
    /// back to the queue before anything is stored or sent. The platform's own limit is the truth all
    /// the same: a call may still end in [`ChatError::Paced`].
    fn reserve(&self, call: &Call<'_>) -> Result<(), Duration> {
        let _ = call;
        Ok(())
    }

    /// Draws a card; pure. Never fails: what does not fit is cut visibly and `cut` says so.
    fn draw(&self, card: &Card, marks: &Marks) -> Drawn;

    /// Whether pressing this control opens something there, before anything is decided.
    fn opens(&self, control: Control) -> bool {
        control.opens()
    }

    /// How many pages everything of this card takes when it is opened in full; at least 1. Pure.
    fn pages(&self, card: &Card) -> usize {
        let _ = card;
        1
    }

    /// Opens something in front of the person who pressed, at once: it is never queued and never tried
    /// again, because the right to open it is over in seconds. A platform that opens things in its answer to
    /// the press has no use for this.
    fn open<'a>(&'a self, way: &'a WayIn, view: &'a View) -> BoxFuture<'a, Result<(), ChatError>> {
        let _ = (way, view);
        Box::pin(async { Err(ChatError::Permanent { code: "opens_nothing".into() }) })
    }

    /// Draws what replaces a card whose state nobody knows any more; pure.
    fn draw_unknown(&self) -> Drawn;

    /// `card` and `rev` travel with the message so that it can be found again.
    fn post<'a>(
        &'a self,
        to: &'a Destination,
        drawn: &'a Drawn,
        card: CardId,
        rev: i64,
    ) -> BoxFuture<'a, Result<MessageRef, ChatError>>;

    fn edit<'a>(&'a self, at: &'a MessageRef, drawn: &'a Drawn) -> BoxFuture<'a, Result<(), ChatError>>;

    /// For so long after its sending a post of unknown outcome may simply be made again: the platform knows it
    /// and returns the first (Discord's nonce). Zero: it has to be looked for.
    fn repeats_posts(&self) -> Duration {
        Duration::ZERO
    }

    /// Looks for posts of this card since a moment. `Unreadable` when the install may not look.
    fn find<'a>(
        &'a self,
        at: &'a Destination,
        card: CardId,
        since: Millis,
    ) -> BoxFuture<'a, Result<Vec<MessageRef>, ChatError>>;

    fn delete<'a>(&'a self, at: &'a MessageRef) -> BoxFuture<'a, Result<(), ChatError>>;

    /// Tells one person privately.
    fn tell<'a>(&'a self, to: &'a Person, notice: &'a Notice) -> BoxFuture<'a, Result<(), ChatError>>;

    /// Draws what waits for one person; pure. The same for a private message and for the Home.
    fn draw_waiting(&self, waiting: &Waiting) -> Drawn;

    /// Shows one person a drawing privately.
    fn tell_drawn<'a>(&'a self, to: &'a Person, drawn: &'a Drawn) -> BoxFuture<'a, Result<(), ChatError>>;

    /// Shows a drawing as a person's Home.
    fn publish_home<'a>(&'a self, user: &'a str, drawn: &'a Drawn) -> BoxFuture<'a, Result<(), ChatError>>;

    /// The address under which people open a message.
    fn link<'a>(&'a self, at: &'a MessageRef) -> BoxFuture<'a, Result<String, ChatError>>;

    /// Reads who an account is, now.
    fn profile<'a>(&'a self, user: &'a PressedBy) -> BoxFuture<'a, Result<Profile, ChatError>>;

    /// Whether a channel takes cards now. `refused` is the code of what it refused before, empty when nothing
    /// was. `Place` says why it does not.
    fn look<'a>(&'a self, channel: &'a str, refused: &'a str) -> BoxFuture<'a, Result<Look, ChatError>>;

    /// Draws a message that is no card; pure.
    fn draw_bulletin(&self, says: &Bulletin) -> Drawn;

    /// The members of a user group. Not asked where profiles name an account's groups.
    fn group<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Vec<String>, ChatError>>;

    /// Looks at credentials, rights and clocks, for `check`; changes nothing.
    fn examine(&self) -> BoxFuture<'_, Vec<Finding>> {
        Box::pin(async { vec![] })
    }

    /// Looks whether a place takes our messages, for `check`; posts nothing.
    fn examine_place<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Vec<Finding>> {
        let _ = target;
        Box::pin(async { vec![] })
    }
}

/// Something that operators should look at; without a text it is well again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The alert's key.
    pub key: String,
    pub text: Option<String>,
}

/// What a look at a channel shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// It takes cards.
    Well,
    /// Nothing is seen that would refuse one, but what was refused cannot be seen: the next card tells.
    Unsure,
}

/// A kind of call, for pacing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call<'a> {
    Post {
        channel: &'a str,
    },
    /// `last`: no other edit of this card is to follow.
    Edit {
        channel: &'a str,
        last: bool,
    },
    Tell,
    Find {
        channel: &'a str,
    },
    Home,
}

/// What a drawing is marked with: ids and the opaque tokens of its controls.
#[derive(Debug, Clone)]
pub struct Marks {
    pub card: CardId,
    pub rev: i64,
    pub tokens: Vec<(Control, String)>,
}

/// A drawn message, ready to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    /// What a phone's notification shows.
    pub text: String,
    /// The platform's own structure (blocks, components).
    pub body: Value,
    /// Smaller drawing for when the platform refuses `body`: fewer, plainer parts, same controls.
    pub compact: Value,
    /// Something of what is asked did not fit.
    pub cut: bool,
}

/// A control was pressed: verified, parsed, not yet judged.
#[derive(Debug, Clone)]
pub struct Pressed {
    pub platform: Platform,
    /// The platform's own key of this delivery; a repeat has the same.
    pub dedupe_key: String,
    pub app_id: Option<String>,
    pub team: Option<String>,
    pub enterprise: Option<String>,
    pub org_install: bool,
    pub by: PressedBy,
    /// The opaque token of the control.
    pub token: String,
    /// The card id as the message carries it; a hint only.
    pub channel: Option<String>,
    pub message: Option<String>,
    pub thread: Option<String>,
    /// Whether the pressed message says it is ours.
    pub own_message: bool,
    pub reply: Option<SecretString>,
    /// How something can be opened in answer to this press.
    pub way_in: Option<WayIn>,
    /// What the person typed, where a form was submitted; exactly.
    pub reason: Option<String>,
    /// What the platform says of the account with the press itself, where it does.
    pub said: Option<Profile>,
}

/// How something is opened in front of the person who pressed.
#[derive(Debug, Clone)]
pub enum WayIn {
    /// Anew, by the right that came with the press (Slack: `trigger_id`, 3 s, one use).
    Trigger(SecretString),
    /// In the place of what is open already, unless that has changed since.
    Instead { view: String, hash: Option<String> },
    /// In the private answer that stands for it already, by the token of the press (Discord, 15 min).
    Answer(SecretString),
}

/// Who pressed, as the payload says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PressedBy {
    pub user: String,
    /// The account's home team, if the payload names one; else where it was pressed.
    pub home_team: Option<String>,
}

/// Where a delivery comes from, as it says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    pub team: Option<String>,
    pub enterprise: Option<String>,
    pub org_install: bool,
    /// The app it is for, where that alone says which install it is (Discord).
    pub app: Option<String>,
}

impl Origin {
    /// Whether it is that install: by app, by enterprise for an install of a whole organisation, else by team.
    #[must_use]
    pub fn is_of(&self, identity: &Identity) -> bool {
        if let Some(app) = &self.app {
            return identity.app_id == *app;
        }
        if self.org_install {
            identity.enterprise.is_some() && identity.enterprise == self.enterprise
        } else {
            self.team.is_some() && identity.team == self.team
        }
    }
}

impl Pressed {
    /// Where the press comes from, as it says.
    #[must_use]
    pub fn origin(&self) -> Origin {
        Origin {
            team: self.team.clone(),
            enterprise: self.enterprise.clone(),
            org_install: self.org_install,
            app: self.app_id.clone().filter(|_| self.platform == Platform::Discord),
        }
    }
}

/// A command somebody typed: verified, parsed.
#[derive(Debug)]
pub struct Typed {
    pub origin: Origin,
    pub user: String,
    pub channel: Option<String>,
    pub reply: Option<SecretString>,
    /// What they typed after it; untrusted.
    pub text: String,
    /// What the platform says of the account with it, where it does.
    pub said: Option<Profile>,
}

/// Something that happened to an install or in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// Somebody opened their Home.
    HomeOpened { user: String },
    /// The app was removed.
    Uninstalled,
    /// Tokens of these bot users were taken back.
    TokensRevoked { bots: Vec<String> },
    /// The platform drops events, because there were too many.
    RateLimited,
}

/// Whom to tell, and how they can be reached.
#[derive(Debug, Clone)]
pub struct Person {
    pub user: String,
    pub channel: Option<String>,
    pub thread: Option<String>,
    /// An address for private answers, while it lives.
    pub reply: Option<SecretString>,
    /// They see already that an answer comes: it takes that place (Discord).
    pub awaited: bool,
}

/// What the platform says of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The immutable key; `None` when the platform knows no such person.
    pub key: Option<ChatUser>,
    pub standing: Standing,
    /// The chat's own groups (Discord: roles) that the account is in, where the platform says so with the
    /// account; `None` where a group has to be asked for its members.
    pub groups: Option<BTreeSet<String>>,
}

impl Profile {
    /// Nothing is known of the account but this.
    #[must_use]
    pub fn of(standing: Standing) -> Self {
        Self { key: None, standing, groups: None }
    }
}

/// Why a chat platform did not do it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ChatError {
    /// Not now: our own pacing or the platform's limit. Not counted as an attempt.
    #[error("paced for {after:?}")]
    Paced { after: Duration },
    /// Nothing was done; try again.
    #[error("the platform did not answer ({what})")]
    Unavailable { what: String },
    /// It may have been done.
    #[error("the outcome is unknown ({what})")]
    Unknown { what: String },
    /// The message itself is refused; never the same again.
    #[error("the message was refused: {code} {pointer}")]
    Payload { code: String, pointer: String },
    /// The place does not take messages.
    #[error("the place was refused: {code}")]
    Place { code: String },
    /// The thread takes no replies; the place may take cards.
    #[error("the thread was refused: {code}")]
    Thread { code: String },
    /// The message cannot be edited while its channel is closed.
    #[error("the channel is closed: {code}")]
    Closed { code: String },
    /// Credentials or scopes.
    #[error("the platform refuses our credentials: {code} {needed}")]
    Auth { code: String, needed: String },
    /// The message is gone, or what was open is closed.
    #[error("the message is gone: {code}")]
    Gone { code: String },
    /// The message can never be edited again.
    #[error("the message cannot be edited: {code}")]
    NotEditable { code: String },
    /// We may not look there.
    #[error("not readable: {code}")]
    Unreadable { code: String },
    /// No such person.
    #[error("no such person: {code}")]
    NoSuchPerson { code: String },
    /// What lets a form be opened is used up or over: the person has to press again.
    #[error("too late to open: {code}")]
    TooLate { code: String },
    /// Something newer is shown already: this one is dropped.
    #[error("out of date: {code}")]
    OutOfDate { code: String },
    /// The platform has that part of us switched off.
    #[error("switched off: {code}")]
    SwitchedOff { code: String },
    /// Anything else: permanent for this call.
    #[error("refused: {code}")]
    Permanent { code: String },
}
