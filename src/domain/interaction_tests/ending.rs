//! How it ended: readings, whose answer it was, candidates.

use super::*;

/// A2A case 49: four closing words, and no guess of approve or deny.
#[test]
fn an_end_that_was_read_settles_what_is_open() {
    for (end, outcome) in [
        (End::Canceled, Outcome::Canceled),
        (End::Failed, Outcome::Failed),
        (End::Rejected, Outcome::Failed),
        (RESOLVED, Outcome::Elsewhere),
    ] {
        let mut play = Play::new();
        assert!(play.read(ended(end)).contains(&Effect::Settled));
        assert_eq!(play.outcome(), outcome);
    }
    let mut play = Play::new();
    play.read(ended(End::Rejected));
    assert_eq!(*play.how(), How::Rejected);
}

/// A2A case 50.
#[test]
fn an_answer_in_the_history_is_shown_as_elsewhere_with_its_outcome() {
    let mut play = Play::new();
    let (who, what) = (Some("pat".to_owned()), Some(Outcome::Denied));
    play.read(ended(End::Resolved { who: who.clone(), what }));
    assert_eq!(*play.how(), How::Elsewhere { who, what });
}

#[test]
fn an_end_before_the_first_attempt_refuses_the_click() {
    let mut play = Play::claimed();
    let effects = play.read(ended(End::Canceled));
    assert_eq!(freed(&effects), Some((Why::AlreadyEnded, true)));
    assert_eq!(play.outcome(), Outcome::Canceled);
}

/// "In `answering` the attempt in flight ends first."
#[test]
fn an_end_during_an_attempt_waits_for_the_attempt() {
    let in_flight = || {
        let mut play = Play::claimed();
        play.send();
        play.wait(1);
        assert!(play.read(ended(RESOLVED)).is_empty());
        assert!(play.claim().in_flight);
        play
    };
    let mut play = in_flight();
    assert!(delivered(&play.attempt(Attempted::Accepted { confirmed: false })));
    assert_eq!(play.outcome(), Outcome::Approved);

    let mut play = in_flight();
    assert_eq!(freed(&play.refused(Why::NotAccepted, None)), Some((Why::AlreadyEnded, true)));
    assert_eq!(play.outcome(), Outcome::Elsewhere);

    let mut play = in_flight();
    assert_eq!(freed(&play.attempt(Attempted::NotSent)), Some((Why::AlreadyEnded, true)));
    assert_eq!(play.outcome(), Outcome::Elsewhere);

    let mut play = in_flight();
    assert!(probes(&play.attempt(Attempted::Unknown)));
    assert_eq!(play.claim().sent, Sent::Maybe);

    let mut play = in_flight();
    assert!(probes(&play.lost()));
    assert_eq!(play.claim().sent, Sent::Maybe);
}

/// "If it may have been received, whose answer ended the interaction is found before settling."
#[test]
fn an_end_after_an_unknown_result_asks_whose_it_was() {
    let probed = || {
        let mut play = Play::maybe();
        play.wait(1);
        assert!(probes(&play.read(ended(RESOLVED))));
        assert!(!probes(&play.read(ended(RESOLVED))), "asked once");
        play
    };
    let mut play = probed();
    play.send();
    assert!(delivered(&play.attempt(Attempted::Accepted { confirmed: true })));
    assert_eq!(play.outcome(), Outcome::Approved);

    let mut play = probed();
    play.send();
    let effects = play.refused(Why::NotAccepted, Some(ended(RESOLVED)));
    assert_eq!(freed(&effects), Some((Why::AlreadyEnded, true)));
    assert_eq!(play.outcome(), Outcome::Elsewhere);

    // The person's right does not matter any more: nothing new is answered by asking.
    let mut play = probed();
    let answer = play.claim().answer;
    assert_eq!(play.hand_out(Right::Refused), [Effect::Send { answer }]);
}

#[test]
fn a_reading_that_shows_it_open_after_all_goes_on_as_before() {
    let mut play = Play::maybe();
    play.wait(1);
    play.read(ended(RESOLVED));
    play.wait(1);
    play.read(open(1));
    assert_eq!(play.claim().ended, None);
    assert_eq!(freed(&play.hand_out(Right::Refused)), Some((Why::RightLost, true)));
}

#[test]
fn whose_answer_it_was_is_not_asked_for_ever() {
    let mut play = Play::maybe();
    play.wait(1);
    play.read(ended(RESOLVED));
    play.wait(3600 + 601);
    let effects = play.hand_out(Right::Allowed);
    assert_eq!(freed(&effects), Some((Why::Unconfirmed, true)));
    assert_eq!(play.outcome(), Outcome::Gone, "nobody can say that it was answered elsewhere");
}

/// A2A case 27: no resend once it has ended, and our id is not in the history.
#[test]
fn unconfirmed_with_no_word_on_how_it_ended_is_gone() {
    let mut play = Play::maybe();
    play.wait(1);
    play.read(ended(RESOLVED));
    play.send();
    let effects = play.refused(Why::Unconfirmed, Some(ended(RESOLVED)));
    assert_eq!(freed(&effects), Some((Why::Unconfirmed, true)));
    assert_eq!(play.outcome(), Outcome::Gone);
}

#[test]
fn unconfirmed_without_a_reading_is_gone_by_the_next() {
    let mut play = Play::maybe();
    play.send();
    play.refused(Why::Unconfirmed, None);
    play.wait(1);
    assert_eq!(freed(&play.read(ended(RESOLVED))), Some((Why::Unconfirmed, true)));
    assert_eq!(play.outcome(), Outcome::Gone);
}

#[test]
fn unconfirmed_where_a_reading_does_say_how_it_ended_is_believed() {
    for (end, why, outcome) in [
        (End::Canceled, Why::Unconfirmed, Outcome::Canceled),
        (End::Failed, Why::Unconfirmed, Outcome::Failed),
        (End::Resolved { who: None, what: Some(Outcome::Denied) }, Why::AlreadyEnded, Outcome::Elsewhere),
    ] {
        let mut play = Play::maybe();
        play.send();
        let effects = play.refused(Why::Unconfirmed, Some(ended(end)));
        assert_eq!(freed(&effects), Some((why, true)));
        assert_eq!(play.outcome(), outcome);
    }
}

/// "A freed claim that may have been received stays a candidate … success means ours."
#[test]
fn a_candidate_is_sent_once_more_at_the_end_and_success_means_ours() {
    let mut play = Play::freed_candidate();
    assert!(play.is_open());
    let candidate = play.machine.candidates[0].clone();
    play.wait(60);
    let effects = play.read(ended(RESOLVED));
    assert_eq!(effects, [Effect::Probe { answer: candidate.answer }]);
    assert!(play.claim().candidate);
    play.send();
    assert!(delivered(&play.attempt(Attempted::Accepted { confirmed: true })));
    assert!(matches!(play.how(), How::Ours { answer, .. } if *answer == candidate.answer));
}

#[test]
fn a_candidate_that_is_refused_settles_by_the_end_and_its_clicker_hears_nothing_new() {
    for (end, outcome) in [(RESOLVED, Outcome::Elsewhere), (End::Canceled, Outcome::Canceled)] {
        let mut play = Play::freed_candidate();
        play.wait(60);
        play.read(ended(end.clone()));
        play.send();
        let effects = play.refused(Why::NotAccepted, Some(ended(end)));
        assert_eq!(freed(&effects), Some((Why::AlreadyEnded, false)));
        assert_eq!(play.outcome(), outcome);
    }
}

#[test]
fn a_lagging_reading_beside_a_candidates_refusal_does_not_undo_the_end() {
    let mut play = Play::freed_candidate();
    play.wait(60);
    play.read(ended(End::Canceled));
    play.send();
    play.refused(Why::NotAccepted, Some(open(1)));
    assert_eq!(play.outcome(), Outcome::Canceled);
}

#[test]
fn a_candidate_whose_probe_is_unknown_is_asked_again() {
    let mut play = Play::freed_candidate();
    play.wait(60);
    play.read(ended(RESOLVED));
    play.send();
    assert!(probes(&play.attempt(Attempted::Unknown)));
    play.send();
    assert!(probes(&play.attempt(Attempted::NotSent)));
    play.send();
    assert!(delivered(&play.attempt(Attempted::Accepted { confirmed: true })));
}

#[test]
fn a_candidate_is_a_candidate_again_when_a_reading_shows_it_open() {
    let mut play = Play::freed_candidate();
    play.wait(60);
    play.read(ended(RESOLVED));
    play.wait(1);
    assert_eq!(freed(&play.read(open(1))), Some((Why::Unconfirmed, false)));
    assert!(play.is_open());
    assert_eq!(play.machine.candidates.len(), 1);
    play.wait(1);
    assert!(probes(&play.read(ended(RESOLVED))));
}

fn two_candidates() -> (Play, AnswerId, AnswerId) {
    let mut play = Play::freed_candidate();
    play.press("bob", DENY);
    play.send();
    play.attempt(Attempted::Unknown);
    play.wait(3601);
    play.read(open(1));
    assert_eq!(freed(&play.hand_out(Right::Allowed)), Some((Why::TooLate, true)));
    let ids: Vec<AnswerId> = play.machine.candidates.iter().map(|claim| claim.answer).collect();
    (play, ids[0], ids[1])
}

#[test]
fn of_two_candidates_each_is_asked_the_oldest_first() {
    let (mut play, first, second) = two_candidates();
    assert_eq!(play.read(ended(RESOLVED)), [Effect::Probe { answer: first }]);
    play.send();
    let effects = play.refused(Why::NotAccepted, Some(ended(RESOLVED)));
    assert!(effects.contains(&Effect::Probe { answer: second }));
    play.send();
    assert!(delivered(&play.attempt(Attempted::Accepted { confirmed: true })));
    assert_eq!(play.outcome(), Outcome::Denied);
    assert!(matches!(play.how(), How::Ours { answer, .. } if *answer == second));
}

#[test]
fn when_no_candidate_was_received_it_settles_by_the_end() {
    let (mut play, ..) = two_candidates();
    play.read(ended(RESOLVED));
    for _ in 0..2 {
        play.send();
        play.refused(Why::NotAccepted, Some(ended(RESOLVED)));
    }
    assert_eq!(play.outcome(), Outcome::Elsewhere);
    assert!(play.machine.candidates.is_empty());
}

#[test]
fn a_live_claim_that_did_not_end_it_leaves_the_question_to_the_candidate() {
    let mut play = Play::freed_candidate();
    let candidate = play.machine.candidates[0].answer;
    play.press("bob", DENY);
    play.send();
    let effects = play.refused(Why::NotAccepted, Some(ended(RESOLVED)));
    assert_eq!(freed(&effects), Some((Why::AlreadyEnded, true)));
    assert!(effects.contains(&Effect::Probe { answer: candidate }));
    play.send();
    play.attempt(Attempted::Accepted { confirmed: true });
    assert_eq!(play.outcome(), Outcome::Approved);
}

/// A2A case 51, and the row "−32001 twice, ≥ 10 s apart".
#[test]
fn not_found_closes_only_after_ten_seconds_of_it() {
    let missing = Reading::NotFound { doubted: false };
    let mut play = Play::new();
    assert_eq!(again(&play.read(missing.clone())), Some(MISSING));
    play.now += 9_999;
    assert_eq!(again(&play.read(missing.clone())), Some(MISSING));
    assert!(play.is_open());
    play.now += 1;
    play.read(missing.clone());
    assert_eq!(play.outcome(), Outcome::Gone);

    let mut play = Play::new();
    play.read(missing.clone());
    play.wait(6);
    play.read(open(1));
    play.wait(6);
    play.read(missing);
    assert!(play.is_open(), "seen in between: counted anew");
}

#[test]
fn a_not_found_older_than_the_newest_reading_proves_nothing() {
    let missing = Reading::NotFound { doubted: false };
    let mut play = Play::new();
    play.wait(5);
    play.read(open(1));
    assert!(play.read_begun(missing.clone(), START + 1).is_empty());
    play.wait(8);
    play.read(missing);
    assert!(play.is_open());
}

/// A2A case 68, the machine's part: doubted absence closes nothing, and is believed once it is not doubted.
#[test]
fn doubted_absence_changes_nothing() {
    let mut play = Play::new();
    for _ in 0..60 {
        play.read(Reading::NotFound { doubted: true });
        play.wait(60);
    }
    assert!(play.is_open());
    play.read(Reading::NotFound { doubted: false });
    assert_eq!(play.outcome(), Outcome::Gone);
}

#[test]
fn absence_asks_whose_answer_it_was_too() {
    let mut play = Play::maybe();
    play.wait(1);
    play.read(Reading::NotFound { doubted: false });
    play.wait(10);
    assert!(probes(&play.read(Reading::NotFound { doubted: false })));
    play.send();
    assert!(delivered(&play.attempt(Attempted::Accepted { confirmed: true })));
}

/// A reading of the task before it paused for this (or of the interaction before) says "went on".
#[test]
fn went_on_read_before_it_opened_does_not_end_it() {
    let mut play = Play::new();
    play.wait(3);
    assert!(play.read_begun(ended(RESOLVED), START - 1).is_empty());
    assert!(play.is_open());
    assert_eq!(play.machine.read_at, Millis(START));
}

/// "A state that was read is always believed": these do not revert, so a slow page may tell of them.
#[test]
fn an_end_that_cannot_revert_is_believed_from_a_slow_page() {
    for end in [End::Canceled, End::Failed, End::Rejected] {
        let mut play = Play::new();
        play.wait(3);
        play.read(open(1));
        assert!(play.read_begun(ended(end), START + 1).contains(&Effect::Settled));
    }
}

#[test]
fn a_slow_page_does_not_bring_an_older_form_back() {
    let mut play = Play::new();
    play.wait(2);
    play.read(open(2));
    assert!(play.read_begun(open(1), START + 1).is_empty());
    assert_eq!(play.machine.digest, digest(2));
}
