//! Finding out where and who the agent is (A2A 1.0 §8), and noticing when that changes.
//!
//! Invariants:
//! - nothing is sent to an interface that the fence refuses;
//! - once an interface is in use, one on another origin stops the runtime (answers too) until the
//!   card is as before, the new origin is listed, or the program is started again;
//! - the agent's name is taken once per start: it is part of what interactions are keyed by, and a
//!   card that renames its agent must not double every card;
//! - a card is read again when it expires, at most once a minute, at least every hour. A failed
//!   reading changes nothing.

use super::card::{Card, Fence, Interface, origin, parse, same};
use super::errors;
use super::settings::{A2aSettings, Address};
use super::wire::{Reply, Wire};
use crate::bridge::ports::ConnectorError;
use crate::domain::clock::Millis;
use reqwest::header::{CACHE_CONTROL, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use url::Url;

const DEFAULT_LIFE: Duration = Duration::from_mins(5);
const SHORTEST: Duration = Duration::from_mins(1);
const LONGEST: Duration = Duration::from_hours(1);
const WELL_KNOWN: &str = ".well-known/agent-card.json";

/// What is known of the agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Known {
    pub(crate) interface: Interface,
    pub(crate) agent: String,
    pub(crate) version: Option<String>,
    /// The card in use, and its validator.
    card: Option<(Url, Option<HeaderValue>)>,
}

impl Known {
    /// Where the card is that is in use.
    pub(crate) fn card_at(&self) -> Option<&Url> {
        self.card.as_ref().map(|(at, _)| at)
    }
}

#[derive(Debug, Default)]
struct State {
    known: Option<Arc<Known>>,
    /// Why nothing may be sent.
    refused: Option<String>,
    /// When the card is to be read again.
    due: Option<Millis>,
    generation: u64,
}

pub(crate) struct Discovery {
    address: Address,
    agent: Option<String>,
    /// The name when neither configuration nor card gives one.
    fallback: String,
    fence: Fence,
    state: RwLock<State>,
    /// One reading at a time.
    gate: tokio::sync::Mutex<()>,
}

/// What reading the card gave.
enum Found {
    Card { card: Box<Card>, at: Url, etag: Option<HeaderValue>, life: Duration },
    Unchanged { life: Duration },
    None,
}

impl Discovery {
    pub(crate) fn new(settings: &A2aSettings) -> Self {
        Self {
            address: settings.address.clone(),
            agent: settings.agent.clone(),
            fallback: settings.name.as_str().into(),
            fence: Fence { allow_origins: settings.allow_origins.clone(), plain_http: settings.plain_http },
            state: RwLock::default(),
            gate: tokio::sync::Mutex::new(()),
        }
    }

    /// The interface in use; reads the card first when that has not succeeded yet.
    pub(crate) async fn current(&self, wire: &Wire) -> Result<Arc<Known>, ConnectorError> {
        if let Some(Ok(known)) = self.settled() {
            return Ok(known);
        }
        // Never read, or refused: perhaps it is due to be looked at again.
        self.refresh(wire).await?;
        self.settled().unwrap_or_else(|| {
            Err(ConnectorError::Unavailable { what: "the agent card was not read".into(), retry_after: None })
        })
    }

    /// Reads the card if that is due.
    pub(crate) async fn refresh(&self, wire: &Wire) -> Result<(), ConnectorError> {
        let _one = self.gate.lock().await;
        let now = wire.now();
        if self.read(|state| state.due.is_some_and(|due| now < due)) {
            return self.settled().map_or(Ok(()), |known| known.map(|_| ()));
        }
        let found = match self.find(wire).await {
            Ok(found) => found,
            Err(error) => {
                // What is known stays; a first reading is tried again with the next call.
                self.write(|state| state.due = state.known.as_ref().map(|_| now.plus(SHORTEST)));
                return Err(error);
            }
        };
        self.take(found, now)
    }

    pub(crate) fn generation(&self) -> u64 {
        self.read(|state| state.generation)
    }

    /// The present verdict, if there is one.
    fn settled(&self) -> Option<Result<Arc<Known>, ConnectorError>> {
        self.read(|state| match (&state.refused, &state.known) {
            (Some(what), _) => Some(Err(ConnectorError::Configuration { what: what.clone() })),
            (None, Some(known)) => Some(Ok(known.clone())),
            (None, None) => None,
        })
    }

    async fn find(&self, wire: &Wire) -> Result<Found, ConnectorError> {
        let before = self.read(|state| state.known.as_ref().and_then(|known| known.card.clone()));
        let places = match &self.address {
            Address::Card(url) => vec![url.clone()],
            Address::Endpoint(url) => places(url),
        };
        for (nth, at) in places.iter().enumerate() {
            self.fence.scheme(at).map_err(|what| ConnectorError::Configuration { what })?;
            let etag = before.as_ref().filter(|(card, _)| card == at).and_then(|(_, etag)| etag.clone());
            let mut headers = HeaderMap::new();
            if let Some(etag) = etag {
                headers.insert(IF_NONE_MATCH, etag);
            }
            let reply = wire.exchange(wire.http.get(at.clone()), headers).await;
            let reply = reply.map_err(|failure| errors::of_reading(&failure))?;
            match reply.status {
                304 => return Ok(Found::Unchanged { life: life(&reply) }),
                200..=299 => {
                    let Some(card) = parse(&reply.json()) else { continue };
                    // The origin may host several agents: a card there that does not name our
                    // endpoint, but another address of this origin, is another agent's.
                    if nth > 0 && self.is_of_another_agent(&card, at) {
                        continue;
                    }
                    let etag = reply.headers.get(ETAG).cloned();
                    return Ok(Found::Card {
                        card: Box::new(card),
                        at: at.clone(),
                        etag,
                        life: life(&reply),
                    });
                }
                408 | 429 | 500..=599 if reply.status != 501 => {
                    let what = format!("agent card: http {}", reply.status);
                    let retry_after = reply.retry_after(wire.now());
                    return Err(ConnectorError::Unavailable { what, retry_after });
                }
                _ => {}
            }
        }
        match &self.address {
            Address::Endpoint(_) => Ok(Found::None),
            Address::Card(url) => Err(ConnectorError::Configuration {
                what: format!("there is no agent card at {}", origin(url)),
            }),
        }
    }

    fn is_of_another_agent(&self, card: &Card, at: &Url) -> bool {
        let Address::Endpoint(endpoint) = &self.address else { return false };
        let names_ours = card.usable.iter().any(|interface| same(&interface.url, endpoint));
        let here = card.usable.first().is_some_and(|interface| origin(&interface.url) == origin(at));
        !names_ours && (here || card.named == 0)
    }

    fn take(&self, found: Found, now: Millis) -> Result<(), ConnectorError> {
        let (card, at, etag, life) = match found {
            Found::Unchanged { life } => {
                self.write(|state| state.due = Some(now.plus(life)));
                return self.settled().map_or(Ok(()), |known| known.map(|_| ()));
            }
            Found::Card { card, at, etag, life } => (Some(card), Some(at), etag, life),
            Found::None => (None, None, None, DEFAULT_LIFE),
        };
        let chosen = self.choose(card.as_deref(), at.as_ref());
        self.write(|state| {
            state.due = Some(now.plus(if chosen.is_ok() { life } else { SHORTEST }));
            let old = state.known.clone();
            let chosen = chosen.and_then(|interface| match &old {
                Some(old) if origin(&old.interface.url) != origin(&interface.url)
                    && !self.fence.lists(&interface.url) =>
                {
                    Err(format!(
                        "the agent's interface moved from {} to {}: nothing is sent there unless `allow_origins` lists it",
                        origin(&old.interface.url),
                        origin(&interface.url)
                    ))
                }
                _ => Ok(interface),
            });
            let interface = match chosen {
                Ok(interface) => interface,
                Err(what) => {
                    state.refused = Some(what.clone());
                    // The validator of a refused card is forgotten, so that it is read whole again.
                    if let Some(known) = &old {
                        state.known = Some(Arc::new(Known { card: None, ..(**known).clone() }));
                    }
                    return Err(ConnectorError::Configuration { what });
                }
            };
            let named = card.as_ref().and_then(|card| card.name.clone());
            let agent = old.as_ref().map(|known| known.agent.clone()).or_else(|| self.agent.clone());
            let fresh = Known {
                interface,
                agent: agent.or(named).unwrap_or_else(|| self.fallback.clone()),
                version: card.and_then(|card| card.version),
                card: at.map(|at| (at, etag)),
            };
            let changed = old.as_ref().is_none_or(|old| {
                old.interface != fresh.interface || old.version != fresh.version
            });
            if changed || state.refused.is_some() {
                state.generation += 1;
            }
            state.refused = None;
            state.known = Some(Arc::new(fresh));
            Ok(())
        })
    }

    fn choose(&self, card: Option<&Card>, at: Option<&Url>) -> Result<Interface, String> {
        match (card, at, &self.address) {
            (Some(card), Some(at), _) if card.named > 0 => {
                let interface = card.usable.first().ok_or_else(|| {
                    "the agent card names no interface with binding JSONRPC or HTTP+JSON and version 1.0"
                        .to_owned()
                })?;
                self.fence.check(&interface.url, at)?;
                Ok(interface.clone())
            }
            (_, _, Address::Endpoint(url)) => {
                self.fence.scheme(url)?;
                Ok(Interface::at(url.clone()))
            }
            (_, _, Address::Card(_)) => Err("the agent card names no interface: set `endpoint`".into()),
        }
    }

    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Where the card of an endpoint is looked for.
fn places(endpoint: &Url) -> Vec<Url> {
    let mut below = endpoint.clone();
    below.set_query(None);
    below.set_fragment(None);
    let path = format!("{}/{WELL_KNOWN}", below.path().trim_end_matches('/'));
    below.set_path(&path);
    let mut at_origin = below.clone();
    at_origin.set_path(&format!("/{WELL_KNOWN}"));
    if at_origin == below { vec![below] } else { vec![below, at_origin] }
}

/// How long a card may be used (RFC 9111, the parts that matter here).
fn life(reply: &Reply) -> Duration {
    let Some(control) = reply.header(&CACHE_CONTROL) else { return DEFAULT_LIFE };
    let mut life = DEFAULT_LIFE;
    for directive in control.split(',') {
        let directive = directive.trim().to_ascii_lowercase();
        if directive == "no-store" || directive == "no-cache" {
            return SHORTEST;
        }
        if let Some(seconds) =
            directive.strip_prefix("max-age=").and_then(|n| n.trim_matches('"').parse().ok())
        {
            life = Duration::from_secs(seconds);
        }
    }
    life.clamp(SHORTEST, LONGEST)
}
