//! The agent card: what it says, which interface is used, and where that may lie. Pure.
//!
//! Invariants: the first usable interface in card order is chosen; an interface on another origin
//! than the card's is used only when the configuration lists that origin; plain http is for this
//! machine, or where it is allowed on purpose.

use super::types::text;
use crate::net::is_loopback;
use serde_json::Value;
use url::Url;

/// How an interface is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binding {
    JsonRpc,
    HttpJson,
}

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) url: Url,
    pub(crate) binding: Binding,
    /// Copied into every request.
    pub(crate) tenant: Option<String>,
}

impl Interface {
    pub(crate) fn at(url: Url) -> Self {
        Self { url, binding: Binding::JsonRpc, tenant: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    /// How many interfaces it names, whatever they are.
    pub(crate) named: usize,
    /// Those that this version can speak to, in card order.
    pub(crate) usable: Vec<Interface>,
    pub(crate) offers: Offers,
}

/// What the agent says it can do; a missing word means that it cannot (A2A 1.0 §3.3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Offers {
    pub(crate) streaming: bool,
    pub(crate) push: bool,
}

/// `None` when it is no agent card.
pub(crate) fn parse(body: &Value) -> Option<Card> {
    let interfaces = body.get("supportedInterfaces").and_then(Value::as_array);
    let name = text(body, "name");
    if interfaces.is_none() && name.is_none() {
        return None;
    }
    let interfaces = interfaces.map(Vec::as_slice).unwrap_or_default();
    Some(Card {
        name,
        version: text(body, "version"),
        named: interfaces.len(),
        usable: interfaces.iter().filter_map(usable).collect(),
        offers: offers(body),
    })
}

fn offers(body: &Value) -> Offers {
    let says = |what: &str| body.pointer(&format!("/capabilities/{what}")) == Some(&Value::Bool(true));
    Offers { streaming: says("streaming"), push: says("pushNotifications") }
}

fn usable(entry: &Value) -> Option<Interface> {
    let binding = match entry.get("protocolBinding")?.as_str()? {
        "JSONRPC" => Binding::JsonRpc,
        "HTTP+JSON" => Binding::HttpJson,
        _ => return None,
    };
    let version = entry.get("protocolVersion")?.as_str()?;
    let mut parts = version.split('.');
    if (parts.next(), parts.next()) != (Some("1"), Some("0")) {
        return None;
    }
    let url = Url::parse(entry.get("url")?.as_str()?).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| Interface {
        url,
        binding,
        tenant: text(entry, "tenant"),
    })
}

/// Scheme, host and port.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Whether two addresses mean the same place.
pub(crate) fn same(a: &Url, b: &Url) -> bool {
    a.as_str().trim_end_matches('/') == b.as_str().trim_end_matches('/')
}

/// Where requests may go.
#[derive(Debug, Clone)]
pub(crate) struct Fence {
    pub(crate) allow_origins: Vec<String>,
    pub(crate) plain_http: bool,
}

impl Fence {
    /// # Errors
    /// Says which setting would allow it.
    pub(crate) fn scheme(&self, url: &Url) -> Result<(), String> {
        if url.scheme() == "https" || self.plain_http || is_loopback(url) {
            return Ok(());
        }
        Err(format!("{} is plain http off this machine, which needs `plain_http = true`", origin(url)))
    }

    pub(crate) fn lists(&self, url: &Url) -> bool {
        let wanted = origin(url);
        self.allow_origins
            .iter()
            .any(|listed| Url::parse(listed).map_or_else(|_| *listed == wanted, |url| origin(&url) == wanted))
    }

    /// # Errors
    /// When the interface lies on another origin than the card and is not listed.
    pub(crate) fn check(&self, interface: &Url, card: &Url) -> Result<(), String> {
        if origin(interface) != origin(card) && !self.lists(interface) {
            return Err(format!(
                "the agent card at {} names an interface at {}, which `allow_origins` does not list",
                origin(card),
                origin(interface)
            ));
        }
        self.scheme(interface)
    }
}
