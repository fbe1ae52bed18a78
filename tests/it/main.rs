//! The one integration binary: it links once.
//!
//! `world/` is the test language (databases, stand-ins, other people's programs); every other module holds tests.
//! The outside programs and the PostgreSQL server are installed by `scripts/setup`; a missing one is a failure that
//! says so, never a skip.

#[cfg(test)]
mod architecture;
#[cfg(test)]
mod browser;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod judges;
#[cfg(test)]
mod judges_discord;
#[cfg(test)]
mod judges_slack;
#[cfg(test)]
mod pictures;
#[cfg(test)]
mod replicas;
#[cfg(test)]
mod store_conformance;
#[cfg(test)]
mod story_a2a_sdk;
#[cfg(test)]
#[expect(clippy::duplicate_mod, reason = "the same stories over the other binding")]
#[path = "story_a2a_sdk.rs"]
mod story_a2a_sdk_over_rest;
#[cfg(test)]
mod story_approval;
#[cfg(test)]
mod story_chaos;
#[cfg(test)]
mod story_discord;
mod story_discord_clicks;
mod story_discord_endpoint;
mod story_discord_gateway;
#[cfg(test)]
mod story_incident;
#[cfg(test)]
mod story_people;
#[cfg(test)]
mod story_places;
#[cfg(test)]
mod story_push;
#[cfg(test)]
mod story_rest;
#[cfg(test)]
mod story_sdk_follow;
#[cfg(test)]
mod story_streams;
#[cfg(test)]
mod story_trouble;
#[cfg(test)]
mod story_views;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod wire_a2a;
#[cfg(test)]
#[expect(clippy::duplicate_mod, reason = "the same cases over the other binding")]
#[path = "wire_a2a.rs"]
mod wire_a2a_over_rest;
#[cfg(test)]
mod wire_slack;
#[cfg(test)]
mod world;
