//! `[[runtime]]`: a system that runs agents.
//!
//! Invariant: every runtime here is answered as the clicking person's subject; there is no way to
//! configure one that would be answered as nobody.

use super::address::{self, Address, Plain};
use super::answer::{self, AnswerWith};
use super::check::{Check, known};
use super::details::DetailsUrl;
use super::headers;
use super::secrets::{SecretRef, TextOrSecret};
use super::server::PublicUrl;
use super::watch::{self, RawWatchAs, WatchAs};
use crate::domain::ids::RuntimeName;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// A system that runs agents and raises interactions.
#[derive(Debug, Clone)]
pub struct Runtime {
    pub name: RuntimeName,
    pub kind: RuntimeKind,
    pub address: Address,
    /// Origins (`https://host[:port]`, as [`url::Url::origin`] prints them) that an agent card may
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
    pub(super) answer_with: Option<String>,
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
        let address =
            address::of_runtime(check, at, self.endpoint.as_deref(), self.card_url.as_deref(), plain);
        let allow_origins =
            address::origins(check, &key("allow_origins"), &self.allow_origins.unwrap_or_default(), plain);
        let has_token = self.token.is_some();
        let token = self.token.and_then(|secret| check.token(&key("token"), &secret));
        let watch_as = watch::watch_as(check, &key("watch_as"), self.watch_as);
        let agent = self.agent.filter(|agent| check.filled(&key("agent"), agent));
        let scopes = answer::scopes(check, &key("scopes"), self.scopes);
        let subject_header = self.subject_header.clone().unwrap_or_else(|| answer::SUBJECT_HEADER.into());
        let given = answer::Given {
            word: self.answer_with,
            issuer: self.issuer,
            audience: self.audience,
            subject_header: self.subject_header,
            has_token,
            has_scopes: !scopes.is_empty(),
        };
        let answer_with = given.check(at, public_url, plain, check);
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
        if !has_token && watch_as == Some(WatchAs::Credential) {
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

/// A runtime named in a route.
pub(super) fn exists(check: &mut Check<'_>, key: &str, name: &str) {
    if !check.names.runtimes.contains(name) {
        let fix = known(&check.names.runtimes, "add a [[runtime]] with this name");
        check.error(key, format!("no [[runtime]] is named `{name}`"), fix);
    }
}
