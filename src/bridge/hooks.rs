//! Runtimes that call us when a task changes: asking them to, judging their calls, ending it.
//!
//! Invariants:
//! - a call is a hint: it is counted, acknowledged, and followed by a reading; nothing of what it says
//!   is taken over;
//! - address, credential and token are random and known to the runtime; here they are kept as hashes;
//! - a configuration is stored before it is asked for and forgotten after it is deleted there, so that
//!   none is left at a runtime without us knowing.
//!
//! Known races: the process dies between storing and asking, or before the answer: the configuration is
//! never confirmed, and is replaced by another one. A call comes while it is being ended: it is unknown.

use super::Bridge;
use super::ports::{Connector, Hook, TaskRef, Unfollowed};
use crate::domain::clock::Millis;
use crate::domain::form::sha256_hex;
use crate::store::StoreError;
pub use crate::store::watches::HookRow;
use crate::store::watches::{Known, NewHook};
use data_encoding::HEXLOWER;
use futures_util::stream::{self, StreamExt};
use ring::hmac;
use secrecy::SecretString;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A task whose runtime calls us is read all the same so often.
const READ_EVERY: Duration = Duration::from_mins(1);
/// A configuration that was not confirmed within this time is replaced.
const UNCONFIRMED: Duration = Duration::from_secs(30);
/// After a failure to ask for calls, the task waits this long.
const ASK_AGAIN: Duration = Duration::from_mins(1);
/// After a failure to end one; and when trying is given up.
const END_AGAIN: Duration = Duration::from_mins(1);
const GIVE_UP: Duration = Duration::from_hours(24);
/// Calls about hooks that go out at once, and in one turn.
const AT_ONCE: usize = 8;
const PER_TURN: i64 = 100;

/// One address may be called so often in so long.
const CALLS: u32 = 60;
const WINDOW: Duration = Duration::from_secs(10);
/// Addresses that are remembered before old ones are forgotten.
const REMEMBERED: usize = 10_000;

/// How often each address is called, and which tasks wait after a refusal.
#[derive(Debug, Default)]
pub(super) struct Calls {
    recent: Mutex<HashMap<String, (Millis, u32)>>,
    resting: Mutex<HashMap<(String, String), Millis>>,
}

/// What follows from one more call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rate {
    Fine,
    /// Too often: a reading at that moment stands for all that are not counted.
    Over(Millis),
    FarOver,
}

impl Calls {
    fn count(&self, id: &str, now: Millis) -> Rate {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= REMEMBERED {
            recent.retain(|_, (began, _)| now.since(*began) < WINDOW);
        }
        let (began, count) = recent.entry(id.to_owned()).or_insert((now, 0));
        if now.since(*began) >= WINDOW {
            (*began, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        match *count {
            count if count <= CALLS => Rate::Fine,
            count if count == CALLS + 1 => Rate::Over(began.plus(WINDOW)),
            _ => Rate::FarOver,
        }
    }

    fn rests(&self, runtime: &str, task: &str, now: Millis) -> bool {
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.retain(|_, until| now < *until);
        resting.contains_key(&(runtime.to_owned(), task.to_owned()))
    }

    fn rest(&self, runtime: &str, task: &str, until: Millis) {
        let key = (runtime.to_owned(), task.to_owned());
        self.resting.lock().unwrap_or_else(PoisonError::into_inner).insert(key, until);
    }
}

/// Compares a secret with its stored hash, without telling by time how much of it was right.
fn is(stored: &str, presented: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, stored.as_bytes());
    let code = hmac::sign(&key, sha256_hex(presented).as_bytes());
    hmac::verify(&key, stored.as_bytes(), code.as_ref()).is_ok()
}

impl HookRow {
    /// Whether a call has the credential, and, where it brings a token, the right one.
    pub fn admits(&self, credential: Option<&[u8]>, token: Option<&[u8]>) -> bool {
        let credential = credential.is_some_and(|credential| is(&self.credential_hash, credential));
        let token = token.is_none_or(|token| is(&self.token_hash, token));
        credential && token
    }
}

impl Bridge {
    /// The configuration whose calls come to this address.
    pub async fn hook_at(&self, path: &str) -> Result<Option<HookRow>, StoreError> {
        let hash = sha256_hex(path.as_bytes());
        self.store.read(|tx| Box::pin(async move { tx.hook_at(&hash).await })).await
    }

    /// A runtime has called, as it may: its task will be read. `false`: it calls too often.
    pub async fn hook_called(&self, hook: &HookRow) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let (due, fine) = match self.calls.count(&hook.id, now) {
            Rate::Fine => (now, true),
            Rate::Over(later) => (later, false),
            Rate::FarOver => return Ok(false),
        };
        let id = hook.id.clone();
        self.store.write(move |tx| Box::pin(async move { tx.hint(&id, due).await })).await?;
        self.tracking.hint();
        Ok(fine)
    }

    /// The hooks' tasks were read, as far as `read` names them: the calls before that are answered.
    pub(super) async fn hooks_read(
        &self,
        hooks: Vec<HookRow>,
        read: &HashSet<String>,
    ) -> Result<(), StoreError> {
        // One that could not be read is left to the next turn, which waits a little.
        let done: Vec<HookRow> = hooks.into_iter().filter(|hook| read.contains(&hook.task)).collect();
        if done.is_empty() {
            return Ok(());
        }
        let next = self.clock.now().plus(READ_EVERY);
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    for hook in &done {
                        tx.hook_read(&hook.id, hook.hints, next).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Asks for calls about what is wanted, and ends what is not. Whether anything of ours is left at the
    /// runtime.
    pub async fn tend_hooks(
        self: &Arc<Self>,
        connector: &Arc<dyn Connector>,
        wanted: &[Known],
    ) -> Result<bool, StoreError> {
        let runtime = connector.runtime().as_str().to_owned();
        let now = self.clock.now();
        let name = runtime.clone();
        let hooks = self.store.read(|tx| Box::pin(async move { tx.hooks_of(&name).await })).await?;
        let names: HashSet<&str> = wanted.iter().map(|known| known.task.as_str()).collect();
        let (kept, unwanted): (Vec<_>, Vec<_>) = hooks.into_iter().partition(|hook| {
            names.contains(hook.task.as_str()) && (hook.live || now.since(hook.made) < UNCONFIRMED)
        });
        if !unwanted.is_empty() {
            self.store
                .write(move |tx| {
                    Box::pin(async move {
                        for hook in &unwanted {
                            tx.end_hook(&hook.id, now).await?;
                        }
                        Ok(())
                    })
                })
                .await?;
        }
        let has: HashSet<&str> = kept.iter().map(|hook| hook.task.as_str()).collect();
        let missing: Vec<Known> = wanted
            .iter()
            .filter(|known| {
                !has.contains(known.task.as_str()) && !self.calls.rests(&runtime, &known.task, now)
            })
            .take(usize::try_from(PER_TURN).unwrap_or_default())
            .cloned()
            .collect();
        let asked: Vec<_> = stream::iter(missing)
            .map(|known| self.ask_for_calls(connector, known))
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        asked.into_iter().collect::<Result<Vec<()>, StoreError>>()?;
        let name = runtime.clone();
        let ending = self
            .store
            .read(|tx| Box::pin(async move { tx.due_hooks(&name, now, true, PER_TURN).await }))
            .await?;
        let ended: Vec<_> = stream::iter(ending)
            .map(|hook| self.end_calls(connector, hook))
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        ended.into_iter().collect::<Result<Vec<()>, StoreError>>()?;
        let left = self.store.read(|tx| Box::pin(async move { tx.count_hooks(&runtime).await })).await?;
        Ok(left > 0)
    }

    async fn ask_for_calls(
        self: &Arc<Self>,
        connector: &Arc<dyn Connector>,
        known: Known,
    ) -> Result<(), StoreError> {
        let Some(base) = &self.rules.hooks else { return Ok(()) };
        // 32 bytes each.
        let random = || HEXLOWER.encode(&[self.ids.random(), self.ids.random()].concat());
        let (path, credential, token) = (random(), random(), random());
        let new = NewHook {
            id: format!("cs-{}", self.ids.uuid().simple()),
            runtime: connector.runtime().clone(),
            task: known.task.clone(),
            context: known.context.clone(),
            seen_as: known.seen_as.clone(),
            path_hash: sha256_hex(path.as_bytes()),
            credential_hash: sha256_hex(credential.as_bytes()),
            token_hash: sha256_hex(token.as_bytes()),
        };
        let hook = Hook {
            id: new.id.clone(),
            url: SecretString::from(format!("{base}{path}")),
            credential: credential.into(),
            token: token.into(),
        };
        let (now, id) = (self.clock.now(), new.id.clone());
        let stored = self
            .store
            .write(move |tx| Box::pin(async move { tx.insert_hook(&new, now, now.plus(READ_EVERY)).await }))
            .await?;
        if !stored {
            return Ok(());
        }
        let task = super::follow::task_of(&known);
        let asked = connector.notify(&task, &hook).await;
        if let Err(Unfollowed::Over(reading)) = &asked {
            self.take_in_one(connector, &task, known.open, (**reading).clone()).await?;
        }
        let now = self.clock.now();
        if let Err(error) = &asked {
            tracing::info!(runtime = %connector.runtime(), %error, "the runtime was not asked to call; the task is read");
            if !matches!(error, Unfollowed::Unsupported) {
                self.calls.rest(connector.runtime().as_str(), &known.task, now.plus(ASK_AGAIN));
            }
        }
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    match asked {
                        Ok(()) => {
                            tx.hook_live(&id).await?;
                            // What changed before it was made is not told.
                            tx.hint(&id, now).await
                        }
                        Err(_) => tx.end_hook(&id, now).await,
                    }
                    .map(|_| ())
                })
            })
            .await
    }

    async fn end_calls(
        self: &Arc<Self>,
        connector: &Arc<dyn Connector>,
        hook: HookRow,
    ) -> Result<(), StoreError> {
        let task =
            TaskRef { task: hook.task.clone(), context: hook.context.clone(), seen_as: hook.seen_as.clone() };
        let ended = connector.forget(&task, &hook.id).await;
        let now = self.clock.now();
        if let Err(error) = &ended {
            tracing::debug!(runtime = %connector.runtime(), %error, "a configuration could not be deleted yet");
        }
        let gone = ended.is_ok() || now.since(hook.made) >= GIVE_UP;
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    if gone {
                        tx.drop_hook(&hook.id).await
                    } else {
                        tx.end_hook_later(&hook.id, now.plus(END_AGAIN)).await
                    }
                    .map(|_| ())
                })
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> HookRow {
        HookRow {
            id: "cs-1".into(),
            runtime: crate::domain::ids::RuntimeName::new("prod"),
            task: "t".into(),
            context: None,
            seen_as: None,
            credential_hash: sha256_hex(b"credential"),
            token_hash: sha256_hex(b"token"),
            live: true,
            hints: 0,
            made: Millis(0),
        }
    }

    /// A2A case 57.
    #[test]
    fn a_call_needs_the_credential_and_may_not_bring_another_token() {
        let hook = row();
        assert!(hook.admits(Some(b"credential"), None));
        assert!(hook.admits(Some(b"credential"), Some(b"token")));
        assert!(!hook.admits(Some(b"credential"), Some(b"")));
        assert!(!hook.admits(Some(b"credential"), Some(b"credential")));
        assert!(!hook.admits(Some(b"token"), Some(b"token")));
        assert!(!hook.admits(Some(b""), None));
        assert!(!hook.admits(None, None));
        assert!(!hook.admits(None, Some(b"token")));
    }

    #[test]
    fn an_address_that_is_called_too_often_is_read_once_more_at_the_end() {
        let calls = Calls::default();
        for _ in 0..CALLS {
            assert_eq!(calls.count("a", Millis(5)), Rate::Fine);
        }
        assert_eq!(calls.count("a", Millis(6)), Rate::Over(Millis(5).plus(WINDOW)));
        assert_eq!(calls.count("a", Millis(7)), Rate::FarOver);
        assert_eq!(calls.count("b", Millis(7)), Rate::Fine);
        assert_eq!(calls.count("a", Millis(5).plus(WINDOW)), Rate::Fine);
    }
}
