//! One throw-away PostgreSQL cluster, for the tests and the load benchmark.
//!
//! Invariant: it never outlives the process: a watchdog shell (`postgres.sh`) waits for the end of its standard
//! input, which the kernel closes for us also after SIGKILL. If the watchdog was killed as well, the next run removes
//! what it left. Known race: the free port may be taken by somebody else before the server has it; it is tried again.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use url::Url;

/// A running throw-away cluster; it ends and its folder goes when this is dropped or the process is gone.
pub(crate) struct Cluster {
    /// Leads to a database that is always there, as a user who may create others.
    pub(crate) admin: Url,
    pub(crate) folder: PathBuf,
    /// The watchdog's standard input.
    _alive: ChildStdin,
}

impl Cluster {
    /// Starts one with these programs ([`programs`]). `durable`: it writes to disk before it answers a commit, as
    /// installed servers do; tests kill Countersign, never this server.
    pub(crate) fn start(programs: &Path, durable: bool) -> Result<Self, String> {
        let mut failure = String::new();
        for _ in 0..5 {
            match start_cluster(programs, durable) {
                Ok(cluster) => return Ok(cluster),
                Err(why) => failure = why,
            }
        }
        Err(failure)
    }
}

fn start_cluster(programs: &Path, durable: bool) -> Result<Cluster, String> {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).map_err(text)?.port();
    let mut watchdog = as_ordinary_user()?
        .args(["sh", "-c", include_str!("postgres.sh"), "postgres.sh"])
        .arg(programs)
        .arg(port.to_string())
        .arg(if durable { "on" } else { "off" })
        .current_dir("/tmp")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(text)?;
    let mut said = BufReader::new(watchdog.stdout.take().expect("piped"));
    let mut line = String::new();
    said.read_line(&mut line).map_err(text)?;
    let Some(folder) = line.strip_prefix("ready ") else {
        let _ = said.read_to_string(&mut line);
        return Err(format!("the throw-away cluster did not start:\n{line}"));
    };
    let folder = PathBuf::from(folder.trim_end());
    let admin = Url::parse(&format!("postgres://countersign@127.0.0.1:{port}/postgres")).map_err(text)?;
    let stdin = watchdog.stdin.take().expect("piped");
    Ok(Cluster { admin, folder, _alive: stdin })
}

/// `initdb` refuses root: there the server runs as `postgres`, or as `nobody` where that user is missing.
fn as_ordinary_user() -> Result<Command, String> {
    if id(&["-u"])? != "0" {
        let mut plain = Command::new("env");
        plain.arg("--");
        return Ok(plain);
    }
    let user = if id(&["-u", "postgres"]).is_ok() { "postgres" } else { "nobody" };
    let mut switched = Command::new("setpriv");
    switched
        .arg(format!("--reuid={}", id(&["-u", user])?))
        .arg(format!("--regid={}", id(&["-g", user])?))
        .args(["--clear-groups", "--"]);
    Ok(switched)
}

fn id(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("id").args(arguments).output().map_err(text)?;
    if !output.status.success() {
        return Err(format!("id {}: {}", arguments.join(" "), output.status));
    }
    String::from_utf8(output.stdout).map(|printed| printed.trim().to_owned()).map_err(text)
}

/// The folder with `initdb` and `pg_ctl`: the newest of Debian's, else the one on the path.
pub(crate) fn programs() -> Result<PathBuf, String> {
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, bin)| bin.join("initdb").exists())
        .collect();
    found.sort();
    if let Some((_, bin)) = found.pop() {
        return Ok(bin);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .find_map(|folder| std::fs::canonicalize(folder.join("initdb")).ok()?.parent().map(Path::to_owned))
        .ok_or_else(|| "no PostgreSQL server is installed: run scripts/setup, or set DATABASE_URL".to_owned())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
