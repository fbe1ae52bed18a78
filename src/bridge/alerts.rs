//! What operators should look at: each thing once, and gone when it is well again.
//!
//! Invariant: an alert about a condition ends with the condition; one about a single event (a delivery
//! that could not be read, a card that was deleted) ends an hour later, because nothing else can end it
//! and `/readyz` must not say "not ready" for ever.

use super::Bridge;
use super::click::NOT_INSTALLED;
use crate::domain::ids::InteractionId;
use crate::store::StoreError;
use std::time::Duration;
use uuid::Uuid;

/// How long a single event stays an alert.
const EVENT_STANDS: Duration = Duration::from_hours(1);

impl Bridge {
    /// What an install's platform knows to be wrong there is an alert, until it is well again. Every replica
    /// tells what it sees itself.
    pub async fn tend_troubles(&self, install: &str) {
        let Some(platform) = self.platforms.get(install) else { return };
        for trouble in platform.troubles() {
            match &trouble.text {
                Some(text) => self.alert(&trouble.key, text).await,
                None => self.all_clear(&trouble.key).await,
            }
        }
    }

    /// Ends alerts whose cause is over and that nothing else ends.
    pub async fn tend_alerts(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let since = now.minus(EVENT_STANDS);
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let unrouted = !tx.unrouted_after(InteractionId(Uuid::nil()), 1).await?.is_empty();
                    for alert in tx.alerts().await? {
                        let over = match alert.key.split_once(':') {
                            // Such a delivery may have come again meanwhile.
                            Some(("unreadable", source)) => !tx.unreadable_since(source, since).await?,
                            Some(("card" | "edit" | "other_app" | "rate" | "people", _)) => {
                                alert.since <= since
                            }
                            Some(("unrouted", _)) => !unrouted,
                            None if alert.key == NOT_INSTALLED => !tx.foreign_clicks_since(since).await?,
                            _ => false,
                        };
                        if over {
                            tx.clear(&alert.key).await?;
                        }
                    }
                    Ok(())
                })
            })
            .await
    }
}
