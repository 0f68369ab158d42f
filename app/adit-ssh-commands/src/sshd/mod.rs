//! `adit sshd`: an SSH server for the user who runs it.
//!
//! The arguments and their defaults are in `args/sshd.rs`; [`settings`] makes the server's settings of them.
//! [`serve`] accepts connections that [`admission`] admits, and [`authorized_keys`] authenticates them. [`client_connection`] runs each request of a client in its own task: [`session`] collects the
//! requests for a program and [`program`] runs it; [`direct`] connects to destinations and [`remote_forwards`]
//! forwards incoming connections, both through the relay; [`agent`] is the socket of a forwarded agent, and
//! [`login_log`] limits the log lines for failed logins.

mod account;
mod admission;
mod agent;
mod authorized_keys;
mod client_connection;
mod direct;
mod environment;
mod host_key;
mod login_log;
mod program;
mod remote_forwards;
mod serve;
mod session;
mod settings;
mod signals;

use std::sync::Arc;
use std::time::Duration;

use adit_cli::{CommandResult, Failure, block_on};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::args::SshdArgs;

/// Time in which connections are closed after SIGTERM.
const CLOSING_TIME: Duration = Duration::from_secs(3);

/// Serves SSH until a signal ends it.
///
/// # Errors
/// The failure, with its exit code.
pub fn sshd(typed: &SshdArgs) -> CommandResult {
    let (settings, host_keys) = settings::read_settings(typed)?;
    let listen: Vec<_> = typed
        .listen
        .iter()
        .map(|text| settings::parse_listen_address(text))
        .collect::<Result<_, _>>()?;
    block_on(|mut signals| async move {
        let settings = Arc::new(settings);
        let (stop, stopped) = watch::channel(());
        let (alive, mut all_gone) = mpsc::channel::<()>(1);
        for line in host_keys {
            eprintln!("{line}");
        }
        let keys = settings.keys.read().len();
        eprintln!("{keys} authorized keys for {}", settings.account.name);
        for addr in listen {
            let listener = serve::bind(addr).map_err(Failure::from)?;
            let at = listener.local_addr().unwrap_or(addr);
            eprintln!("listening on {at}");
            let end = client_connection::ServerShutdown {
                stopped: stopped.clone(),
                _alive: alive.clone(),
            };
            tokio::spawn(serve::accept_connections(
                listener,
                Arc::clone(&settings),
                end,
            ));
        }
        drop((alive, stopped));
        let patience = signals.next_end().await.min(CLOSING_TIME);
        // No more connections are accepted, and open ones are closed: a shell would run forever.
        drop(stop);
        let _ = timeout(patience, all_gone.recv()).await;
        adit_cli::result_of_end(patience)
    })
}
