//! What the Web API takes and refuses.

use crate::sandbox::faults::{Fault, Rule};
use crate::sandbox::slack::acme::{APP_ID, BETA_TOKEN, BOT_ID, BOT_TOKEN, BOT_USER, ORG_TOKEN, TEAM};
use crate::sandbox::slack::tests::{Api, card, served, world};
use crate::sandbox::slack::{SlackWorld, TextOnlyUpdate, TokenState};
use rstest::rstest;
use serde_json::{Value, json};
use std::sync::Arc;

async fn post(api: &Api, body: Value) -> Value {
    api.post(BOT_TOKEN, "chat.postMessage", &body).await
}

async fn posted(api: &Api, body: Value) -> String {
    let answer = post(api, body).await;
    answer["ts"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[tokio::test]
async fn all_three_encodings_and_json_arguments_of_reads_are_ignored() {
    let world = world();
    served(&world, async |api| {
        let blocks = card().to_string();
        let form = [
            ("channel", "C0OPS"),
            ("text", "a & b"),
            ("blocks", blocks.as_str()),
            ("unfurl_links", "0"),
            ("team_id", TEAM),
        ];
        let answer = api.form(BOT_TOKEN, "chat.postMessage", &form).await;
        assert_eq!(answer["ok"], true, "{answer}");
        assert_eq!(answer["message"]["text"], "a &amp; b");
        assert_eq!(answer["message"]["blocks"][1]["elements"][0]["value"], "k1");
        assert_eq!(post(api, json!({"channel": "C0OPS", "text": "json"})).await["message"]["bot_id"], BOT_ID);
        assert_eq!(
            api.get(BOT_TOKEN, "users.info", &[("user", "U0DANA")]).await["user"]["real_name"],
            "Dana Lee"
        );
        assert_eq!(api.form(BOT_TOKEN, "users.info", &[("user", "U0DANA")]).await["ok"], true);
        assert_eq!(
            api.post(BOT_TOKEN, "users.info", &json!({"user": "U0DANA"})).await["error"],
            "invalid_arguments"
        );
        let calls = world.calls("chat.postMessage");
        assert_eq!((calls[0].encoding.as_str(), calls[1].encoding.as_str()), ("form", "json"));
        assert_eq!(calls[0].arguments["blocks"][0]["type"], "section");
        assert_eq!(calls.iter().map(|call| call.seq).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(api.form("", "auth.test", &[("token", BOT_TOKEN)]).await["user_id"], BOT_USER);
    })
    .await;
}

#[tokio::test]
async fn tokens_and_scopes() {
    let world = world();
    served(&world, async |api| {
        assert_eq!(api.post("", "auth.test", &json!({})).await["error"], "not_authed");
        assert_eq!(api.post("xoxb-wrong", "auth.test", &json!({})).await["error"], "invalid_auth");
        assert_eq!(api.post(BOT_TOKEN, "chat.nonsense", &json!({})).await["error"], "unknown_method");
        let test = api.post(BOT_TOKEN, "auth.test", &json!({})).await;
        assert_eq!(
            (&test["team_id"], &test["bot_id"], &test["is_enterprise_install"]),
            (&json!(TEAM), &json!(BOT_ID), &json!(false))
        );
        let org = api.post(ORG_TOKEN, "auth.test", &json!({})).await;
        assert_eq!((&org["team_id"], &org["enterprise_id"]), (&json!("E0ORG"), &json!("E0ORG")));
        assert_eq!(api.get(BOT_TOKEN, "bots.info", &[("bot", BOT_ID)]).await["bot"]["app_id"], APP_ID);
        let granted = api.get_raw(BOT_TOKEN, "auth.test", &[]).await.headers()["x-oauth-scopes"]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(granted.split(',').any(|scope| scope == "chat:write"));

        world.scope(BOT_TOKEN, "usergroups:read", false);
        let refused = api.get(BOT_TOKEN, "usergroups.users.list", &[("usergroup", "S0RELEASE")]).await;
        assert_eq!(
            (&refused["error"], &refused["needed"]),
            (&json!("missing_scope"), &json!("usergroups:read"))
        );
        assert!(refused["provided"].as_str().unwrap().contains("chat:write"));
        world.scope(BOT_TOKEN, "groups:read", false);
        assert_eq!(
            api.get(BOT_TOKEN, "conversations.info", &[("channel", "C0PRIVATE")]).await["needed"],
            "groups:read"
        );
        assert_eq!(
            api.get(BOT_TOKEN, "conversations.info", &[("channel", "C0OPS")]).await["channel"]["is_member"],
            true
        );
        world.switch(|switches| switches.history_scopes = false);
        assert_eq!(
            api.get(BOT_TOKEN, "conversations.history", &[("channel", "C0OPS")]).await["error"],
            "missing_scope"
        );
        for (state, error) in [
            (TokenState::Revoked, "token_revoked"),
            (TokenState::Expired, "token_expired"),
            (TokenState::Inactive, "account_inactive"),
        ] {
            world.token(BOT_TOKEN, state);
            assert_eq!(post(api, json!({"channel": "C0OPS", "text": "x"})).await["error"], error);
        }
        assert_eq!(world.messages("C0OPS").len(), 0);
    })
    .await;
}

#[rstest]
#[case::unknown("C0NOWHERE", "channel_not_found")]
#[case::archived("C0ARCHIVED", "is_archived")]
#[case::frozen("C0FROZEN", "restricted_action")]
#[case::not_member("C0NOBOT", "not_in_channel")]
#[case::invisible("C0SECRET", "channel_not_found")]
#[case::other_workspace("C0BETA", "channel_not_found")]
#[case::bot_user("U0ROBOT", "cannot_dm_bot")]
#[case::deleted_user("U0GONE", "user_disabled")]
#[case::unknown_user("U0NOBODY", "user_not_found")]
#[case::stranger("U0STRANGER", "user_not_visible")]
#[tokio::test]
async fn places_refuse(#[case] channel: &str, #[case] error: &str) {
    let world = world();
    served(&world, async |api| {
        // An invalid payload: the place is judged first.
        let body = json!({"channel": channel, "text": "x", "blocks": [{"type": "nonsense"}]});
        assert_eq!(post(api, body).await["error"], error);
    })
    .await;
}

#[tokio::test]
async fn a_public_channel_opens_with_its_own_scope_and_names_resolve() {
    let world = world();
    served(&world, async |api| {
        world.scope(BOT_TOKEN, "chat:write.public", true);
        assert_eq!(post(api, json!({"channel": "C0NOBOT", "text": "x"})).await["ok"], true);
        assert_eq!(post(api, json!({"channel": "#ops", "text": "x"})).await["channel"], "C0OPS");
        assert_eq!(post(api, json!({"channel": "U0KIM", "text": "x"})).await["channel"], "D0KIM");
        let open = api.post(BOT_TOKEN, "conversations.open", &json!({"users": "U0DANA"})).await;
        assert_eq!((&open["channel"]["id"], &open["already_open"]), (&json!("D0DANA"), &json!(true)));
        world.switch(|switches| switches.messages_tab = false);
        assert_eq!(
            post(api, json!({"channel": "D0KIM", "text": "x"})).await["error"],
            "messages_tab_disabled"
        );
        let beta = api.post(BETA_TOKEN, "conversations.open", &json!({"users": "U0DANA"})).await;
        assert_eq!(beta["channel"]["id"], "D0DANAT0BETA");
    })
    .await;
}

#[tokio::test]
async fn ids_are_unique_and_increasing_and_missing_block_ids_are_filled_in() {
    let world = world();
    served(&world, async |api| {
        let mut seen = Vec::new();
        for _ in 0..3 {
            let answer =
                post(api, json!({"channel": "C0OPS", "text": "x", "blocks": [{"type": "divider"}]})).await;
            assert_ne!(answer["message"]["blocks"][0]["block_id"].as_str().unwrap(), "");
            seen.push(answer["ts"].as_str().unwrap().to_owned());
        }
        assert_eq!(seen, ["1796000000.000000", "1796000000.000100", "1796000000.000200"]);
    })
    .await;
}

#[tokio::test]
async fn a_refused_payload_names_the_place_and_stores_nothing() {
    let world = world();
    world.pace(0);
    served(&world, async |api| {
        let text = format!("{}{}", "x".repeat(2_970), "&".repeat(20));
        let body = json!({"channel": "C0OPS", "text": "x", "blocks": [{"type": "section", "text": {"type": "plain_text", "text": text}}]});
        let refused = post(api, body).await;
        assert_eq!(refused["error"], "invalid_blocks");
        let line = "must be less than 3001 characters [json-pointer:/blocks/0/text/text]";
        assert_eq!(refused["errors"][0], line);
        assert_eq!(refused["response_metadata"]["messages"][0], format!("[ERROR] {line}"));
        let part = json!({"type": "section", "text": {"type": "plain_text", "text": "x".repeat(2_700)}});
        let many = json!({"channel": "C0OPS", "text": "x", "blocks": [part, part, part, part, part]});
        assert_eq!(post(api, many).await["error"], "msg_blocks_too_long");
        assert_eq!(post(api, json!({"channel": "C0OPS"})).await["error"], "no_text");
        assert_eq!(post(api, json!({"channel": "C0OPS", "text": "x", "blocks": "[{"})).await["error"], "invalid_blocks_format");
        let metadata = json!({"channel": "C0OPS", "text": "x", "metadata": {"event_type": "no spaces", "event_payload": {}}});
        assert_eq!(post(api, metadata).await["error"], "invalid_metadata_format");
        assert_eq!(world.messages("C0OPS").len(), 0);
    })
    .await;
}

#[tokio::test]
async fn updates() {
    let world = world();
    served(&world, async |api| {
        let metadata = json!({"event_type": "countersign_card", "event_payload": {"card": "c1", "rev": "1"}});
        let ts = posted(api, json!({"channel": "C0OPS", "text": "one", "blocks": card(), "metadata": metadata})).await;
        let update = async |more: Value| {
            let mut body = json!({"channel": "C0OPS", "ts": ts});
            more.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
            api.post(BOT_TOKEN, "chat.update", &body).await
        };
        let answer = update(json!({"text": "two", "blocks": card()})).await;
        assert_eq!((&answer["ok"], &answer["text"]), (&json!(true), &json!("two")));
        assert_eq!(world.message("C0OPS", &ts).unwrap().metadata, Some(metadata));
        assert_eq!(update(json!({"text": "x".repeat(4_001)})).await["error"], "msg_too_long");
        assert_eq!(update(json!({"text": "é".repeat(2_001)})).await["error"], "msg_too_long");
        assert_eq!(update(json!({"blocks": []})).await["error"], "no_text");
        assert_eq!(world.buttons("C0OPS", &ts).len(), 2);
        world.switch(|switches| switches.text_only_update = TextOnlyUpdate::KeepsBlocks);
        update(json!({"text": "three"})).await;
        assert_eq!(world.buttons("C0OPS", &ts).len(), 2);
        world.switch(|switches| switches.text_only_update = TextOnlyUpdate::DropsBlocks);
        update(json!({"text": "four", "metadata": {}})).await;
        let message = world.message("C0OPS", &ts).unwrap();
        assert_eq!((message.blocks.len(), message.metadata, message.edits), (0, None, 3));
        assert_eq!(world.reads("C0OPS", &ts), "four");
        assert_eq!(world.read_over_time("C0OPS", &ts).len(), 4);

        let foreign = world.say("U0KIM", "C0OPS", "mine");
        let edit = json!({"channel": "C0OPS", "ts": foreign, "text": "x"});
        assert_eq!(api.post(BOT_TOKEN, "chat.update", &edit).await["error"], "cant_update_message");
        assert_eq!(api.post(BOT_TOKEN, "chat.delete", &edit).await["error"], "cant_delete_message");
        assert_eq!(api.post(BOT_TOKEN, "chat.update", &json!({"channel": "U0KIM", "ts": ts, "text": "x"})).await["error"], "channel_not_found");
        world.edit_channel("C0OPS", |channel| channel.archived = true);
        assert_eq!(update(json!({"text": "x"})).await["error"], "is_inactive");
        world.edit_channel("C0OPS", |channel| channel.archived = false);
        world.remove_message("C0OPS", &ts);
        assert_eq!(update(json!({"text": "x"})).await["error"], "message_not_found");
    })
    .await;
}

#[tokio::test]
async fn history_is_newest_first_with_replies_apart_and_metadata_on_request() {
    let world = world();
    served(&world, async |api| {
        let metadata = json!({"event_type": "countersign_card", "event_payload": {"card": "c1"}});
        let root = posted(api, json!({"channel": "C0OPS", "text": "root", "metadata": metadata})).await;
        world.time().advance(1_000);
        let reply = posted(api, json!({"channel": "C0OPS", "text": "reply", "thread_ts": root})).await;
        world.time().advance(1_000);
        let second = posted(api, json!({"channel": "C0OPS", "text": "second"})).await;
        let ids = |answer: &Value| {
            answer["messages"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["ts"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let history = async |query: &[(&str, &str)]| {
            api.get(BOT_TOKEN, "conversations.history", &[&[("channel", "C0OPS")], query].concat()).await
        };
        let all = history(&[]).await;
        assert_eq!(ids(&all), [second.clone(), root.clone()]);
        assert_eq!(all["messages"][1]["metadata"], json!({"event_type": "countersign_card"}));
        assert_eq!(history(&[("include_all_metadata", "true")]).await["messages"][1]["metadata"], metadata);
        assert_eq!(ids(&history(&[("oldest", &root)]).await), vec![second.clone()]);
        assert_eq!(ids(&history(&[("oldest", &root), ("inclusive", "true")]).await).len(), 2);
        let page = history(&[("limit", "1")]).await;
        assert_eq!((ids(&page), &page["has_more"]), (vec![second.clone()], &json!(true)));
        let cursor = page["response_metadata"]["next_cursor"].as_str().unwrap();
        let rest = history(&[("limit", "1"), ("cursor", cursor)]).await;
        assert_eq!((ids(&rest), &rest["response_metadata"]["next_cursor"]), (vec![root.clone()], &json!("")));
        let thread =
            api.get(BOT_TOKEN, "conversations.replies", &[("channel", "C0OPS"), ("ts", &root)]).await;
        assert_eq!(ids(&thread), [root.clone(), reply]);
        let none = api.get(BOT_TOKEN, "conversations.replies", &[("channel", "C0OPS"), ("ts", "1.0")]).await;
        assert_eq!(none["error"], "thread_not_found");
        assert_eq!(
            post(api, json!({"channel": "C0OPS", "text": "x", "thread_ts": "1.0"})).await["error"],
            "cannot_reply_to_message"
        );
        let link =
            api.get(BOT_TOKEN, "chat.getPermalink", &[("channel", "C0OPS"), ("message_ts", &root)]).await;
        assert_eq!(link["permalink"], "https://acme.slack.com/archives/C0OPS/p1796000000000000");
        api.post(BOT_TOKEN, "chat.delete", &json!({"channel": "C0OPS", "ts": second})).await;
        assert_eq!(ids(&history(&[]).await), [root]);
    })
    .await;
}

#[tokio::test]
async fn scarce_history_gives_fifteen_rows_once_a_minute() {
    let world = world();
    world.pace(1);
    world.switch(|switches| switches.scarce_history = true);
    for n in 0..20 {
        world.say("U0KIM", "C0OPS", &n.to_string());
    }
    served(&world, async |api| {
        let query = [("channel", "C0OPS"), ("limit", "200")];
        let first = api.get(BOT_TOKEN, "conversations.history", &query).await;
        assert_eq!(first["messages"].as_array().unwrap().len(), 15);
        let second = api.get_raw(BOT_TOKEN, "conversations.history", &query).await;
        assert_eq!(
            (second.status().as_u16(), second.headers()["retry-after"].to_str().unwrap()),
            (429, "60")
        );
    })
    .await;
}

#[tokio::test]
async fn rates_refuse_and_impatience_is_noted() {
    let world = world();
    served(&world, async |api| {
        for _ in 0..3 {
            posted(api, json!({"channel": "C0OPS", "text": "x"})).await;
        }
        assert_eq!(post(api, json!({"channel": "C0OPS", "text": "x"})).await["error"], "ratelimited");
        assert_eq!(world.impatient().len(), 0);
        posted(api, json!({"channel": "C0RELEASES", "text": "x"})).await;
        assert_eq!(world.impatient().len(), 0);
        assert_eq!(post(api, json!({"channel": "C0OPS", "text": "x"})).await["error"], "ratelimited");
        assert_eq!(world.impatient().len(), 1);
        world.time().advance(1_000);
        posted(api, json!({"channel": "C0OPS", "text": "x"})).await;
        world.pace(0);
        for _ in 0..20 {
            posted(api, json!({"channel": "C0OPS", "text": "x"})).await;
        }
        assert_eq!(world.impatient().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn groups_channels_and_people() {
    let world = world();
    served(&world, async |api| {
        let group =
            async |token, query: &[(&str, &str)]| api.get(token, "usergroups.users.list", query).await;
        assert_eq!(
            group(BOT_TOKEN, &[("usergroup", "S0RELEASE")]).await["users"],
            json!(["U0DANA", "U0KIM"])
        );
        let all = group(BOT_TOKEN, &[("usergroup", "S0RELEASE"), ("include_disabled", "true")]).await;
        assert_eq!(all["users"], json!(["U0DANA", "U0KIM", "U0GONE"]));
        assert_eq!(group(BOT_TOKEN, &[("usergroup", "S0NONE")]).await["error"], "no_such_subteam");
        assert_eq!(group(ORG_TOKEN, &[("usergroup", "S0ORG")]).await["error"], "invalid_arguments");
        assert_eq!(group(ORG_TOKEN, &[("usergroup", "S0ORG"), ("team_id", "T0NORTH")]).await["ok"], true);
        let list = api
            .get(
                BOT_TOKEN,
                "conversations.list",
                &[("types", "public_channel,private_channel"), ("limit", "3")],
            )
            .await;
        let next = list["response_metadata"]["next_cursor"].as_str().unwrap();
        assert_eq!((list["channels"].as_array().unwrap().len(), next.is_empty()), (3, false));
        let names = |list: &Value| {
            list["channels"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["name"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let rest = api
            .get(
                BOT_TOKEN,
                "conversations.list",
                &[("types", "public_channel,private_channel"), ("cursor", next)],
            )
            .await;
        let both = [names(&list), names(&rest)].concat();
        assert!(both.contains(&"leads".to_owned()) && !both.contains(&"secret".to_owned()), "{both:?}");
        let user = async |token, id: &str| api.get(token, "users.info", &[("user", id)]).await;
        assert_eq!(user(BOT_TOKEN, "U0SINGLE").await["user"]["is_ultra_restricted"], true);
        assert_eq!(user(BOT_TOKEN, "U0GONE").await["user"]["deleted"], true);
        assert_eq!(user(BOT_TOKEN, "W0WIM").await["error"], "user_not_found");
        assert_eq!(user(ORG_TOKEN, "W0WIM").await["user"]["enterprise_user"]["enterprise_id"], "E0ORG");
        assert_eq!(user(BETA_TOKEN, "U0DANA").await["user"]["real_name"], "Dana Other");
    })
    .await;
}

fn rule(world: &Arc<SlackWorld>, fault: Fault) {
    world.faults().add(Rule::next("chat.postMessage", fault));
}

#[tokio::test]
async fn trouble_strikes_before_or_after_the_effect() {
    let world = world();
    world.pace(0);
    served(&world, async |api| {
        let body = json!({"channel": "C0OPS", "text": "x"});
        let send = async || api.raw_as(BOT_TOKEN, "chat.postMessage", &body).await;
        let count = || world.messages("C0OPS").len();

        rule(&world, Fault::Status { code: 429, retry_after: Some(30), body: None });
        let answer = send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), answer.headers()["retry-after"].to_str().unwrap()),
            (429, "30")
        );
        rule(&world, Fault::Status { code: 429, retry_after: None, body: Some(String::new()) });
        let answer = send().await.unwrap();
        assert_eq!((answer.headers().get("retry-after"), answer.headers().get("content-type")), (None, None));
        assert_eq!(world.impatient().len(), 1);
        rule(&world, Fault::Refuse { error: "ratelimited".into() });
        assert_eq!(send().await.unwrap().json::<Value>().await.unwrap()["error"], "ratelimited");
        rule(&world, Fault::Html);
        assert!(send().await.unwrap().text().await.unwrap().contains("<html>"));
        rule(&world, Fault::NoContent);
        assert_eq!(send().await.unwrap().status(), 204);
        rule(&world, Fault::Hang { ms: 1 });
        assert!(send().await.is_err());
        assert_eq!(count(), 0);

        rule(&world, Fault::StatusAfter { code: 502 });
        assert_eq!(send().await.unwrap().status(), 502);
        assert_eq!(count(), 1);
        rule(&world, Fault::Lost { ms: 1 });
        assert!(send().await.is_err());
        assert_eq!(count(), 2);
        rule(&world, Fault::CutAnswer);
        assert!(send().await.unwrap().text().await.is_err());
        assert_eq!(count(), 3);
        rule(&world, Fault::Duplicate);
        assert_eq!(send().await.unwrap().status(), 200);
        assert_eq!(count(), 5);
        assert_eq!(world.calls("chat.postMessage").last().unwrap().fault.as_deref(), Some("duplicate"));
    })
    .await;
}

#[tokio::test]
async fn hostile_text_is_live_only_where_slack_makes_it_so() {
    let world = world();
    served(&world, async |api| {
        let blocks = json!([{"type": "section", "text": {"type": "plain_text", "text": "<!channel> <https://evil.test|Approve>"}},
            {"type": "section", "text": {"type": "mrkdwn", "text": "*Opened* by <@U0DANA> `x` <https://app.example/1|task 1>"}}]);
        let ts = posted(api, json!({"channel": "C0OPS", "text": "a &lt;!here&gt;", "blocks": blocks})).await;
        assert_eq!(world.live("C0OPS", &ts), ["https://evil.test", "@U0DANA", "https://app.example/1|task 1"]);
        assert_eq!(world.reads("C0OPS", &ts), "<!channel> <https://evil.test|Approve>\nOpened by @Dana Lee x task 1");
        assert_eq!(world.notice("C0OPS", &ts), "a <!here>");
    })
    .await;
}
