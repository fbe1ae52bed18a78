//! `migrate`: brings the database up to this version.

use super::service::{self, Machine};
use super::{End, run::lock};
use crate::config::Config;
use anyhow::Result;

pub(super) async fn run(config: Config) -> Result<End> {
    let machine = Machine::real();
    let _lock = lock(&config)?;
    let store = service::connect(&config, &machine).await?;
    service::migrate(&store, &machine).await?;
    println!("the database is up to date");
    store.close().await;
    Ok(End::Done)
}
