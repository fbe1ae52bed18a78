//! `check`: looks at everything a start depends on and says what is wrong and what to do.
//!
//! Opens no socket towards a chat platform, so it takes no clicks; works beside a running service.

use super::End;
use super::service::{self, Machine, Service};
use crate::bridge::ports::ChatError;
use crate::config::{Config, ProcessEnv};
use crate::domain::place::Place;
use anyhow::Result;
use std::collections::BTreeSet;
use std::path::Path;

/// What was found, worst last in importance: an error makes the exit code 1.
#[derive(Debug, Default)]
struct Report {
    errors: usize,
}

impl Report {
    fn ok(what: &str) {
        println!("ok       {what}");
    }

    fn warning(what: &str) {
        println!("warning  {what}");
    }

    fn error(&mut self, what: &str) {
        self.errors += 1;
        println!("error    {what}");
    }
}

pub(super) async fn run(path: &Path) -> Result<End> {
    let machine = Machine::real();
    let mut report = Report::default();
    let config = match Config::load(path, &ProcessEnv) {
        Ok(config) => config,
        Err(findings) => {
            for finding in &findings.0 {
                report.error(&finding.to_string());
            }
            return Ok(End::Usage);
        }
    };
    Report::ok(&format!("configuration {}", path.display()));
    for warning in config.warnings() {
        Report::warning(&warning.to_string());
    }
    let store = match service::connect(&config, &machine).await {
        Ok(store) => store,
        Err(error) => {
            report.error(&format!("{error:#}"));
            return Ok(End::Failed);
        }
    };
    if store.message_prefix().await.is_err() {
        report.error("the database is not migrated: run `countersign migrate` (or `run`, which does it)");
        return Ok(End::Failed);
    }
    Report::ok(&format!("database {}", config.database.url));
    let service = match Service::build(config, store, &machine).await {
        Ok(service) => service,
        Err(error) => {
            report.error(&format!("{error:#}"));
            return Ok(End::Failed);
        }
    };
    chats(&service, &mut report).await;
    runtimes(&service, &mut report).await;
    for alert in service.bridge.store.read(|tx| Box::pin(async move { tx.alerts().await })).await? {
        Report::warning(&format!("alert since {}: {}", alert.since.rfc3339(), alert.text));
    }
    service.bridge.store.close().await;
    Ok(if report.errors == 0 { End::Done } else { End::Failed })
}

async fn chats(service: &Service, report: &mut Report) {
    for (install, platform) in &service.bridge.platforms {
        match platform.identify().await {
            Ok(identity) => {
                Report::ok(&format!("slack {install}: app {}, realm {}", identity.app_id, identity.realm()));
                if !identity.can_search {
                    Report::warning(&format!(
                        "slack {install}: without the history scopes a post whose answer was lost may come twice"
                    ));
                }
            }
            Err(ChatError::Auth { code, needed }) => {
                report.error(&format!("slack {install}: the bot token is refused ({code} {needed})"));
                continue;
            }
            Err(error) => {
                report.error(&format!("slack {install}: {error}"));
                continue;
            }
        }
        let places: BTreeSet<&Place> = service
            .bridge
            .rules
            .routes
            .iter()
            .flat_map(|route| route.to.iter().chain(&route.fallback))
            .filter(|place| place.install == *install)
            .collect();
        for place in places {
            match platform.resolve(&place.target).await {
                Ok(channel) => Report::ok(&format!("{place} is {channel}")),
                Err(error) => {
                    report.error(&format!("{place}: {error}; invite the app there or mend the name"));
                }
            }
        }
    }
}

async fn runtimes(service: &Service, report: &mut Report) {
    for (runtime, connector) in &service.bridge.connectors {
        if let Err(error) = connector.refresh().await {
            report.error(&format!("runtime {runtime}: {error}"));
            continue;
        }
        match connector.list(None).await {
            Ok(page) if page.supported => {
                Report::ok(&format!("runtime {runtime}: {} waiting on the first page", page.readings.len()));
            }
            Ok(_) => Report::warning(&format!(
                "runtime {runtime}: its tasks cannot be listed; it is watched where tasks are registered (POST /api/v1/tasks)"
            )),
            Err(error) => report.error(&format!("runtime {runtime}: {error}")),
        }
    }
}
