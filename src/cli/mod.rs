//! The command line: one file per command, exit codes as other programs expect them.
//!
//! 0 done; 1 failed (`check`: any finding that is an error); 2 usage or configuration; `explain`: 10
//! refuse, 11 could not be checked; `audit verify`: 10 broken.

mod audit;
mod check;
mod config;
mod demo;
mod explain;
mod jobs;
mod keys;
pub mod machine;
mod migrate;
mod open;
mod pause;
mod run;
pub mod service;
mod slack;
mod trial;

use crate::config::{Config, ProcessEnv};
use anyhow::Result;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Agents ask, people answer in chat; every answer goes back signed by the person who clicked.
#[derive(Debug, Parser)]
#[command(name = "countersign", version, about, max_term_width = 100)]
struct Cli {
    /// The configuration file.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        default_value = "countersign.toml",
        env = "COUNTERSIGN_CONFIG"
    )]
    config: PathBuf,
    /// What to log (`info`, `countersign=debug`, …).
    #[arg(long, global = true, value_name = "FILTER", default_value = "info", env = "COUNTERSIGN_LOG")]
    log: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service.
    Run,
    /// Try everything without an account: stand-ins of Slack and of a runtime, and the service, on this machine.
    Demo(demo::Demo),
    /// Look at the configuration, the database, the chat platforms and the runtimes, and say what is wrong.
    Check(check::Check),
    /// Post a test card and wait until a linked person has pressed a button of it; needs a running service.
    Try(trial::Trial),
    /// Stop sending answers, to one runtime or to all. Clicks are kept; it survives a restart.
    Pause(pause::Pause),
    /// Send answers again; what was kept goes out at once.
    Resume(pause::Pause),
    /// List what is open: where it is shown, who may answer.
    Open(open::Open),
    /// Say why somebody may answer an interaction, or not.
    Explain(explain::Explain),
    /// The audit log.
    #[command(subcommand)]
    Audit(audit::Audit),
    /// The signing keys.
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// The outbox.
    #[command(subcommand)]
    Jobs(jobs::Jobs),
    /// The Slack app.
    #[command(subcommand)]
    Slack(slack::SlackCommand),
    /// Print an example configuration or its JSON Schema.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Bring the database up to this version.
    Migrate,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Done,
    Failed,
    Usage,
    /// `explain`: refuse; `audit verify`: broken.
    No,
    /// `explain`: could not be checked.
    Unknown,
}

impl From<End> for ExitCode {
    fn from(end: End) -> Self {
        Self::from(match end {
            End::Done => 0,
            End::Failed => 1,
            End::Usage => 2,
            End::No => 10,
            End::Unknown => 11,
        })
    }
}

/// Parses the command line and runs the command.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; clap knows which stream is right.
            let code = if error.use_stderr() { End::Usage } else { End::Done };
            let _ = error.print();
            return code.into();
        }
    };
    crate::telemetry::init(&cli.log);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("countersign: no threads can be started: {error}");
            return End::Failed.into();
        }
    };
    match runtime.block_on(dispatch(cli)) {
        Ok(end) => end.into(),
        Err(error) => {
            eprintln!("countersign: {error:#}");
            End::Failed.into()
        }
    }
}

async fn dispatch(cli: Cli) -> Result<End> {
    let path = cli.config;
    match cli.command {
        Command::Config(command) => Ok(config::run(&command)),
        Command::Demo(demo) => demo::run(demo).await,
        Command::Audit(audit::Audit::Verify(verify)) if verify.file.is_some() => audit::verify_file(&verify),
        Command::Run => with(&path, run::run).await,
        Command::Check(check) => check::run(&path, &check).await,
        Command::Slack(command) => with(&path, |config| async move { slack::run(&config, &command) }).await,
        Command::Try(trial) => with(&path, |config| trial::run(config, trial)).await,
        Command::Pause(pause) => with(&path, |config| pause::run(config, pause, true)).await,
        Command::Resume(pause) => with(&path, |config| pause::run(config, pause, false)).await,
        Command::Open(open) => with(&path, |config| open::run(config, open)).await,
        Command::Explain(explain) => with(&path, |config| explain::run(config, explain)).await,
        Command::Audit(audit) => with(&path, |config| audit::run(config, audit)).await,
        Command::Keys(keys) => with(&path, |config| async move { keys::run(&config, &keys) }).await,
        Command::Jobs(jobs) => with(&path, |config| jobs::run(config, jobs)).await,
        Command::Migrate => with(&path, migrate::run).await,
    }
}

/// Loads the configuration and hands it on; a faulty one ends with every finding and exit code 2.
async fn with<F, R>(path: &std::path::Path, run: F) -> Result<End>
where
    F: FnOnce(Config) -> R,
    R: Future<Output = Result<End>>,
{
    match Config::load(path, &ProcessEnv) {
        Ok(config) => run(config).await,
        Err(findings) => {
            eprintln!("countersign: {} cannot be used:\n{findings}", path.display());
            Ok(End::Usage)
        }
    }
}
