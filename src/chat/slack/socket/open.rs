//! Opening one socket: the call for its address, the connection, `hello`.
//!
//! Invariant: an address is used once, at once, and only if it leads to Slack; it is a credential, so
//! it is in no error and no log line. A socket counts as open only after `hello`, and only if `hello`
//! does not name another app.
//!
//! Known race: envelopes may follow `hello`, or even come before it; those are kept and handed on.

use super::frame::{self, Frame, Reason};
use super::{Line, SocketMode};
use crate::bridge::ports::ChatError;
use crate::chat::slack::methods::Method;
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_websockets::{ClientBuilder, Connector, Limits, Message};
use url::Url;

/// Larger frames are refused, and the socket with them.
const LARGEST: usize = 4 * 1024 * 1024;
/// More frames before `hello` are no socket of Slack's.
const EARLY: usize = 100;

/// A socket after its `hello`.
pub(super) struct Opened {
    pub(super) line: Line,
    /// The app `hello` named.
    pub(super) app_id: Option<String>,
    /// What came before `hello`.
    pub(super) early: VecDeque<Message>,
}

/// Why there is none.
#[derive(Debug, PartialEq)]
pub(super) enum NotOpened {
    /// Not before this.
    Wait(Duration),
    /// A person has to mend this.
    Refused(String),
    /// Perhaps next time.
    Failed(&'static str),
    Said(Reason),
    OtherApp {
        theirs: String,
        ours: String,
    },
}

impl SocketMode {
    pub(super) async fn open(&self) -> Result<Opened, NotOpened> {
        let answer = self.api.call(Method::OpenSocket, json!({})).await.map_err(not_called)?;
        let url = answer.body.get("url").and_then(Value::as_str).unwrap_or_default();
        let url = leads_to_slack(url, self.on_loopback)
            .ok_or_else(|| NotOpened::Refused("the address given does not lead to Slack".into()))?;
        timeout(self.timing.hello, async {
            let line = self.connect(&url).await.map_err(NotOpened::Failed)?;
            self.greeted(line).await
        })
        .await
        .unwrap_or(Err(NotOpened::Failed("no hello in time")))
    }

    async fn connect(&self, url: &Url) -> Result<Line, &'static str> {
        let host = url.host_str().ok_or("no host")?.trim_start_matches('[').trim_end_matches(']');
        let port = url.port_or_known_default().ok_or("no port")?;
        let stream = TcpStream::connect((host, port)).await.map_err(|_| "no connection")?;
        let _ = stream.set_nodelay(true);
        let stream = if url.scheme() == "wss" {
            self.tls()?.wrap(host, stream).await.map_err(|_| "no TLS")?
        } else {
            Connector::Plain.wrap(host, stream).await.map_err(|_| "no connection")?
        };
        let builder = ClientBuilder::new().uri(url.as_str()).map_err(|_| "no address")?;
        let builder = builder.limits(Limits::default().max_payload_len(Some(LARGEST)));
        let (line, _) = builder.connect_on(stream).await.map_err(|_| "the upgrade was refused")?;
        Ok(line)
    }

    fn tls(&self) -> Result<&Connector, &'static str> {
        if let Some(made) = self.tls.get() {
            return Ok(made);
        }
        let made = Connector::new().map_err(|_| "the system's trust store cannot be read")?;
        Ok(self.tls.get_or_init(|| made))
    }

    /// Waits for `hello`.
    async fn greeted(&self, mut line: Line) -> Result<Opened, NotOpened> {
        let mut early = VecDeque::new();
        while early.len() < EARLY {
            let Some(Ok(message)) = line.next().await else {
                return Err(NotOpened::Failed("closed before hello"));
            };
            let Some(text) = message.as_text() else { continue };
            match frame::read(text) {
                Frame::Hello { app_id } => {
                    return match self.other_app(app_id.as_deref()) {
                        Some((theirs, ours)) => Err(NotOpened::OtherApp { theirs, ours }),
                        None => Ok(Opened { line, app_id, early }),
                    };
                }
                Frame::Disconnect(Reason::Refresh) => {
                    return Err(NotOpened::Failed("sent away before hello"));
                }
                Frame::Disconnect(reason) => return Err(NotOpened::Said(reason)),
                _ => early.push_back(message),
            }
        }
        Err(NotOpened::Failed("no hello among the first frames"))
    }

    /// The app a socket is for and ours, if they are known to differ.
    pub(super) fn other_app(&self, theirs: Option<&str>) -> Option<(String, String)> {
        let (theirs, ours) = (theirs?, self.inbox.app_id()?);
        (theirs != ours).then(|| (theirs.to_owned(), ours))
    }
}

fn not_called(error: ChatError) -> NotOpened {
    match error {
        ChatError::Paced { after } => NotOpened::Wait(after),
        ChatError::Unavailable { .. } | ChatError::Unknown { .. } => {
            NotOpened::Failed("apps.connections.open was not answered")
        }
        refused => NotOpened::Refused(format!("apps.connections.open: {refused}")),
    }
}

/// The address, if a socket may be opened there: Slack's own hosts over TLS, or this machine where the
/// Web API is there too.
fn leads_to_slack(url: &str, on_loopback: bool) -> Option<Url> {
    let url = Url::parse(url).ok()?;
    let bare = url.username().is_empty() && url.password().is_none();
    let host = url.host_str()?;
    let slack = [".slack.com", ".slack-gov.com"].iter().any(|end| host.ends_with(end));
    let good = match url.scheme() {
        "wss" if slack => true,
        "ws" | "wss" => on_loopback && crate::net::is_loopback(&url),
        _ => false,
    };
    (good && bare).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("wss://wss-primary.slack.com/link/?ticket=x&app_id=A1", [true, true])]
    #[case("wss://wss.slack-gov.com/link", [true, true])]
    #[case("ws://wss-primary.slack.com/link", [false, false])]
    #[case("wss://slack.com.evil.example/link", [false, false])]
    #[case("wss://evilslack.com/link", [false, false])]
    #[case("wss://wss.slack.com@evil.example/", [false, false])]
    #[case("wss://user@wss.slack.com/", [false, false])]
    #[case("https://wss.slack.com/", [false, false])]
    #[case("ws://127.0.0.1:9/link", [false, true])]
    #[case("wss://[::1]:9/link", [false, true])]
    #[case("ws://10.0.0.1/link", [false, false])]
    #[case("not an address", [false, false])]
    fn sockets_go_to_slack_or_stay_on_this_machine(#[case] url: &str, #[case] good: [bool; 2]) {
        assert_eq!(
            [false, true].map(|on_loopback| leads_to_slack(url, on_loopback).is_some()),
            good,
            "{url}"
        );
    }
}
