//! A person with a browser (headless Chromium) clicks through the demo that the real binary serves, at
//! desktop and at phone width. Screenshots are left in `target/screenshots`.

use crate::world::outside::browser;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

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
    let output = browser("demo.mjs").args([url.trim(), folder]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("demo works"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
