//! `adit kcp`: either end of a kcptun tunnel.
//!
//! ```text
//! options and a JSON file ─▶ URLs of tcp:// and kcptun:// ─▶ Plan ─▶ as `adit run`
//! ```
//!
//! [`options`] turns options and a file into URLs, and reports errors by the names of the options;
//! [`snmp`] writes the counters. The engine does the rest.

mod options;
mod snmp;

use std::sync::Arc;

use adit_cli::Done;

use self::options::Tunnel;
use super::run;
use crate::args::kcp::Kcp;

pub(super) fn kcp(typed: Kcp) -> Done {
    let Tunnel {
        plan,
        snmp,
        warnings,
    } = match typed {
        Kcp::Server(typed) => options::server(typed)?,
        Kcp::Client(typed) => options::client(typed)?,
    };
    for warning in &warnings {
        eprintln!("warning: {warning}");
    }
    adit_cli::block_on(|mut signals| async move {
        let engine = Arc::new(signals.unless_ended(run::start(&plan)).await?);
        if let Some((path, period)) = snmp {
            tokio::spawn(snmp::log(path, period, engine.clone()));
        }
        tokio::spawn(snmp::tell(engine.clone()));
        run::until_told(engine, signals).await
    })
}
