//! Reopening: two cases only.

use super::*;

fn reopened(effects: &[Effect]) -> bool {
    effects.contains(&Effect::Reopened)
}

/// A2A cases 44 and 52: a stale reading after our answer does not reopen; persistent contradiction does.
#[test]
fn after_an_accepted_answer_three_readings_over_thirty_seconds_reopen() {
    let mut play = Play::ours();
    for wait in [1, 14, 14] {
        play.wait(wait);
        let effects = play.read(open(1));
        assert!(!reopened(&effects));
        assert!(again(&effects).is_some());
    }
    play.wait(2);
    let effects = play.read(open(1));
    assert!(reopened(&effects), "30 s after the first of them");
    assert!(effects.contains(&Effect::Redraw));
    assert!(play.is_open());
    assert!(claimed(&play.press("bob", DENY)));
    assert_eq!(play.claim().number, 2);
}

#[test]
fn two_readings_are_too_few_however_far_apart() {
    let mut play = Play::ours();
    for _ in 0..2 {
        play.wait(300);
        assert!(!reopened(&play.read(open(1))));
    }
    play.wait(1);
    assert!(reopened(&play.read(open(1))));
}

#[test]
fn one_reading_told_twice_counts_once() {
    let mut play = Play::ours();
    play.wait(1);
    play.read(open(1));
    play.wait(30);
    for _ in 0..5 {
        assert!(!reopened(&play.read(open(1))));
    }

    let mut play = Play::claimed();
    play.send();
    play.attempt(Attempted::Accepted { confirmed: false });
    play.wait(1);
    play.read(open(1));
    play.wait(30);
    for _ in 0..5 {
        assert!(!reopened(&play.read(open(1))));
    }
}

#[test]
fn a_reading_that_agrees_ends_the_contradiction() {
    let mut play = Play::ours();
    for _ in 0..4 {
        play.wait(20);
        assert!(!reopened(&play.read(open(1))));
        play.wait(1);
        assert!(play.read(ended(RESOLVED)).is_empty());
    }
    assert_eq!(play.outcome(), Outcome::Approved);
}

#[test]
fn a_reading_begun_before_the_answer_was_accepted_contradicts_nothing() {
    let mut play = Play::claimed();
    play.wait(60);
    play.send();
    play.attempt(Attempted::Accepted { confirmed: true });
    let accepted = play.now;
    play.wait(60);
    for began in [accepted - 40_000, accepted - 20_000, accepted - 1] {
        assert!(play.read_begun(open(1), began).is_empty());
    }
    play.read(open(1));
    play.wait(15);
    assert!(!reopened(&play.read(open(1))));
}

#[test]
fn an_accepted_answer_that_is_shown_open_for_thirty_seconds_is_freed_and_stays_a_candidate() {
    let mut play = Play::claimed();
    play.send();
    play.attempt(Attempted::Accepted { confirmed: false });
    for _ in 0..2 {
        play.wait(15);
        let effects = play.read(open(1));
        assert!(!reopened(&effects));
        assert!(again(&effects).is_some());
    }
    play.wait(15);
    let effects = play.read(open(1));
    assert!(reopened(&effects));
    assert_eq!(freed(&effects), Some((Why::Contradicted, true)));
    assert!(play.is_open());
    play.wait(1);
    assert!(probes(&play.read(ended(RESOLVED))));
    play.send();
    assert!(delivered(&play.attempt(Attempted::Accepted { confirmed: true })));
}

#[test]
fn gone_reopens_when_a_reading_shows_it_open() {
    let mut play = Play::new();
    play.read(Reading::NotFound { doubted: false });
    play.wait(10);
    play.read(Reading::NotFound { doubted: false });
    assert_eq!(play.outcome(), Outcome::Gone);
    assert!(play.read_begun(open(1), play.now - 1).is_empty(), "a reading begun before it was gone");
    play.wait(1);
    let effects = play.read(open(1));
    assert!(reopened(&effects));
    assert!(play.is_open());
    assert!(claimed(&play.press("dana", Decision::Approve)));
}

#[test]
fn gone_reopens_with_the_form_of_that_reading() {
    let mut play = Play::maybe();
    play.send();
    play.refused(Why::Unconfirmed, Some(ended(RESOLVED)));
    assert_eq!(play.outcome(), Outcome::Gone);
    play.wait(1);
    assert!(reopened(&play.read(open(7))));
    assert_eq!(play.machine.digest, digest(7));
}

/// A canceled one never, nor any other that a reading ended.
#[test]
fn nothing_else_reopens() {
    for end in [End::Canceled, End::Failed, End::Rejected, RESOLVED] {
        let mut play = Play::new();
        play.read(ended(end));
        let settled = play.machine.state.clone();
        for _ in 0..6 {
            play.wait(60);
            assert!(play.read(open(1)).is_empty());
            assert!(play.read(open(2)).is_empty());
        }
        assert_eq!(play.machine.state, settled);
    }
}

#[test]
fn an_end_stays_what_it_was() {
    let mut play = Play::new();
    play.read(ended(RESOLVED));
    play.wait(1);
    assert!(play.read(ended(End::Canceled)).is_empty());
    play.read(Reading::NotFound { doubted: false });
    play.wait(60);
    play.read(Reading::NotFound { doubted: false });
    assert_eq!(play.outcome(), Outcome::Elsewhere);
}

#[test]
fn votes_before_the_end_do_not_count_after_reopening() {
    let mut play = Play::with_approvals(2);
    play.press("ann", Decision::Approve);
    play.press("bob", Decision::Approve);
    play.send();
    play.attempt(Attempted::Accepted { confirmed: true });
    for _ in 0..3 {
        play.wait(20);
        play.read(open(1));
    }
    assert!(play.is_open());
    assert!(play.machine.votes.is_empty());
    assert!(counted(&play.press("ann", Decision::Approve)));
}

/// A2A case 48: the task pauses again at once with another interaction; this one is over.
#[test]
fn another_interaction_of_the_task_settles_this_one_as_ours_after_our_answer() {
    let mut play = Play::claimed();
    play.send();
    play.attempt(Attempted::Accepted { confirmed: false });
    play.wait(1);
    assert!(delivered(&play.read(ended(RESOLVED))));
    assert_eq!(play.outcome(), Outcome::Approved);
}
