//! Presses: claims, votes, withdrawals, refusals.

use super::*;

#[test]
fn an_approval_makes_the_claim_with_what_was_shown() {
    let mut play = Play::new();
    let effects = play.press("dana", Decision::Approve);
    let claim = play.claim();
    assert_eq!(effects, [Effect::Claimed { answer: claim.answer }, Effect::Redraw]);
    assert_eq!(claim.number, 1);
    assert_eq!(claim.digest, digest(1));
    assert_eq!(claim.subject, person("dana"));
    assert_eq!(claim.sent, Sent::Never);
    assert_eq!(claim.deliver_until, Millis(START).plus(WITHIN));
}

#[test]
fn the_next_claim_has_the_next_number() {
    let mut play = Play::claimed();
    play.send();
    play.refused(Why::Forbidden, Some(open(1)));
    play.press("bob", DENY);
    assert_eq!(play.claim().number, 2);
}

/// A2A case 28: of two opposite decisions one makes the claim, the other person is told so.
#[test]
fn the_second_of_two_opposite_presses_is_told_that_it_is_being_answered() {
    let mut play = Play::claimed();
    let effects = play.press("bob", DENY);
    assert_eq!(refusal(&effects), Some(Why::BeingAnswered));
    assert_eq!(play.claim().subject, person("dana"));
    assert_eq!(play.claim().decision, Decision::Approve);
}

#[test]
fn the_same_persons_second_press_is_recorded_already() {
    let mut play = Play::claimed();
    assert_eq!(refusal(&play.press("dana", DENY)), Some(Why::AlreadyRecorded));
    assert_eq!(play.claim().decision, Decision::Approve);
}

/// A2A case 30, where the reading was quicker than the press.
#[test]
fn a_press_after_the_end_is_refused_and_redraws() {
    let mut play = Play::new();
    play.read(ended(RESOLVED));
    let effects = play.press("dana", Decision::Approve);
    assert_eq!(refusal(&effects), Some(Why::AlreadyEnded));
    assert!(effects.contains(&Effect::Redraw));
    assert_eq!(play.outcome(), Outcome::Elsewhere);
}

/// A2A case 22, the card's side: what was shown is what is answered.
#[test]
fn a_press_on_a_card_whose_interaction_has_changed_is_refused_and_redraws() {
    let mut play = Play::new();
    let old = play.the_press("dana", Action::Decide(Decision::Approve));
    play.wait(1);
    assert!(play.read(open(2)).contains(&Effect::Redraw));
    let effects = play.step(Event::Press(old));
    assert_eq!(refusal(&effects), Some(Why::Changed));
    assert!(effects.contains(&Effect::Redraw));
    assert!(play.is_open());
    assert!(claimed(&play.press("dana", Decision::Approve)));
}

#[test]
fn approvals_short_of_the_number_are_votes_and_the_last_one_claims_as_its_subject() {
    let mut play = Play::with_approvals(3);
    assert!(counted(&play.press("ann", Decision::Approve)));
    assert!(counted(&play.press("bob", Decision::Approve)));
    assert!(play.is_open());
    assert!(claimed(&play.press("eve", Decision::Approve)));
    assert_eq!(play.claim().subject, person("eve"));
    assert_eq!(play.voters(), ["ann", "bob", "eve"]);
}

#[test]
fn one_person_cannot_vote_twice() {
    let mut play = Play::with_approvals(2);
    play.press("ann", Decision::Approve);
    assert_eq!(refusal(&play.press("ann", Decision::Approve)), Some(Why::AlreadyRecorded));
    assert_eq!(play.voters(), ["ann"]);
    assert!(play.is_open());
}

#[test]
fn one_denial_denies_whatever_the_votes() {
    let mut play = Play::with_approvals(3);
    play.press("ann", Decision::Approve);
    play.press("bob", Decision::Approve);
    assert!(claimed(&play.press("eve", DENY)));
    assert_eq!(play.claim().decision, DENY);
}

#[test]
fn who_has_voted_may_still_deny() {
    let mut play = Play::with_approvals(2);
    play.press("ann", Decision::Approve);
    assert!(claimed(&play.press("ann", DENY)));
}

#[test]
fn a_vote_may_be_withdrawn_before_the_last_and_only_by_its_own() {
    let mut play = Play::with_approvals(2);
    let vote = play.the_press("ann", Action::Decide(Decision::Approve));
    let of = vote.click;
    play.step(Event::Press(vote));
    assert_eq!(refusal(&play.withdraw("bob")), Some(Why::NoVote));
    let effects = play.withdraw("ann");
    assert!(has(&effects, |e| matches!(e, Effect::Withdrawn { .. })));
    assert!(effects.iter().any(|e| matches!(e, Effect::Withdrawn { vote, .. } if *vote == of)));
    assert!(play.machine.votes.is_empty());
    assert!(counted(&play.press("bob", Decision::Approve)));
}

#[test]
fn the_last_vote_makes_withdrawing_too_late() {
    let mut play = Play::with_approvals(2);
    play.press("ann", Decision::Approve);
    play.press("bob", Decision::Approve);
    assert_eq!(refusal(&play.withdraw("ann")), Some(Why::BeingAnswered));
}

#[test]
fn a_changed_digest_voids_the_votes() {
    let mut play = Play::with_approvals(2);
    play.press("ann", Decision::Approve);
    play.wait(1);
    let effects = play.read(open(2));
    assert_eq!(voided(&effects), [("ann", Why::Changed)]);
    assert!(counted(&play.press("bob", Decision::Approve)));
    assert_eq!(play.voters(), ["bob"]);
}

#[test]
fn every_earlier_voter_is_checked_again_at_the_last_vote_and_a_lost_right_does_not_count() {
    let mut play = Play::with_approvals(2);
    play.press("ann", Decision::Approve);
    let mut last = play.the_press("bob", Action::Decide(Decision::Approve));
    last.voters = vec![(person("ann"), Right::Refused)];
    let effects = play.step(Event::Press(last));
    assert_eq!(voided(&effects), [("ann", Why::RightLost)]);
    assert!(counted(&effects));
    assert!(play.is_open());
    assert_eq!(play.voters(), ["bob"]);
    assert!(claimed(&play.press("eve", Decision::Approve)));
}

#[test]
fn with_a_voter_who_could_not_be_checked_nothing_is_counted() {
    for voters in [vec![(person("ann"), Right::Unknown)], vec![]] {
        let mut play = Play::with_approvals(2);
        play.press("ann", Decision::Approve);
        let before = play.machine.clone();
        let mut last = play.the_press("bob", Action::Decide(Decision::Approve));
        last.voters = voters;
        assert_eq!(refusal(&play.step(Event::Press(last))), Some(Why::Unverified));
        assert_eq!(play.machine, before);
    }
}

#[test]
fn a_vote_short_of_the_number_needs_no_check_of_the_others() {
    let mut play = Play::with_approvals(3);
    play.press("ann", Decision::Approve);
    let mut second = play.the_press("bob", Action::Decide(Decision::Approve));
    second.voters = vec![];
    assert!(counted(&play.step(Event::Press(second))));
}

#[test]
fn a_refusal_of_the_subject_whose_vote_completed_the_number_voids_that_vote_only() {
    let mut play = Play::with_approvals(2);
    play.press("ann", Decision::Approve);
    play.press("bob", Decision::Approve);
    play.send();
    let effects = play.refused(Why::NotOwner, Some(open(1)));
    assert_eq!(freed(&effects), Some((Why::NotOwner, true)));
    assert_eq!(voided(&effects), [("bob", Why::NotOwner)]);
    assert_eq!(play.voters(), ["ann"]);
    assert!(claimed(&play.press("eve", Decision::Approve)));
    assert_eq!(play.claim().subject, person("eve"));
}

#[test]
fn a_refused_denial_leaves_the_votes_of_others() {
    let mut play = Play::with_approvals(2);
    play.press("ann", Decision::Approve);
    play.press("bob", DENY);
    play.send();
    play.refused(Why::Forbidden, Some(open(1)));
    assert_eq!(play.voters(), ["ann"]);
}

#[test]
fn an_end_voids_open_votes() {
    let mut play = Play::with_approvals(2);
    play.press("ann", Decision::Approve);
    let effects = play.read(ended(End::Canceled));
    assert_eq!(voided(&effects), [("ann", Why::AlreadyEnded)]);
    assert_eq!(play.outcome(), Outcome::Canceled);
}

#[test]
fn an_end_that_is_not_ours_voids_the_votes_behind_the_claim() {
    let mut play = Play::with_approvals(2);
    play.press("ann", Decision::Approve);
    play.press("bob", Decision::Approve);
    let effects = play.read(ended(RESOLVED));
    assert_eq!(voided(&effects), [("ann", Why::AlreadyEnded), ("bob", Why::AlreadyEnded)]);
    assert!(play.machine.votes.is_empty());
}

#[test]
fn a_repeated_press_changes_nothing() {
    let mut play = Play::with_approvals(2);
    for action in [Action::Decide(Decision::Approve), Action::Withdraw, Action::Decide(DENY)] {
        let press = play.the_press("ann", action);
        play.step(Event::Press(press.clone()));
        let before = play.machine.clone();
        let effects = play.step(Event::Press(press));
        assert_eq!(play.machine, before);
        assert!(refusal(&effects).is_some());
    }
}
