//! Logs and numbers for operators.
//!
//! Invariant: names of metrics and their labels are small fixed sets, described here; no id, name,
//! address or text from outside is ever a label, except the configured names of runtimes and installs.
//!
//! Known race: tests of one binary share one recorder and one subscriber; the first call installs
//! them, later calls change nothing and get the same.

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::io::IsTerminal;
use std::sync::OnceLock;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What is logged when a filter cannot be read.
const DEFAULT: &str = "info";
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Seconds: an acknowledgement is due within 3 s, a delivery may take an hour.
const SECONDS: [f64; 13] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 10.0, 60.0, 600.0];

const COUNTERS: &[(&str, &str)] = &[
    ("countersign_a2a_calls_total", "Calls of A2A runtimes to our webhooks, by status."),
    ("countersign_alerts_total", "Alerts raised; each counts once until it is cleared."),
    ("countersign_answers_total", "Answers that a runtime accepted, by decision."),
    ("countersign_cards_held_total", "Cards that had to wait for room in their place."),
    ("countersign_clicks_total", "Clicks stored, by platform; repeat = the same delivery came again."),
    ("countersign_http_requests_total", "Requests answered, by route, method and class of status."),
    ("countersign_inbound_refused_total", "Deliveries not taken, by platform and reason."),
    ("countersign_inbound_unreadable_total", "Signed deliveries that could not be read, by platform."),
    ("countersign_jobs_fenced_total", "Jobs that finished after their lease was lost."),
    ("countersign_opened_total", "Interactions first seen open, by kind."),
    ("countersign_settled_total", "Interactions that ended, by outcome."),
    (
        "countersign_gateway_reconnects_total",
        "Connections to Discord's gateway that have to be made again, by install and reason.",
    ),
    ("countersign_socket_reconnects_total", "Sockets that have to be opened again, by install and reason."),
    ("countersign_unrouted_total", "Open interactions that no route matched."),
    ("countersign_wakeups_total", "Wake-ups of the workers, by reason."),
    ("countersign_watch_errors_total", "Failed readings, by runtime."),
];

const GAUGES: &[(&str, &str)] = &[
    ("countersign_paused", "1 while answers to this runtime are paused by operators, by runtime."),
    ("countersign_gateway_up", "1 while Discord's gateway is connected here, by install."),
    ("countersign_sockets_open", "Sockets of Slack's Socket Mode that are open here, by install."),
    ("countersign_streams", "Tasks that are followed by a stream here, by runtime."),
];

const HISTOGRAMS: &[(&str, &str)] = &[
    ("countersign_ack_seconds", "From a delivery's arrival to its acknowledgement, by platform."),
    ("countersign_http_seconds", "Time to answer a request, by route."),
];

/// Starts logging to standard error: lines for people on a terminal, JSON otherwise.
///
/// `filter` is a comma-separated list of `target=level`. A bare level is for Countersign's own events;
/// other crates stay at `warn` unless they are named, because what they say in detail may hold
/// addresses and headers. A filter that cannot be read is said so, and `info` is used.
pub fn init(filter: &str) {
    let (chosen, bad) = match EnvFilter::try_new(directives(filter)) {
        Ok(chosen) => (chosen, false),
        Err(_) => (EnvFilter::new(directives(DEFAULT)), true),
    };
    let registry = tracing_subscriber::registry().with(chosen);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    // An error means that a subscriber is there already: a second call changes nothing.
    let _ = if std::io::stderr().is_terminal() {
        registry.with(lines).try_init()
    } else {
        registry.with(lines.json().flatten_event(true)).try_init()
    };
    if bad {
        tracing::warn!("the log filter cannot be read; write something like `info` or `countersign=debug`");
    }
}

fn directives(filter: &str) -> String {
    let mut all = vec!["warn".to_owned()];
    for part in filter.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        if LEVELS.contains(&part.to_ascii_lowercase().as_str()) {
            all.push(format!("countersign={part}"));
        } else {
            all.push(part.to_owned());
        }
    }
    all.join(",")
}

/// The numbers of this process.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Everything counted so far, in the text format of Prometheus.
    #[must_use]
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Folds collected samples together. To be called every few seconds, or they pile up.
    pub fn upkeep(&self) {
        self.0.run_upkeep();
    }
}

/// Installs the recorder of this process, at the first call, and describes every metric.
pub fn install_recorder() -> Metrics {
    static INSTALLED: OnceLock<PrometheusHandle> = OnceLock::new();
    let handle = INSTALLED.get_or_init(|| {
        let builder = PrometheusBuilder::new();
        // `set_buckets` refuses only an empty list.
        let builder = builder.set_buckets(&SECONDS).unwrap_or_else(|_| PrometheusBuilder::new());
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        // Somebody else's recorder stays where it is; ours then counts nothing.
        let _ = metrics::set_global_recorder(recorder);
        for (name, text) in COUNTERS {
            metrics::describe_counter!(*name, *text);
        }
        for (name, text) in GAUGES {
            metrics::describe_gauge!(*name, *text);
        }
        for (name, text) in HISTOGRAMS {
            metrics::describe_histogram!(*name, metrics::Unit::Seconds, *text);
        }
        handle
    });
    Metrics(handle.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_level_is_for_our_own_events() {
        assert_eq!(directives("debug"), "warn,countersign=debug");
        assert_eq!(directives(" INFO , sqlx=debug,"), "warn,countersign=INFO,sqlx=debug");
        assert_eq!(directives(""), "warn");
        for filter in ["debug", "INFO,sqlx=debug", "", "countersign::http=trace"] {
            assert!(EnvFilter::try_new(directives(filter)).is_ok(), "{filter}");
        }
        assert!(EnvFilter::try_new(directives("a=b=c")).is_err());
    }

    #[test]
    fn starting_twice_changes_nothing() {
        init("info");
        init("not=a=filter");
        let (first, second) = (install_recorder(), install_recorder());
        metrics::counter!("countersign_unrouted_total").increment(0);
        first.upkeep();
        assert!(first.render().contains("countersign_unrouted_total"), "{}", first.render());
        assert!(second.render().contains("# HELP countersign_unrouted_total"), "{}", second.render());
    }

    /// Every metric that the code counts is described, and nothing else is.
    #[test]
    fn every_metric_is_described() {
        let mut counted = std::collections::BTreeSet::new();
        let mut left = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
        while let Some(path) = left.pop() {
            if path.is_dir() {
                left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("telemetry.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                for kind in ["counter!(", "gauge!(", "histogram!("] {
                    for part in text.split(kind).skip(1) {
                        let name =
                            part.trim_start().strip_prefix('"').and_then(|part| part.split('"').next());
                        counted
                            .extend(name.filter(|name| name.starts_with("countersign_")).map(str::to_owned));
                    }
                }
            }
        }
        let described = COUNTERS.iter().chain(GAUGES).chain(HISTOGRAMS).map(|(name, _)| *name);
        for name in &counted {
            assert!(described.clone().any(|known| known == name), "describe {name}");
        }
    }
}
