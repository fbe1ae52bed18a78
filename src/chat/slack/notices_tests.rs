use super::super::rules;
use super::*;
use crate::domain::clock::Millis;
use crate::domain::interaction::{Outcome, Why};
use crate::render::slack::CommandAnswer;
use crate::sandbox::slack::validate;
use serde_json::json;
use std::collections::BTreeSet;

fn dana() -> PersonRef {
    PersonRef { subject: "dana@example.com".into(), mention: Some("U0DANA".into()) }
}

fn kim() -> PersonRef {
    PersonRef { subject: "kim@example.com".into(), mention: None }
}

const AT: Millis = Millis(1_796_000_000_000);

fn said(notice: &Notice) -> String {
    let templates = Templates::load("en", None).unwrap();
    let (text, blocks) = draw(&templates, notice);
    assert_eq!(rules::check(&text, &blocks), Vec::<String>::new());
    let payload = json!({"channel": "C1", "user": "U1", "text": text, "blocks": blocks});
    assert!(validate::message(&payload, validate::Rules::default()).is_empty());
    text
}

fn whys() -> Vec<Why> {
    let all = crate::render::slack::WHYS.map(|word| serde_json::from_value(json!(word)).unwrap());
    all.into()
}

#[test]
fn every_reason_is_known_to_the_templates() {
    for why in whys() {
        assert!(crate::render::slack::WHYS.contains(&why.as_str()));
    }
    // One more variant must be added to the list: this match says so.
    let _ = |why: Why| match why {
        Why::AlreadyEnded
        | Why::BeingAnswered
        | Why::AlreadyRecorded
        | Why::Changed
        | Why::NoVote
        | Why::Unverified
        | Why::RightLost
        | Why::TooLate
        | Why::NotOwner
        | Why::Forbidden
        | Why::NotAccepted
        | Why::Unconfirmed
        | Why::Contradicted
        | Why::Malformed
        | Why::Unmappable => {}
    };
}

#[test]
fn refusals_say_what_to_do_next() {
    let notices = [
        Notice::AlreadyEnded { outcome: Outcome::Approved, by: Some(kim()), at: AT },
        Notice::AlreadyEnded { outcome: Outcome::Canceled, by: None, at: AT },
        Notice::AlreadyEnded { outcome: Outcome::Elsewhere, by: None, at: AT },
        Notice::AlreadyEnded { outcome: Outcome::Gone, by: None, at: AT },
        Notice::AlreadyEnded { outcome: Outcome::Denied, by: Some(dana()), at: AT },
        Notice::AlreadyEnded { outcome: Outcome::Answered, by: Some(dana()), at: AT },
        Notice::AlreadyEnded { outcome: Outcome::Connected, by: Some(dana()), at: AT },
        Notice::AlreadyEnded { outcome: Outcome::Declined, by: Some(dana()), at: AT },
        Notice::AlreadyEnded { outcome: Outcome::Failed, by: None, at: AT },
        Notice::AlreadyEnded { outcome: Outcome::Elsewhere, by: Some(kim()), at: AT },
        Notice::BeingAnswered { by: dana() },
        Notice::Unlinked { user: "slack:acme:U0SAM".into() },
        Notice::Unfit { what: Unfit::Guest },
        Notice::Unfit { what: Unfit::Stranger },
        Notice::Unfit { what: Unfit::Bot },
        Notice::Unfit { what: Unfit::Deactivated },
        Notice::Unfit { what: Unfit::Invited },
        Notice::Unfit { what: Unfit::Nobody },
        Notice::NotAllowed { groups: vec!["release".into(), "owner".into()] },
        Notice::NotAllowed { groups: vec![] },
        Notice::SelfApproval,
        Notice::CouldNotCheck,
        Notice::MustView,
        Notice::NeedsReason,
        Notice::Outdated,
        Notice::PressAgain,
        Notice::OpensLater,
        Notice::UnknownControl,
        Notice::NotInstalled,
        Notice::StillTrying,
        Notice::NeedsAttention,
        Notice::Paused,
    ];
    insta::assert_snapshot!(notices.iter().map(said).collect::<Vec<_>>().join("\n"), @r"
    This was already approved by `kim[@]example[.]com` (<!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>). Nothing was sent for you.
    This was already canceled (<!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>). Nothing was sent for you.
    This was already answered elsewhere (<!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>). Nothing was sent for you.
    This is gone: the runtime no longer has it (<!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>). Nothing was sent for you.
    This was already denied by <@U0DANA> (<!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>). Nothing was sent for you.
    This was already answered by <@U0DANA> (<!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>). Nothing was sent for you.
    This was already connected by <@U0DANA> (<!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>). Nothing was sent for you.
    This was already declined by <@U0DANA> (<!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>). Nothing was sent for you.
    The task has already failed (<!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>). Nothing was sent for you.
    This was already answered elsewhere by `kim[@]example[.]com` (<!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>). Nothing was sent for you.
    <@U0DANA> has already answered, and that answer is being delivered. Nothing was sent for you.
    Nothing was sent: Countersign does not know who you are to the runtime. Ask an operator to link your account `slack:acme:U0SAM` to you, then press again.
    Guests cannot answer here. Ask a full member of this workspace.
    People from other organizations cannot answer here. Ask a member of this workspace.
    Bots and workflows cannot answer. A person has to press the button.
    Deactivated accounts cannot answer. Ask an active member.
    Accept your invitation to this workspace first, then press again.
    Slack does not say who pressed, so nothing was sent. Ask a member of this workspace to press.
    You may not answer this. Those who may: release, owner. Ask one of them.
    You may not answer this. Nobody may answer it here; ask your operators.
    The agent works for you, and here its owner may not answer. Ask another approver.
    It could not be checked whether you may answer, so nothing was sent. Press again in a minute.
    This card does not show everything, so nothing was sent. Open Show all first, to its last page; then Approve works for you. Deny works without it.
    A denial needs a reason here, so nothing was sent. Use Deny with reason… on the card.
    This card was drawn before the rules for it changed, so nothing was sent. Approve asks once more now: press it on the card as it is drawn anew.
    It could not be opened in time. If no window is there, press the button again; the other buttons work as before.
    Slack limits how often windows may be opened just now. Press the button again in a minute; the other buttons work as before.
    This button is no longer known, so nothing was sent. Look for a newer message.
    Countersign is not installed here, so nothing was sent. Ask your operators.
    Your answer is kept. The runtime does not answer yet; it is tried again until it is delivered or ends otherwise.
    Your answer is kept. Operators have to mend the connection to the runtime first; they have been told.
    Your answer is kept. Operators have paused answers to this runtime; it will be sent when they resume.
    ");
}

#[test]
fn every_reason_of_the_state_machine_has_its_own_words() {
    let refused: Vec<String> =
        whys().into_iter().map(|why| said(&Notice::Refused { why, by: Some(dana()) })).collect();
    assert_eq!(refused.iter().collect::<BTreeSet<_>>().len(), refused.len());
    insta::assert_snapshot!(refused.join("\n"), @r"
    The request had already ended, so nothing was sent for you.
    <@U0DANA> has already answered, and that answer is being delivered. Nothing was sent for you.
    Your answer is already recorded.
    The request has changed since this card was drawn, so your answer does not count. Read the new card and decide again.
    You have no vote here to take back.
    The earlier votes could not be checked just now, so nothing was counted. Press again in a moment.
    Your right to answer was lost before the answer could be delivered, so it does not count. Ask your operators.
    Your answer could not be delivered in time, so it does not count. Press again if it is still needed.
    Your answer was not taken: the runtime lets only the person the agent works for answer. Ask that person.
    Your answer was not taken: the runtime does not accept you as somebody who may answer. Ask your operators.
    The runtime did not take your answer and still waits. Press again.
    The runtime ended the request before the delivery of your answer could be confirmed. The card shows how it ended.
    The runtime took your answer, but goes on showing the request as open. Press again.
    The runtime could not read your answer, so it does not count. Your operators have been told.
    Nothing was sent: this runtime cannot be told who you are. Ask your operators.
    ");
    let voided = whys().into_iter().map(|why| said(&Notice::VoteVoided { why }));
    let voided: Vec<String> =
        voided.map(|said| said.replace("Your vote does not count any more. ", "")).collect();
    insta::assert_snapshot!(voided.join("\n"), @r"
    The request has ended.
    Somebody else has already answered, and that answer is being delivered. Nothing was sent for you.
    Your answer is already recorded.
    The request has changed. Read the new card and decide again.
    You have no vote here to take back.
    The earlier votes could not be checked just now, so nothing was counted. Press again in a moment.
    You have lost the right to answer this. Ask your operators.
    Your answer could not be delivered in time, so it does not count. Press again if it is still needed.
    Your answer was not taken: the runtime lets only the person the agent works for answer. Ask that person.
    Your answer was not taken: the runtime does not accept you as somebody who may answer. Ask your operators.
    The runtime did not take your answer and still waits. Press again.
    The runtime ended the request before the delivery of your answer could be confirmed. The card shows how it ended.
    The runtime took your answer, but goes on showing the request as open. Press again.
    The runtime could not read your answer, so it does not count. Your operators have been told.
    Nothing was sent: this runtime cannot be told who you are. Ask your operators.
    ");
    insta::assert_snapshot!(said(&Notice::Refused { why: Why::BeingAnswered, by: None }), @"Somebody else has already answered, and that answer is being delivered. Nothing was sent for you.");
}

/// What a person had typed is given back below, as it was.
#[test]
fn typed_words_are_given_back() {
    let notice = Notice::CouldNotCheck.with_words(Some("not on a *Friday*,\nask <!here> again"));
    said(&notice);
    let (text, blocks) = draw(&Templates::load("en", None).unwrap(), &notice);
    insta::assert_snapshot!(text, @"It could not be checked whether you may answer, so nothing was sent. Press again in a minute. What you typed was not sent:");
    insta::assert_json_snapshot!(blocks, @r#"
    [
      {
        "text": {
          "text": "It could not be checked whether you may answer, so nothing was sent. Press again in a minute. What you typed was not sent:",
          "type": "mrkdwn",
          "verbatim": true
        },
        "type": "section"
      },
      {
        "elements": [
          {
            "elements": [
              {
                "text": "not on a *Friday*,\nask <!here> again",
                "type": "text"
              }
            ],
            "type": "rich_text_preformatted"
          }
        ],
        "type": "rich_text"
      }
    ]
    "#);
}

#[test]
fn answers_to_commands() {
    let templates = Templates::load("en", None).unwrap();
    let all = ["help", "not_known", "unlink", "not_installed", "later"];
    let all = all.map(|answer| templates.render(&CommandAnswer { answer }));
    insta::assert_snapshot!(all.join("\n"), @r"
    `/countersign open` lists what waits for you, the oldest first. `/countersign unlink` says how your link is ended. Open requests are answered with the buttons of their messages.
    Countersign knows `/countersign open`, `/countersign unlink` and `/countersign help`.
    Your link is kept by operators in the configuration. Ask one of them to remove it.
    Countersign is not installed here. Ask your operators.
    One moment: the answer follows here.
    ");
}

/// Slack case 53: "not allowed" and "could not be checked" are different texts.
#[test]
fn slack_case_53_could_not_check_is_not_a_no() {
    let (no, unknown) =
        (said(&Notice::NotAllowed { groups: vec!["release".into()] }), said(&Notice::CouldNotCheck));
    assert!(no.contains("may not answer") && !unknown.contains("may not"));
    assert!(unknown.contains("Press again"));
}

#[test]
fn names_in_a_notice_are_never_markup() {
    let hostile = "<!channel> `https://evil.test`";
    let by = PersonRef { subject: hostile.into(), mention: None };
    for notice in [
        Notice::BeingAnswered { by: by.clone() },
        Notice::Refused { why: Why::BeingAnswered, by: Some(by) },
        Notice::Unlinked { user: hostile.into() },
        Notice::NotAllowed { groups: vec![hostile.into()] },
    ] {
        let text = said(&notice);
        assert!(!text.contains("<!") && !text.contains("https://"), "{text}");
    }
}
