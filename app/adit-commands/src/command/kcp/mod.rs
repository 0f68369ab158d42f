//! `adit kcp`: either end of a kcptun tunnel.
//!
//! ```text
//! options and a JSON file ─▶ URLs of tcp:// and kcptun:// ─▶ Plan ─▶ as `adit run`
//! ```
//!
//! [`tunnel_urls`] turns options and a file into URLs, and reports errors by the names of the options;
//! [`snmp`] writes the counters. The engine does the rest.

mod snmp;
mod tunnel_urls;

use std::sync::Arc;

use adit_cli::CommandResult;

use self::tunnel_urls::Tunnel;
use super::run;
use crate::args::kcp::KcpCommand;

pub(super) fn run_kcp(typed: KcpCommand) -> CommandResult {
    let Tunnel {
        plan,
        snmp,
        warnings,
    } = match typed {
        KcpCommand::Server(typed) => tunnel_urls::server_tunnel(typed)?,
        KcpCommand::Client(typed) => tunnel_urls::client_tunnel(typed)?,
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
