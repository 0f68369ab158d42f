//! `adit status`: asks a running process whether it answers, and for its figures.

use adit_admin::api::{ApiClient, ApiRequestError, check_health, check_readiness};
use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::text::{format_size, sanitize_for_terminal};
use serde_json::{Value, json};

use super::age::format_age;
use super::process_documents::Overview;
use super::running_process;
use crate::args;
use crate::json;

/// Sends a health check to the management API, and prints the result.
pub(super) fn check_status(typed: &args::StatusArgs) -> CommandResult {
    let client = running_process::client_of(&typed.process)?;
    let is_json = typed.json.json;
    adit_cli::block_on(|mut signals| async move {
        let checked = async {
            let at = client.address();
            let health = check_health(at).await;
            health.map_err(|why| Failure::new(FailureCode::Network, why.to_string()))?;
            if typed.ready {
                check_readiness(at).await.map_err(|why| {
                    let why = sanitize_for_terminal(&why.to_string());
                    Failure::new(FailureCode::Failure, format!("not ready: {why}"))
                })?;
            }
            let overview = read_overview(&client).await;
            if is_json {
                let (overview, note) =
                    overview.map_or_else(|why| (Value::Null, Some(why)), |o| (o, None));
                let result = json!({ "address": at, "overview": overview, "note": note });
                json::print_result("status", &result);
                return Ok(());
            }
            println!("adit answers at {at}");
            match overview {
                Ok(overview) => print_overview(&overview),
                Err(note) => println!("no figures: {note}"),
            }
            Ok(())
        };
        signals.run_until_ended(checked).await
    })
}

/// Returns the overview of the process, or the reason why it has none: its health does not depend on that.
async fn read_overview(client: &ApiClient) -> Result<Value, String> {
    client.get("/overview").await.map_err(|why| match why {
        ApiRequestError::Refused { status: 401, .. } => {
            "they need a token: --admin-token @FILE".to_owned()
        }
        why if running_process::is_unknown_path(&why) => {
            "the process is older than this program".to_owned()
        }
        why => sanitize_for_terminal(&why.to_string()),
    })
}

fn print_overview(overview: &Value) {
    let Ok(overview) = serde_json::from_value::<Overview>(overview.clone()) else {
        println!("no figures: those of the process have another form");
        return;
    };
    let line = |name: &str, value: String| println!("{name:<14} {value}");
    line("version", overview.version.to_string());
    line("process", overview.pid.to_string());
    line("uptime", format_age(overview.uptime));
    line(
        "traffic",
        format!(
            "{} up, {} down",
            format_size(overview.up),
            format_size(overview.down)
        ),
    );
    line(
        "sessions",
        format!(
            "{} open, {} since the start",
            overview.sessions_open, overview.sessions_total
        ),
    );
    line("connections", format!("{} open", overview.connections_open));
    line(
        "associations",
        format!("{} open", overview.associations_open),
    );
    line("listeners", overview.listeners.len().to_string());
    for reject in overview
        .rejects
        .iter()
        .flatten()
        .filter(|reject| reject.count > 0)
    {
        line("rejected", format!("{} × {}", reject.count, reject.cause));
    }
}
