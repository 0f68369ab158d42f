//! `adit status`: asks a running process whether it answers.

use adit_admin::api::check_health;
use adit_cli::{CommandResult, Failure, FailureCode};

use super::upgrade;
use crate::args;

/// Sends a health check to the management API, and prints the result.
pub(super) fn check_status(typed: &args::StatusArgs) -> CommandResult {
    let file = typed.config.as_deref();
    let admin = upgrade::admin_of_file(file)?;
    let hint = "--admin ADDRESS as in `adit run --admin ADDRESS`, or -c FILE with `[admin]`";
    let at = upgrade::api_address(typed.admin.as_deref(), file, admin.as_ref(), hint)?;
    adit_cli::block_on(|mut signals| async move {
        let checked = async {
            let health = check_health(at).await;
            health.map_err(|why| Failure::new(FailureCode::Network, why.to_string()))
        };
        signals.run_until_ended(checked).await?;
        println!("adit answers at {at}");
        Ok(())
    })
}
