//! What the REST interface takes and refuses.

use crate::sandbox::discord::acme::*;
use crate::sandbox::discord::perms;
use crate::sandbox::discord::tests::{Api, card, served, world};
use crate::sandbox::discord::{DiscordWorld, Scope, Script};
use crate::sandbox::faults::{Fault, Rule};
use rstest::rstest;
use serde_json::{Value, json};

const POST: &str = "POST /channels/{channel}/messages";

async fn post(api: &Api, channel: &str, body: Value) -> (u16, Value) {
    api.bot("POST", &format!("/channels/{channel}/messages"), &body).await
}

async fn edit(api: &Api, channel: &str, id: &str, text: &str) -> (u16, Value) {
    api.bot("PATCH", &format!("/channels/{channel}/messages/{id}"), &json!({"content": text})).await
}

fn code(answer: &(u16, Value)) -> (u16, i64) {
    (answer.0, answer.1["code"].as_i64().unwrap_or(-1))
}

fn say(text: &str) -> Value {
    json!({"content": text, "allowed_mentions": {"parse": []}})
}

#[tokio::test]
async fn tokens_agents_content_types_and_unknown_paths() {
    let world = world();
    served(&world, async |api| {
        assert_eq!(code(&api.bare("GET", "/users/@me", &Value::Null).await), (401, 0));
        let wrong =
            api.request("GET", "/users/@me").header("Authorization", "Bot wrong").send().await.unwrap();
        assert_eq!(code(&Api::read(wrong).await), (401, 0));
        let agent = api.http.get(format!("{}/discord/api/v10/users/@me", api.root));
        let agent = agent.header("Authorization", format!("Bot {TOKEN}")).send().await.unwrap();
        assert_eq!(code(&Api::read(agent).await), (403, 40333));
        let me = api.request("GET", "/users/@me").header("Authorization", format!("Bot {TOKEN}"));
        let me = me.send().await.unwrap();
        assert_eq!(me.headers()["content-type"], "application/json");
        assert_eq!(Api::read(me).await.1["id"], BOT);
        assert_eq!(code(&api.bot("GET", "/nowhere", &Value::Null).await), (404, 0));
        assert_eq!(code(&api.bot("PUT", "/users/@me", &Value::Null).await), (405, 0));
        let text = api.request("POST", &format!("/channels/{OPS}/messages")).body("{\"content\":\"x\"}");
        let text = text.header("Authorization", format!("Bot {TOKEN}")).header("Content-Type", "text/plain");
        assert_eq!(code(&Api::read(text.send().await.unwrap()).await), (400, 50035));
        let app = api.bot("GET", "/applications/@me", &Value::Null).await.1;
        assert_eq!((&app["id"], app["verify_key"].as_str().unwrap().len()), (&json!(APP), 64));
        world.token(APP, false);
        assert_eq!(code(&api.bot("GET", "/users/@me", &Value::Null).await), (401, 0));
        assert_eq!(world.invalid_requests(), 4);
        assert!(!world.dump().to_string().contains(TOKEN));
    })
    .await;
}

#[tokio::test]
async fn form_errors_are_nested_and_change_nothing() {
    let world = world();
    served(&world, async |api| {
        let mut body = card();
        body["components"][0]["components"][1]["label"] = "x".repeat(81).into();
        let answer = post(api, OPS, body).await;
        assert_eq!(code(&answer), (400, 50035));
        let at = &answer.1["errors"]["components"]["0"]["components"]["1"]["label"]["_errors"][0];
        assert_eq!(at["code"], "BASE_TYPE_MAX_LENGTH");
        assert_eq!(code(&post(api, OPS, json!({})).await), (400, 50006));
        assert_eq!(code(&post(api, OPS, say(" \u{200b}")).await), (400, 50006));
        let both = json!({"content": "x", "allowed_mentions": {"parse": ["users"], "users": [DANA]}});
        assert_eq!(code(&post(api, OPS, both).await), (400, 50035));
        let empty = json!({"content": "x", "allowed_mentions": {"parse": ["users"], "users": []}});
        assert_eq!(post(api, OPS, empty).await.0, 200);
        let nonce = json!({"content": "x", "nonce": "n".repeat(26)});
        assert_eq!(code(&post(api, OPS, nonce).await), (400, 50035));
        assert_eq!(world.cards(OPS).len(), 1);
    })
    .await;
}

#[tokio::test]
async fn mentions_count_when_they_are_allowed_and_may_be_made() {
    let world = world();
    served(&world, async |api| {
        let text = format!("@everyone <@{DANA}> <@!{KIM}> <@&{PINGED}> <@&{RELEASE}>");
        let (_, quiet) = post(api, OPS, say(&text)).await;
        assert_eq!((&quiet["mentions"], &quiet["mention_everyone"]), (&json!([]), &json!(false)));
        let (_, loud) = post(api, OPS, json!({"content": text})).await;
        assert_eq!(loud["mentions"].as_array().unwrap().len(), 2);
        // Only the role that everybody may mention, and nobody is everybody without the permission.
        assert_eq!((&loud["mention_roles"], &loud["mention_everyone"]), (&json!([PINGED]), &json!(false)));
        let one = json!({"content": text, "allowed_mentions": {"parse": [], "roles": [PINGED, RELEASE]}});
        let (_, one) = post(api, OPS, one).await;
        assert_eq!((&one["mentions"], &one["mention_roles"]), (&json!([]), &json!([PINGED])));
        let pinged = |answer: &Value| world.message(OPS, answer["id"].as_str().unwrap()).unwrap().pinged;
        assert!(pinged(&quiet).is_empty());
        assert_eq!(pinged(&one).into_iter().collect::<Vec<_>>(), [DANA]);
    })
    .await;
}

#[tokio::test]
async fn a_nonce_is_good_for_a_while_and_remembers_the_deleted() {
    let world = world();
    served(&world, async |api| {
        let body = json!({"content": "x", "nonce": "N1", "enforce_nonce": true});
        let first = api.posted(OPS, body.clone()).await;
        assert_eq!(api.posted(OPS, body.clone()).await, first);
        let (_, found) = api.bot("GET", &format!("/channels/{OPS}/messages/{first}"), &Value::Null).await;
        assert_eq!(found["nonce"], "N1");
        let loose = json!({"content": "x", "nonce": "N1"});
        assert_ne!(api.posted(OPS, loose).await, first);
        assert_eq!(
            api.bot("DELETE", &format!("/channels/{OPS}/messages/{first}"), &Value::Null).await.0,
            204
        );
        assert_eq!(code(&post(api, OPS, body.clone()).await), (404, 10008));
        world.time().advance(180_001);
        assert_ne!(api.posted(OPS, body).await, first);
    })
    .await;
}

#[rstest]
#[case::voice(VOICE, 400, 50008)]
#[case::category(CATEGORY, 400, 50008)]
#[case::forum(FORUM, 400, 50008)]
#[case::unseen(SECRET, 403, 50001)]
#[case::unknown("1", 404, 10003)]
#[case::locked(LOCKED, 403, 160_005)]
#[tokio::test]
async fn where_nothing_can_be_posted(#[case] channel: &str, #[case] status: u16, #[case] expected: i64) {
    let world = world();
    served(&world, async |api| {
        assert_eq!(code(&post(api, channel, say("x")).await), (status, expected));
        assert!(world.cards(channel).is_empty());
    })
    .await;
}

#[tokio::test]
async fn permissions_are_taken_away_and_messages_of_others_are_not_ours() {
    let world = world();
    served(&world, async |api| {
        let id = api.posted(OPS, say("x")).await;
        let theirs = world.say(DANA, OPS, "secret plans");
        assert_eq!(code(&edit(api, OPS, &theirs, "y").await), (403, 50005));
        let (_, list) =
            api.bot("GET", &format!("/channels/{OPS}/messages?limit=100&after=0"), &Value::Null).await;
        assert_eq!(list.as_array().unwrap().len(), 2);
        // What others write is empty without the intent.
        assert_eq!(
            (&list[0]["id"], &list[0]["content"], &list[1]["content"]),
            (&json!(theirs), &json!(""), &json!("x"))
        );
        world.permit(OPS, BOT, perms::EMBED_LINKS, false);
        assert_eq!(code(&post(api, OPS, card()).await), (403, 50013));
        assert_eq!(post(api, OPS, say("y")).await.0, 200);
        world.permit(OPS, BOT, perms::SEND_MESSAGES, false);
        assert_eq!(code(&post(api, OPS, say("y")).await), (403, 50013));
        assert_eq!(edit(api, OPS, &id, "z").await.0, 200);
        world.hide(OPS, BOT, true);
        assert_eq!(code(&edit(api, OPS, &id, "z").await), (403, 50001));
        world.remove_channel(OPS);
        assert_eq!(code(&edit(api, OPS, &id, "z").await), (404, 10003));
        world.outage(GUILD, true);
        assert_eq!(code(&post(api, RELEASES, say("x")).await), (503, 130_000));
        world.outage(GUILD, false);
        world.kick(GUILD, BOT);
        assert_eq!(code(&post(api, RELEASES, say("x")).await), (403, 50001));
        assert_eq!(code(&post(api, DM_DANA, say("x")).await), (403, 50278));
    })
    .await;
}

#[tokio::test]
async fn threads_are_begun_archived_locked_and_taken_out_again() {
    let world = world();
    served(&world, async |api| {
        let id = api.posted(OPS, say("x")).await;
        let begin = json!({"name": "ledger-2 / run 41", "auto_archive_duration": 10_080});
        let path = format!("/channels/{OPS}/messages/{id}/threads");
        let (status, thread) = api.bot("POST", &path, &begin).await;
        assert_eq!((status, &thread["id"], &thread["type"]), (201, &json!(id), &json!(11)));
        assert_eq!(code(&api.bot("POST", &path, &begin).await), (400, 160_004));
        let card = api.posted(&id, say("in it")).await;
        world.archive(&id, true, false);
        assert_eq!(code(&edit(api, &id, &card, "y").await), (400, 50083));
        assert_eq!(
            code(&api.bot("PUT", &format!("/channels/{id}/thread-members/@me"), &Value::Null).await),
            (400, 50083)
        );
        let open = json!({"archived": false});
        assert_eq!(api.bot("PATCH", &format!("/channels/{id}"), &open).await.0, 200);
        assert_eq!(edit(api, &id, &card, "y").await.0, 200);
        world.archive(&id, true, false);
        api.posted(&id, say("posting takes it out")).await;
        assert!(!world.channel(&id).unwrap().thread.unwrap().archived);
        world.archive(&id, true, true);
        assert_eq!(code(&api.bot("PATCH", &format!("/channels/{id}"), &open).await), (403, 50013));
        assert_eq!(api.bot("DELETE", &format!("/channels/{id}/messages/{card}"), &Value::Null).await.0, 204);
        let (status, made) =
            api.bot("POST", &format!("/channels/{OPS}/threads"), &json!({"name": "run", "type": 11})).await;
        assert_eq!((status, &made["parent_id"]), (201, &json!(OPS)));
        let forum =
            json!({"name": "run", "message": {"content": "first", "allowed_mentions": {"parse": []}}});
        let (status, made) = api.bot("POST", &format!("/channels/{FORUM}/threads"), &forum).await;
        assert_eq!((status, &made["message"]["id"]), (201, &made["id"]));
        assert_eq!(
            code(&api.bot("POST", &format!("/channels/{FORUM}/threads"), &json!({"name": "run"})).await),
            (400, 50035)
        );
    })
    .await;
}

#[tokio::test]
async fn direct_messages_open_and_are_refused_at_the_post() {
    let world = world();
    served(&world, async |api| {
        let open =
            async |user: &str| api.bot("POST", "/users/@me/channels", &json!({"recipient_id": user})).await;
        assert_eq!(open(DANA).await.1["id"], DM_DANA);
        let (status, made) = open(OLA).await;
        assert_eq!((status, &made["type"]), (200, &json!(1)));
        let id = made["id"].as_str().unwrap();
        assert_eq!(code(&post(api, id, say("x")).await), (403, 50007));
        let stranger = open(RILEY).await.1;
        assert_eq!(code(&post(api, stranger["id"].as_str().unwrap(), say("x")).await), (403, 50278));
        assert_eq!(code(&open("77").await), (404, 10013));
        assert_eq!(code(&open(BOT).await), (400, 50033));
        api.posted(DM_DANA, say("hello")).await;
        assert_eq!(world.told(DANA), ["hello"]);
        let member =
            async |user: &str| api.bot("GET", &format!("/guilds/{GUILD}/members/{user}"), &Value::Null).await;
        assert_eq!(member(DANA).await.1["roles"], json!([RELEASE, PINGED]));
        assert_eq!(code(&member(RILEY).await), (404, 10007));
        assert_eq!(
            code(&api.bot("GET", &format!("/guilds/{ELSEWHERE}/members/{RILEY}"), &Value::Null).await),
            (403, 50001)
        );
    })
    .await;
}

#[tokio::test]
async fn an_old_message_takes_few_edits() {
    let world = world();
    served(&world, async |api| {
        let id = api.posted(OPS, say("x")).await;
        world.time().advance(3_600_001);
        for n in 0..5 {
            assert_eq!(edit(api, OPS, &id, &n.to_string()).await.0, 200);
        }
        assert_eq!(code(&edit(api, OPS, &id, "5").await), (429, 30046));
        assert_eq!(world.reads(OPS, &id), "4");
        world.time().advance(600_001);
        assert_eq!(edit(api, OPS, &id, "6").await.0, 200);
    })
    .await;
}

#[tokio::test]
async fn limits_say_how_long_and_keep_it() {
    let world = world();
    world.pace(1);
    served(&world, async |api| {
        let send = async |channel: &str| {
            let request = api.request("POST", &format!("/channels/{channel}/messages")).json(&say("x"));
            request.header("Authorization", format!("Bot {TOKEN}")).send().await.unwrap()
        };
        let header = |response: &reqwest::Response, name: &str| {
            response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        for left in (0..5).rev() {
            let response = send(OPS).await;
            assert_eq!(header(&response, "x-ratelimit-remaining"), Some(left.to_string()));
            assert_eq!(header(&response, "x-ratelimit-limit").as_deref(), Some("5"));
            assert_eq!(header(&response, "x-ratelimit-reset-after").as_deref(), Some("5.000"));
        }
        world.time().advance(700);
        let response = send(OPS).await;
        assert_eq!(
            (response.status().as_u16(), header(&response, "retry-after").as_deref()),
            (429, Some("5"))
        );
        assert_eq!(header(&response, "x-ratelimit-scope").as_deref(), Some("user"));
        let (_, body) = Api::read(response).await;
        assert_eq!(
            (&body["retry_after"], &body["global"], body.get("code")),
            (&json!(4.3), &json!(false), None)
        );
        assert_eq!(send(RELEASES).await.status(), 200, "another channel does not wait");
        assert_eq!(send(OPS).await.status(), 429);
        assert_eq!(world.impatient().len(), 1);
        world.time().advance(4_300);
        assert_eq!(send(OPS).await.status(), 200);
        // Fifty a second in all, whatever the route.
        let me = async || api.bot("GET", "/users/@me", &Value::Null).await.0;
        let mut last = 0;
        for _ in 0..50 {
            last = me().await;
        }
        assert_eq!(last, 429);
        assert_eq!(world.requests().last().unwrap().response.as_ref().unwrap()["global"], true);
    })
    .await;
}

#[tokio::test]
async fn answers_are_scripted_and_too_many_wrong_ones_end_in_a_ban() {
    let world = world();
    served(&world, async |api| {
        world.script(Script::limited(POST, Scope::Shared, 0.3).header("retry-after", "60").of(OPS));
        assert_eq!(post(api, RELEASES, say("x")).await.0, 200);
        assert_eq!(post(api, OPS, say("x")).await.0, 429);
        assert_eq!(world.invalid_requests(), 0, "what others use up is not counted");
        world.script(Script::html("*", 403));
        let (status, page) = post(api, OPS, say("x")).await;
        assert!(status == 403 && page.as_str().unwrap().contains("<html>"));
        world.script(Script::headers(POST, &[("x-ratelimit-limit", "5.0"), ("x-ratelimit-remaining", "0")]));
        assert_eq!(post(api, OPS, say("x")).await.0, 200);
        world.faults().add(Rule::next(POST, Fault::Refuse { error: "50013".into() }));
        assert_eq!(code(&post(api, OPS, say("x")).await), (403, 50013));
        world.faults().add(Rule::next(POST, Fault::Lost { ms: 0 }));
        let lost = api.request("POST", &format!("/channels/{OPS}/messages")).json(&say("lost"));
        let lost = lost.header("Authorization", format!("Bot {TOKEN}")).send().await;
        assert!(lost.is_err() || lost.unwrap().bytes().await.is_err());
        assert_eq!(world.cards(OPS).last().unwrap().content.text, "lost");
        world.switch(|switches| switches.ban_after = 2);
        assert!(post(api, OPS, say("x")).await.1.as_str().unwrap().contains("1015"));
        world.time().advance(600_001);
        assert_eq!(post(api, OPS, say("x")).await.0, 200);
    })
    .await;
}

#[tokio::test]
async fn commands_are_replaced_as_a_whole() {
    let world = world();
    served(&world, async |api| {
        let path = format!("/applications/{APP}/guilds/{GUILD}/commands");
        let one = json!([{"name": "countersign", "description": "Approvals", "type": 1}]);
        let (status, made) = api.bot("PUT", &path, &one).await;
        assert_eq!((status, &made[0]["guild_id"]), (200, &json!(GUILD)));
        let again = api.bot("PUT", &path, &one).await.1;
        assert_eq!(made[0]["id"], again[0]["id"]);
        assert_eq!(world.commands(APP, Some(GUILD)).len(), 1);
        assert_eq!(
            code(&api.bot("PUT", &format!("/applications/{OTHER_APP}/commands"), &one).await),
            (403, 20012)
        );
        let upper = json!([{"name": "Big", "description": "d"}]);
        assert_eq!(code(&api.bot("PUT", &path, &upper).await), (400, 50035));
        assert_eq!(DiscordWorld::bucket("a").len(), 32);
    })
    .await;
}

#[tokio::test]
async fn files_come_in_parts_and_stay_or_go_as_an_edit_lists_them() {
    let world = world();
    served(&world, async |api| {
        let send = async |method: &str, path: &str, json: Value| {
            let text = format!(
                "--x\r\nContent-Disposition: form-data; name=\"payload_json\"\r\nContent-Type: application/json\r\n\r\n{json}\r\n\
                 --x\r\nContent-Disposition: form-data; name=\"files[0]\"; filename=\"command.txt\"\r\n\r\nrm -rf\r\n--x--\r\n"
            );
            let request = api.request(method, path).header("Content-Type", "multipart/form-data; boundary=x").body(text);
            Api::read(request.header("Authorization", format!("Bot {TOKEN}")).send().await.unwrap()).await
        };
        let body = json!({"content": "x", "attachments": [{"id": "0", "filename": "command.txt"}]});
        let (status, made) = send("POST", &format!("/channels/{OPS}/messages"), body).await;
        assert_eq!((status, &made["attachments"][0]["filename"]), (200, &json!("command.txt")), "{made}");
        let id = made["id"].as_str().unwrap();
        assert_eq!(world.message(OPS, id).unwrap().attachments[0].text, "rm -rf");
        assert_eq!(edit(api, OPS, id, "y").await.1["attachments"].as_array().unwrap().len(), 1);
        let gone = json!({"attachments": []});
        let (_, gone) = api.bot("PATCH", &format!("/channels/{OPS}/messages/{id}"), &gone).await;
        assert_eq!(gone["attachments"], json!([]));
    })
    .await;
}
