//! What operators should look at: each thing once, and gone when it is well again.
//!
//! Invariant: an alert about a condition ends with the condition; one about a single event (a delivery
//! that could not be read, a card that was deleted) ends an hour later, because nothing else can end it
//! and `/readyz` must not say "not ready" for ever.

use super::Bridge;
use crate::domain::ids::InteractionId;
use crate::store::StoreError;
use std::time::Duration;
use uuid::Uuid;

/// Alerts about single events, by the start of their keys.
const EVENTS: [&str; 3] = ["unreadable:", "card:", "edit:"];
/// How long an event stays an alert.
const SEEN_AFTER: Duration = Duration::from_hours(1);

impl Bridge {
    /// Ends alerts whose cause is over and that nothing else ends.
    pub async fn tend_alerts(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let (alerts, unrouted) = self
            .store
            .read(|tx| {
                Box::pin(async move {
                    let nothing = InteractionId(Uuid::nil());
                    Ok((tx.alerts().await?, tx.unrouted_after(nothing, 1).await?))
                })
            })
            .await?;
        for alert in alerts {
            let event = EVENTS.iter().any(|start| alert.key.starts_with(start));
            let over = event && now.since(alert.since) >= SEEN_AFTER
                || alert.key.starts_with("unrouted:") && unrouted.is_empty();
            if over {
                self.all_clear(&alert.key).await;
            }
        }
        Ok(())
    }
}
