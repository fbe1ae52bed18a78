//! Deliveries that have no row of their own: which were taken before.
//!
//! Invariant: a key is noted in the database, so that a copy is known after a restart and by every
//! replica. Presses are not noted here: the click itself has the key.

use super::Bridge;
use super::audit::Row;
use crate::domain::policy::Rule;
use crate::store::StoreError;
use std::sync::Arc;

impl Bridge {
    /// Whether a delivery with one of these keys was taken before.
    pub async fn knows_delivery(&self, keys: &[String]) -> Result<bool, StoreError> {
        if keys.is_empty() {
            return Ok(false);
        }
        let keys = keys.to_vec();
        self.store
            .read(move |tx| {
                Box::pin(async move {
                    for key in &keys {
                        if tx.knows_delivery(key).await? {
                            return Ok(true);
                        }
                    }
                    Ok(false)
                })
            })
            .await
    }

    /// Notes the keys of a delivery; whether it is new. Without keys everything is new.
    pub async fn note_delivery(&self, keys: &[String]) -> Result<bool, StoreError> {
        if keys.is_empty() {
            return Ok(true);
        }
        let (keys, now) = (keys.to_vec(), self.clock.now());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let mut new = true;
                    for key in &keys {
                        new &= tx.note_delivery(key, now).await?;
                    }
                    Ok(new)
                })
            })
            .await
    }

    /// Tells operators of a delivery to an install that names another app than the install's.
    pub async fn other_app(&self, install: &str) {
        let text = format!("a delivery to {install} names another app than the one it is configured for");
        self.alert(&format!("other_app:{install}"), &text).await;
    }

    /// A delivery was verified for one application and names another: refused, and in the audit log.
    pub async fn foreign_delivery(self: &Arc<Self>, install: &str) -> Result<(), StoreError> {
        self.other_app(install).await;
        let (bridge, now) = (Arc::clone(self), self.clock.now());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let row = Row {
                        event: "click",
                        decision: Some("refused"),
                        rule: Some(Rule::State.as_str()),
                        ..Row::default()
                    };
                    bridge.record(tx, None, None, row, now);
                    Ok(())
                })
            })
            .await
    }

    /// What keeps deliveries of an install from coming; `None` when all is well again.
    pub async fn inbound_trouble(&self, install: &str, what: Option<&str>) {
        let key = format!("inbound:{install}");
        match what {
            Some(what) => self.alert(&key, &format!("{install}: {what}")).await,
            None => self.all_clear(&key).await,
        }
    }
}
