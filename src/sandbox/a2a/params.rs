//! Reading request parameters: every refusal names its field.
//!
//! `null`, `""` and an absent member are alike (A2A 1.0 §5.7); an unknown member is refused, so
//! that a client's misspelling is seen.

use super::INTERACTIONS_V1;
use super::error::{A2aError, Code};
use serde_json::{Map, Value};

/// An object of the request and where it stands.
pub(super) struct Fields<'a> {
    at: String,
    pub(super) map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// The parameters themselves.
    pub(super) fn root(map: &'a Map<String, Value>) -> Self {
        Self { at: String::new(), map }
    }

    /// The full name of a member.
    pub(super) fn path(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    pub(super) fn error(&self, name: &str, description: &str) -> A2aError {
        A2aError::field(&self.path(name), description)
    }

    /// Refuses members with other names.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), A2aError> {
        match self.map.keys().find(|key| !known.contains(&key.as_str())) {
            Some(unknown) => Err(self.error(unknown, "unknown field")),
            None => Ok(()),
        }
    }

    fn value(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, A2aError> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            Some(_) => Err(self.error(name, "must be a string")),
        }
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, A2aError> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.error(name, "must be true or false")),
        }
    }

    /// A whole number, also written `1.0`.
    pub(super) fn whole(&self, name: &str) -> Result<Option<i64>, A2aError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small just before")]
        let whole = value.as_i64().or_else(|| {
            value.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 2_147_483_648.0).map(|n| n as i64)
        });
        whole.map(Some).ok_or_else(|| self.error(name, "must be a whole number"))
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<Fields<'a>>, A2aError> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Fields { at: self.path(name), map })),
            Some(_) => Err(self.error(name, "must be an object")),
        }
    }

    pub(super) fn list(&self, name: &str) -> Result<&'a [Value], A2aError> {
        match self.value(name) {
            None => Ok(&[]),
            Some(Value::Array(list)) => Ok(list),
            Some(_) => Err(self.error(name, "must be an array")),
        }
    }

    /// `historyLength`: 0 = none, absent = all.
    pub(super) fn history_length(&self) -> Result<Option<usize>, A2aError> {
        self.whole("historyLength")?
            .map(|n| usize::try_from(n).map_err(|_| self.error("historyLength", "must not be negative")))
            .transpose()
    }
}

/// The parts of a message, of one kind only.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Text(String),
    Data(Vec<Value>),
}

/// A checked `SendMessage` request.
pub(super) struct Message {
    pub(super) id: String,
    pub(super) task_id: Option<String>,
    pub(super) context_id: Option<String>,
    pub(super) content: Content,
    /// The answer's metadata, read only when the message lists the extension.
    pub(super) answer: Option<Map<String, Value>>,
    pub(super) raw: Value,
    pub(super) return_immediately: bool,
    pub(super) history: Option<usize>,
}

impl Message {
    pub(super) fn read(params: &Fields<'_>) -> Result<Self, A2aError> {
        params.only(&["tenant", "message", "configuration", "metadata"])?;
        let message = params.object("message")?.ok_or_else(|| params.error("message", "is required"))?;
        message.only(&[
            "messageId",
            "role",
            "parts",
            "taskId",
            "contextId",
            "extensions",
            "metadata",
            "referenceTaskIds",
        ])?;
        let id = message.text("messageId")?.unwrap_or_default();
        if id.is_empty() || id.len() > 200 || !id.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(message.error("messageId", "must be 1 to 200 visible ASCII characters"));
        }
        if message.text("role")? != Some("ROLE_USER") {
            return Err(message.error("role", "must be ROLE_USER"));
        }
        let listed = message.list("extensions")?.iter().any(|uri| uri == INTERACTIONS_V1);
        let answer = match message.object("metadata")? {
            Some(metadata) if listed => metadata.object(INTERACTIONS_V1)?.map(|answer| answer.map.clone()),
            _ => None,
        };
        let (return_immediately, history) = configuration(params)?;
        Ok(Self {
            id: id.to_owned(),
            task_id: message.text("taskId")?.map(str::to_owned),
            context_id: message.text("contextId")?.map(str::to_owned),
            content: content(&message)?,
            answer,
            raw: Value::Object(message.map.clone()),
            return_immediately,
            history,
        })
    }
}

fn configuration(params: &Fields<'_>) -> Result<(bool, Option<usize>), A2aError> {
    let Some(configuration) = params.object("configuration")? else { return Ok((false, None)) };
    configuration.only(&[
        "returnImmediately",
        "historyLength",
        "acceptedOutputModes",
        "taskPushNotificationConfig",
    ])?;
    if configuration.object("taskPushNotificationConfig")?.is_some() {
        return Err(A2aError::new(Code::PushNotSupported, "Push notifications are not supported"));
    }
    configuration.list("acceptedOutputModes")?;
    Ok((configuration.flag("returnImmediately")?.unwrap_or(false), configuration.history_length()?))
}

/// The parts: exactly one of the four keys each; files, and text beside data, are refused.
fn content(message: &Fields<'_>) -> Result<Content, A2aError> {
    let parts = message.list("parts")?;
    if parts.is_empty() {
        return Err(message.error("parts", "must not be empty"));
    }
    let (mut texts, mut data, mut files) = (Vec::new(), Vec::new(), 0);
    for (n, part) in parts.iter().enumerate() {
        let name = format!("parts[{n}]");
        let Value::Object(part) = part else { return Err(message.error(&name, "must be an object")) };
        let part = Fields { at: message.path(&name), map: part };
        part.only(&["text", "data", "url", "raw", "metadata", "filename", "mediaType"])?;
        let kinds = ["text", "data", "url", "raw"].into_iter().filter(|key| part.map.contains_key(*key));
        match kinds.collect::<Vec<_>>()[..] {
            ["text"] => match part.text("text")?.filter(|text| !text.trim().is_empty()) {
                Some(text) => texts.push(text.to_owned()),
                None => return Err(part.error("text", "must not be blank")),
            },
            ["data"] => data.extend(part.map.get("data").cloned()),
            ["url" | "raw"] => files += 1,
            _ => return Err(message.error(&name, "must have exactly one of text, data, url, raw")),
        }
    }
    match (texts.is_empty(), data.is_empty(), files) {
        (false, true, 0) => Ok(Content::Text(texts.join("\n"))),
        (true, false, 0) => Ok(Content::Data(data)),
        _ => Err(A2aError::new(Code::ContentType, "Send text parts or data parts, not both, and no files")),
    }
}
