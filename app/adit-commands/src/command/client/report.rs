//! Output of `adit client`, as text or as JSON.

use adit_cli::{CommandResult, Failure};
use adit_config::{Plan, ServerHop};
use adit_engine::Engine;
use adit_shadowsocks::KeyChain;
use serde_json::{Value, json};

use super::{AcceptedClient, check_server};
use crate::command::plan_keys::plan_keys;
use crate::command::run;
use crate::{args, json};

/// Prints the warnings of the plan, unless they are a part of the document.
pub(in crate::command) fn print_warnings(typed: &args::ClientArgs, plan: &Plan) {
    if !typed.json.json {
        run::print_warnings(plan);
    }
}

/// Checks once whether the server accepts this client, and prints the finding.
pub(in crate::command) async fn check(
    typed: &args::ClientArgs,
    server: Option<(&ServerHop, KeyChain)>,
    subscription: Option<Value>,
) -> CommandResult {
    let accepted = check_server(server, typed.clock.as_ref()).await?;
    match typed.json.json {
        true => {
            let mut finding = accepted_value(&accepted);
            add_subscription(&mut finding, subscription);
            json::print_result("client", &finding);
        }
        false => eprintln!("{accepted}"),
    }
    Ok(())
}

/// Prints the listeners and keys as JSON. As text they are printed by the start itself.
pub(in crate::command) fn print_start(
    typed: &args::ClientArgs,
    plan: &Plan,
    engine: &Engine,
    subscription: Option<Value>,
) {
    if !typed.json.json {
        return;
    }
    let listeners = engine.listeners();
    let listeners: Vec<String> = listeners.iter().map(|l| l.addr.to_string()).collect();
    let mut started = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "listeners": listeners,
        "keys": plan_keys(plan),
        "warnings": json::warnings_of(plan),
    });
    add_subscription(&mut started, subscription);
    json::print_event("client", "listening", &started);
}

/// Prints what a running client has found out about its server. It keeps running.
pub(super) fn print_finding(typed: &args::ClientArgs, found: Result<AcceptedClient, Failure>) {
    match (found, typed.json.json) {
        (Ok(accepted), true) => {
            json::print_event("client", "probe", &accepted_value(&accepted));
        }
        (Ok(accepted), false) => eprintln!("{accepted}"),
        (Err(failure), true) => {
            let finding = json!({ "accepted": false, "problem": json::finding_value(&failure) });
            json::print_event("client", "probe", &finding);
        }
        (Err(failure), false) => {
            let _ = failure.print_and_exit_code();
        }
    }
}

fn accepted_value(accepted: &AcceptedClient) -> Value {
    json!({
        "accepted": true,
        "server": accepted.server.to_string(),
        "keyId": accepted.key_id,
        "method": accepted.method.name(),
        "clockDifferenceSeconds": accepted.skew,
    })
}

fn add_subscription(document: &mut Value, subscription: Option<Value>) {
    if let (Some(document), Some(subscription)) = (document.as_object_mut(), subscription) {
        document.insert("subscription".to_owned(), subscription);
    }
}
