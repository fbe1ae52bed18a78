//! How a card reads in every state, and what stands on it in the odd ones.

use super::*;
use crate::render::slack::TestCard;

/// What changes with a card's state: notification, header, our own lines, the controls' labels.
fn gist(card: &Card) -> String {
    let drawn = drawn(card);
    let mut lines = vec![drawn.text.clone()];
    for block in drawn.body.as_array().unwrap() {
        match (block["type"].as_str().unwrap(), block["text"]["type"].as_str()) {
            ("header", _) | ("section", Some("mrkdwn")) => {
                lines.push(block["text"]["text"].as_str().unwrap().to_owned());
            }
            ("actions", _) => {
                let labels = block["elements"].as_array().unwrap().iter();
                let labels: Vec<_> =
                    labels.map(|one| format!("[{}]", one["text"]["text"].as_str().unwrap())).collect();
                lines.push(labels.join(" "));
            }
            _ => {}
        }
    }
    lines.join("\n")
}

fn foot(card: &Card) -> String {
    let drawn = drawn(card);
    drawn.body.as_array().unwrap().last().unwrap()["elements"][0]["text"].as_str().unwrap().to_owned()
}

/// With the long runs of one letter as their length.
fn shortened(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let mut run = 1;
        while chars.next_if_eq(&c).is_some() {
            run += 1;
        }
        if run > 9 {
            out.push(c);
            out.extend(["×", &run.to_string()]);
        } else {
            out.extend(std::iter::repeat_n(c, run));
        }
    }
    out
}

#[test]
fn what_is_kept_or_on_its_way() {
    let decisions = ["approved", "denied", "answered", "connected", "declined"];
    let mut all: Vec<String> = decisions
        .iter()
        .map(|decision| gist(&approval(Status::Paused { by: dana(), decision: (*decision).into() })))
        .collect();
    all.extend(["answered", "connected", "declined"].map(|decision| {
        gist(&approval(Status::Delivering { by: kim(), decision: decision.into(), accepted: false }))
    }));
    insta::assert_snapshot!(all.join("\n\n"), @r"
    <@U0DANA> chose Approve, kept: paused by operators (prod): Release agent: pager / close_incident
    An answer is kept: Release agent
    <@U0DANA> chose Approve. Paused by operators; it will be sent when they resume.

    <@U0DANA> chose Deny, kept: paused by operators (prod): Release agent: pager / close_incident
    An answer is kept: Release agent
    <@U0DANA> chose Deny. Paused by operators; it will be sent when they resume.

    <@U0DANA> chose an answer, kept: paused by operators (prod): Release agent: pager / close_incident
    An answer is kept: Release agent
    <@U0DANA> chose an answer. Paused by operators; it will be sent when they resume.

    <@U0DANA> chose Connected, kept: paused by operators (prod): Release agent: pager / close_incident
    An answer is kept: Release agent
    <@U0DANA> chose Connected. Paused by operators; it will be sent when they resume.

    <@U0DANA> chose Decline, kept: paused by operators (prod): Release agent: pager / close_incident
    An answer is kept: Release agent
    <@U0DANA> chose Decline. Paused by operators; it will be sent when they resume.

    kim[@]example[.]com chose an answer, delivering… (prod): Release agent: pager / close_incident
    Delivering an answer: Release agent
    `kim[@]example[.]com` chose an answer, delivering…

    kim[@]example[.]com chose Connected, delivering… (prod): Release agent: pager / close_incident
    Delivering an answer: Release agent
    `kim[@]example[.]com` chose Connected, delivering…

    kim[@]example[.]com chose Decline, delivering… (prod): Release agent: pager / close_incident
    Delivering an answer: Release agent
    `kim[@]example[.]com` chose Decline, delivering…
    ");
}

/// Those that are shown elsewhere are not repeated here.
#[test]
fn the_ends_with_a_person() {
    let by = |outcome, voters: Vec<PersonRef>| {
        let mut status = ended(outcome);
        if let Status::Ended { by, voters: who, .. } = &mut status {
            (*by, *who) = (Some(dana()), voters);
        }
        gist(&approval(status))
    };
    let sam = || someone("sam@example.com", Some("U0SAM"));
    let all = [
        by(Outcome::Approved, vec![kim()]),
        by(Outcome::Approved, vec![kim(), sam()]),
        by(Outcome::Approved, (0..21).map(|n| someone(&format!("p{n}"), None)).collect()),
        by(Outcome::Answered, vec![]),
        by(Outcome::Connected, vec![]),
        by(Outcome::Declined, vec![]),
        by(Outcome::Canceled, vec![]),
        by(Outcome::Elsewhere, vec![]),
        gist(&approval(ended(Outcome::Approved))),
        gist(&approval(ended(Outcome::Denied))),
    ];
    insta::assert_snapshot!(all.join("\n\n"), @r"
    Approved by <@U0DANA> (prod): Release agent: pager / close_incident
    Approved: Release agent
    *Approved* by `kim[@]example[.]com` and <@U0DANA> · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>

    Approved by <@U0DANA> (prod): Release agent: pager / close_incident
    Approved: Release agent
    *Approved* by `kim[@]example[.]com`, <@U0SAM> and <@U0DANA> · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>

    Approved by <@U0DANA> (prod): Release agent: pager / close_incident
    Approved: Release agent
    *Approved* by `p0`, `p1`, `p2`, `p3`, `p4`, `p5`, `p6`, `p7`, `p8`, `p9`, `p10`, `p11`, `p12`, `p13`, `p14`, `p15`, `p16`, `p17`, `p18`, `p19`, … and <@U0DANA> · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>

    Answered by <@U0DANA> (prod): Release agent: pager / close_incident
    Answered: Release agent
    *Answered* by <@U0DANA> · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>

    Connected by <@U0DANA> (prod): Release agent: pager / close_incident
    Connected: Release agent
    *Connected* by <@U0DANA> · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>

    Declined by <@U0DANA> (prod): Release agent: pager / close_incident
    Declined: Release agent
    *Declined* by <@U0DANA> · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>

    Canceled by <@U0DANA> (prod): Release agent: pager / close_incident
    Canceled: Release agent
    *Canceled* by <@U0DANA> · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>

    Answered elsewhere by <@U0DANA> (prod): Release agent: pager / close_incident
    Answered elsewhere: Release agent
    *Answered elsewhere* by <@U0DANA> · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>

    Approved (prod): Release agent: pager / close_incident
    Approved: Release agent
    *Approved* · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>

    Denied (prod): Release agent: pager / close_incident
    Denied: Release agent
    *Denied* · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>
    ");
}

/// Everything an open card can have at once: pings, votes, something cut.
#[test]
fn a_full_card() {
    let votes: Vec<_> = (0..23).map(|n| someone(&format!("p{n}@example.com"), None)).collect();
    let mut card = approval(open(votes, 30));
    card.controls = Card::controls_for(&Kind::Approval, &card.status, Asks::default());
    card.form.prompt = "x".repeat(20_000);
    card.form.facts.push(fact("command", "first line\nTool: forged\nlast line"));
    card.mention = Mention {
        users: (0..45).map(|n| format!("U0{n:02}")).collect(),
        groups: vec!["S0RELEASE".into(), "no id".into()],
    };
    insta::assert_snapshot!(shortened(&whole(&card)), @r#"
    <!subteam^S0RELEASE> <@U000> <@U001> <@U002> <@U003> <@U004> <@U005> <@U006> <@U007> <@U008> <@U009> <@U010> <@U011> <@U012> <@U013> <@U014> <@U015> <@U016> <@U017> <@U018> <@U019> <@U020> <@U021> <@U022> <@U023> <@U024> <@U025> <@U026> <@U027> <@U028> <@U029> <@U030> <@U031> <@U032> <@U033> <@U034> <@U035> <@U036> <@U037> <@U038> and 6 more Approval needed (23 of 30) (prod): Release agent: pager / close_incident
    ---
    header: Approval needed: Release agent
    section: <!subteam^S0RELEASE> <@U000> <@U001> <@U002> <@U003> <@U004> <@U005> <@U006> <@U007> <@U008> <@U009> <@U010> <@U011> <@U012> <@U013> <@U014> <@U015> <@U016> <@U017> <@U018> <@U019> <@U020> <@U021> <@U022> <@U023> <@U024> <@U025> <@U026> <@U027> <@U028> <@U029> <@U030> <@U031> <@U032> <@U033> <@U034> <@U035> <@U036> <@U037> <@U038> and 6 more
    section: Agent: Release agent
    Server: pager
    Tool: close_incident
    Command: 
    │ first line
    │ Tool: forged
    │ last line
    rich_text: Agent says | x×2890
    rich_text: x×2890
    rich_text: x×2014 [… 9609 characters not shown …] x×839
    rich_text: x×1758
    section: The runtime does not show the arguments of this call.
    This card does not show everything. Approve works for you once you have opened all of it with Show all.
    section: *23 of 30*: `p0[@]example[.]com`, `p1[@]example[.]com`, `p2[@]example[.]com`, `p3[@]example[.]com`, `p4[@]example[.]com`, `p5[@]example[.]com`, `p6[@]example[.]com`, `p7[@]example[.]com`, `p8[@]example[.]com`, `p9[@]example[.]com`, `p10[@]example[.]com`, `p11[@]example[.]com`, `p12[@]example[.]com`, `p13[@]example[.]com`, `p14[@]example[.]com`, `p15[@]example[.]com`, `p16[@]example[.]com`, `p17[@]example[.]com`, `p18[@]example[.]com`, `p19[@]example[.]com`, …
    actions: Approve | (cs.approve k_approve "Approve pager / close_incident") | Deny | (cs.deny k_deny "Deny pager / close_incident") | Deny with reason… | (cs.deny_reason k_reason "Deny with reason… pager / close_incident") | Show all | (cs.show_all k_all "Show all of pager / close_incident") | Withdraw | (cs.withdraw k_withdraw "Withdraw your vote on pager / close_incident")
    context: prod · for <@U0DANA> · may answer: release, owner · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef` · <https://app.example/tasks/t1?a=1&b=2|Open in the runtime>
    "#);
    insta::assert_snapshot!(shortened(&read(&drawn(&card).compact)), @r#"
    section: Approval needed: Release agent
    Agent: Release agent
    Server: pager
    Tool: close_incident
    Command: 
    │ first line
    │ Tool: forged
    │ last line
    The runtime does not show the arguments of this call.
    This card does not show everything. Approve works for you once you have opened all of it with Show all.

    section: Agent says
    x×2889
    section: x×2900
    section: x×2005 [… 9609 characters not shown …] x×858
    section: x×1739
    section: <!subteam^S0RELEASE> <@U000> <@U001> <@U002> <@U003> <@U004> <@U005> <@U006> <@U007> <@U008> <@U009> <@U010> <@U011> <@U012> <@U013> <@U014> <@U015> <@U016> <@U017> <@U018> <@U019> <@U020> <@U021> <@U022> <@U023> <@U024> <@U025> <@U026> <@U027> <@U028> <@U029> <@U030> <@U031> <@U032> <@U033> <@U034> <@U035> <@U036> <@U037> <@U038> and 6 more
    section: *23 of 30*: `p0[@]example[.]com`, `p1[@]example[.]com`, `p2[@]example[.]com`, `p3[@]example[.]com`, `p4[@]example[.]com`, `p5[@]example[.]com`, `p6[@]example[.]com`, `p7[@]example[.]com`, `p8[@]example[.]com`, `p9[@]example[.]com`, `p10[@]example[.]com`, `p11[@]example[.]com`, `p12[@]example[.]com`, `p13[@]example[.]com`, `p14[@]example[.]com`, `p15[@]example[.]com`, `p16[@]example[.]com`, `p17[@]example[.]com`, `p18[@]example[.]com`, `p19[@]example[.]com`, …
    actions: Approve | (cs.approve k_approve "Approve pager / close_incident") | Deny | (cs.deny k_deny "Deny pager / close_incident") | Deny with reason… | (cs.deny_reason k_reason "Deny with reason… pager / close_incident") | Show all | (cs.show_all k_all "Show all of pager / close_incident") | Withdraw | (cs.withdraw k_withdraw "Withdraw your vote on pager / close_incident")
    "#);
    // Nothing to open any more at the end, and it still says that not all of it is here.
    card.status = ended(Outcome::Denied);
    card.controls = vec![];
    card.mention = Mention::default();
    insta::assert_snapshot!(shortened(&whole(&card)), @r"
    Denied (prod): Release agent: pager / close_incident
    ---
    header: Denied: Release agent
    section: Agent: Release agent
    Server: pager
    Tool: close_incident
    Command: 
    │ first line
    │ Tool: forged
    │ last line
    rich_text: Agent says | x×2890
    rich_text: x×2890
    rich_text: x×2786 [… 8579 characters not shown …] x×67
    rich_text: x×2788
    section: The runtime does not show the arguments of this call.
    This card does not show everything.
    section: *Denied* · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>
    context: prod · for <@U0DANA> · may answer: release, owner · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef` · <https://app.example/tasks/t1?a=1&b=2|Open in the runtime>
    ");
}

#[test]
fn a_card_about_nothing() {
    let mut card = approval(open(vec![], 1));
    card.form = Form {
        title: String::new(),
        prompt: String::new(),
        facts: vec![],
        arguments_withheld: false,
        ..card.form
    };
    card.agent = String::new();
    (card.owner, card.approvers, card.details_url) = (None, vec![], None);
    insta::assert_snapshot!(whole(&card), @r#"
    Approval needed (prod)
    ---
    header: Approval needed
    rich_text: Agent says: (no text given)
    actions: Approve | (cs.approve k_approve "Approve") | Deny | (cs.deny k_deny "Deny") | Deny with reason… | (cs.deny_reason k_reason "Deny with reason…")
    context: prod · nobody may answer here · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef`
    "#);
}

#[test]
fn feet() {
    let card = approval(open(vec![], 1));
    let all = [
        Card { owner: Some(kim()), ..card.clone() },
        Card { approvers: (0..25).map(|n| format!("group-{n}")).collect(), owner: None, ..card.clone() },
        Card { runtime: "<!here>".into(), short_id: "a`b".into(), details_url: None, ..card },
    ];
    insta::assert_snapshot!(all.each_ref().map(foot).join("\n"), @r"
    prod · for `kim[@]example[.]com` · may answer: release, owner · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef` · <https://app.example/tasks/t1?a=1&b=2|Open in the runtime>
    prod · may answer: group-0, group-1, group-2, group-3, group-4, group-5, group-6, group-7, group-8, group-9, group-10, group-11, group-12, group-13, group-14, group-15, group-16, group-17, group-18, group-19 and 5 more · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef` · <https://app.example/tasks/t1?a=1&b=2|Open in the runtime>
    &lt;!here&gt; · for <@U0DANA> · may answer: release, owner · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `aˋb`
    ");
}

#[test]
fn several_questions() {
    let mut card = question();
    card.form.questions.push(Question {
        id: "q2".into(),
        text: "Which checks may be left out?".into(),
        options: ["lint", "end-to-end", "<!here>"]
            .map(|label| Choice { label: label.into(), description: String::new(), value: json!(label) })
            .into(),
        multiple: true,
        free_text: false,
    });
    insta::assert_snapshot!(whole(&card), @r"
    Question (prod): Release agent: Which region?
    ---
    header: Question: Release agent
    section: Agent: Release agent
    rich_text: Agent says | Which region?

    Question 1 of 2: 
    1. EU (Europe)
    2. US
    (free text may be given)

    Question 2 of 2: Which checks may be left out?
    1. lint
    2. end-to-end
    3. <!here>
    (several may be chosen)
    section: Questions cannot be answered here yet. Answer in the runtime's own interface.
    context: prod · for <@U0DANA> · may answer: release, owner · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef` · <https://app.example/tasks/t1?a=1&b=2|Open in the runtime>
    ");
}

#[test]
fn a_test_card() {
    let mut card = approval(open(vec![], 1));
    card.form = Form {
        title: WORDS.render(&TestCard { part: "title" }),
        prompt: WORDS.render(&TestCard { part: "prompt" }),
        facts: vec![],
        arguments_withheld: false,
        ..card.form
    };
    (card.agent, card.runtime) = ("countersign".into(), "~test".into());
    card.approvers = vec!["any linked person".into()];
    (card.owner, card.details_url) = (None, None);
    insta::assert_snapshot!(whole(&card), @r#"
    Approval needed (~test): countersign: Test of Countersign
    ---
    header: Approval needed: countersign
    section: Test of Countersign
    Agent: countersign
    rich_text: Agent says | This is a test. Press Approve or Deny: it goes to no agent and changes nothing.
    actions: Approve | (cs.approve k_approve "Approve Test of Countersign") | Deny | (cs.deny k_deny "Deny Test of Countersign") | Deny with reason… | (cs.deny_reason k_reason "Deny with reason… Test of Countersign")
    context: ~test · may answer: any linked person · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef`
    "#);
}

/// Hostile text in every place that takes any, as it is drawn.
#[test]
fn a_hostile_card() {
    let evil = "<!channel> https://evil.test *b* `c` \u{202e}x";
    let mut status = ended(Outcome::Denied);
    if let Status::Ended { by, reason, .. } = &mut status {
        (*by, *reason) = (Some(someone(evil, None)), Some(evil.into()));
    }
    let mut card = approval(status);
    card.form = Form {
        title: evil.into(),
        prompt: evil.into(),
        facts: vec![fact(evil, evil), fact("tool", &format!("a\n{evil}"))],
        ..card.form
    };
    (card.agent, card.runtime) = (evil.into(), evil.into());
    (card.owner, card.approvers) = (Some(someone(evil, None)), vec![evil.into()]);
    insta::assert_snapshot!(whole(&card), @r"
    Denied by &lt;!channel&gt; https[:]//evil[.]test *b* `c` \u{202e}x (&lt;!channel&gt; https[:]//evil[.]test *b* `c` \u{202e}x): &lt;!channel&gt; https[:]//evil[.]test *b* `c` \u{202e}x: &lt;!channel&gt; https[:]//evil[.]test *b* `c` \u{202e}x
    ---
    header: Denied: <!channel> https[:]//evil[.]test *b* `c` \u{202e}x
    section: <!channel> https[:]//evil[.]test *b* `c` \u{202e}x
    Agent: <!channel> https[:]//evil[.]test *b* `c` \u{202e}x
    <!channel> https[:]//evil[.]test *b* `c` \u{202e}x: <!channel> https[:]//evil[.]test *b* `c` \u{202e}x
    Tool: 
    │ a
    │ <!channel> https[:]//evil[.]test *b* `c` \u{202e}x
    rich_text: Agent says | <!channel> https[:]//evil[.]test *b* `c` \u{202e}x
    section: The runtime does not show the arguments of this call.
    section: *Denied* by `&lt;!channel&gt; https[:]//evil[.]test *b* ˋcˋ \u{202e}x` · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>
    section: Reason: <!channel> https[:]//evil[.]test *b* `c` \u{202e}x
    context: &lt;!channel&gt; https[:]//evil[.]test *b* `c` \u{202e}x · for `&lt;!channel&gt; https[:]//evil[.]test *b* ˋcˋ \u{202e}x` · may answer: &lt;!channel&gt; https[:]//evil[.]test *b* `c` \u{202e}x · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef` · <https://app.example/tasks/t1?a=1&b=2|Open in the runtime>
    ");
    insta::assert_snapshot!(read(&drawn(&card).compact), @r"
    section: Denied: <!channel> https[:]//evil[.]test *b* `c` \u{202e}x
    <!channel> https[:]//evil[.]test *b* `c` \u{202e}x
    Agent: <!channel> https[:]//evil[.]test *b* `c` \u{202e}x
    <!channel> https[:]//evil[.]test *b* `c` \u{202e}x: <!channel> https[:]//evil[.]test *b* `c` \u{202e}x
    Tool: 
    │ a
    │ <!channel> https[:]//evil[.]test *b* `c` \u{202e}x
    The runtime does not show the arguments of this call.
    Reason: <!channel> https[:]//evil[.]test *b* `c` \u{202e}x
    section: Agent says
    <!channel> https[:]//evil[.]test *b* `c` \u{202e}x
    section: *Denied* by `&lt;!channel&gt; https[:]//evil[.]test *b* ˋcˋ \u{202e}x` · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>
    ");
}
