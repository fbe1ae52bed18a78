//! `[[runtime]]`: a system that runs agents.
//!
//! Invariant: every runtime here is answered as the clicking person's subject; there is no way to
//! configure one that would be answered as nobody.

use super::check::{Check, Plain, known};
use super::secrets::{SecretRef, TextOrSecret};
use super::server::PublicUrl;
use super::{details::DetailsUrl, headers};
use crate::domain::ids::{RuntimeName, Subject};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::time::Duration;
use url::Url;

/// A system that runs agents and raises interactions.
#[derive(Debug, Clone)]
pub struct Runtime {
    pub name: RuntimeName,
    pub kind: RuntimeKind,
    pub address: Address,
    /// Origins (`https://host[:port]`, as [`Url::origin`] prints them) that an agent card may
    /// name besides its own.
    pub allow_origins: Vec<String>,
    /// Plain http is allowed also off this machine.
    pub plain_http: bool,
    /// The watching credential.
    pub token: Option<SecretString>,
    pub watch_as: WatchAs,
    /// The agent's name for cards and routes; without it the agent card's name.
    pub agent: Option<String>,
    pub answer_with: AnswerWith,
    /// What an answer may do there.
    pub scopes: Vec<String>,
    /// How often is looked, where nothing better is offered.
    pub poll: Duration,
    pub details_url: Option<DetailsUrl>,
    /// Sent with every call.
    pub headers: Vec<Header>,
    /// The runtime answers once per `messageId`.
    pub dedupe: bool,
}

/// How a runtime is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeKind {
    A2a,
}

/// Where a runtime is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// The JSON-RPC interface; its agent card is looked for below it, then at its origin.
    Endpoint(Url),
    /// The agent card, which decides.
    Card(Url),
}

impl Address {
    pub fn url(&self) -> &Url {
        match self {
            Self::Endpoint(url) | Self::Card(url) => url,
        }
    }
}

/// As whom a runtime is watched that shows each subject only its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchAs {
    /// With the watching credential alone.
    Credential,
    /// As each of these.
    Subjects(Vec<Subject>),
    /// As every subject that has a link.
    Linked,
}

/// How the clicking person's subject is carried to the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerWith {
    /// A token of ours that names the person.
    Jwt { issuer: String, audience: String },
    /// The watching credential, with the subject in this header.
    SubjectHeader { header: String },
}

/// A fixed header.
#[derive(Debug, Clone)]
pub struct Header {
    pub name: String,
    pub value: SecretString,
}

/// A system that runs agents and raises interactions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Runtime")]
pub(super) struct Raw {
    /// Its name in routes, logs and metrics.
    #[schemars(required)]
    pub(super) name: Option<String>,
    /// What it speaks. This version: `a2a`.
    #[schemars(required, extend("enum" = ["a2a"]))]
    kind: Option<String>,
    /// Its JSON-RPC address. Either this or `card_url`.
    endpoint: Option<String>,
    /// The address of its agent card, which then names the interface. Either this or `endpoint`.
    card_url: Option<String>,
    /// Other origins on which the agent card may name an interface. Default: none.
    allow_origins: Option<Vec<String>>,
    /// Allow plain `http://` off this machine. Default `false`.
    plain_http: Option<bool>,
    /// The credential for watching (`Authorization: Bearer …`), and for answering with
    /// `subject_header`.
    token: Option<SecretRef>,
    /// The subjects to watch as, where a server shows each only its own: a list, or `"linked"`
    /// for everybody who has a link.
    watch_as: Option<RawWatchAs>,
    /// The agent's name on cards and in routes. Default: the name its agent card gives.
    agent: Option<String>,
    /// How an answer names the person who clicked: `jwt` (a token signed by Countersign) or
    /// `subject_header`.
    #[schemars(required, extend("enum" = ["jwt", "subject_header"]))]
    answer_with: Option<String>,
    /// The issuer in tokens. Default: `server.public_url`.
    issuer: Option<String>,
    /// The audience in tokens; each runtime has its own. Needed with `jwt`.
    pub(super) audience: Option<String>,
    /// What an answer may do there. Default `["sessions:own"]`.
    scopes: Option<Vec<String>>,
    /// How often to look, where the runtime offers nothing better. Default `10s`.
    poll: Option<String>,
    /// The runtime's own page of a task, linked from the card. May contain `{taskId}`,
    /// `{contextId}` and `{interactionId}`.
    details_url: Option<String>,
    /// Headers sent with every call. A value may be a secret.
    headers: Option<BTreeMap<String, TextOrSecret>>,
    /// The header that names the person, for `answer_with = "subject_header"`. Default
    /// `Nylorun-Subject`.
    subject_header: Option<String>,
    /// The runtime answers once per `messageId`. Default `true`; `false` for servers that do not.
    dedupe: Option<bool>,
}

#[derive(Debug, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "WatchAs")]
enum RawWatchAs {
    Subjects(Vec<String>),
    Word(Linked),
}

#[derive(Debug, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Linked {
    Linked,
}

impl<'de> Deserialize<'de> for RawWatchAs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let why = || serde::de::Error::custom("expected a list of subjects, or \"linked\"");
        match toml::Value::deserialize(from)? {
            toml::Value::String(word) if word == "linked" => Ok(Self::Word(Linked::Linked)),
            toml::Value::Array(list) => {
                let texts = list.into_iter().map(|item| match item {
                    toml::Value::String(text) => Ok(text),
                    _ => Err(why()),
                });
                texts.collect::<Result<_, _>>().map(Self::Subjects)
            }
            _ => Err(why()),
        }
    }
}

const SUBJECT_HEADER: &str = "Nylorun-Subject";
const SCOPE: &str = "sessions:own";

impl Raw {
    pub(super) fn check(
        self,
        at: &str,
        public_url: Option<&PublicUrl>,
        check: &mut Check<'_>,
    ) -> Option<Runtime> {
        let key = |key: &str| format!("{at}.{key}");
        let name = check.name(at, self.name);
        let kind = kind(check, at, self.kind);
        let plain_http = self.plain_http.unwrap_or(false);
        let plain = if plain_http { Plain::Allowed } else { Plain::LoopbackOrSaidSo };
        let address = address(check, at, self.endpoint.as_deref(), self.card_url.as_deref(), plain);
        let allow_origins =
            origins(check, &key("allow_origins"), &self.allow_origins.unwrap_or_default(), plain);
        let has_token = self.token.is_some();
        let token = self.token.and_then(|secret| check.token(&key("token"), &secret));
        let watch_as = watch_as(check, &key("watch_as"), self.watch_as);
        let agent = self.agent.filter(|agent| filled(check, &key("agent"), agent));
        let scopes = scopes(check, &key("scopes"), self.scopes);
        let subject_header = self.subject_header.unwrap_or_else(|| SUBJECT_HEADER.into());
        let answer_with = match check
            .required(at, "answer_with", self.answer_with, "add answer_with = \"jwt\" or \"subject_header\"")
            .as_deref()
        {
            Some("jwt") => jwt(check, at, self.issuer, self.audience, public_url, plain),
            Some("subject_header") => {
                if !has_token {
                    check.required::<()>(
                        at,
                        "token",
                        None,
                        "add the application key with which to answer: token = { env = \"NAME\" }",
                    );
                }
                if scopes.is_empty() {
                    check.error(
                        &key("scopes"),
                        "the list is empty, but a subject header needs a scope".into(),
                        format!("write scopes = [\"{SCOPE}\"], or leave the key out"),
                    );
                }
                headers::subject(check, &key("subject_header"), &subject_header)
                    .then(|| AnswerWith::SubjectHeader { header: subject_header.clone() })
            }
            Some(word) => {
                not_an_answer(check, &key("answer_with"), word);
                None
            }
            None => None,
        };
        let ten_seconds = Duration::from_secs(10);
        let poll = check.duration(&key("poll"), self.poll.as_deref(), ten_seconds, Duration::from_millis(10));
        let on_this_machine = address.as_ref().is_some_and(|address| crate::net::is_loopback(address.url()));
        if poll < Duration::from_secs(1) && !on_this_machine && address.is_some() {
            check.error(
                &key("poll"),
                "less than a second is only for a runtime on this machine".into(),
                "write \"5s\" or more".into(),
            );
        }
        let details_url =
            self.details_url.and_then(|text| DetailsUrl::check(check, &key("details_url"), &text, plain));
        let headers =
            headers::fixed(check, &key("headers"), self.headers.unwrap_or_default(), &subject_header);
        if token.is_none() && !has_token && watch_as == Some(WatchAs::Credential) {
            check.warn(
                at,
                "neither `token` nor `watch_as` is given: only tasks registered by the operator API are seen"
                    .into(),
                "add token = { env = \"NAME\" }, or watch_as".into(),
            );
        }
        Some(Runtime {
            name: RuntimeName::new(name?),
            kind: kind?,
            address: address?,
            allow_origins,
            plain_http,
            token,
            watch_as: watch_as?,
            agent,
            answer_with: answer_with?,
            scopes,
            poll,
            details_url,
            headers,
            dedupe: self.dedupe.unwrap_or(true),
        })
    }
}

fn kind(check: &mut Check<'_>, at: &str, kind: Option<String>) -> Option<RuntimeKind> {
    let path = format!("{at}.kind");
    match check.required(at, "kind", kind, "add kind = \"a2a\"")?.as_str() {
        "a2a" => return Some(RuntimeKind::A2a),
        later @ ("nylorun" | "bma" | "managed-agents") => check.error(
            &path,
            format!("`{later}` is not part of this version yet"),
            "this version has kind = \"a2a\" only".into(),
        ),
        other => {
            check.error(&path, format!("`{other}` is no kind of runtime"), "write kind = \"a2a\"".into());
        }
    }
    None
}

fn address(
    check: &mut Check<'_>,
    at: &str,
    endpoint: Option<&str>,
    card_url: Option<&str>,
    plain: Plain,
) -> Option<Address> {
    match (endpoint, card_url) {
        (Some(_), Some(_)) => {
            check.error(
                &format!("{at}.card_url"),
                "`endpoint` and `card_url` are both given".into(),
                "keep the one that leads to the agent: with `card_url` the agent card decides".into(),
            );
            None
        }
        (Some(text), None) => check.address(&format!("{at}.endpoint"), text, plain).map(Address::Endpoint),
        (None, Some(text)) => check.address(&format!("{at}.card_url"), text, plain).map(Address::Card),
        (None, None) => {
            if !check.has_finding(&format!("{at}.card_url")) {
                check.required::<()>(
                    at,
                    "endpoint",
                    None,
                    "add endpoint = \"https://…\" (the JSON-RPC address), or card_url",
                );
            }
            None
        }
    }
}

/// Origins, as [`Url::origin`] prints them.
fn origins(check: &mut Check<'_>, key: &str, texts: &[String], plain: Plain) -> Vec<String> {
    let mut origins = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        let path = format!("{key}[{at}]");
        let Some(url) = check.address(&path, text, plain) else { continue };
        if url.path() != "/" || url.query().is_some() {
            check.error(
                &path,
                format!("`{text}` is more than an origin"),
                format!("write \"{}\"", url.origin().ascii_serialization()),
            );
        } else {
            origins.push(url.origin().ascii_serialization());
        }
    }
    origins
}

fn watch_as(check: &mut Check<'_>, key: &str, raw: Option<RawWatchAs>) -> Option<WatchAs> {
    match raw {
        None => Some(WatchAs::Credential),
        Some(RawWatchAs::Word(Linked::Linked)) => Some(WatchAs::Linked),
        Some(RawWatchAs::Subjects(texts)) if texts.is_empty() => {
            check.error(
                key,
                "the list is empty".into(),
                "name subjects, write \"linked\", or leave the key out to watch with the token alone".into(),
            );
            None
        }
        Some(RawWatchAs::Subjects(texts)) => Some(WatchAs::Subjects(check.subjects(key, &texts))),
    }
}

fn filled(check: &mut Check<'_>, key: &str, text: &str) -> bool {
    let filled = !text.trim().is_empty();
    if !filled {
        check.error(key, "is empty".into(), "write a text, or leave the key out".into());
    }
    filled
}

fn scopes(check: &mut Check<'_>, key: &str, scopes: Option<Vec<String>>) -> Vec<String> {
    let scopes = scopes.unwrap_or_else(|| vec![SCOPE.into()]);
    for (at, scope) in scopes.iter().enumerate() {
        if scope.is_empty() || !scope.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\') {
            check.error(
                &format!("{key}[{at}]"),
                format!("`{scope}` is no scope"),
                "write one scope per element, without spaces: [\"sessions:own\"]".into(),
            );
        }
    }
    scopes
}

fn jwt(
    check: &mut Check<'_>,
    at: &str,
    issuer: Option<String>,
    audience: Option<String>,
    public_url: Option<&PublicUrl>,
    plain: Plain,
) -> Option<AnswerWith> {
    let path = format!("{at}.issuer");
    let issuer = match (issuer, public_url) {
        (Some(text), _) => check.address(&path, &text, plain).map(|_| text),
        (None, Some(public)) => Some(public.text.clone()),
        // A public_url that is there but wrong is noted already; a second finding would mislead.
        (None, None) if check.has_finding("server.public_url") => None,
        (None, None) => check.required(
            at,
            "issuer",
            None,
            "add server.public_url, which is the issuer of tokens and where runtimes fetch the public keys",
        ),
    };
    let audience = check
        .required(
            at,
            "audience",
            audience,
            "add the audience by which the runtime knows tokens that are for it",
        )
        .filter(|text| filled(check, &format!("{at}.audience"), text));
    Some(AnswerWith::Jwt { issuer: issuer?, audience: audience? })
}

fn not_an_answer(check: &mut Check<'_>, key: &str, word: &str) {
    let message = match word {
        "none" => "answering without a person is refused: this runtime can record who answered".to_owned(),
        "actor" => "`actor` is not spoken by an a2a runtime".to_owned(),
        other => format!("`{other}` is no way to answer"),
    };
    check.error(key, message, "write \"jwt\" or \"subject_header\"".into());
}

/// Two runtimes that accept tokens for one audience could replay each other's.
pub(super) fn same_audience(check: &mut Check<'_>, runtimes: &[Raw]) {
    let jwt: Vec<(usize, &str)> = runtimes
        .iter()
        .enumerate()
        .filter(|(_, runtime)| runtime.answer_with.as_deref() == Some("jwt"))
        .filter_map(|(at, runtime)| Some((at, runtime.audience.as_deref()?)))
        .collect();
    for (n, (at, audience)) in jwt.iter().enumerate() {
        if let Some((first, _)) = jwt.iter().take(n).find(|(_, other)| other == audience) {
            check.error(
                &format!("runtime[{at}].audience"),
                format!("`{audience}` is also the audience of runtime[{first}]: each could use tokens meant for the other"),
                "give each runtime its own audience".into(),
            );
        }
    }
}

/// A runtime named in a route.
pub(super) fn exists(check: &mut Check<'_>, key: &str, name: &str) {
    if !check.names.runtimes.contains(name) {
        let fix = known(&check.names.runtimes, "add a [[runtime]] with this name");
        check.error(key, format!("no [[runtime]] is named `{name}`"), fix);
    }
}
