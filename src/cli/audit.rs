//! `audit verify|export`.

use super::End;
use super::service::{self, Machine};
use crate::config::Config;
use crate::domain::audit::{Broken, Head, Verifier};
use crate::domain::audit_file::{self, Reader};
use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(super) enum Audit {
    /// Check the hash chain: of the database, or of an exported file. 0 intact, 10 broken.
    Verify(Verify),
    /// Print the log, ascending.
    Export(Export),
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    /// An exported file (JSON Lines or CSV); without it, the database.
    pub(super) file: Option<PathBuf>,
    /// A head saved earlier, `SEQ:HASH`: a cut tail or a full rewrite is found against it.
    #[arg(long, value_name = "SEQ:HASH")]
    head: Option<Head>,
}

#[derive(Debug, Args)]
pub(super) struct Export {
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// The first row to print.
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    from: i64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Jsonl,
    Csv,
}

pub(super) async fn run(config: Config, command: Audit) -> Result<End> {
    let machine = Machine::real();
    let store = service::connect(&config, &machine).await?;
    let end = match command {
        Audit::Verify(verify) => report(store.verify_audit(verify.head).await?),
        Audit::Export(export) => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            if matches!(export.format, Format::Csv) {
                out.write_all(audit_file::csv_header().as_bytes())?;
            }
            let mut from = export.from;
            loop {
                let page = store.audit_page(from).await?;
                let Some(last) = page.last() else { break };
                from = last.seq + 1;
                for row in &page {
                    let line = match export.format {
                        Format::Jsonl => audit_file::to_jsonl(row),
                        Format::Csv => audit_file::to_csv(row),
                    };
                    out.write_all(line.as_bytes())?;
                }
            }
            out.flush()?;
            End::Done
        }
    };
    store.close().await;
    Ok(end)
}

/// Checks an exported file; no configuration and no database is needed.
pub(super) fn verify_file(verify: &Verify) -> Result<End> {
    let path = verify.file.clone().unwrap_or_default();
    let file = std::fs::File::open(&path).with_context(|| format!("{} cannot be opened", path.display()))?;
    Ok(report(read_file(BufReader::new(file), verify.head.clone())?))
}

fn read_file(mut file: impl BufRead, head: Option<Head>) -> Result<Result<Head, Broken>> {
    let (mut reader, mut verifier) = (Reader::default(), Verifier::new(head));
    let mut line = String::new();
    loop {
        line.clear();
        if file.read_line(&mut line)? == 0 {
            break;
        }
        let row = match reader.line(&line, verifier.next_seq()) {
            Ok(Some(row)) => row,
            Ok(None) => continue,
            Err(broken) => return Ok(Err(broken)),
        };
        if let Err(broken) = verifier.push(&row) {
            return Ok(Err(broken));
        }
    }
    if let Err(broken) = reader.finish(verifier.next_seq()) {
        return Ok(Err(broken));
    }
    Ok(verifier.finish())
}

fn report(checked: Result<Head, Broken>) -> End {
    match checked {
        Ok(head) => {
            println!("intact, head {head}");
            End::Done
        }
        Err(broken) => {
            println!("broken at {broken}");
            End::No
        }
    }
}
