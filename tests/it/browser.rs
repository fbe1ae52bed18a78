//! A person with a browser (headless Chromium) clicks through the demo that the real binary serves, at
//! desktop and at phone width. Screenshots are left in `target/screenshots`.

use crate::world::outside::{BoltApp, DiscordApp, browser};
use countersign::net;
use countersign::sandbox::company::RELEASES;
use countersign::sandbox::discord;
use countersign::sandbox::serve::{Options, SandboxServer};
use countersign::sandbox::time::Time;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use tokio_util::sync::CancellationToken;

/// The demo, ended with the test however it goes.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        // Asked to stop, it takes its folder with it.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

#[test]
fn the_demo_works_for_a_person_with_a_browser() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["demo", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let _demo = Demo(child);
    let url = lines
        .map_while(Result::ok)
        .find_map(|line| line.split("open ").nth(1).map(ToOwned::to_owned))
        .expect("the demo prints its one address");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/target/screenshots");
    worked(&browser("demo.mjs").args([url.trim(), folder]).output().unwrap(), "demo works");
}

/// The page with an app of other hands behind it: modals, commands, App Home.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_shows_modals_fields_and_app_home() {
    net::init();
    let options = Options { time: Time::System, agent: false, discord: false };
    let server = SandboxServer::bind("127.0.0.1:0".parse().unwrap(), options).await.unwrap();
    let (url, token) = (server.url(), server.secret("DEMO_SLACK_BOT_TOKEN").unwrap());
    server.slack.app_token("xapp-of-the-page", &["connections:write"]);
    server.slack.switch(|switches| switches.socket_mode = true);
    let slack = std::sync::Arc::clone(&server.slack);
    let stop = CancellationToken::new();
    let _stops = stop.clone().drop_guard();
    #[expect(clippy::disallowed_methods, reason = "a server beside the test, stopped at its end")]
    tokio::spawn(server.run(stop));
    let api = format!("{url}/slack/api");
    let _app = BoltApp::start_with(&[&api, "socket", RELEASES, &token, "xapp-of-the-page"]);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/target/screenshots");
    let walk =
        tokio::task::spawn_blocking(move || browser("modals.mjs").args([&url, folder]).output().unwrap());
    worked(&walk.await.unwrap(), "modals work");
    assert!(slack.warnings().is_empty(), "{:?}", slack.warnings());
    assert!(slack.envelopes().iter().any(|one| one.payload["type"] == "view_closed"));
}

/// The second pane, with an application of other hands behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_shows_the_discord_in_a_pane_of_its_own() {
    net::init();
    let options = Options { time: Time::System, agent: false, discord: true };
    let server = SandboxServer::bind("127.0.0.1:0".parse().unwrap(), options).await.unwrap();
    let (url, token) = (server.url(), server.secret("DEMO_DISCORD_BOT_TOKEN").unwrap());
    let world = server.discord.clone().unwrap();
    let stop = CancellationToken::new();
    let _stops = stop.clone().drop_guard();
    #[expect(clippy::disallowed_methods, reason = "a server beside the test, stopped at its end")]
    tokio::spawn(server.run(stop));
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/target/screenshots");
    let walk = tokio::task::spawn_blocking(move || {
        let _app = DiscordApp::start(&format!("{url}/discord/api"), &token, discord::acme::RELEASES);
        browser("discord.mjs").args([&url, folder]).output().unwrap()
    });
    worked(&walk.await.unwrap(), "the second pane works");
    assert!(world.warnings().is_empty(), "{:?}", world.warnings());
}

fn worked(output: &Output, word: &str) {
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains(word),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
