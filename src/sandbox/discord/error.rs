//! Refusals of the REST interface: `{code, message}`, for a form error with nested `errors`
//! (Discord: Error messages).

use serde_json::{Map, Value, json};

/// A refusal.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) errors: Option<Value>,
}

/// Codes with their usual status and words.
const CODES: [(i64, u16, &str); 46] = [
    (0, 401, "401: Unauthorized"),
    (10003, 404, "Unknown Channel"),
    (10004, 404, "Unknown Guild"),
    (10007, 404, "Unknown Member"),
    (10008, 404, "Unknown Message"),
    (10013, 404, "Unknown User"),
    (10015, 404, "Unknown Webhook"),
    (10062, 404, "Unknown interaction"),
    (20009, 400, "Explicit content cannot be sent to the desired recipient(s)"),
    (20012, 403, "You are not authorized to perform this action on this application"),
    (20016, 429, "This action cannot be performed due to slowmode rate limit."),
    (20028, 429, "The write action you are performing on the channel has hit the write rate limit."),
    (20029, 429, "The write action you are performing on the server has hit the write rate limit."),
    (30032, 400, "Maximum number of application commands reached (100)."),
    (30033, 400, "Maximum number of thread participants reached (1000)."),
    (30034, 400, "Max number of daily application command creates has been reached (200)"),
    (30046, 429, "Maximum number of edits to messages older than 1 hour reached. Try again later."),
    (40001, 401, "Unauthorized"),
    (40002, 403, "You need to verify your account in order to perform this action."),
    (40003, 429, "You are opening direct messages too fast."),
    (40004, 403, "Send messages has been temporarily disabled."),
    (40005, 413, "Request entity too large. Try sending something smaller in size."),
    (40006, 403, "This feature has been temporarily disabled server-side."),
    (40058, 400, "Cannot message this thread until after the post author has sent an initial message."),
    (40060, 400, "Interaction has already been acknowledged."),
    (40094, 400, "This interaction has hit the maximum number of follow ups."),
    (40333, 403, "internal network error"),
    (50001, 403, "Missing Access"),
    (50005, 403, "Cannot edit a message authored by another user"),
    (50006, 400, "Cannot send an empty message"),
    (50007, 403, "Cannot send messages to this user"),
    (50008, 400, "Cannot send messages in a non-text channel"),
    (50013, 403, "Missing Permissions"),
    (50014, 401, "Invalid authentication token provided"),
    (50024, 400, "Cannot execute action on this channel type"),
    (50027, 401, "Invalid Webhook Token"),
    (50033, 400, "Invalid Recipient(s)"),
    (50035, 400, "Invalid Form Body"),
    (50045, 413, "File uploaded exceeds the maximum size"),
    (50083, 400, "Thread is archived"),
    (50109, 400, "The request body contains invalid JSON."),
    (50278, 403, "Cannot send messages to this user due to having no mutual guilds"),
    (130_000, 503, "API resource is currently overloaded. Try again a little later."),
    (160_004, 400, "A thread has already been created for this message"),
    (160_005, 403, "This thread is locked"),
    (160_006, 400, "Maximum number of active threads reached"),
];

impl Refusal {
    /// The refusal with this code.
    pub(super) fn new(code: i64) -> Self {
        let known = CODES.iter().find(|(known, ..)| *known == code);
        let (status, message) =
            known.map_or((400, "Refused by script"), |(_, status, text)| (*status, *text));
        Self { status, code, message: message.into(), errors: None }
    }

    pub(super) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(0)
    }

    /// A path nobody serves.
    pub(super) fn not_found() -> Self {
        Self { status: 404, code: 0, message: "404: Not Found".into(), errors: None }
    }

    pub(super) fn method() -> Self {
        Self { status: 405, code: 0, message: "405: Method Not Allowed".into(), errors: None }
    }

    /// What a test scripts: `50013`, or `400 50013` with another status.
    pub(super) fn scripted(error: &str) -> Self {
        let mut words = error.split_whitespace().map(str::parse::<i64>);
        match (words.next(), words.next()) {
            (Some(Ok(status)), Some(Ok(code))) => {
                Self::new(code).status(u16::try_from(status).unwrap_or(400))
            }
            (Some(Ok(code)), None) => Self::new(code),
            _ => Self { message: error.into(), ..Self::new(-1) },
        }
    }

    pub(super) fn body(&self) -> Value {
        let mut body = json!({"message": self.message, "code": self.code});
        if let Some(errors) = &self.errors {
            body["errors"] = errors.clone();
        }
        body
    }
}

/// What is wrong with a form: paths such as `components.0.components.1.label`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Problems(pub(super) Vec<(String, &'static str, String)>);

impl Problems {
    pub(super) fn add(&mut self, path: impl Into<String>, code: &'static str, message: impl Into<String>) {
        self.0.push((path.into(), code, message.into()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As 50035, if there is anything.
    pub(super) fn refuse(&self) -> Result<(), Refusal> {
        if self.is_empty() {
            return Ok(());
        }
        let mut errors = Value::Object(Map::new());
        for (path, code, message) in &self.0 {
            let mut at = &mut errors;
            for step in path.split('.').filter(|step| !step.is_empty()) {
                at = &mut at[step];
            }
            let found = json!({"code": code, "message": message});
            match at.get_mut("_errors").and_then(Value::as_array_mut) {
                Some(all) => all.push(found),
                None => at["_errors"] = json!([found]),
            }
        }
        Err(Refusal { errors: Some(errors), ..Refusal::new(50035) })
    }
}

/// One form error as a refusal.
pub(super) fn form(path: &str, code: &'static str, message: &str) -> Refusal {
    let mut problems = Problems::default();
    problems.add(path, code, message);
    problems.refuse().err().unwrap_or_else(|| Refusal::new(50035))
}
