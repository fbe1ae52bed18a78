//! From the claim to the runtime's word: hand-outs, attempts, crashes, refusals.

use super::*;

#[test]
fn one_attempt_at_a_time() {
    let mut play = Play::claimed();
    play.send();
    let answer = play.claim().answer;
    assert_eq!(play.hand_out(Right::Allowed), [Effect::Later { answer }]);
    assert!(play.claim().in_flight);
}

#[test]
fn nothing_is_handed_out_for_an_answer_without_a_live_claim() {
    let mut play = Play::claimed();
    let stranger = AnswerId(Uuid::from_u128(99));
    let at = Millis(play.now);
    let hand_out = |answer| Event::HandOut { answer, at, right: Right::Allowed };
    assert_eq!(play.step(hand_out(stranger)), [Effect::Drop { answer: stranger }]);
    assert!(!play.claim().in_flight);
    let mut play = Play::new();
    assert_eq!(play.step(hand_out(stranger)), [Effect::Drop { answer: stranger }]);
    let mut play = Play::ours();
    assert_eq!(play.step(hand_out(stranger)), [Effect::Drop { answer: stranger }]);
}

/// "Task WORKING, other interaction, or terminal: settle as ours."
#[test]
fn an_accepted_answer_that_is_no_longer_shown_settles_as_ours() {
    let mut play = Play::claimed();
    let (answer, click) = (play.claim().answer, play.claim().click);
    play.send();
    let effects = play.attempt(Attempted::Accepted { confirmed: true });
    assert_eq!(effects, [Effect::Delivered { answer, click }, Effect::Settled, Effect::Redraw]);
    let (subject, decision) = (person("dana"), Decision::Approve);
    assert_eq!(*play.how(), How::Ours { answer, click, subject, decision });
    assert_eq!(play.outcome(), Outcome::Approved);
}

#[test]
fn an_accepted_denial_is_denied() {
    let mut play = Play::new();
    play.press("dana", DENY);
    play.send();
    play.attempt(Attempted::Accepted { confirmed: true });
    assert_eq!(play.outcome(), Outcome::Denied);
}

/// "Task still shows the same interaction: re-read for 30 s." Also the row of a message without a task.
#[test]
fn an_accepted_answer_that_is_still_shown_waits_for_a_reading() {
    let mut play = Play::claimed();
    play.send();
    let effects = play.attempt(Attempted::Accepted { confirmed: false });
    assert!(again(&effects).is_some());
    assert!(!delivered(&effects));
    let answer = play.claim().answer;
    assert_eq!(play.hand_out(Right::Allowed), [Effect::Later { answer }], "accepted: not sent again");
    play.wait(2);
    assert!(delivered(&play.read(ended(RESOLVED))));
    assert_eq!(play.outcome(), Outcome::Approved);
}

/// "429, 5xx, timeout: retry the same body", and A2A case 26: shown as ours.
#[test]
fn an_unknown_result_keeps_the_claim_and_sends_again() {
    let mut play = Play::maybe();
    let before = play.claim().clone();
    play.wait(2);
    play.read(open(1));
    play.send();
    assert_eq!(play.claim().answer, before.answer);
    play.attempt(Attempted::Accepted { confirmed: true });
    assert_eq!(play.outcome(), Outcome::Approved);
}

/// A2A case 26: the process was killed before the response.
#[test]
fn a_lost_attempt_may_have_been_received() {
    let mut play = Play::claimed();
    play.send();
    play.lost();
    assert_eq!(play.claim().sent, Sent::Maybe);
    assert!(!play.claim().in_flight);
    assert!(play.lost().is_empty());
    play.send();
    play.attempt(Attempted::Accepted { confirmed: true });
    assert_eq!(play.outcome(), Outcome::Approved);
}

#[test]
fn what_was_lost_before_it_was_handed_out_was_never_sent() {
    let mut play = Play::claimed();
    play.lost();
    assert_eq!(play.claim().sent, Sent::Never);
}

/// "Authentication and configuration errors keep the claim": nothing reached the runtime.
#[test]
fn what_did_not_reach_the_runtime_keeps_the_claim_as_it_was() {
    let mut play = Play::claimed();
    play.send();
    assert!(play.attempt(Attempted::NotSent).is_empty());
    assert_eq!(play.claim().sent, Sent::Never);
    let mut play = Play::maybe();
    play.send();
    play.attempt(Attempted::NotSent);
    assert_eq!(play.claim().sent, Sent::Maybe);
}

/// The rows of §8 that free the claim while the interaction is still open; A2A case 31 is `NotOwner`.
#[test]
fn a_definite_refusal_frees_the_claim_when_it_is_still_open() {
    for why in [Why::NotAccepted, Why::NotOwner, Why::Forbidden, Why::Malformed, Why::Unmappable] {
        let mut play = Play::claimed();
        play.send();
        let effects = play.refused(why, Some(open(1)));
        assert_eq!(freed(&effects), Some((why, true)));
        assert!(effects.contains(&Effect::Redraw), "the buttons return");
        assert!(play.is_open());
        assert!(play.machine.candidates.is_empty());
        assert!(claimed(&play.press("bob", Decision::Approve)));
    }
}

/// A2A case 30: −32004, and the reading shows that the product answered first.
#[test]
fn a_refusal_after_the_end_is_already_answered_and_not_the_clickers() {
    let mut play = Play::claimed();
    play.send();
    let end = End::Resolved { who: Some("pat".into()), what: Some(Outcome::Denied) };
    let effects = play.refused(Why::NotAccepted, Some(ended(end)));
    assert_eq!(freed(&effects), Some((Why::AlreadyEnded, true)));
    assert!(!delivered(&effects));
    assert_eq!(*play.how(), How::Elsewhere { who: Some("pat".into()), what: Some(Outcome::Denied) });
}

/// A2A case 25: the id was used with other content, so a first answer is stored there.
#[test]
fn a_used_key_is_already_answered() {
    let mut play = Play::claimed();
    play.send();
    let effects = play.refused(Why::AlreadyEnded, Some(ended(RESOLVED)));
    assert_eq!(freed(&effects), Some((Why::AlreadyEnded, true)));
    assert_eq!(play.outcome(), Outcome::Elsewhere);
}

/// "Not visible: close", by the two readings that absence takes.
#[test]
fn a_refusal_with_the_task_not_found_frees_and_closes_when_it_stays_so() {
    let mut play = Play::claimed();
    play.send();
    let effects = play.refused(Why::AlreadyEnded, Some(Reading::NotFound { doubted: false }));
    assert_eq!(freed(&effects), Some((Why::AlreadyEnded, true)));
    assert_eq!(again(&effects), Some(MISSING));
    assert!(play.is_open());
    play.wait(10);
    play.read(Reading::NotFound { doubted: false });
    assert_eq!(play.outcome(), Outcome::Gone);
}

#[test]
fn a_refusal_without_a_reading_waits_for_one() {
    for (reading, outcome) in [(open(1), None), (ended(RESOLVED), Some(Outcome::Elsewhere))] {
        let mut play = Play::claimed();
        play.send();
        let effects = play.refused(Why::Forbidden, None);
        assert!(again(&effects).is_some());
        let answer = play.claim().answer;
        assert_eq!(play.hand_out(Right::Allowed), [Effect::Later { answer }], "refused: not sent again");
        play.wait(1);
        let effects = play.read(reading);
        match outcome {
            None => {
                assert_eq!(freed(&effects), Some((Why::Forbidden, true)));
                assert!(play.is_open());
            }
            Some(outcome) => {
                assert_eq!(freed(&effects), Some((Why::AlreadyEnded, true)));
                assert_eq!(play.outcome(), outcome);
            }
        }
    }
}

/// A2A case 22: refused because the interaction is another now; the current one is read and drawn.
#[test]
fn a_refusal_that_shows_another_form_asks_for_a_reading_and_that_redraws() {
    let mut play = Play::claimed();
    play.send();
    let effects = play.refused(Why::NotAccepted, Some(open(2)));
    assert_eq!(freed(&effects), Some((Why::NotAccepted, true)));
    assert_eq!(again(&effects), Some(Duration::ZERO));
    assert_eq!(play.machine.digest, digest(1), "a form is stored with the reading that brought it");
    play.wait(1);
    assert!(play.read(open(2)).contains(&Effect::Redraw));
    assert_eq!(play.machine.digest, digest(2));
}

#[test]
fn a_right_lost_before_the_first_attempt_frees_the_claim() {
    let mut play = Play::claimed();
    assert_eq!(freed(&play.hand_out(Right::Refused)), Some((Why::RightLost, true)));
    assert!(play.is_open());
    assert!(play.machine.candidates.is_empty());
}

#[test]
fn a_right_lost_between_attempts_frees_the_claim_and_keeps_a_candidate() {
    let mut play = Play::maybe();
    play.read(open(1));
    assert_eq!(freed(&play.hand_out(Right::Refused)), Some((Why::RightLost, true)));
    assert!(play.is_open());
    assert_eq!(play.machine.candidates.len(), 1);
}

#[test]
fn a_right_that_could_not_be_checked_sends_nothing_and_frees_nothing() {
    let mut play = Play::claimed();
    let answer = play.claim().answer;
    assert_eq!(play.hand_out(Right::Unknown), [Effect::Later { answer }]);
    assert!(!play.claim().in_flight);
    play.wait(3600);
    assert_eq!(play.hand_out(Right::Unknown), [Effect::Later { answer }]);
    play.wait(1);
    assert_eq!(freed(&play.hand_out(Right::Unknown)), Some((Why::TooLate, true)));
}

#[test]
fn after_deliver_within_nothing_more_is_sent() {
    let mut play = Play::claimed();
    play.wait(3600);
    play.read(open(1));
    play.send();
    play.attempt(Attempted::NotSent);
    play.wait(1);
    assert_eq!(freed(&play.hand_out(Right::Allowed)), Some((Why::TooLate, true)));
    assert!(play.is_open());
}

#[test]
fn what_was_possibly_sent_is_freed_only_when_a_reading_shows_it_still_open() {
    for right in [Right::Refused, Right::Allowed] {
        let mut play = Play::maybe();
        play.wait(3601);
        play.read(Reading::NotFound { doubted: true });
        let answer = play.claim().answer;
        assert_eq!(play.hand_out(right), [Effect::Later { answer }]);
        play.wait(1);
        play.read(open(1));
        assert!(freed(&play.hand_out(right)).is_some());
    }
}

#[test]
fn nothing_is_sent_while_the_last_reading_did_not_find_it() {
    let mut play = Play::claimed();
    play.read(Reading::NotFound { doubted: true });
    let answer = play.claim().answer;
    assert_eq!(play.hand_out(Right::Allowed), [Effect::Later { answer }]);
    play.wait(1);
    play.read(open(1));
    play.send();
}

#[test]
fn a_form_that_changes_before_the_first_attempt_frees_the_claim() {
    let mut play = Play::claimed();
    play.wait(1);
    let effects = play.read(open(2));
    assert_eq!(freed(&effects), Some((Why::Changed, true)));
    assert!(play.is_open());
    assert!(play.machine.candidates.is_empty());
}

#[test]
fn a_form_that_changes_in_flight_lets_the_attempt_end_first_and_sends_no_more() {
    let mut play = Play::claimed();
    play.send();
    play.wait(1);
    assert_eq!(freed(&play.read(open(2))), None);
    assert!(play.claim().in_flight);
    play.attempt(Attempted::Unknown);
    assert_eq!(freed(&play.hand_out(Right::Allowed)), Some((Why::Changed, true)));
    assert_eq!(play.machine.candidates.len(), 1);

    let mut play = Play::claimed();
    play.send();
    play.wait(1);
    play.read(open(2));
    assert!(delivered(&play.attempt(Attempted::Accepted { confirmed: true })));
}

#[test]
fn a_worker_without_the_live_claim_changes_nothing() {
    let mut play = Play::claimed();
    play.send();
    let before = play.machine.clone();
    let answer = AnswerId(Uuid::from_u128(99));
    let at = Millis(play.now);
    for result in [
        Attempted::Accepted { confirmed: true },
        Attempted::Refused { why: Why::Forbidden, reading: Some(open(1)) },
        Attempted::Unknown,
    ] {
        assert!(play.step(Event::Attempt { answer, at, result }).is_empty());
    }
    assert!(play.step(Event::Lost { answer }).is_empty());
    assert_eq!(play.machine, before);
}
