//! The load benchmark: `scripts/bench`, or `cargo bench --bench load`.
//!
//! Three processes: the real `countersign run`, which is the only one measured; the floor it is compared with; and
//! this one, with the stand-ins of Slack and of the runtime and with everybody who asks and presses. It never passes
//! or fails on a time: the machine may be busy. But a run in which any unit was lost, doubled or wrong is void,
//! whatever its times, and then the exit code is 1.

mod board;
#[path = "../../tests/it/world/cluster.rs"]
mod cluster;
mod figures;
mod floor;
mod load;
mod rig;

use anyhow::Result;
use clap::Parser;
use figures::Times;
use load::{Held, Loaded, Plan};
use rig::{Databases, Inbound, On};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

/// Measures the service under load, on SQLite and on PostgreSQL.
#[derive(Debug, Parser)]
struct Arguments {
    /// The databases.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [On::Sqlite, On::Postgres])]
    on: Vec<On>,
    /// How presses arrive.
    #[arg(long, value_enum, default_value_t = Inbound::Http)]
    inbound: Inbound,
    /// Openings and presses per second.
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// How many units are measured under load.
    #[arg(long, default_value_t = 4000)]
    units: usize,
    /// Open interactions at which memory is read; the service is killed at the first.
    #[arg(long, num_args = 2, default_values_t = [1000, 10_000])]
    open: Vec<usize>,
    /// How often the runtime is listed, as in the configuration.
    #[arg(long, default_value = "1s")]
    poll: String,
    /// Only the load, or only memory and recovery.
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// Cargo's own.
    #[arg(long, hide = true)]
    bench: bool,
    #[arg(long, hide = true)]
    floor: Option<SocketAddr>,
    #[arg(long, hide = true)]
    floor_database: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Only {
    Load,
    Held,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(listen) = arguments.floor {
        floor::main(listen, arguments.floor_database.as_deref())?;
        return Ok(ExitCode::SUCCESS);
    }
    // The generator has a thread of its own, or a busy stand-in would delay the presses.
    let generator = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let world = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut void = false;
    for on in &arguments.on {
        let problems = world.block_on(run(&arguments, *on, generator.handle()))?;
        for problem in &problems {
            println!("VOID: {problem}");
        }
        void |= !problems.is_empty();
    }
    Ok(if void { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn run(arguments: &Arguments, on: On, generator: &tokio::runtime::Handle) -> Result<Vec<String>> {
    let Inbound::Http = arguments.inbound;
    let open =
        [arguments.open.first(), arguments.open.get(1)].map(|count| count.copied().unwrap_or_default());
    let plan = Plan { rate: arguments.rate, units: arguments.units, open, poll: arguments.poll.clone() };
    println!(
        "\n{on:?}, {:?}: {} units at {}/s, poll {}",
        arguments.inbound, plan.units, plan.rate, plan.poll
    );
    let mut databases = Databases::new(on)?;
    let mut problems = vec![];
    if arguments.only != Some(Only::Held) {
        let loaded = load::loaded(&plan, &mut databases, generator).await?;
        print_load(&loaded);
        problems.extend(loaded.problems);
    }
    if arguments.only != Some(Only::Load) {
        let held = load::held(&plan, &mut databases, generator).await?;
        print_held(&held);
        problems.extend(held.problems);
    }
    Ok(problems)
}

fn print_load(loaded: &Loaded) {
    let Loaded { checked, .. } = loaded;
    println!("{:<28} {:>9} {:>9} {:>9} {:>9}", "ms", "p50", "p90", "p99", "max");
    for (name, times) in [
        ("open -> posted", &checked.posted),
        ("click -> ack", &loaded.acks),
        ("click -> ack of the floor", &loaded.floor),
        ("click -> answer", &checked.answered),
        ("answer -> edited", &checked.edited),
    ] {
        println!("{name:<28} {times}");
    }
    let ratio = |part| Times::part(&loaded.acks, part) / Times::part(&loaded.floor, part);
    println!(
        "{:<28} {:>9.2} {:>9.2} {:>9.2} {:>9.2}",
        "ack : floor",
        ratio(0.5),
        ratio(0.9),
        ratio(0.99),
        ratio(1.0)
    );
    let calls: usize = loaded.calls.values().sum();
    let each: Vec<String> = loaded.calls.iter().map(|(method, count)| format!("{method} {count}")).collect();
    println!("{:<28} {:>9.0}", "units per CPU second", per(loaded.units, loaded.cpu));
    println!("{:<28} {:>9.0}", "presses per CPU s, floor", per(loaded.floor_presses, loaded.floor_cpu));
    println!(
        "{:<28} {:>9.3}   ({})",
        "Slack calls per unit",
        count(calls) / count(loaded.units),
        each.join(", ")
    );
    println!("{:<28} {:>9.1}", "MB resident, 0 open", loaded.idle_memory);
    println!(
        "{:<28} {:>9.1}   (most: {:.1})",
        "MB resident after the load", loaded.memory.0, loaded.memory.1
    );
    if loaded.late > 0 {
        println!("{} presses waited for their card", loaded.late);
    }
}

fn print_held(held: &Held) {
    for (open, now, most) in &held.memory {
        println!("{:<28} {now:>9.1}   (most: {most:.1})", format!("MB resident, {open} open"));
    }
    println!("{:<28} {:>9.0}", "ms, SIGKILL -> first ack", held.first_ack.as_secs_f64() * 1000.0);
    println!(
        "{:<28} {:>9.0}   ({} presses acknowledged just before)",
        "ms, SIGKILL -> reconciled",
        held.reconciled.as_secs_f64() * 1000.0,
        held.acked_before
    );
}

fn per(count_of: usize, cpu: Duration) -> f64 {
    count(count_of) / cpu.as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn count(number: usize) -> f64 {
    number as f64
}
