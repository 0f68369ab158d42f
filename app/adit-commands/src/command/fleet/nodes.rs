//! `adit fleet status`, `node` and `drain`.

use std::time::{Duration, Instant};

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::text::sanitize_for_terminal;
use adit_fleet::{NodeOp, NodeServer, NodeState, NodeView};
use serde::Serialize;
use serde_json::json;
use tokio::time::sleep;

use super::interrupt::run;
use super::logins;
use super::node_view::table;
use super::realm::Realm;
use crate::args::fleet::{FleetDrainArgs, FleetNodeCommand, FleetStatusArgs};
use crate::json;

/// Maximum length of a node's name, in bytes.
const MAX_NAME: usize = 64;
/// Time between two looks at a draining node.
const LOOK: Duration = Duration::from_millis(500);

/// The nodes and the realm, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusJson<'a> {
    realm: &'a str,
    store: &'a str,
    /// The number of the last change.
    change: u64,
    is_well: bool,
    nodes: &'a [NodeView],
}

pub(super) fn run_status(typed: &FleetStatusArgs) -> CommandResult {
    let (realm, nodes, change) = run(async {
        let realm = Realm::open(typed.operator.membership.as_deref()).await?;
        let nodes = realm.nodes().await?;
        let change = realm.ask(realm.store.head()).await?;
        Ok((realm, nodes, change))
    })?;
    let ill: Vec<&NodeView> = nodes.iter().filter(|node| !node.is_well()).collect();
    if typed.json.json {
        json::print_result(
            "fleet status",
            &StatusJson {
                realm: &realm.membership.realm,
                store: realm.at(),
                change: change.0,
                is_well: ill.is_empty(),
                nodes: &nodes,
            },
        );
    } else {
        println!("realm {}, change {change}", realm.shown());
        if nodes.is_empty() {
            println!("no nodes: `adit fleet token` prints a token for one");
        }
        for line in table(&nodes).iter().filter(|_| !nodes.is_empty()) {
            println!("{line}");
        }
    }
    match ill.is_empty() {
        true => Ok(()),
        // What is wrong has been printed.
        false => Err(Failure::Exit {
            status: FailureCode::Failure as u8,
            why: None,
        }),
    }
}

pub(super) fn run_node(command: &FleetNodeCommand) -> CommandResult {
    match command {
        FleetNodeCommand::Show(typed) => {
            let (node, servers) = run(async {
                let realm = Realm::open(typed.operator.membership.as_deref()).await?;
                let entry = realm.find_node(&typed.node).await?;
                let now = realm.ask(realm.store.time()).await? / 1000;
                let view = NodeView::new(&entry, now);
                let status = entry.status.unwrap_or_default();
                let public = status.public_host.unwrap_or_else(|| "?".to_owned());
                let line = |server: NodeServer| {
                    let host = if server.host.is_empty() {
                        &public
                    } else {
                        &server.host
                    };
                    let NodeServer {
                        name,
                        dialect,
                        method,
                        port,
                        ..
                    } = &server;
                    let method = if method.is_empty() {
                        ""
                    } else {
                        &format!(" {method}")
                    };
                    format!("{name}: {dialect}{method} at {host}:{port}")
                };
                let servers: Vec<String> = status.servers.into_iter().map(line).collect();
                Ok((view, servers))
            })?;
            if typed.json.json {
                let mut about = serde_json::to_value(&node).unwrap_or_default();
                if let Some(about) = about.as_object_mut() {
                    about.insert("servers".to_owned(), json!(servers));
                }
                json::print_result("fleet node show", &about);
                return Ok(());
            }
            for line in table(std::slice::from_ref(&node)) {
                println!("{line}");
            }
            println!("number        {}", node.id);
            println!("weight        {}", node.weight);
            println!("change        {}", node.change);
            for server in servers {
                println!("server        {}", sanitize_for_terminal(&server));
            }
            Ok(())
        }
        FleetNodeCommand::Rename(typed) => {
            check_name(&typed.name)?;
            let id = run(async {
                let realm = Realm::open(typed.operator.membership.as_deref()).await?;
                let mut node = realm.find_node(&typed.node).await?;
                let before = std::mem::replace(&mut node.record.name, typed.name.clone());
                realm
                    .ask(realm.store.put_node(node.id, &node.record))
                    .await?;
                let about = json!({ "node": node.id, "name": typed.name, "before": before });
                realm.audit("node rename", about).await;
                Ok(node.id)
            })?;
            let result = json!({ "id": id, "name": typed.name });
            print_done("fleet node rename", typed.json.json, &result, || {
                format!("{}  is the name of node {id}", shown(&typed.name))
            });
            Ok(())
        }
        FleetNodeCommand::Weight(typed) => {
            let name = run(async {
                let realm = Realm::open(typed.operator.membership.as_deref()).await?;
                let mut node = realm.find_node(&typed.node).await?;
                node.record.weight = typed.weight.into();
                realm
                    .ask(realm.store.put_node(node.id, &node.record))
                    .await?;
                let about = json!({ "node": node.id, "weight": typed.weight });
                realm.audit("node weight", about).await;
                Ok(node.record.name)
            })?;
            let result = json!({ "name": name, "weight": typed.weight });
            print_done("fleet node weight", typed.json.json, &result, || {
                format!("{}  weight {}", shown(&name), typed.weight)
            });
            Ok(())
        }
        FleetNodeCommand::Remove(typed) => {
            let (id, name, note) = run(async {
                let realm = Realm::open(typed.operator.membership.as_deref()).await?;
                let node = realm.find_node(&typed.node).await?;
                let note = logins::remove_node(&realm.membership, node.id).await;
                realm.ask(realm.store.remove_node(node.id)).await?;
                let about = json!({ "node": node.id, "name": node.record.name });
                realm.audit("node remove", about).await;
                Ok((node.id, node.record.name, note))
            })?;
            let result = json!({ "id": id, "name": name, "note": note });
            print_done("fleet node remove", typed.json.json, &result, || {
                let note = note
                    .as_ref()
                    .map_or_else(String::new, |note| format!("\nnote          {note}"));
                format!("{}  removed{note}", shown(&name))
            });
            Ok(())
        }
    }
}

/// Checks the name of a node.
pub(super) fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace();
    // A number would name another node.
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_plain) && !is_number {
        return Ok(());
    }
    let what = format!("`{}` is no name for a node", shown(name));
    Err(Failure::new(FailureCode::Usage, what).with_hint(format!(
        "a name has 1 to {MAX_NAME} bytes, no blanks, and not only digits: `--node paris`"
    )))
}

fn shown(name: &str) -> String {
    sanitize_for_terminal(name)
}

fn print_done(
    command: &str,
    is_json: bool,
    result: &impl Serialize,
    text: impl FnOnce() -> String,
) {
    match is_json {
        true => json::print_result(command, result),
        false => println!("{}", text()),
    }
}

/// Has a node drain, or serve again.
pub(in crate::command) async fn set_drain(
    realm: &Realm,
    node: u32,
    is_drain: bool,
) -> Result<(), Failure> {
    let mut entry = realm.find_node(&node.to_string()).await?;
    // The record is what a node that restarts reads; the operation is what the running one hears at once.
    let (state, op) = match is_drain {
        true => (NodeState::Draining, NodeOp::Drain),
        false => (NodeState::Active, NodeOp::Undrain),
    };
    entry.record.state = state;
    realm.ask(realm.store.put_node(node, &entry.record)).await?;
    realm.send(node, &op).await?;
    let action = if is_drain { "drain" } else { "undrain" };
    realm
        .audit(action, json!({ "node": node, "name": entry.record.name }))
        .await;
    Ok(())
}

pub(super) fn run_drain(typed: &FleetDrainArgs) -> CommandResult {
    let membership = typed.operator.membership.as_deref();
    let node = run(async {
        let (realm, id) = match &typed.node {
            Some(word) => {
                let realm = Realm::open(membership).await?;
                let id = realm.find_node(word).await?.id;
                (realm, id)
            }
            None => Realm::open_own(membership).await?,
        };
        set_drain(&realm, id, !typed.undo).await?;
        if !typed.wait {
            return node_of(&realm, id).await;
        }
        let (node, is_late) = wait_drained(&realm, id, typed.timeout).await?;
        // A service that stops does so whatever is open.
        match is_late && typed.node.is_some() {
            true => Err(late(&node, typed.timeout)),
            false => Ok(node),
        }
    })?;
    print_done("fleet drain", typed.json.json, &node, || {
        let name = shown(&node.name);
        match (typed.undo, node.state.as_str()) {
            (true, _) => format!("{name}  is in service"),
            (false, "drained") => format!("{name}  has drained"),
            (false, "missing") => format!("{name}  will drain when it starts: it is not running"),
            (false, _) => format!("{name}  drains, {} sessions open", node.sessions),
        }
    });
    Ok(())
}

/// Returns the failure of a node that has not drained in time.
fn late(node: &NodeView, limit: Duration) -> Failure {
    let what = format!(
        "{} still has {} sessions after {} s",
        shown(&node.name),
        node.sessions,
        limit.as_secs()
    );
    Failure::new(FailureCode::Failure, what)
        .with_hint("it drains on; `adit fleet drain NODE --undo` puts it back into service")
}

async fn node_of(realm: &Realm, id: u32) -> Result<NodeView, Failure> {
    let nodes = realm.nodes().await?;
    nodes.into_iter().find(|node| node.id == id).ok_or_else(|| {
        Failure::new(FailureCode::Failure, format!("node {id} was removed"))
            .with_hint("`adit fleet status` lists the nodes")
    })
}

/// Waits until a node has no sessions any more, or has stopped. The second value is true if it is late.
async fn wait_drained(
    realm: &Realm,
    id: u32,
    limit: Duration,
) -> Result<(NodeView, bool), Failure> {
    let since = Instant::now();
    loop {
        let node = node_of(realm, id).await?;
        if matches!(node.state.as_str(), "drained" | "missing") {
            return Ok((node, false));
        }
        if since.elapsed() >= limit {
            return Ok((node, true));
        }
        sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_nodes_are_words() {
        for name in ["paris", "fra-1.example", "東京"] {
            check_name(name).unwrap();
        }
        for name in ["", "12", "a b", "a\u{1b}b", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
