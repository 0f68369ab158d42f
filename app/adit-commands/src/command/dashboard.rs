//! `adit dashboard`: a port for a browser, through which it uses the management API of a running process.

use adit_admin::api::{DashboardForwarder, check_health};
use adit_cli::{CommandResult, Failure, FailureCode, result_of_end};

use super::running_process;
use crate::args;

/// Forwards requests of a browser until a signal.
pub(super) fn run_dashboard(typed: &args::DashboardArgs) -> CommandResult {
    let api = running_process::client_of(&typed.process)?;
    let (api, at) = (&api, api.address());
    adit_cli::block_on(|mut signals| async move {
        let opened = async {
            check_health(at)
                .await
                .map_err(running_process::to_failure)?;
            let forwarder = DashboardForwarder::open(at, api.token(), typed.port).await;
            forwarder.map_err(|why| {
                let what = format!("cannot listen on port {}: {why}", typed.port);
                Failure::new(FailureCode::Network, what)
            })
        };
        let forwarder = signals.run_until_ended(opened).await?;
        println!("dashboard of {at}, until Ctrl-C:");
        println!("{}", forwarder.url().as_str());
        tokio::select! {
            () = forwarder.serve() => Ok(()),
            end = signals.next_end() => result_of_end(end),
        }
    })
}
