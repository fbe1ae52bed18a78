//! Threads, who we are, commands, accounts, places, files.

use super::*;

#[tokio::test]
async fn a_thread_begins_below_its_first_card_once() {
    bed(async |bed| {
        let to = Destination { channel: CHANNEL.into(), thread: Some("7700000000000000007".into()) };
        let post = async || bed.discord.post(&to, &bed.drawn(), marks().card, 3).await;
        let thread = || reply(201, json!({"id": "7700000000000000007"}));
        bed.then([thread(), posted(&bed.drawn().body), posted(&bed.drawn().body)]);
        let within =
            MessageRef { channel: CHANNEL.into(), message: format!("7700000000000000007/{MESSAGE}") };
        assert_eq!(post().await.unwrap(), within);
        assert_eq!(post().await.unwrap(), within);
        let requests = bed.taken();
        assert_eq!(
            requests[0].line,
            format!("POST /api/v10/channels/{CHANNEL}/messages/7700000000000000007/threads")
        );
        assert_eq!(
            requests[0].json(),
            json!({"name": "Release agent: pager / close_incident", "auto_archive_duration": 10080})
        );
        assert_eq!(requests[2].line, "POST /api/v10/channels/7700000000000000007/messages");
        bed.then([posted(&bed.drawn().body)]);
        bed.discord.edit(&within, &bed.drawn()).await.unwrap();
        assert_eq!(bed.lines(), [format!("PATCH /channels/7700000000000000007/messages/{MESSAGE}")]);
    })
    .await;
    // It exists already, there are too many, and its root is gone.
    for (first, second, expected) in [
        (error(400, 160_004), true, Ok(format!("7700000000000000007/{MESSAGE}"))),
        (error(400, 160_006), true, Ok(MESSAGE.to_owned())),
        (error(404, 10_008), false, Err("Thread")),
    ] {
        bed(async |bed| {
            let to = Destination { channel: CHANNEL.into(), thread: Some("7700000000000000007".into()) };
            bed.then([first]);
            if second {
                bed.then([posted(&bed.drawn().body)]);
            }
            let posted = bed.discord.post(&to, &bed.drawn(), marks().card, 3).await;
            match expected {
                Ok(message) => assert_eq!(posted.unwrap().message, message),
                Err(_) => assert!(matches!(posted, Err(ChatError::Thread { .. })), "{posted:?}"),
            }
        })
        .await;
    }
}

#[tokio::test]
async fn who_we_are_and_whether_clicks_can_arrive() {
    let me = || reply(200, json!({"id": BOT}));
    let application = |endpoint: Value, key: &str| {
        reply(
            200,
            json!({"id": APP, "name": "countersign", "verify_key": key, "interactions_endpoint_url": endpoint}),
        )
    };
    let url = json!("https://cs.example/discord/interactions");
    for (public_key, reply, wrong) in [
        (None, application(Value::Null, "aa"), false),
        (None, application(url.clone(), "aa"), true),
        (Some("aa"), application(url.clone(), "AA"), false),
        (Some("aa"), application(url.clone(), "bb"), true),
        (Some("aa"), application(Value::Null, "aa"), true),
    ] {
        bed_with(None, public_key, async |bed| {
            bed.then([reply, me()]);
            let identity = bed.discord.identify().await.unwrap();
            assert_eq!(
                (identity.app_id.as_str(), identity.bot_user.as_str(), identity.realm()),
                (APP, BOT, "")
            );
            let trouble =
                bed.discord.troubles().into_iter().find(|trouble| trouble.key == "way_in:guild").unwrap();
            assert_eq!(trouble.text.is_some(), wrong, "{trouble:?}");
        })
        .await;
    }
    bed(async |bed| {
        bed.then([reply(200, json!({"id": "1100000000000000007"}))]);
        assert!(
            matches!(bed.discord.identify().await, Err(ChatError::Auth { .. })),
            "another application's token"
        );
        bed.then([error(401, 0)]);
        assert!(matches!(bed.discord.identify().await, Err(ChatError::Auth { .. })));
    })
    .await;
}

#[tokio::test]
async fn discord_case_78_the_same_commands_are_put_once() {
    bed(async |bed| {
        bed.then([reply(200, json!([]))]);
        let kept = bed.discord.introduce(None).await.unwrap().unwrap();
        let [put] = bed.taken().try_into().unwrap();
        assert_eq!(put.line, format!("PUT /api/v10/applications/{APP}/guilds/{GUILD}/commands"));
        insta::assert_json_snapshot!(put.json());
        assert_eq!(bed.discord.introduce(Some(&kept)).await.unwrap(), None);
        assert!(bed.taken().is_empty());
        bed.then([reply(200, json!([]))]);
        assert_eq!(bed.discord.introduce(Some("of another version")).await.unwrap(), Some(kept));
        bed.then([error(400, 30_034)]);
        assert!(matches!(bed.discord.introduce(None).await, Err(ChatError::Permanent { .. })));
    })
    .await;
}

#[tokio::test]
async fn accounts_are_read_where_they_pressed_and_fail_closed() {
    bed(async |bed| {
        let by = |guild: Option<&str>| PressedBy { user: MARA.into(), home_team: guild.map(str::to_owned) };
        let member = json!({"user": {"id": MARA}, "roles": ["2200000000000000002"]});
        bed.then([reply(200, member.clone())]);
        let profile = bed.discord.profile(&by(Some("1100000000000000008"))).await.unwrap();
        assert_eq!(profile.standing, Standing::Member);
        assert_eq!(profile.groups, Some(["2200000000000000002".to_owned()].into()));
        bed.then([reply(200, member)]);
        bed.discord.profile(&by(None)).await.unwrap();
        let lines = bed.lines();
        assert_eq!(lines[0], format!("GET /guilds/1100000000000000008/members/{MARA}"));
        assert_eq!(
            lines[1],
            format!("GET /guilds/{GUILD}/members/{MARA}"),
            "of direct messages: as configured"
        );
        bed.then([error(404, 10_007)]);
        assert_eq!(bed.discord.profile(&by(None)).await.unwrap().standing, Standing::Unfit(Unfit::Stranger));
        bed.then([error(403, 50_001)]);
        assert_eq!(bed.discord.profile(&by(None)).await.unwrap().standing, Standing::Unknown);
        bed.then([reply(200, json!({}))]);
        assert_eq!(bed.discord.profile(&by(None)).await.unwrap().standing, Standing::Unknown);
        bed.then([error(500, 0)]);
        assert!(bed.discord.profile(&by(None)).await.is_err());
    })
    .await;
    bed_with(None, None, async |bed| {
        let by = PressedBy { user: MARA.into(), home_team: None };
        bed.then([reply(200, json!({"id": MARA}))]);
        let profile = bed.discord.profile(&by).await.unwrap();
        assert_eq!(
            (profile.standing, profile.groups),
            (Standing::Member, None),
            "roles are not known, and none"
        );
        bed.then([reply(200, json!({"id": MARA, "bot": true}))]);
        assert_eq!(bed.discord.profile(&by).await.unwrap().standing, Standing::Unfit(Unfit::Bot));
    })
    .await;
}

#[tokio::test]
async fn places_links_and_looks() {
    bed(async |bed| {
        assert_eq!(bed.discord.resolve(&Target::DiscordChannel(CHANNEL.into())).await.unwrap(), CHANNEL);
        bed.then([reply(200, json!({"id": "6600000000000000006", "type": 1}))]);
        let dm = bed.discord.resolve(&Target::DiscordUser(MARA.into())).await.unwrap();
        let site = bed.discord.site.clone();
        let direct = MessageRef { channel: dm.clone(), message: MESSAGE.into() };
        assert_eq!(bed.discord.link(&direct).await.unwrap(), format!("{site}/channels/@me/{dm}/{MESSAGE}"));
        bed.then([reply(200, json!({"id": CHANNEL, "type": 0, "guild_id": GUILD}))]);
        let expected = format!("{site}/channels/{GUILD}/{CHANNEL}/{MESSAGE}");
        assert_eq!(bed.discord.link(&at()).await.unwrap(), expected);
        assert_eq!(bed.discord.link(&at()).await.unwrap(), expected, "known by now");
        for (seen, well) in [
            (json!({"type": 0}), true),
            (json!({"type": 11, "thread_metadata": {"archived": true, "locked": false}}), true),
            (json!({"type": 11, "thread_metadata": {"archived": true, "locked": true}}), false),
            (json!({"type": 2}), true),
            (json!({"type": 4}), false),
            (json!({"type": 15}), false),
        ] {
            bed.then([reply(200, seen.clone())]);
            let well = well && seen["type"] != 2;
            assert_eq!(bed.discord.look(CHANNEL, "").await.is_ok(), well, "{seen}");
        }
        bed.then([error(404, 10_003)]);
        assert!(matches!(bed.discord.look(CHANNEL, "").await, Err(ChatError::Place { .. })));
        // Refused for a right: that can be seen.
        for (permissions, well) in [("309237763072", true), ("1024", false)] {
            bed.then([reply(200, json!({"id": CHANNEL, "type": 0, "guild_id": GUILD}))]);
            if well {
                bed.then([reply(200, json!({"id": BOT}))]);
            }
            bed.then([
                reply(200, json!([{"id": GUILD, "permissions": permissions}])),
                reply(200, json!({"user": {"id": BOT}, "roles": []})),
            ]);
            assert_eq!(bed.discord.look(CHANNEL, "50013").await.is_ok(), well, "{permissions}");
        }
    })
    .await;
}

#[tokio::test]
async fn everything_of_a_card_comes_as_a_file() {
    bed(async |bed| {
        let mut about = open_approval();
        about.form.prompt = "a line of it\n".repeat(5_000);
        let page = Page { at: 1, of: 1, previous: None, next: None, unlocks: true };
        let view = View { card: marks().card, rev: 3, about, content: Content::ShowAll(page) };
        assert!(matches!(bed.discord.opening(&view, false), Opening::File { .. }));
        bed.then([reply(200, json!({"id": MESSAGE}))]);
        bed.discord.open(&WayIn::Answer(SecretString::from("tok")), &view).await.unwrap();
        let [request] = bed.taken().try_into().unwrap();
        assert_eq!(request.line, format!("PATCH /api/v10/webhooks/{APP}/tok/messages/@original"));
        assert!(request.header("content-type").unwrap().starts_with("multipart/form-data; boundary="));
        assert!(
            request.body.contains("name=\"files[0]\"; filename=\"request.txt\"")
                && request.body.contains(&view.about.form.prompt)
        );
        assert!(request.body.contains("name=\"payload_json\""));
    })
    .await;
}

#[tokio::test]
async fn deleting_what_is_gone_is_done() {
    bed(async |bed| {
        for gone in [Reply::Http { status: 204, headers: vec![], body: String::new() }, error(404, 10_008)] {
            bed.then([gone]);
            bed.discord.delete(&at()).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn what_check_says() {
    bed(async |bed| {
        bed.then([error(401, 0)]);
        let refused = bed.discord.examine().await;
        assert!(refused.len() == 1 && refused[0].text.contains("the bot token is refused"), "{refused:?}");
        bed.then([
            reply(
                200,
                json!({"id": APP, "name": "countersign", "interactions_endpoint_url": "https://cs.example"}),
            ),
            reply(200, json!({"url": "ws://127.0.0.1", "session_start_limit": {"remaining": 3}})),
        ]);
        let said: Vec<String> = bed.discord.examine().await.into_iter().map(|finding| finding.text).collect();
        assert!(said.iter().any(|text| text.contains("so no click comes over the gateway")), "{said:?}");
        assert!(said.iter().any(|text| text.contains("only 3 gateway connections")), "{said:?}");
        bed.then([error(403, 50_001)]);
        let place = bed.discord.examine_place(&Target::DiscordChannel(CHANNEL.into())).await;
        assert!(place[0].text.contains("we do not see the channel"), "{place:?}");
    })
    .await;
}

#[test]
fn discord_case_79_no_address_is_written_down_but_the_default() {
    for file in std::fs::read_dir("src/chat/discord").unwrap() {
        let path = file.unwrap().path();
        let name = path.display().to_string();
        if path.extension().is_some_and(|end| end == "rs") && !name.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            let outside = code.join("\n").split("#[cfg(test)]").next().unwrap().contains("discord.com")
                || code.join("\n").split("#[cfg(test)]").next().unwrap().contains("discordapp");
            assert!(!outside, "{name}");
        }
    }
}
