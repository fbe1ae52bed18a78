//! Arguments in the three encodings of the Web API: GET query, POST form, POST JSON.
//!
//! Invariant: reads ignore a JSON body. JSON texts inside form fields (`blocks`, `view`,
//! `metadata`, `attachments`) are parsed here; what does not parse stays a string, and the method
//! refuses it.

use axum::http::{HeaderMap, Method as HttpMethod, header};
use serde_json::{Map, Value};

const STRUCTURED: [&str; 4] = ["blocks", "view", "metadata", "attachments"];

/// The arguments of one call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Args {
    pub(crate) values: Map<String, Value>,
    pub(crate) encoding: &'static str,
    /// Over POST.
    pub(crate) post: bool,
    /// The token came in the header.
    pub(crate) bearer: bool,
    /// Never recorded.
    token: Option<String>,
}

impl Args {
    /// Reads a request; `Err` is Slack's error code.
    pub(crate) fn read(
        http: &HttpMethod,
        headers: &HeaderMap,
        query: &str,
        body: &[u8],
        read_only: bool,
    ) -> Result<Self, &'static str> {
        let mut args = Self { encoding: "none", post: *http == HttpMethod::POST, ..Self::default() };
        let content_type =
            headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if !query.is_empty() {
            args.encoding = "query";
            args.pairs(query.as_bytes());
        }
        if *http == HttpMethod::POST && !body.is_empty() {
            match kind.as_str() {
                "application/x-www-form-urlencoded" => {
                    args.encoding = "form";
                    args.pairs(body);
                }
                "application/json" => {
                    args.encoding = "json";
                    if !read_only {
                        let Ok(value) = serde_json::from_slice(body) else { return Err("invalid_json") };
                        let Value::Object(values) = value else { return Err("json_not_object") };
                        values.into_iter().for_each(|(key, value)| args.put(key, value));
                    }
                }
                "" => return Err("missing_post_type"),
                _ => return Err("invalid_post_type"),
            }
        }
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        if let Some(token) = bearer.and_then(|value| value.strip_prefix("Bearer ")) {
            args.token = Some(token.trim().to_owned());
            args.bearer = true;
        }
        Ok(args)
    }

    /// What is recorded of a request that could not be read.
    pub(crate) fn unreadable() -> Self {
        Self { encoding: "unreadable", ..Self::default() }
    }

    fn pairs(&mut self, text: &[u8]) {
        for (key, value) in url::form_urlencoded::parse(text) {
            self.put(key.into_owned(), Value::String(value.into_owned()));
        }
    }

    fn put(&mut self, key: String, value: Value) {
        if key == "token" {
            self.token = value.as_str().map(Into::into);
            return;
        }
        let value = match value {
            Value::String(text) if STRUCTURED.contains(&key.as_str()) => {
                serde_json::from_str(&text).unwrap_or(Value::String(text))
            }
            value => value,
        };
        self.values.insert(key, value);
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref().filter(|token| !token.is_empty())
    }

    /// A text argument; empty counts as absent.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        match self.values.get(key) {
            Some(Value::Bool(flag)) => *flag,
            Some(Value::String(text)) => text == "true" || text == "1",
            Some(Value::Number(number)) => number.as_i64() == Some(1),
            _ => false,
        }
    }

    pub(crate) fn number(&self, key: &str) -> Option<usize> {
        match self.values.get(key)? {
            Value::Number(number) => number.as_u64().and_then(|number| usize::try_from(number).ok()),
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// A structured argument; `null` counts as absent.
    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }
}
