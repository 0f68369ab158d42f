//! `adit kcp`: either end of a kcptun tunnel.
//!
//! ```text
//! TCP ──▶ client ──▶ smux stream ──▶ [snappy] ──▶ KCP ──▶ FEC ──▶ cipher ──▶ UDP ──▶ server ──▶ TCP
//! ```
//!
//! [`options`] makes of what was typed, and of a file, what both ends run with; [`client`] and
//! [`server`] run it, [`snmp`] writes the counters down. [`check`] finds out whether a client's
//! session works, by [`trial`] of others where it does not.

mod addr;
mod check;
mod client;
mod options;
mod server;
mod snmp;
mod trial;

use std::io;
use std::time::Duration;

use adit_cli::Done;
use adit_net::dial::{self, Family};
use adit_smux::SmuxStream;
use adit_stream::{End, Limits, Meter, Outcome, Tcp, relay};
use adit_wire::{Host, Target};
use tokio::net::TcpStream;

use crate::args::kcp::Kcp;

/// How long a connection to the target may take.
const DIAL: Duration = Duration::from_secs(10);

pub(super) fn kcp(typed: Kcp) -> Done {
    match typed {
        Kcp::Server(typed) => server::run(typed),
        Kcp::Client(typed) => client::run(typed),
    }
}

/// The addresses of a name, or the one that it is.
async fn addresses(target: &Target) -> io::Result<Vec<std::net::SocketAddr>> {
    match &target.host {
        Host::Ip(ip) => Ok(vec![(*ip, target.port).into()]),
        Host::Name(name) => dial::resolve(name.as_str(), target.port, Family::Any).await,
    }
}

async fn connect(target: &Target) -> io::Result<TcpStream> {
    dial::race(&addresses(target).await?, DIAL).await
}

/// Carries one connection; `near` is the end from which it was opened.
async fn carry(tcp: TcpStream, mut stream: SmuxStream, limits: &Limits, outward: bool) -> Outcome {
    let (mut tcp, meter) = (Tcp::new(tcp), Meter::default());
    if outward {
        relay(&mut stream, &mut tcp, limits, &meter).await
    } else {
        relay(&mut tcp, &mut stream, limits, &meter).await
    }
}

/// Says how a connection went, for those who want to know.
fn told(outcome: &Outcome) -> String {
    let Outcome { up, down, end, .. } = outcome;
    let end = match end {
        End::Finished => "finished".to_owned(),
        End::Idle => "given up: silent with one end closed".to_owned(),
        End::Near(why) | End::Far(why) => why.to_string(),
    };
    format!("{up} bytes up, {down} down, {end}")
}
