use super::*;
use secrecy::ExposeSecret;
use serde_json::json;

fn event(inner: &Value) -> Event {
    let body = json!({
        "type": "event_callback", "api_app_id": "A1", "event_id": "Ev1", "team_id": "T1", "enterprise_id": null,
        "authorizations": [{"team_id": "T1", "is_enterprise_install": false}], "event": inner,
    });
    parse_event(body.to_string().as_bytes())
}

fn happened_of(inner: &Value) -> Option<Happened> {
    match event(inner) {
        Event::Happened { app_id, origin, happened } => {
            assert_eq!((app_id.as_deref(), origin.team.as_deref()), (Some("A1"), Some("T1")));
            assert!(!origin.org_install && origin.enterprise.is_none());
            Some(happened)
        }
        Event::Ignored { app_id } => {
            assert_eq!(app_id.as_deref(), Some("A1"));
            None
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn slack_case_6_a_challenge_is_read_and_other_events_are_ignored() {
    assert_eq!(
        parse_event(br#"{"type":"url_verification","challenge":"x1"}"#),
        Event::UrlVerification { challenge: "x1".into() }
    );
    assert_eq!(happened_of(&json!({"type": "new_thing"})), None);
    assert_eq!(happened_of(&json!({"type": 7})), None);
    assert_eq!(parse_event(b"{}"), Event::Ignored { app_id: None });
    assert_eq!(parse_event(b"[1]"), Event::Unreadable);
    assert_eq!(parse_event(b"payload=x"), Event::Unreadable);
}

/// Slack case 56: the Home tab alone, and a user that is named.
#[test]
fn an_opened_home_is_read() {
    let opened = |tab: &str| happened_of(&json!({"type": "app_home_opened", "user": "U1", "tab": tab}));
    assert_eq!(opened("home"), Some(Happened::HomeOpened { user: "U1".into() }));
    assert_eq!(opened("messages"), None);
    assert_eq!(happened_of(&json!({"type": "app_home_opened", "tab": "home"})), None);
}

#[test]
fn the_end_of_an_install_is_read() {
    assert_eq!(happened_of(&json!({"type": "app_uninstalled"})), Some(Happened::Uninstalled));
    let revoked = |tokens: Value| happened_of(&json!({"type": "tokens_revoked", "tokens": tokens}));
    let bots = |bots: &[&str]| {
        Some(Happened::TokensRevoked { bots: bots.iter().map(|bot| (*bot).to_owned()).collect() })
    };
    assert_eq!(revoked(json!({"oauth": ["U1"], "bot": ["U0BOT"]})), bots(&["U0BOT"]));
    assert_eq!(revoked(json!({"oauth": ["U1"]})), bots(&[]));
    let limited = br#"{"type":"app_rate_limited","team_id":"T1","api_app_id":"A1","minute_rate_limited":1}"#;
    assert!(matches!(parse_event(limited), Event::Happened { happened: Happened::RateLimited, .. }));
}

/// Slack case 51: an install of a whole organisation says so in `authorizations`, and may name no team.
#[test]
fn an_org_wide_install_is_read() {
    let body = json!({
        "type": "event_callback", "event_id": "Ev1", "team_id": null, "enterprise_id": "E1",
        "authorizations": [{"enterprise_id": "E1", "team_id": null, "is_enterprise_install": true}],
        "event": {"type": "app_uninstalled"},
    });
    let Event::Happened { origin, .. } = read_event(&body) else { panic!() };
    assert_eq!((origin.team, origin.enterprise.as_deref(), origin.org_install), (None, Some("E1"), true));
}

#[test]
fn slack_case_57_a_command_is_read_as_a_form() {
    let form = b"command=%2Fcountersign&text=open+%3C!channel%3E&api_app_id=A1&team_id=T1&enterprise_id=&user_id=U1\
        &channel_id=C1&is_enterprise_install=false&trigger_id=1.2&response_url=https%3A%2F%2Fhooks.slack.com%2Fx";
    let Command { app_id, typed } = parse_command(form).unwrap();
    assert_eq!(app_id.as_deref(), Some("A1"));
    assert_eq!((typed.user.as_str(), typed.channel.as_deref()), ("U1", Some("C1")));
    assert_eq!(typed.text, "open <!channel>");
    assert_eq!(typed.reply.as_ref().map(ExposeSecret::expose_secret), Some("https://hooks.slack.com/x"));
    assert_eq!((typed.origin.team.as_deref(), typed.origin.enterprise.as_deref()), (Some("T1"), None));
    assert!(parse_command(b"text=open").is_none());
}

#[test]
fn slack_case_36_and_55_what_happened_to_a_channel_is_read() {
    let news = |event: &str| {
        let body = format!(r#"{{"type":"event_callback","api_app_id":"A1","team_id":"T1","event":{event}}}"#);
        match parse_event(body.as_bytes()) {
            Event::Channel { news, team, .. } => Some((team, news)),
            _ => None,
        }
    };
    let of_team = |news| Some((Some("T1".to_owned()), news));
    for kind in ["channel_archive", "channel_unarchive", "group_archive", "group_unarchive"] {
        let changed = ChannelNews::Changed { channel: "C1".into() };
        assert_eq!(news(&format!(r#"{{"type":"{kind}","channel":"C1","user":"U1"}}"#)), of_team(changed));
    }
    assert_eq!(
        news(r#"{"type":"channel_id_changed","old_channel_id":"G1","new_channel_id":"C1"}"#),
        of_team(ChannelNews::Moved { from: "G1".into(), to: "C1".into() })
    );
    assert_eq!(
        news(r#"{"type":"member_joined_channel","channel":"C1","user":"U1"}"#),
        of_team(ChannelNews::Joined { channel: "C1".into(), user: "U1".into() })
    );
    for odd in [
        r#"{"type":"channel_archive"}"#,
        r#"{"type":"channel_archive","channel":{"id":"C1"}}"#,
        r#"{"type":"channel_id_changed","new_channel_id":"C1"}"#,
        r#"{"type":"channel_created","channel":"C1"}"#,
    ] {
        assert_eq!(news(odd), None, "{odd}");
    }
}
