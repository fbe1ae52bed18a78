//! When a call may go.

use super::*;
use crate::domain::clock::{Clock, Millis};
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

#[derive(Debug, Default)]
struct Hand(AtomicI64);

impl Clock for Hand {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::Relaxed))
    }
}

impl Hand {
    fn ahead(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

fn gate() -> (Arc<Hand>, Gate) {
    let hand = Arc::new(Hand::default());
    (hand.clone(), Gate::new(Gentle::new(hand, 1000.0)))
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| {
        (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
    };
    pairs.iter().map(pair).collect()
}

fn limits(pairs: &[(&str, &str)]) -> Limits {
    Limits::of(&headers(pairs))
}

const MS: fn(u64) -> Duration = Duration::from_millis;

fn post(channel: &str) -> Call {
    Call::post_message(channel)
}

fn go<'g>(gate: &'g Gate, call: &Call) -> Result<Pass<'g>, Duration> {
    gate.pass(call, Worth::Usual)
}

#[test]
fn discord_case_57_odd_numbers_are_not_said() {
    let read = |pairs: &[(&str, &str)]| limits(pairs);
    assert_eq!(read(&[("x-ratelimit-remaining", "5.0")]).remaining, Some(5));
    assert_eq!(read(&[("x-ratelimit-remaining", "many")]).remaining, None);
    for odd in ["-1", "1e9", "NaN", "inf", "", "0"] {
        assert_eq!(read(&[("retry-after", odd)]).wait(), None, "{odd}");
    }
    let body = |value: Value| Limits::default().with(&json!({ "retry_after": value })).wait();
    assert_eq!(body(json!(-1)), None);
    assert_eq!(body(json!(1e9)), None);
    assert_eq!(body(json!("soon")), None);
    assert_eq!(Limits::default().with(&json!({})).wait(), None);
    // Then we wait all the same, and not for long.
    let (hand, gate) = gate();
    let wait = go(&gate, &post("1")).unwrap().limited(&Limits::default());
    assert_eq!(wait, UNSAID);
    assert!(go(&gate, &post("1")).is_err());
    hand.ahead(5_000);
    assert!(go(&gate, &post("1")).is_ok());
}

#[test]
fn discord_case_53_the_longer_wait_counts_and_never_the_reset() {
    let (hand, gate) = gate();
    let said = limits(&[("retry-after", "1"), ("x-ratelimit-reset-after", "0.2")])
        .with(&json!({"retry_after": 0.3}));
    assert_eq!(go(&gate, &post("1")).unwrap().limited(&said), MS(1000));
    assert_eq!(go(&gate, &post("1")).unwrap_err(), MS(1000));
    hand.ahead(1000);
    assert!(go(&gate, &post("1")).is_ok());
    // Of a shared limit, which is nobody's fault.
    let shared =
        limits(&[("retry-after", "60"), ("x-ratelimit-reset-after", "5"), ("x-ratelimit-scope", "shared")]);
    assert_eq!(go(&gate, &post("2")).unwrap().limited(&shared), MS(60_000));
    assert_eq!(gate.state().refused_by(gate.pace.now()), 1, "the shared one is not counted");
}

#[test]
fn discord_case_54_a_global_limit_stops_the_bot_and_no_answer_to_a_press() {
    let (hand, gate) = gate();
    let global = limits(&[("retry-after", "3"), ("x-ratelimit-global", "true")]);
    assert_eq!(go(&gate, &post("1")).unwrap().limited(&global), MS(3000));
    assert_eq!(go(&gate, &post("2")).unwrap_err(), MS(3000));
    assert_eq!(go(&gate, &Call::me()).unwrap_err(), MS(3000));
    for call in [Call::callback("1", "t"), Call::follow_up("1", "t"), Call::edit_original("1", "u")] {
        assert!(gate.pass(&call, Worth::Answer).is_ok(), "{call:?}");
    }
    hand.ahead(3000);
    assert!(go(&gate, &post("2")).is_ok());
}

#[test]
fn discord_case_55_what_stands_before_discord_is_probed_by_one_call_at_a_time() {
    let (hand, gate) = gate();
    assert!(gate.trouble().is_none());
    let rest = |gate: &Gate| go(gate, &post("1")).unwrap().blocked(Duration::ZERO);
    assert_eq!(rest(&gate), MS(5000));
    assert!(gate.trouble().is_some());
    assert_eq!(go(&gate, &Call::me()).unwrap_err(), MS(5000));
    assert!(gate.pass(&Call::callback("1", "t"), Worth::Answer).is_ok(), "the answer to a press still tries");
    hand.ahead(5000);
    let probe = go(&gate, &post("1")).unwrap();
    assert_eq!(go(&gate, &post("2")).unwrap_err(), FOR_ANOTHER, "one at a time");
    assert_eq!(probe.blocked(Duration::ZERO), MS(10_000), "doubling");
    for seconds in [20, 40, 80, 160, 320, 600, 600] {
        hand.ahead(1_000_000);
        assert_eq!(rest(&gate), Duration::from_secs(seconds));
    }
    hand.ahead(1_000_000);
    // Nobody waited for its answer: the next one probes.
    drop(go(&gate, &post("1")).unwrap());
    go(&gate, &post("1")).unwrap().answered(200, &Limits::default());
    assert!(gate.trouble().is_none());
    assert!(go(&gate, &post("2")).is_ok());
}

#[test]
fn discord_case_56_an_exhausted_bucket_waits_on_all_its_routes_and_nowhere_else() {
    let (hand, gate) = gate();
    let told = |name: &str, left: &str| {
        limits(&[
            ("x-ratelimit-bucket", name),
            ("x-ratelimit-remaining", left),
            ("x-ratelimit-reset-after", "2"),
            ("x-ratelimit-limit", "5"),
        ])
    };
    go(&gate, &Call::edit_message("1", "9")).unwrap().answered(200, &told("b", "3"));
    hand.ahead(3000);
    go(&gate, &post("1")).unwrap().answered(200, &told("b", "0"));
    assert_eq!(go(&gate, &post("1")).unwrap_err(), MS(2000));
    assert_eq!(go(&gate, &Call::edit_message("1", "9")).unwrap_err(), MS(2000), "the same bucket");
    assert!(go(&gate, &post("2")).is_ok(), "another channel");
    assert!(go(&gate, &Call::delete_message("1", "9")).is_ok(), "another bucket");
    hand.ahead(2000);
    assert!(go(&gate, &post("1")).is_ok());
}

#[test]
fn calls_in_flight_count_and_the_unknown_is_tried_by_one() {
    let (_, gate) = gate();
    let first = go(&gate, &post("1")).unwrap();
    assert_eq!(go(&gate, &post("1")).unwrap_err(), FOR_ANOTHER);
    assert!(go(&gate, &post("2")).is_ok());
    first.answered(200, &limits(&[("x-ratelimit-remaining", "2"), ("x-ratelimit-reset-after", "9")]));
    let (a, b) = (go(&gate, &post("1")).unwrap(), go(&gate, &post("1")).unwrap());
    assert_eq!(go(&gate, &post("1")).unwrap_err(), FOR_ANOTHER);
    drop((a, b));
    assert!(go(&gate, &post("1")).is_ok());
}

#[test]
fn discord_case_58_refused_calls_end_long_before_the_ban() {
    let (hand, gate) = gate();
    let mut sent = 0;
    let refuse = |call: &Call, worth| match gate.pass(call, worth) {
        Ok(pass) => {
            pass.answered(403, &Limits::default());
            1
        }
        Err(_) => 0,
    };
    for n in 0..20_000 {
        hand.ahead(20);
        sent += refuse(&Call::edit_message("1", "9"), Worth::Interim);
        sent += refuse(&Call::edit_message("1", "8"), Worth::Usual);
        sent += refuse(&post("1"), Worth::Needed);
        if n == 600 {
            assert!(gate.trouble().is_some(), "operators are told");
        }
    }
    assert!(sent < 5_100, "{sent}");
    assert!(gate.pass(&Call::callback("1", "t"), Worth::Answer).is_ok());
    assert!(gate.pass(&post("2"), Worth::Needed).is_err());
    hand.ahead(600_001);
    assert!(gate.pass(&post("2"), Worth::Needed).is_ok());
    assert!(gate.trouble().is_none());
}

#[test]
fn old_buckets_are_forgotten() {
    let (hand, gate) = gate();
    for n in 0..10_000 {
        let call = post(&n.to_string());
        let told = [("x-ratelimit-remaining", "2"), ("x-ratelimit-reset-after", "1")];
        go(&gate, &call).unwrap().answered(200, &limits(&told));
        hand.ahead(10);
    }
    assert!(gate.state().buckets.len() <= MOST);
}
