//! Telling one person privately: by the press's own address, else ephemerally, else by DM.
//!
//! Invariant: an address of a payload is called only on Slack's own hosts (on loopback only when the
//! Web API is there too), without the bot token, and redirects are not followed. A private message is
//! best effort and may repeat: any failure of one way leads to the next.

use super::Slack;
use super::methods::Method;
use crate::bridge::ports::{ChatError, Person};
use crate::domain::notice::Notice;
use reqwest::Url;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

const HOOK_HOSTS: [&str; 2] = ["hooks.slack.com", "hooks.slack-gov.com"];

impl Slack {
    pub(super) async fn tell_person(&self, to: &Person, notice: &Notice) -> Result<(), ChatError> {
        let (text, blocks) = super::notices::draw(&self.templates, notice);
        self.show(to, &text, &blocks).await
    }

    /// Shows one person something privately, by the first way that leads to them.
    pub(super) async fn show(&self, to: &Person, text: &str, blocks: &Value) -> Result<(), ChatError> {
        if self.by_reply(to, text, blocks).await {
            return Ok(());
        }
        match self.ephemerally(to, text, blocks).await {
            Some(Ok(())) => Ok(()),
            Some(Err(stop @ (ChatError::Auth { .. } | ChatError::Paced { .. }))) => Err(stop),
            _ => self.by_dm(to, text, blocks).await,
        }
    }

    /// By the address that came with the press; success is judged by the status alone.
    async fn by_reply(&self, to: &Person, text: &str, blocks: &Value) -> bool {
        let Some(url) = to.reply.as_ref().and_then(|reply| self.hook(reply.expose_secret())) else {
            return false;
        };
        let message = json!({
            "response_type": "ephemeral", "replace_original": false, "text": text, "blocks": blocks,
        });
        match self.api.client.post(url).json(&message).send().await {
            Ok(response) => response.status().is_success(),
            Err(_) => false,
        }
    }

    /// The address, if it may be called.
    pub(super) fn hook(&self, address: &str) -> Option<Url> {
        let url = Url::parse(address).ok()?;
        let plain = url.username().is_empty() && url.password().is_none();
        let slack = url.scheme() == "https"
            && url.port().is_none()
            && url.host_str().is_some_and(|host| HOOK_HOSTS.contains(&host));
        let here = self.on_loopback && crate::net::is_loopback(&url);
        (plain && (slack || here)).then_some(url)
    }

    async fn ephemerally(&self, to: &Person, text: &str, blocks: &Value) -> Option<Result<(), ChatError>> {
        let channel = to.channel.as_ref()?;
        let mut message = json!({
            "channel": channel, "user": to.user, "text": text, "blocks": blocks,
            "link_names": false, "parse": "none",
        });
        if let Some(thread) = &to.thread {
            message["thread_ts"] = json!(thread);
        }
        Some(self.api.send(Method::PostEphemeral, message).await.map(|_| ()))
    }

    async fn by_dm(&self, to: &Person, text: &str, blocks: &Value) -> Result<(), ChatError> {
        if to.user.is_empty() {
            return Err(ChatError::NoSuchPerson { code: "nobody".into() });
        }
        let opened = self.api.call(Method::OpenConversation, json!({"users": to.user})).await?;
        let channel = opened.need(Method::OpenConversation, "/channel/id")?;
        self.api.reserve(Method::PostMessage, Some(&channel)).map_err(|after| ChatError::Paced { after })?;
        let message = json!({
            "channel": channel, "text": text, "blocks": blocks,
            "link_names": false, "parse": "none", "unfurl_links": false, "unfurl_media": false,
        });
        self.api.send(Method::PostMessage, message).await.map(|_| ())
    }
}
