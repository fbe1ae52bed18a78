//! The one HTTP client and the guard on where it may go.
//!
//! Invariant: every outgoing request of the program uses a client made here, so that the TLS
//! provider, time limits and "no redirects with credentials" hold everywhere.

use std::sync::Once;
use std::time::Duration;

/// Time limits of a client. Tests use short ones; the product uses [`Limits::default`].
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub connect: Duration,
    pub total: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(3), total: Duration::from_secs(10) }
    }
}

/// Installs ring as the process-wide TLS provider. Harmless when called again: `main` and every
/// test binary call it first, because building a client without a provider panics.
pub fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error means that a provider is installed already, which is what we want.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Makes the client that runtimes, chat platforms and the sandbox share.
///
/// # Errors
/// When the operating system's trust store cannot be read.
pub fn client(limits: Limits) -> Result<reqwest::Client, reqwest::Error> {
    init();
    #[expect(clippy::disallowed_methods, reason = "the one place that builds a client")]
    let builder = reqwest::Client::builder();
    builder
        .connect_timeout(limits.connect)
        .timeout(limits.total)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// The time that an answer's `Date` names, in epoch milliseconds; it has whole seconds, so half of one is
/// added (RFC 9110 §6.6.1).
#[must_use]
pub fn date(headers: &reqwest::header::HeaderMap) -> Option<i64> {
    let text = headers.get(reqwest::header::DATE)?.to_str().ok()?;
    Some(jiff::fmt::rfc2822::parse(text.trim()).ok()?.timestamp().as_millisecond() + 500)
}

/// Whether an address is on this machine. Plain http is allowed only there (or where a runtime
/// says `plain_http = true`).
#[must_use]
pub fn is_loopback(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
