//! `[server]`: where we listen and how we are reached.

use super::address::Plain;
use super::check::Check;
use super::secrets::SecretRef;
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use std::net::SocketAddr;
use url::Url;

/// Where we listen and how we are reached.
#[derive(Debug, Clone)]
pub struct Server {
    pub listen: SocketAddr,
    /// Where given: `/api`, `/metrics` and `/readyz` are served here and not on `listen`.
    pub admin_listen: Option<SocketAddr>,
    /// Our address as people and runtimes see it.
    pub public_url: Option<PublicUrl>,
    /// Bearer token of the operator API; without one the API refuses everybody.
    pub operator_token: Option<SecretString>,
}

/// Our own public address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    pub url: Url,
    /// Exactly as written: a token's issuer is compared as text.
    pub text: String,
}

impl PublicUrl {
    /// The address of one of our pages; `path` starts with a slash.
    pub fn page(&self, path: &str) -> String {
        format!("{}{path}", self.url.as_str().trim_end_matches('/'))
    }
}

/// Where Countersign listens, and how it is reached from outside.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Server")]
pub(super) struct Raw {
    /// IP address and port of the public listener. Default `127.0.0.1:8080`.
    listen: Option<String>,
    /// A second address that takes `/api`, `/metrics` and `/readyz` off the public port.
    admin_listen: Option<String>,
    /// The address under which people and runtimes reach `listen`.
    public_url: Option<String>,
    /// The token that operators send as `Authorization: Bearer …` to `/api/v1`. Without it the
    /// operator API refuses everybody.
    operator_token: Option<SecretRef>,
}

impl Raw {
    pub(super) fn check(self, check: &mut Check<'_>) -> Server {
        let Self { listen, admin_listen, public_url, operator_token } = self;
        let default = SocketAddr::from(([127, 0, 0, 1], 8080));
        let listen =
            listen.map_or(Some(default), |text| socket(check, "server.listen", &text)).unwrap_or(default);
        let admin_listen = admin_listen.and_then(|text| socket(check, "server.admin_listen", &text));
        if admin_listen == Some(listen) && listen.port() != 0 {
            check.error(
                "server.admin_listen",
                format!("{listen} is also server.listen"),
                "choose another port, or leave admin_listen out".into(),
            );
        }
        let public_url = public_url.and_then(|text| public(check, text));
        let operator_token = operator_token.and_then(|at| check.token("server.operator_token", &at));
        if operator_token.as_ref().is_some_and(|token| token.expose_secret().len() < 16) {
            check.warn(
                "server.operator_token",
                "the token has fewer than 16 characters and can be guessed".into(),
                "use a random one, such as the output of `openssl rand -hex 32`".into(),
            );
        }
        Server { listen, admin_listen, public_url, operator_token }
    }
}

fn socket(check: &mut Check<'_>, key: &str, text: &str) -> Option<SocketAddr> {
    let address = text.parse().ok();
    if address.is_none() {
        check.error(
            key,
            format!("`{text}` is no listening address"),
            "write an IP address and a port: \"127.0.0.1:8080\"".into(),
        );
    }
    address
}

fn public(check: &mut Check<'_>, text: String) -> Option<PublicUrl> {
    let url = check.address("server.public_url", &text, Plain::Loopback)?;
    if url.query().is_some() {
        check.error(
            "server.public_url",
            "the address contains a `?`".into(),
            "leave out the `?` and what follows".into(),
        );
        return None;
    }
    Some(PublicUrl { url, text })
}
