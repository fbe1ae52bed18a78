//! Push notification configurations and the notifications themselves (A2A 1.0 §3.1.7–10, §4.3.3).
//!
//! Invariants: a configuration lives until it is deleted or its task has ended and that was told; every
//! status is told once to every configuration that was there before it, by one POST without a retry, as
//! the official server does; deleting what is not there is success. A credential is never shown.
//!
//! Notifications leave from one task per world, which ends with the world.

use super::error::{A2aError, Code};
use super::ops::Call;
use super::params::Fields;
use super::render::{self, Show};
use super::switches::Push;
use super::world::A2aWorld;
use crate::net::{self, Limits};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A configuration, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PushConfig {
    pub id: String,
    pub task_id: String,
    pub url: String,
}

/// A configuration and how far its client has been told.
struct Config {
    view: PushConfig,
    token: Option<String>,
    credential: Option<(String, String)>,
    extension: bool,
    told: usize,
}

#[derive(Default)]
pub(super) struct Pushes {
    configs: BTreeMap<(String, String), Config>,
    running: bool,
    delivered: Vec<(String, u16)>,
}

pub(super) fn run(call: &Call<'_>, method: &str, fields: &Fields<'_>) -> Result<Value, A2aError> {
    let offered = call.world.with(|inner| {
        inner.switches.push != Push::Off && inner.cards.get(call.agent).is_some_and(|card| card.push)
    });
    if !offered {
        return Err(A2aError::new(Code::PushNotSupported, "Push notifications are not supported"));
    }
    let task = fields.text("taskId")?.ok_or_else(|| fields.error("taskId", "is required"))?;
    call.world.with(|inner| call.find(inner, task).map(|_| ()))?;
    let id = fields.text("id")?;
    let required = || id.ok_or_else(|| fields.error("id", "is required"));
    match method {
        "CreateTaskPushNotificationConfig" => create(call, fields, task, id),
        "GetTaskPushNotificationConfig" => {
            fields.only(&["tenant", "taskId", "id"])?;
            let key = (task.to_owned(), required()?.to_owned());
            call.world
                .with(|inner| inner.push.configs.get(&key).map(Config::json))
                .ok_or_else(|| A2aError::not_found(task))
        }
        "DeleteTaskPushNotificationConfig" => {
            fields.only(&["tenant", "taskId", "id"])?;
            let key = (task.to_owned(), required()?.to_owned());
            call.world.with(|inner| inner.push.configs.remove(&key));
            call.world.touch();
            Ok(json!({}))
        }
        _ => {
            fields.only(&["tenant", "taskId", "pageSize", "pageToken"])?;
            let configs: Vec<Value> = call.world.with(|inner| {
                inner.push.configs.values().filter(|c| c.view.task_id == task).map(Config::json).collect()
            });
            Ok(json!({ "configs": configs, "nextPageToken": "" }))
        }
    }
}

fn create(call: &Call<'_>, fields: &Fields<'_>, task: &str, id: Option<&str>) -> Result<Value, A2aError> {
    fields.only(&["tenant", "id", "taskId", "url", "token", "authentication"])?;
    let url = fields.text("url")?.filter(|url| url.parse::<url::Url>().is_ok());
    let url = url.ok_or_else(|| fields.error("url", "must be an address"))?.to_owned();
    let token = fields.text("token")?.map(str::to_owned);
    let credential = match fields.object("authentication")? {
        Some(authentication) => {
            authentication.only(&["scheme", "credentials"])?;
            let scheme = authentication.text("scheme")?;
            let scheme = scheme.ok_or_else(|| authentication.error("scheme", "is required"))?;
            Some((scheme.to_owned(), authentication.text("credentials")?.unwrap_or_default().to_owned()))
        }
        None => None,
    };
    // Without an id the task's is taken, as the official server does: it replaces the one before.
    let id = id.unwrap_or(task).to_owned();
    let created = call.world.with(|inner| {
        let ended = call.find(inner, task)?.state().is_terminal();
        if ended {
            return Err(A2aError::unsupported("The task has ended").with("taskId", task));
        }
        let told = call.find(inner, task)?.transitions.len();
        let view = PushConfig { id: id.clone(), task_id: task.to_owned(), url };
        let config = Config { view, token, credential, extension: call.extension, told };
        let shown = config.json();
        inner.push.configs.insert((task.to_owned(), id), config);
        Ok(shown)
    })?;
    call.world.start_pushing();
    call.world.touch();
    Ok(created)
}

impl Config {
    /// As it is shown: without secrets.
    fn json(&self) -> Value {
        json!({ "id": self.view.id, "taskId": self.view.task_id, "url": self.view.url })
    }
}

/// One notification on its way.
struct Delivery {
    config: PushConfig,
    token: Option<String>,
    credential: Option<(String, String)>,
    body: Value,
}

impl A2aWorld {
    /// The configurations that there are.
    #[must_use]
    pub fn push_configs(&self) -> Vec<PushConfig> {
        self.with(|inner| inner.push.configs.values().map(|config| config.view.clone()).collect())
    }

    /// Every notification that was delivered: its task, and the status it was answered with (0: none).
    #[must_use]
    pub fn pushed(&self) -> Vec<(String, u16)> {
        self.with(|inner| inner.push.delivered.clone())
    }

    fn start_pushing(&self) {
        let Some(world) = self.me.upgrade() else { return };
        if self.with(|inner| std::mem::replace(&mut inner.push.running, true)) {
            return;
        }
        let world = Arc::downgrade(&world);
        #[expect(clippy::disallowed_methods, reason = "a stand-in's own work; it ends with its world")]
        tokio::spawn(deliver_all(world));
    }

    /// What has to be told now, in order.
    fn to_push(&self) -> Vec<Delivery> {
        self.with(|inner| {
            let switches = inner.switches.clone();
            let mut all = vec![];
            let mut ended = vec![];
            for (key, config) in &mut inner.push.configs {
                let Some(task) = inner.tasks.get(&config.view.task_id) else {
                    ended.push(key.clone());
                    continue;
                };
                let show = Show::new(&switches, config.extension);
                for status in task.transitions.iter().skip(config.told) {
                    let mut status = render::status(task, status, &show);
                    if switches.push == Push::Lying {
                        status = json!({ "state": "TASK_STATE_COMPLETED" });
                    }
                    let body = json!({ "statusUpdate": { "taskId": task.id, "contextId": task.context, "status": status } });
                    let mut credential = config.credential.clone();
                    if let (Some((_, credential)), true) = (&mut credential, switches.push_wrong_credential) {
                        *credential = "wrong".into();
                    }
                    let copies = if switches.push == Push::Duplicating { 3 } else { 1 };
                    for _ in 0..copies {
                        all.push(Delivery {
                            config: config.view.clone(),
                            token: config.token.clone().filter(|_| !switches.push_without_token),
                            credential: credential.clone(),
                            body: body.clone(),
                        });
                    }
                }
                config.told = task.transitions.len();
                if task.state().is_terminal() {
                    ended.push(key.clone());
                }
            }
            for key in ended {
                inner.push.configs.remove(&key);
            }
            if switches.push == Push::Reordering {
                all.reverse();
            }
            all
        })
    }
}

/// Tells every client, one notification after another, until the world is gone.
async fn deliver_all(world: Weak<A2aWorld>) {
    let Ok(http) = net::client(Limits { connect: Duration::from_secs(1), total: Duration::from_secs(5) })
    else {
        return;
    };
    let Some(mut changed) = world.upgrade().map(|world| world.changed()) else { return };
    loop {
        changed.borrow_and_update();
        let deliveries = match world.upgrade() {
            Some(world) => world.to_push(),
            None => return,
        };
        for Delivery { config, token, credential, body } in deliveries {
            let mut request = http.post(&config.url).json(&body);
            if let Some((scheme, credential)) = credential {
                request = request.header("authorization", format!("{scheme} {credential}"));
            }
            if let Some(token) = token {
                request = request.header("x-a2a-notification-token", token);
            }
            let status = request.send().await.map_or(0, |answer| answer.status().as_u16());
            let Some(world) = world.upgrade() else { return };
            world.with(|inner| inner.push.delivered.push((config.task_id, status)));
            world.touch();
        }
        if changed.changed().await.is_err() {
            return;
        }
    }
}
