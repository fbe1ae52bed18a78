//! The agent card (A2A 1.0 §4.4, §8): public, with a validator and a lifetime.

use super::error::Refusal;
use super::hooks::When;
use super::switches::Binding;
use super::world::A2aWorld;
use super::{INTERACTIONS_V1, faulty, record};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// What an agent's card says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is one member of the card")]
pub struct CardSpec {
    /// Default: the agent's id.
    pub name: Option<String>,
    pub description: String,
    pub version: String,
    /// `supportedInterfaces` as they are to appear; default: one for each binding that is served.
    pub interfaces: Option<Value>,
    /// The default interfaces' `tenant`; every request must carry it then.
    pub tenant: Option<String>,
    pub streaming: bool,
    pub push: bool,
    /// The card declares interactions/v1 (a runtime may speak it without saying so).
    pub declared: bool,
    /// The extension is required: calls without it are refused.
    pub required: bool,
    pub max_age_s: u64,
    /// There is no card (a runtime reached directly may have none).
    pub absent: bool,
}

impl Default for CardSpec {
    fn default() -> Self {
        Self {
            name: None,
            description: "Asks before it acts".into(),
            version: "1".into(),
            interfaces: None,
            tenant: None,
            streaming: false,
            push: false,
            declared: true,
            required: false,
            max_age_s: 300,
            absent: false,
        }
    }
}

impl CardSpec {
    fn json(&self, agent: &str, origin: &str, bindings: &[Binding]) -> Value {
        let interface = |binding: &Binding| {
            let below = if *binding == Binding::HttpJson { "/rest" } else { "" };
            let mut interface = json!({"url": format!("{origin}/a2a/{agent}{below}"),
                "protocolBinding": binding, "protocolVersion": "1.0"});
            if let Some(tenant) = &self.tenant {
                interface["tenant"] = tenant.as_str().into();
            }
            interface
        };
        let interfaces = self.interfaces.clone().unwrap_or_else(|| bindings.iter().map(interface).collect());
        let mut extensions = Vec::new();
        if self.declared {
            extensions
                .push(json!({"uri": INTERACTIONS_V1, "description": "Open interactions and their answers",
                "required": self.required}));
        }
        json!({
            "name": self.name.as_deref().unwrap_or(agent),
            "description": self.description,
            "version": self.version,
            "supportedInterfaces": interfaces,
            "capabilities": {"streaming": self.streaming, "pushNotifications": self.push,
                "extendedAgentCard": false, "extensions": extensions},
            "securitySchemes": {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
            "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "ship", "name": "Ship", "description": "Ships builds", "tags": ["ci"]}],
        })
    }
}

pub(super) async fn get(
    State(world): State<Arc<A2aWorld>>,
    Path(agent): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let n = record::begin(&world, &agent, "card", format!("GET {uri}"), &headers, Value::Null);
    let fault = world.faults().take("card");
    record::note(&world, n, |record| record.fault.clone_from(&fault));
    let refuse = |_: &str| Refusal::new(500, "internal", "Scripted by the sandbox.").into_response();
    let act = move || {
        let (world, agent, headers) = (Arc::clone(&world), agent.clone(), headers.clone());
        async move {
            world.run_hook("card", When::Before);
            let response = answer(&world, &agent, &headers);
            record::note(&world, n, |record| record.status = Some(response.status().as_u16()));
            world.run_hook("card", When::After);
            response
        }
    };
    faulty::around(fault, refuse, act).await
}

fn answer(world: &A2aWorld, agent: &str, headers: &HeaderMap) -> Response {
    let Some(card) = world.with(|inner| inner.cards.get(agent).filter(|card| !card.absent).cloned()) else {
        return Refusal::new(404, "agent_not_found", "There is no such agent.").into_response();
    };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let origin = world.origin.clone().unwrap_or_else(|| format!("http://{host}"));
    let body = card.json(agent, &origin, &world.switches().bindings).to_string();
    let tag =
        format!("\"{}\"", HEXLOWER.encode(digest(&SHA256, body.as_bytes()).as_ref().get(..8).unwrap_or(&[])));
    let mut response = if matches(headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    };
    let lifetime = format!("public, max-age={}", card.max_age_s);
    for (name, value) in [(header::ETAG, tag), (header::CACHE_CONTROL, lifetime)] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// `If-None-Match`, compared weakly (RFC 9110 §13.1.2).
fn matches(headers: &HeaderMap, tag: &str) -> bool {
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|given| given == "*" || given.strip_prefix("W/").unwrap_or(given) == tag)
}
