//! `adit sshd`: an SSH server into which the user who started it can log in.
//!
//! Data passes through like this: [`settings`] says what was typed, [`serve`] takes connections in
//! through the [`door`]; [`keys`] decides who gets in. [`visit`] hands each wish of a client to a
//! task of its own: [`session`] collects what a program is to be and [`program`] runs it;
//! [`direct`] connects to somewhere and [`listening`] hands on what comes, both through the relay;
//! [`agent`] is the socket of a forwarded agent, [`failures`] what the log has of failed logins.

mod account;
mod agent;
mod direct;
mod door;
mod environment;
mod failures;
mod host_key;
mod keys;
mod listening;
mod program;
mod serve;
mod session;
mod settings;
mod signals;
mod visit;

use std::sync::Arc;

use adit_cli::{Done, Failure, block_on};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::args::Sshd;

/// Serves SSH until it is ended.
///
/// # Errors
/// What went wrong, with the exit code.
pub fn sshd(typed: &Sshd) -> Done {
    let (settings, host_keys) = settings::read(typed)?;
    let listen: Vec<_> = typed
        .listen
        .iter()
        .map(|text| settings::listen(text))
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
            let end = visit::End {
                stopped: stopped.clone(),
                _alive: alive.clone(),
            };
            tokio::spawn(serve::accept(listener, Arc::clone(&settings), end));
        }
        drop((alive, stopped));
        let patience = signals.next().await;
        // Nobody is taken in any more, and who is in is shown out: a shell would stay for ever.
        drop(stop);
        let _ = timeout(patience, all_gone.recv()).await;
        Ok(())
    })
}
