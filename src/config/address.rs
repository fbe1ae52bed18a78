//! Addresses: of runtimes, of chat platforms, of ourselves.
//!
//! Invariant: no credential is in an address, and plain http stays on this machine unless a
//! runtime says otherwise.

use super::check::Check;
use url::Url;

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

/// Where plain http is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    /// On this machine only.
    Loopback,
    /// On this machine; the section has `plain_http` to allow it elsewhere.
    LoopbackOrSaidSo,
    /// Everywhere: the section said so.
    Allowed,
}

impl Check<'_> {
    /// An http address. Plain http is for this machine, or where `plain_http` was said.
    pub(super) fn address(&mut self, key: &str, text: &str, plain_http: Plain) -> Option<Url> {
        let Ok(url) = Url::parse(text) else {
            self.error(
                key,
                format!("`{text}` is no address"),
                "write a full address: \"https://host/path\"".into(),
            );
            return None;
        };
        if !url.username().is_empty() || url.password().is_some() {
            self.error(
                key,
                "the address contains a user name or password".into(),
                "leave them out; credentials have keys of their own".into(),
            );
            return None;
        }
        if url.fragment().is_some() {
            self.error(key, "the address contains a `#`".into(), "leave out the `#` and what follows".into());
            return None;
        }
        match url.scheme() {
            "https" => Some(url),
            "http" if plain_http == Plain::Allowed || crate::net::is_loopback(&url) => Some(url),
            "http" => {
                let fix = if plain_http == Plain::LoopbackOrSaidSo {
                    "use https://, or say plain_http = true for this runtime"
                } else {
                    "use https://"
                };
                self.error(key, "plain http is only for addresses of this machine".into(), fix.into());
                None
            }
            other => {
                self.error(key, format!("`{other}:` is not spoken here"), "write an https:// address".into());
                None
            }
        }
    }
}

/// Where a runtime is; `None` when that is faulty.
pub(super) fn of_runtime(
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
pub(super) fn origins(check: &mut Check<'_>, key: &str, texts: &[String], plain: Plain) -> Vec<String> {
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
