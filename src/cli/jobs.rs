//! `jobs list|retry|drop`: the outbox as an operator sees it.

use super::End;
use super::service::{self, Machine};
use crate::config::Config;
use crate::store::jobs::Dropped;
use anyhow::Result;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(super) enum Jobs {
    /// List what waits, dead ones first.
    List {
        /// How many at most.
        #[arg(long, default_value_t = 100)]
        limit: i64,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Try a job again now.
    Retry { id: i64 },
    /// Drop a job. An answer is never dropped.
    Drop { id: i64 },
}

pub(super) async fn run(config: Config, command: Jobs) -> Result<End> {
    let machine = Machine::real();
    let store = service::connect(&config, &machine).await?;
    let end = match command {
        Jobs::List { limit, json } => {
            let rows = store.read(|tx| Box::pin(async move { tx.jobs(limit).await })).await?;
            if json {
                println!("{}", serde_json::to_string_pretty(&rows)?);
            } else if rows.is_empty() {
                println!("nothing waits");
            } else {
                for row in rows {
                    let state = match (row.dead, row.leased_until) {
                        (Some(_), _) => "dead".to_owned(),
                        (None, Some(until)) => format!("leased until {}", until.rfc3339()),
                        (None, None) => format!("due {}", row.available.rfc3339()),
                    };
                    let error = row.last_error.unwrap_or_default();
                    println!("{}  {}  {state}  attempt {}  {error}", row.id, row.kind, row.attempts);
                }
            }
            End::Done
        }
        Jobs::Retry { id } => {
            let found = store.write(move |tx| Box::pin(async move { tx.retry_now(id).await })).await?;
            if found {
                println!("job {id} is due now");
                End::Done
            } else {
                eprintln!("countersign: job {id} is not there, or a worker is at it");
                End::Failed
            }
        }
        Jobs::Drop { id } => {
            match store.write(move |tx| Box::pin(async move { tx.drop_job(id).await })).await? {
                Dropped::Yes => {
                    println!("job {id} is dropped");
                    End::Done
                }
                Dropped::Unknown => {
                    eprintln!("countersign: job {id} is not there");
                    End::Failed
                }
                Dropped::Answer => {
                    eprintln!("countersign: job {id} carries a person's answer; it is never dropped");
                    End::Failed
                }
                Dropped::Leased => {
                    eprintln!("countersign: a worker is at job {id}; try again in a few seconds");
                    End::Failed
                }
            }
        }
    };
    store.close().await;
    Ok(end)
}
