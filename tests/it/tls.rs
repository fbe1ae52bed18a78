//! Socket Mode over TLS, as Slack's is: the real binary, a certificate of a test's own authority, and OpenSSL (by way
//! of Node.js) on the other side.

use crate::crash::Rig;
use crate::world::outside::TlsDoor;
use crate::world::story::{DANA, RELEASES, SOCKETS};
use countersign::sandbox::a2a::{Ask, Open, Phase};
use countersign::sandbox::slack::SlackWorld;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const WITHIN: Duration = Duration::from_secs(30);

/// What the certificate is for.
const REQUEST: &str = "[req]\ndistinguished_name = name\n[name]\n[server]\nsubjectAltName = DNS:localhost\n\
     basicConstraints = CA:FALSE\nextendedKeyUsage = serverAuth\n";

/// A certificate authority and one certificate of it for `localhost`.
struct Authority {
    root: PathBuf,
    key: PathBuf,
    certificate: PathBuf,
}

impl Authority {
    fn new(folder: &Path, name: &str) -> Self {
        let folder = folder.join(name);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("request"), REQUEST).unwrap();
        let openssl = |words: &str| {
            let output = Command::new("openssl").args(words.split(' ')).current_dir(&folder).output();
            let output = output.expect("openssl is missing: run scripts/setup");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let new = "req -x509 -days 2 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        openssl(&format!("{new} -keyout root.key -out root.pem -subj /CN=authority"));
        openssl(&format!(
            "{new} -keyout key.pem -out certificate.pem -subj /CN=localhost -CA root.pem -CAkey root.key \
             -config request -extensions server"
        ));
        Self {
            root: folder.join("root.pem"),
            key: folder.join("key.pem"),
            certificate: folder.join("certificate.pem"),
        }
    }
}

/// Slack's own certificates are not at hand here; one that the machine does not trust opens no socket, and one
/// that it trusts carries a whole story.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_go_through_tls() {
    let mut rig = Rig::new(SOCKETS).await;
    let (ours, other) =
        (Authority::new(rig.folder.path(), "ours"), Authority::new(rig.folder.path(), "other"));
    let port = rig.sandbox.port();
    let mut door = TlsDoor::open(&ours.key, &ours.certificate, port);
    rig.slack.set_socket_url(&format!("wss://localhost:{}", door.port));
    let empty = rig.folder.path().join("nothing");
    std::fs::create_dir(&empty).unwrap();

    // Another authority: no socket, and it says why.
    rig.start_with(&[("SSL_CERT_FILE", &other.root), ("SSL_CERT_DIR", &empty)]);
    let end = Instant::now() + WITHIN;
    while !rig.log().contains("no TLS") {
        assert!(Instant::now() < end, "it never said so:\n{}", rig.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(rig.slack.open_sockets().is_empty());
    let (came, turned) = door.counts();
    assert!(came == 0 && turned > 0, "{came} came, {turned} were turned away");
    rig.kill();

    // Ours: the same story as without TLS.
    rig.start_with(&[("SSL_CERT_FILE", &ours.root), ("SSL_CERT_DIR", &empty)]);
    let until = async |what: &str, holds: &dyn Fn(&SlackWorld) -> bool| {
        let found = rig.slack.until(what, WITHIN, |slack| holds(slack).then_some(())).await;
        found.unwrap_or_else(|waited| panic!("{waited}\n{}", rig.log()));
    };
    until("a socket", &|slack| !slack.open_sockets().is_empty()).await;
    let ask = rig.a2a.open(Open::new(DANA, Ask::approval("ci", "deploy_service")));
    until("a card", &|slack| !slack.cards(RELEASES).is_empty()).await;
    let card = rig.slack.cards(RELEASES).pop().unwrap();
    let delivery = rig.slack.press("U0DANA", RELEASES, &card.ts, "Approve").await.unwrap();
    assert!(delivery.acked(), "{delivery:?}");
    until("no buttons", &|slack| slack.buttons(RELEASES, &card.ts).is_empty()).await;
    until("the end", &|slack| slack.reads(RELEASES, &card.ts).contains("Approved by")).await;
    let asked = rig.a2a.interaction(&ask.interaction_id).unwrap();
    assert_ne!(asked.phase, Phase::Open);
    assert_eq!(asked.answers[0].approved_by, DANA);
    assert!(door.counts().0 > 0, "it went through the door");
    rig.kill();
}
