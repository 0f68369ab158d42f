//! `adit dashboard`: a port for a browser, through which it uses the management API of a running process.

use adit_admin::api::{DashboardForwarder, check_health};
use adit_cli::{CommandResult, Failure, FailureCode, result_of_end};

use super::{admin, upgrade};
use crate::args;

/// Forwards requests of a browser until a signal.
pub(super) fn run_dashboard(typed: &args::DashboardArgs) -> CommandResult {
    let file = typed.config.as_deref();
    let settings = upgrade::admin_of_file(file)?;
    let hint = "--admin ADDRESS as in `adit run --admin ADDRESS`, or -c FILE with `[admin]`";
    let at = upgrade::api_address(typed.admin.as_deref(), file, settings.as_ref(), hint)?;
    let tokens = settings.as_ref().and_then(|admin| admin.tokens.as_deref());
    let token = admin::first_token(typed.admin_token.as_deref(), tokens)?;
    let token = token.as_deref().map(String::as_str);
    adit_cli::block_on(|mut signals| async move {
        let network = |why: String| Failure::new(FailureCode::Network, why);
        let opened = async {
            check_health(at)
                .await
                .map_err(|why| network(why.to_string()))?;
            let forwarder = DashboardForwarder::open(at, token, typed.port).await;
            forwarder.map_err(|why| network(format!("cannot listen on port {}: {why}", typed.port)))
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
