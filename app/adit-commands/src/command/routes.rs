//! `adit routes`: the listeners and groups of a running process.

use adit_admin::api::ApiClient;
use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::text::{format_size, sanitize_for_terminal};
use serde_json::{Value, json};

use super::process_documents::{Group, GroupList, Listener, Member, Overview};
use super::running_process::{self, to_figures_failure};
use super::sessions::print_columns;
use crate::args;
use crate::json;

/// Lists the listeners with their traffic, and the groups with the health of their members.
pub(super) fn run_routes(typed: &args::RoutesArgs) -> CommandResult {
    let client = running_process::client_of(&typed.process)?;
    let is_json = typed.json.json;
    adit_cli::block_on(|mut signals| async move {
        let work = async {
            let (listeners, groups) = read(&client).await?;
            if is_json {
                let result = json!({ "listeners": listeners, "groups": groups });
                json::print_result("routes", &result);
                return Ok(());
            }
            print_routes(listeners, groups)
        };
        signals.run_until_ended(work).await
    })
}

/// Returns the listeners and the groups, as the process describes them.
async fn read(client: &ApiClient) -> Result<(Value, Value), Failure> {
    let overview: Value = client.get("/overview").await.map_err(to_figures_failure)?;
    let groups: Value = client.get("/groups").await.map_err(to_figures_failure)?;
    let of = |document: &Value, name: &str| document.get(name).cloned().unwrap_or_default();
    Ok((of(&overview, "listeners"), of(&groups, "groups")))
}

fn print_routes(listeners: Value, groups: Value) -> CommandResult {
    let other_form = |why: serde_json::Error| {
        let what = format!("the routes of the process have another form: {why}");
        Failure::new(FailureCode::Failure, what)
    };
    let overview: Overview =
        serde_json::from_value(json!({ "listeners": listeners })).map_err(other_form)?;
    let groups: GroupList =
        serde_json::from_value(json!({ "groups": groups })).map_err(other_form)?;
    let row = |listener: &Listener| {
        [
            listener.route.to_string(),
            listener.listen.to_string(),
            listener.transports.to_string(),
            listener.sessions_open.to_string(),
            listener.sessions_total.to_string(),
            format_size(listener.up),
            format_size(listener.down),
            listener.datagrams_lost.to_string(),
        ]
    };
    let heads = [
        "ROUTE", "LISTENER", "OVER", "OPEN", "TOTAL", "UP", "DOWN", "LOST",
    ];
    print_columns(heads, overview.listeners.iter().map(row).collect());
    if groups.groups.is_empty() {
        return Ok(());
    }
    println!();
    let rows = groups.groups.iter().flat_map(member_rows).collect();
    print_columns(["GROUP", "KIND", "MEMBER", "", "HEALTH", "REASON"], rows);
    Ok(())
}

fn member_rows(group: &Group) -> impl Iterator<Item = [String; 6]> {
    let row = |member: &Member| {
        [
            sanitize_for_terminal(&group.name),
            group.kind.to_string(),
            sanitize_for_terminal(&member.name),
            match member.selected {
                Some(true) => "selected".to_owned(),
                _ => String::new(),
            },
            member.health(),
            member.reason.to_string(),
        ]
    };
    group.members.iter().map(row)
}
