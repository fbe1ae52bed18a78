//! Three services on one PostgreSQL, as DESIGN's scale promises: any of them takes clicks, one of them watches.
//!
//! One is killed and started again, one is stopped for longer than a lease and then goes on as if nothing had
//! been (the zombie that fencing is for). What must hold at rest is the same as after kills of a single one.

use crate::crash::{BINARY, Counts, Dice, Rig, SECRETS, agents, at_rest, check, number, people, spawn};
use crate::world::database::Backend;
use crate::world::story::env;
use countersign::net;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};

/// Longer than a job's lease (15 s) and a watcher's (12 s).
const ASLEEP: Duration = Duration::from_secs(17);

struct Replica {
    file: PathBuf,
    address: SocketAddr,
    log: PathBuf,
    child: Option<Child>,
}

impl Replica {
    /// A replica of the rig's service: the same configuration, another door.
    async fn new(rig: &Rig, number: usize) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let text = std::fs::read_to_string(&rig.file).unwrap();
        let text = text.replace(&format!("listen = \"{}\"", rig.address), &format!("listen = \"{address}\""));
        let file = rig.folder.path().join(format!("replica-{number}.toml"));
        std::fs::write(&file, text).unwrap();
        // The rig's own log: what is searched for secrets and panics.
        let log = rig.folder.path().join("countersign.log");
        Self { file, address, log, child: None }
    }

    async fn start(&mut self) {
        let log = std::fs::File::options().create(true).append(true).open(&self.log).unwrap();
        let mut command = Command::new(BINARY);
        command.args(["run", "--config"]).arg(&self.file).stdin(Stdio::null());
        for name in SECRETS {
            command.env(name, env(name).unwrap());
        }
        self.child = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let client = net::client(net::Limits::default()).unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        let url = format!("http://{}/healthz", self.address);
        while !client.get(&url).send().await.is_ok_and(|answer| answer.status() == 200) {
            assert!(Instant::now() < end, "replica {url} does not serve");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        assert!(child.try_wait().unwrap().is_none(), "a replica ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What stands before replicas: each connection goes to the next one that takes it.
async fn balance(front: TcpListener, to: Vec<SocketAddr>) {
    let next = AtomicUsize::new(0);
    while let Ok((mut inbound, _)) = front.accept().await {
        let first = next.fetch_add(1, Ordering::Relaxed);
        let order: Vec<SocketAddr> = (0..to.len()).map(|n| to[(first + n) % to.len()]).collect();
        spawn(async move {
            for address in order {
                if let Ok(mut outbound) = TcpStream::connect(address).await {
                    let _ = tokio::io::copy_bidirectional(&mut inbound, &mut outbound).await;
                    return;
                }
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_one_killed_and_one_asleep() {
    let fresh = u64::from(std::process::id()) ^ 0x5eed;
    let seed = number("CRASH_SEED", fresh).max(1);
    let rounds = number("CRASH_ROUNDS", 1);
    println!("seed {seed}, {rounds} rounds");
    let mut rig = Rig::new(Backend::Postgres).await;
    let mut replicas = vec![];
    for n in 0..3 {
        replicas.push(Replica::new(&rig, n).await);
    }
    let front = TcpListener::bind(rig.address).await.unwrap();
    spawn(balance(front, replicas.iter().map(|replica| replica.address).collect()));
    for replica in &mut replicas {
        replica.start().await;
        rig.starts += 1;
    }

    let (counts, stop) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(false)));
    let mut dice = Dice(seed);
    let mut load =
        vec![spawn(agents(Arc::clone(&rig.a2a), Arc::clone(&counts), Dice(seed ^ 0xa1), Arc::clone(&stop)))];
    for n in 0..2 {
        let dice = Dice(seed ^ (0xb00 + n));
        load.push(spawn(people(Arc::clone(&rig.slack), Arc::clone(&counts), dice, Arc::clone(&stop))));
    }
    for _ in 0..rounds {
        tokio::time::sleep(Duration::from_millis(500 + dice.roll(2000))).await;
        let first = usize::try_from(dice.roll(3)).unwrap();
        let zombie = (first + 1) % 3;
        replicas[zombie].signal("-STOP");
        replicas[first].kill();
        tokio::time::sleep(ASLEEP).await;
        replicas[zombie].signal("-CONT");
        replicas[first].start().await;
        rig.starts += 1;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    stop.store(true, Ordering::Relaxed);
    for task in load {
        task.await.unwrap();
    }
    at_rest(&rig).await;
    check(&rig, &counts, rounds, seed, Backend::Postgres).await;
}
