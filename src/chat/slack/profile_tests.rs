use super::*;
use crate::bridge::ports::Identity;
use rstest::rstest;

fn known(team: Option<&str>, enterprise: Option<&str>) -> Known {
    Known {
        identity: Identity {
            app_id: "A0CS".into(),
            team: team.map(str::to_owned),
            enterprise: enterprise.map(str::to_owned),
            bot_user: "U0BOT".into(),
            can_search: true,
        },
        bot_id: Some("B0BOT".into()),
        posts_everywhere: false,
    }
}

fn dana() -> Value {
    json!({"id":"U0DANA","team_id":"T0ACME","deleted":false,"is_bot":false,"is_app_user":false,"is_restricted":false,
        "is_ultra_restricted":false,"is_stranger":false,"is_invited_user":false,"real_name":"Dana Lee",
        "profile":{"display_name":"dana","email":"dana@example.com"}})
}

fn pressed(home: Option<&str>) -> PressedBy {
    PressedBy { user: "U0DANA".into(), home_team: home.map(str::to_owned) }
}

#[expect(clippy::needless_pass_by_value, reason = "reads as a change")]
fn with(change: Value) -> Value {
    let mut found = dana();
    for (key, value) in change.as_object().unwrap() {
        found[key] = value.clone();
    }
    found
}

#[rstest]
#[case::member(json!({}), Standing::Member)]
#[case::authorised_an_app(json!({"is_app_user": true}), Standing::Member)]
#[case::guest(json!({"is_restricted": true}), Standing::Unfit(Unfit::Guest))]
#[case::single_channel_guest(json!({"is_restricted": true, "is_ultra_restricted": true}), Standing::Unfit(Unfit::Guest))]
#[case::stranger(json!({"is_stranger": true}), Standing::Unfit(Unfit::Stranger))]
#[case::foreign_team(json!({"team_id": "T0OTHER"}), Standing::Unfit(Unfit::Stranger))]
#[case::bot(json!({"is_bot": true}), Standing::Unfit(Unfit::Bot))]
#[case::workflow(json!({"is_workflow_bot": true}), Standing::Unfit(Unfit::Bot))]
#[case::connector(json!({"is_connector_bot": true}), Standing::Unfit(Unfit::Bot))]
#[case::deleted(json!({"deleted": true}), Standing::Unfit(Unfit::Deactivated))]
#[case::invited(json!({"is_invited_user": true}), Standing::Unfit(Unfit::Invited))]
#[case::flags_missing(json!({"deleted": null, "is_bot": null, "is_stranger": null}), Standing::Member)]
fn slack_case_50_who_may_never_answer(#[case] change: Value, #[case] standing: Standing) {
    assert_eq!(
        judge(&known(Some("T0ACME"), None), &pressed(Some("T0ACME")), &with(change)).standing,
        standing
    );
}

#[test]
fn slack_case_50_slackbot_and_we_ourselves_are_bots() {
    for user in ["USLACKBOT", "U0BOT"] {
        let by = PressedBy { user: user.into(), home_team: Some("T0ACME".into()) };
        let judged = judge(&known(Some("T0ACME"), None), &by, &with(json!({"id": user})));
        assert_eq!(judged.standing, Standing::Unfit(Unfit::Bot));
    }
}

#[test]
fn slack_case_51_and_52_the_organisation_is_the_key() {
    let org = json!({"enterprise_user": {"id": "U0DANA", "enterprise_id": "E0ACME"}, "team_id": "T0OTHER"});
    // An install of the whole organisation, and one of a workspace in it.
    for install in [known(None, Some("E0ACME")), known(Some("T0ACME"), Some("E0ACME"))] {
        for home in [Some("T0OTHER"), Some("E0ACME"), None] {
            let judged = judge(&install, &pressed(home), &with(org.clone()));
            assert_eq!(judged.standing, Standing::Member);
            assert_eq!(judged.key.unwrap().to_string(), "slack:E0ACME:U0DANA");
        }
    }
    // Another organisation's account in a shared channel.
    let judged = judge(&known(Some("T0ACME"), None), &pressed(Some("T0OTHER")), &with(org));
    assert_eq!(judged.standing, Standing::Unfit(Unfit::Stranger));
}

#[test]
fn slack_case_52_a_foreign_home_is_a_stranger_and_the_same_id_elsewhere_another_person() {
    let acme = known(Some("T0ACME"), None);
    let judged = judge(&acme, &pressed(Some("T0OTHER")), &dana());
    assert_eq!(judged.standing, Standing::Unfit(Unfit::Stranger));
    let there =
        judge(&known(Some("T0OTHER"), None), &pressed(Some("T0OTHER")), &with(json!({"team_id": "T0OTHER"})));
    let here = judge(&acme, &pressed(Some("T0ACME")), &dana());
    assert_eq!((there.standing, here.standing), (Standing::Member, Standing::Member));
    assert_ne!(there.key, here.key);
}

#[test]
fn slack_case_53_what_cannot_be_read_is_unknown() {
    let acme = known(Some("T0ACME"), None);
    let unknown = Profile::of(Standing::Unknown);
    assert_eq!(judge(&acme, &pressed(None), &with(json!({"team_id": null}))), unknown);
    assert_eq!(judge(&acme, &pressed(Some("T0ACME")), &with(json!({"id": null}))), unknown);
    assert_eq!(judge(&acme, &pressed(Some("T0ACME")), &with(json!({"id": "U0KIM"}))), unknown);
    assert_eq!(judge(&acme, &pressed(Some("T0ACME")), &json!("odd")), unknown);
    assert_eq!(missing(&acme, &pressed(Some("T0ACME"))), Standing::Unfit(Unfit::Nobody));
    assert_eq!(missing(&acme, &pressed(Some("T0OTHER"))), Standing::Unfit(Unfit::Stranger));
}

#[test]
fn slack_case_54_names_and_addresses_change_nothing() {
    let acme = known(Some("T0ACME"), None);
    let before = judge(&acme, &pressed(Some("T0ACME")), &dana());
    let after = judge(
        &acme,
        &pressed(Some("T0ACME")),
        &with(
            json!({"real_name": "Kim", "name": "kim", "profile": {"display_name": "kim", "email": "kim@example.com"}}),
        ),
    );
    assert_eq!(before, after);
    assert_eq!(
        before,
        judge(&acme, &pressed(Some("T0ACME")), &with(json!({"real_name": null, "profile": null})))
    );
}
