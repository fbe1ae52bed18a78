//! Answers and headers written by a test: foreign 429s, a CDN's page, odd rate-limit headers.
//!
//! Invariant: like a fault, a script fires for exactly the calls it names, in the order given.

use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

/// An answer of the test's making.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// As recorded, `*` for any.
    pub route: String,
    /// Only calls for this channel (or other major id).
    #[serde(default)]
    pub major: Option<String>,
    #[serde(default)]
    pub skip: u32,
    #[serde(default = "once")]
    pub times: u32,
    /// Carries the call out first.
    #[serde(default)]
    pub act: bool,
    /// In place of the answer's own.
    #[serde(default)]
    pub status: Option<u16>,
    #[serde(default)]
    pub body: Option<String>,
    /// Set, or with `null` taken away. Without a body of JSON no rate-limit header stands by itself.
    #[serde(default)]
    pub headers: BTreeMap<String, Option<String>>,
}

fn once() -> u32 {
    1
}

impl Script {
    fn answer(route: &str, status: u16, body: String) -> Self {
        let json = body.starts_with('{');
        let kind = if json { "application/json" } else { "text/html; charset=UTF-8" };
        let headers = BTreeMap::from([("content-type".to_owned(), Some(kind.to_owned()))]);
        let (status, body) = (Some(status), Some(body));
        Self { route: route.into(), major: None, skip: 0, times: 1, act: false, status, body, headers }
    }

    /// 429 as Discord gives it, without `code`: `retry_after` seconds in the body, rounded up in the header.
    #[must_use]
    pub fn limited(route: &str, scope: super::Scope, retry_after: f64) -> Self {
        let global = scope == super::Scope::Global;
        let body =
            json!({"message": "You are being rate limited.", "retry_after": retry_after, "global": global});
        let mut script = Self::answer(route, 429, body.to_string());
        let scope = json!(scope).as_str().unwrap_or_default().to_owned();
        script.set("retry-after", &format!("{}", retry_after.ceil().max(0.0)));
        script.set("x-ratelimit-scope", &scope);
        if global {
            script.set("x-ratelimit-global", "true");
        } else {
            script.set("x-ratelimit-limit", "5");
            script.set("x-ratelimit-remaining", "0");
            script.set("x-ratelimit-reset-after", &retry_after.to_string());
            script.set("x-ratelimit-bucket", &super::limits::bucket(route));
        }
        script
    }

    /// A page of the CDN in place of an answer: no rate-limit headers, no `Retry-After`.
    #[must_use]
    pub fn html(route: &str, status: u16) -> Self {
        let page = "<!DOCTYPE html><html><head><title>Access denied | discord.com used Cloudflare</title></head>\
             <body>error code: 1015</body></html>";
        Self::answer(route, status, page.into())
    }

    /// This JSON with this status.
    #[must_use]
    pub fn json(route: &str, status: u16, body: &serde_json::Value) -> Self {
        Self::answer(route, status, body.to_string())
    }

    /// The call's own answer with other headers.
    #[must_use]
    pub fn headers(route: &str, headers: &[(&str, &str)]) -> Self {
        let mut script = Self::answer(route, 200, String::new());
        (script.act, script.status, script.body) = (true, None, None);
        script.headers =
            headers.iter().map(|(name, value)| ((*name).into(), Some((*value).into()))).collect();
        script
    }

    /// The same after the call was carried out: done, and the answer is another.
    #[must_use]
    pub fn acting(mut self) -> Self {
        self.act = true;
        self
    }

    /// Done, and answered 200 with this text: cut or foreign JSON.
    #[must_use]
    pub fn garbled(route: &str, body: &str) -> Self {
        Self::answer(route, 200, body.into()).acting()
    }

    /// The same for this many calls.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    /// The same for this channel only.
    #[must_use]
    pub fn of(mut self, major: &str) -> Self {
        self.major = Some(major.into());
        self
    }

    /// The same with one header more.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.set(name, value);
        self
    }

    fn set(&mut self, name: &str, value: &str) {
        self.headers.insert(name.into(), Some(value.into()));
    }
}

/// The scripts in force.
#[derive(Debug, Default)]
pub(super) struct Scripts(pub(super) Vec<Script>);

impl Scripts {
    /// What is scripted for this call; consumes the script's turn.
    pub(super) fn take(&mut self, route: &str, major: &str) -> Option<Script> {
        let fits = |one: &Script| {
            (one.route == "*" || one.route == route) && one.major.as_deref().is_none_or(|of| of == major)
        };
        let at = self.0.iter().position(fits)?;
        let script = self.0.get_mut(at)?;
        if script.skip > 0 {
            script.skip -= 1;
            return None;
        }
        let taken = script.clone();
        if script.times != u32::MAX {
            script.times -= 1;
        }
        if script.times == 0 {
            self.0.remove(at);
        }
        Some(taken)
    }
}
