//! Places by name stay what they were.
//!
//! Invariant: a `#name` is resolved once and pinned by id. When the name later means another channel,
//! cards go on to the pinned one and operators are told, because nobody can know which was meant.

use super::Bridge;
use crate::domain::place::Target;
use crate::store::StoreError;

impl Bridge {
    /// Looks whether the pinned names of an install still mean the same channels.
    pub async fn check_pins(&self, install: &str) -> Result<(), StoreError> {
        let Some(platform) = self.platforms.get(install).cloned() else { return Ok(()) };
        let name = install.to_owned();
        let pins = self.store.read(move |tx| Box::pin(async move { tx.pins(&name).await })).await?;
        for (name, pinned) in pins {
            let key = format!("pin:{install}:#{name}");
            match platform.resolve(&Target::SlackName(name.clone())).await {
                Ok(channel) if channel == pinned => self.all_clear(&key).await,
                Ok(channel) => {
                    self.alert(
                        &key,
                        &format!(
                            "slack:{install}:#{name} now means {channel}; cards go on to {pinned}. \
                             Write the id of the one you mean"
                        ),
                    )
                    .await;
                }
                // Renamed, archived or not readable now: the pin is by id, so nothing changes.
                Err(error) => tracing::debug!(install, name, %error, "a pinned name could not be looked up"),
            }
        }
        Ok(())
    }
}
