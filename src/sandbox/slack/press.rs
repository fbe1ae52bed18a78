//! What people do: press buttons, fill in fields, submit and close views, type commands.
//!
//! Invariant: a person can do only what the client would let them: press what is there and
//! visible, pick an option that exists, submit a view whose required fields are filled. What a
//! client cannot do is done with the `_raw` variants.

use super::controls::{self, Input};
use super::deliver::{Delivery, Door, Manner, form};
use super::happen::Happening;
use super::payload::{self, PressError, Spot};
use super::types::{Ephemeral, Message, Via};
use super::world::{SlackWorld, State};
use super::{api, submit, text};
use serde_json::{Value, json};

fn first(deliveries: Vec<Delivery>) -> Result<Delivery, PressError> {
    deliveries.into_iter().next().ok_or(PressError::Nothing)
}

fn find(controls: &[controls::Control], wanted: &str) -> Result<controls::Control, PressError> {
    controls::find(controls, wanted).cloned().ok_or_else(|| PressError::NoControl {
        wanted: wanted.into(),
        has: controls.iter().map(|control| control.label.clone()).collect(),
    })
}

impl SlackWorld {
    /// `user` presses the control with this label (or action id) of a message.
    pub async fn press(
        &self,
        user: &str,
        channel: &str,
        ts: &str,
        control: &str,
    ) -> Result<Delivery, PressError> {
        let spot = Spot::message(channel, ts);
        first(self.press_raw(user, &spot, control, &Manner::default(), |_| {}).await?)
    }

    /// The same anywhere, in any manner, with the payload changed before it is signed. Answers
    /// the delivery, its repeats and its redeliveries.
    pub async fn press_raw(
        &self,
        user: &str,
        spot: &Spot,
        control: &str,
        manner: &Manner,
        change: impl FnOnce(&mut Value),
    ) -> Result<Vec<Delivery>, PressError> {
        let mut payload = self.pressed(user, spot, control)?;
        change(&mut payload);
        Ok(self.deliver_payload(&payload, manner).await)
    }

    /// The question Slack asks this person before the press counts (the control's `confirm`), if any.
    pub fn asks_first(&self, user: &str, spot: &Spot, control: &str) -> Result<Option<Value>, PressError> {
        let state = self.lock();
        let seen = payload::look(&state, user, spot)?;
        let found = find(&controls::all(&seen.blocks), control)?;
        Ok(found.element.get("confirm").cloned())
    }

    /// Presses a control that asks first, and accepts or cancels the question; a canceled press is
    /// not sent. [`SlackWorld::press`] accepts without being asked.
    pub async fn press_asked(
        &self,
        user: &str,
        spot: &Spot,
        control: &str,
        accept: bool,
    ) -> Result<Option<Delivery>, PressError> {
        if self.asks_first(user, spot, control)?.is_none() {
            return Err(PressError::Input(format!("{control} asks nothing")));
        }
        if !accept {
            return Ok(None);
        }
        first(self.press_raw(user, spot, control, &Manner::default(), |_| {}).await?).map(Some)
    }

    /// The payload of a press, not sent: for a press that is on its way while something happens.
    pub fn pressed(&self, user: &str, spot: &Spot, control: &str) -> Result<Value, PressError> {
        let now_ms = self.time.now_ms();
        self.change(|state| {
            let seen = payload::look(state, user, spot)?;
            let found = find(&controls::all(&seen.blocks), control)?;
            Ok(payload::block_actions(state, spot, &seen, &found, None, now_ms))
        })
    }

    /// Sends a payload (of [`SlackWorld::pressed`], or one seen before) to the interactivity door.
    pub async fn deliver_payload(&self, payload: &Value, manner: &Manner) -> Vec<Delivery> {
        let body = form(&[("payload".to_owned(), payload.to_string())]);
        self.deliver(Door::Interactivity, body, manner, &[]).await
    }

    /// Sends raw bytes, well signed or not, to a door.
    pub async fn deliver_bytes(&self, door: Door, body: Vec<u8>, manner: &Manner) -> Vec<Delivery> {
        self.deliver(door, body, manner, &[]).await
    }

    /// `user` presses a control of the newest ephemeral message that has it.
    pub async fn press_ephemeral(&self, user: &str, control: &str) -> Result<Delivery, PressError> {
        let spot = self.ephemeral_with(user, control).ok_or(PressError::Nothing)?;
        first(self.press_raw(user, &spot, control, &Manner::default(), |_| {}).await?)
    }

    fn ephemeral_with(&self, user: &str, control: &str) -> Option<Spot> {
        let state = self.lock();
        let mut own = state.ephemerals.iter().rev().filter(|one| one.user == user && !one.gone);
        let found = own.find(|one| controls::find(&controls::all(&one.blocks), control).is_some())?;
        Some(Spot::Ephemeral { channel: found.channel.clone(), ts: found.ts.clone() })
    }

    /// `user` fills in a field of a message or view. Fields outside `input` blocks (and those with
    /// `dispatch_action`) send a payload at every change.
    pub async fn fill(
        &self,
        user: &str,
        spot: &Spot,
        field: &str,
        input: &Input,
    ) -> Result<Option<Delivery>, PressError> {
        let now_ms = self.time.now_ms();
        let payload = self.change(|state| {
            let seen = payload::look(state, user, spot)?;
            let found = find(&controls::all(&seen.blocks), field)?;
            if !found.holds_state() {
                return Err(PressError::Input(format!("{field} is no field")));
            }
            let value = controls::filled(&found.element, input).map_err(PressError::Input)?;
            let kept = state.filled.entry((user.to_owned(), spot.key())).or_default();
            let block = kept.entry(found.block_id.clone()).or_insert_with(|| json!({}));
            block[found.action_id()] = value.clone();
            let silent = found.input && !found.dispatch;
            Ok((!silent).then(|| payload::block_actions(state, spot, &seen, &found, Some(&value), now_ms)))
        })?;
        match payload {
            Some(payload) => first(self.deliver_payload(&payload, &Manner::default()).await).map(Some),
            None => Ok(None),
        }
    }

    /// `user` submits an open view, as the client allows it.
    pub async fn submit(&self, user: &str, view: &str) -> Result<Delivery, PressError> {
        let spot = Spot::View { id: view.into() };
        {
            let state = self.lock();
            let seen = payload::look(&state, user, &spot)?;
            let fields = controls::all(&seen.blocks);
            let values =
                controls::state_values(&fields, state.filled.get(&(user.to_owned(), view.to_owned())));
            let empty =
                |field: &&controls::Control| controls::is_empty(&values[&field.block_id][field.action_id()]);
            if let Some(field) = fields.iter().filter(|field| field.input && !field.optional).find(empty) {
                return Err(PressError::Required(field.label.clone()));
            }
            let unfit = fields.iter().filter(|field| field.input).find_map(|field| {
                submit::unfit(&field.element, &values[&field.block_id][field.action_id()])
                    .map(|why| format!("{}: {why}", field.label))
            });
            if let Some(why) = unfit {
                return Err(PressError::Input(why));
            }
        }
        first(self.submit_raw(user, view, &Manner::default(), |_| {}).await?)
    }

    /// The same without the client's checks, in any manner.
    pub async fn submit_raw(
        &self,
        user: &str,
        view: &str,
        manner: &Manner,
        change: impl FnOnce(&mut Value),
    ) -> Result<Vec<Delivery>, PressError> {
        let now_ms = self.time.now_ms();
        let spot = Spot::View { id: view.into() };
        let mut payload = self.change(|state| {
            let seen = payload::look(state, user, &spot)?;
            Ok(payload::view_submission(state, view, &seen, now_ms))
        })?;
        change(&mut payload);
        let deliveries = self.deliver_payload(&payload, manner).await;
        if let Some(acked) = deliveries.iter().find(|delivery| delivery.acked()) {
            self.change(|state| submit::answered(state, view, acked, now_ms));
        }
        Ok(deliveries)
    }

    /// `user` closes a view; Slack tells the app only with `notify_on_close`.
    pub async fn close_view(&self, user: &str, view: &str) -> Result<Option<Delivery>, PressError> {
        let spot = Spot::View { id: view.into() };
        let payload = self.change(|state| {
            let seen = payload::look(state, user, &spot)?;
            let payload = payload::view_closed(state, view, &seen);
            let Some(found) = state.views.get_mut(view) else { return Err(PressError::Nothing) };
            found.open = false;
            Ok((found.view["notify_on_close"] == true).then_some(payload))
        })?;
        match payload {
            Some(payload) => first(self.deliver_payload(&payload, &Manner::default()).await).map(Some),
            None => Ok(None),
        }
    }

    /// `user` types a slash command; what the answer says is shown to them.
    pub async fn command(
        &self,
        user: &str,
        channel: &str,
        command: &str,
        text: &str,
    ) -> Result<Delivery, PressError> {
        first(self.command_raw(user, channel, command, text, &Manner::default(), |_| {}).await?)
    }

    /// The same in any manner, with the form fields changed before they are signed.
    pub async fn command_raw(
        &self,
        user: &str,
        channel: &str,
        command: &str,
        text: &str,
        manner: &Manner,
        change: impl FnOnce(&mut Vec<(String, String)>),
    ) -> Result<Vec<Delivery>, PressError> {
        let now_ms = self.time.now_ms();
        let mut fields =
            self.change(|state| payload::command(state, user, channel, command, text, now_ms))?;
        change(&mut fields);
        let deliveries = self.deliver(Door::Commands, form(&fields), manner, &[]).await;
        if let Some(acked) = deliveries.iter().find(|delivery| delivery.acked() && !delivery.body.is_empty())
        {
            self.change(|state| after_command(state, user, channel, acked, now_ms));
        }
        Ok(deliveries)
    }

    /// Sends an event of this workspace; with `retry`, the headers of a retry. Without, it is noted
    /// for a retry if nobody takes it.
    pub async fn event(
        &self,
        team: &str,
        event: &Value,
        retry: Option<(u32, &str)>,
    ) -> Result<Delivery, PressError> {
        let now_ms = self.time.now_ms();
        let body = self.change(|state| payload::event(state, team, event, now_ms))?;
        match retry {
            None => self.tell(&body).await,
            Some(_) => first(self.event_again(&body, retry).await),
        }
    }

    /// Sends an event body once more, as it is.
    pub async fn event_again(&self, body: &Value, retry: Option<(u32, &str)>) -> Vec<Delivery> {
        let extra = match retry {
            Some((number, reason)) => {
                vec![("X-Slack-Retry-Num", number.to_string()), ("X-Slack-Retry-Reason", reason.to_owned())]
            }
            None => Vec::new(),
        };
        self.deliver(Door::Events, body.to_string().into_bytes(), &Manner::default(), &extra).await
    }

    /// `user` opens the app's Home tab.
    pub async fn open_home(&self, user: &str, team: &str) -> Result<Delivery, PressError> {
        let (team, user) = (team.to_owned(), user.to_owned());
        self.happens(&Happening::AppHomeOpened { team, user, tab: "home".into() }).await
    }
}

/// The answer to a command, shown in the channel.
fn after_command(state: &mut State, user: &str, channel: &str, answer: &Delivery, now_ms: i64) {
    let body = answer.json();
    let said = body["text"].as_str().map_or_else(|| answer.body.clone(), Into::into);
    let mut blocks = body["blocks"].clone();
    text::store_blocks(&mut blocks);
    api::filled_in(state, &mut blocks);
    let blocks = blocks.as_array().cloned().unwrap_or_default();
    let team = state.channels.get(channel).map(|channel| channel.team.clone()).unwrap_or_default();
    let install = state.install_of(&team).map(|install| install.key().to_owned());
    state.show(
        user,
        channel,
        None,
        text::store_mrkdwn(&said),
        blocks,
        &body["response_type"],
        Via::CommandAnswer,
        install,
        now_ms,
    );
}

impl State {
    /// Shows a message that came over a `response_url` or as an answer: to one person, or to all.
    #[expect(clippy::too_many_arguments, reason = "the parts of one message")]
    pub(super) fn show(
        &mut self,
        user: &str,
        channel: &str,
        thread_ts: Option<String>,
        text: String,
        blocks: Vec<Value>,
        response_type: &Value,
        via: Via,
        install: Option<String>,
        now_ms: i64,
    ) {
        let ts = self.next_ts(channel, now_ms);
        if response_type != "in_channel" {
            let ephemeral = Ephemeral {
                channel: channel.into(),
                user: user.into(),
                ts,
                text,
                blocks,
                thread_ts,
                via,
                gone: false,
                install,
            };
            return self.ephemerals.push(ephemeral);
        }
        let bot = install.as_deref().and_then(|key| self.install_by_key(key)).cloned();
        let message = Message {
            channel: channel.into(),
            ts: ts.clone(),
            team: self.channels.get(channel).map(|channel| channel.team.clone()).unwrap_or_default(),
            user: bot.as_ref().map(|bot| bot.bot_user.clone()).unwrap_or_default(),
            bot_id: bot.as_ref().map(|bot| bot.bot_id.clone()),
            app_id: bot.map(|bot| bot.app_id),
            text,
            blocks,
            metadata: None,
            thread_ts,
            broadcast: false,
            edited: None,
            edits: 0,
            deleted: false,
            before: Vec::new(),
            install,
        };
        self.messages.entry(channel.into()).or_default().insert(ts, message);
    }
}
