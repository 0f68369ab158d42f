//! `adit kcp`: either end of a kcptun tunnel.
//!
//! ```text
//! options and a JSON file ─▶ URLs of tcp:// and kcptun:// ─▶ Plan ─▶ as `adit run`
//! ```
//!
//! [`ssh_options`] turns options and a file into URLs, and reports errors by the names of the options;
//! [`snmp`] writes the counters. The engine does the rest.

mod options;
mod snmp;

use std::sync::Arc;

use adit_cli::CommandResult;

use self::options::Tunnel;
use super::run;
use crate::args::kcp::KcpCommand;

pub(super) fn run_kcp(typed: KcpCommand) -> CommandResult {
    let Tunnel {
        plan,
        snmp,
        warnings,
    } = match typed {
        KcpCommand::Server(typed) => options::server_tunnel(typed)?,
        KcpCommand::Client(typed) => options::client_tunnel(typed)?,
    };
    for warning in &warnings {
        eprintln!("warning: {warning}");
    }
    adit_cli::block_on(|mut signals| async move {
        let engine = Arc::new(signals.run_until_ended(run::start_engine(&plan)).await?);
        if let Some((path, period)) = snmp {
            tokio::spawn(snmp::write_rows(path, period, engine.clone()));
        }
        tokio::spawn(snmp::tell(engine.clone()));
        run::serve_until_signal(engine, signals).await
    })
}
