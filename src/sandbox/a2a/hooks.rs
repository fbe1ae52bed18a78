//! Scripts bound to a moment: right before a call is looked at, or right after it was applied and
//! before its answer leaves. That is how a test puts another event into a race.
//!
//! Invariant: a hook runs once, outside the world's lock, so it may use the whole world.

use super::world::A2aWorld;
use std::sync::{Mutex, PoisonError};

type Act = Box<dyn FnOnce(&A2aWorld) + Send>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Before,
    After,
}

struct Hook {
    method: String,
    when: When,
    act: Act,
}

/// The hooks that wait for their call.
#[derive(Default)]
pub(super) struct Hooks(Mutex<Vec<Hook>>);

impl Hooks {
    fn add(&self, method: &str, when: When, act: Act) {
        let hook = Hook { method: method.to_owned(), when, act };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(hook);
    }

    fn take(&self, method: &str, when: When) -> Option<Act> {
        let mut hooks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = hooks.iter().position(|hook| hook.when == when && hook.method == method)?;
        Some(hooks.remove(at).act)
    }
}

impl A2aWorld {
    /// Acts when the next call of `method` has arrived, before it is looked at.
    pub fn before_next(&self, method: &str, act: impl FnOnce(&Self) + Send + 'static) {
        self.hooks.add(method, When::Before, Box::new(act));
    }

    /// Acts when the next call of `method` has been applied, before its answer leaves.
    pub fn after_next(&self, method: &str, act: impl FnOnce(&Self) + Send + 'static) {
        self.hooks.add(method, When::After, Box::new(act));
    }

    pub(super) fn run_hook(&self, method: &str, when: When) {
        if let Some(act) = self.hooks.take(method, when) {
            act(self);
        }
    }
}
