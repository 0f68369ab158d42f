//! `adit fleet resync` and `restore`: a store server that has lost data.
//!
//! Nodes refuse a store whose change number went backwards. Both commands write the users that shall be into the store,
//! with a change number above those of all nodes, which then take them over.

use std::path::Path;
use std::time::{Duration, Instant};

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::text::sanitize_for_terminal;
use adit_fleet::{
    ChangeId, LocalState, Membership, NodeEntry, NodeOp, NodeStatus, RealmInfo, Role, Snapshot,
    StoreErrorKind,
};
use adit_net::persistent_file::read_bounded;
use serde_json::json;
use tokio::time::sleep;

use super::interrupt::run;
use super::realm::{Realm, node_file, operator_file, read_membership};
use crate::args::fleet::{FleetRestoreArgs, FleetResyncArgs};
use crate::json;

/// The file of a node's local state, in its folder.
const STATE_FILE: &str = "node.state";
/// Maximum size of that file.
const MAX_STATE: usize = 1 << 30;
/// Time limit of a node that writes its users.
const LIMIT: Duration = Duration::from_secs(60);
/// Time within which each node that runs reports.
const REPORT: Duration = Duration::from_secs(8);
/// Time within which a node that runs notices that the store has lost changes, for which it asks every five seconds, and
/// reports it.
const NOTICE: Duration = Duration::from_secs(15);
/// Time between two looks at the store.
const LOOK: Duration = Duration::from_millis(200);

/// The difference between a store and its nodes.
struct Difference {
    /// True if the store has no realm at all: it was flushed, or is another one.
    is_empty: bool,
    /// The number of the store's last change.
    head: ChangeId,
    /// The highest number of a change that a node has applied, and the node.
    highest: Option<(u64, String)>,
    /// Users in the store, and the most that a node has.
    users: u64,
    most_users: u64,
}

impl Difference {
    async fn read(realm: &Realm) -> Result<(Self, Snapshot), Failure> {
        let is_empty = match realm.store.realm_info().await {
            Err(why) if why.kind == StoreErrorKind::WrongRealm => true,
            Err(why) => return realm.ask(std::future::ready(Err(why))).await,
            Ok(info) => {
                let checked = info.check(realm.cipher());
                realm.ask(std::future::ready(checked)).await?;
                false
            }
        };
        let snapshot = match is_empty {
            true => Snapshot::default(),
            false => realm.ask(realm.store.snapshot()).await?,
        };
        let nodes = realm.nodes().await?;
        let up = nodes.iter().filter(|node| node.is_up());
        let highest = up.clone().max_by_key(|node| node.change);
        let difference = Self {
            is_empty,
            head: snapshot.version,
            highest: highest.map(|node| (node.change, node.name.clone())),
            users: u64::try_from(snapshot.users.len()).unwrap_or(u64::MAX),
            most_users: up.map(|node| node.users).max().unwrap_or(0),
        };
        Ok((difference, snapshot))
    }

    /// Returns true if a node is ahead of the store.
    fn is_behind(&self) -> bool {
        self.highest
            .as_ref()
            .is_some_and(|(change, _)| *change > self.head.0)
    }
}

pub(super) fn run_resync(typed: &FleetResyncArgs) -> CommandResult {
    let (realm, before, accepted) = run(async {
        let realm = Realm::open_operator(typed.operator.membership.as_deref())?;
        let (before, mut snapshot) = Difference::read(&realm).await?;
        if !typed.accept || !before.is_behind() {
            return Ok((realm, before, None));
        }
        if before.is_empty {
            let what = format!(
                "the store of {} is empty: all users would be dropped",
                realm.shown()
            );
            return Err(Failure::new(FailureCode::Failure, what).with_hint(
                "`adit fleet restore --from-node NODE` writes the users back that the node knows",
            ));
        }
        let info = realm.ask(realm.store.realm_info()).await?;
        if let Some((change, _)) = before.highest {
            snapshot.version = snapshot.version.max(ChangeId(change));
        }
        let number = realm.ask(realm.store.restore(&info, &snapshot)).await?;
        let about =
            json!({ "change": number.0, "users": before.users, "nodesHad": before.most_users });
        realm.audit("resync", about).await;
        Ok((realm, before, Some(number)))
    })?;
    if typed.json.json {
        let (change, node) = before.highest.clone().unzip();
        let result = json!({
            "realm": realm.membership.realm,
            "isBehind": before.is_behind(),
            "isEmpty": before.is_empty,
            "storeChange": before.head.0,
            "nodeChange": change,
            "node": node,
            "storeUsers": before.users,
            "nodeUsers": before.most_users,
            "acceptedAs": accepted.map(|number| number.0),
        });
        json::print_result("fleet resync", &result);
        return Ok(());
    }
    let Some((change, node)) = before.highest.as_ref().filter(|_| before.is_behind()) else {
        println!(
            "nothing to accept: no node that is up is ahead of change {} of the store",
            before.head
        );
        return Ok(());
    };
    println!(
        "store         change {}, {} users",
        before.head, before.users
    );
    println!(
        "nodes         change {change} at {}, {} users",
        sanitize_for_terminal(node),
        before.most_users
    );
    match accepted {
        Some(number) => {
            println!("accepted      as change {number}: all nodes take over the store's users");
        }
        None if before.is_empty => println!(
            "the store has lost everything: `adit fleet restore --from-node {}` has it take over\n\
             the nodes' users",
            sanitize_for_terminal(node)
        ),
        None => println!(
            "`adit fleet resync --accept` has the nodes take over the store's users;\n\
             `adit fleet restore --from-node {}` has the store take over the nodes'",
            sanitize_for_terminal(node)
        ),
    }
    Ok(())
}

pub(super) fn run_restore(typed: &FleetRestoreArgs) -> CommandResult {
    let word = &typed.from_node;
    let membership = membership_of(typed.operator.membership.as_deref())?;
    let (realm, users, number) = run(async {
        match membership.role {
            Role::Node => restore_from_file(membership, word, typed).await,
            Role::Operator => restore_by_node(membership, word).await,
        }
    })?;
    if typed.json.json {
        let result = json!({
            "realm": realm.membership.realm,
            "node": word,
            "users": users,
            "change": number.0,
        });
        json::print_result("fleet restore", &result);
        return Ok(());
    }
    println!(
        "restored      {users} users of {} in realm {}, as change {number}",
        sanitize_for_terminal(word),
        realm.shown()
    );
    Ok(())
}

/// Returns the typed membership; by default the operator's, or that of this node if there is none.
fn membership_of(typed: Option<&Path>) -> Result<Membership, Failure> {
    let operator = operator_file(typed)?;
    if typed.is_none() && !operator.exists() {
        let node = node_file(None)?;
        if node.exists() {
            return read_membership(&node);
        }
    }
    read_membership(&operator)
}

/// Writes the users of this node's local state, which no process uses now.
async fn restore_from_file(
    membership: Membership,
    word: &str,
    typed: &FleetRestoreArgs,
) -> Result<(Realm, u64, ChangeId), Failure> {
    let node = membership.node_id.unwrap_or_default();
    if membership.name != word && node.to_string() != word {
        let what = format!(
            "this is node {}, not {}",
            sanitize_for_terminal(&membership.name),
            sanitize_for_terminal(word)
        );
        return Err(Failure::new(FailureCode::Usage, what)
            .with_hint("run it on that node, or with the operator's membership"));
    }
    let folder = match &typed.state {
        Some(folder) => folder.clone(),
        None => {
            let file = node_file(typed.operator.membership.as_deref())?;
            file.parent().unwrap_or_else(|| Path::new(".")).to_owned()
        }
    };
    let file = folder.join(STATE_FILE);
    let failed = |why: String| {
        let what = format!("{}: {why}", file.display());
        Failure::new(FailureCode::Config, what)
            .with_hint("--state DIR is the folder `state` of the node's `[fleet]`")
    };
    let bytes = read_bounded(&file, MAX_STATE).map_err(|why| failed(why.to_string()))?;
    let content = LocalState::read_content(&bytes, &membership.realm, node);
    let content = content.map_err(|why| failed(why.to_string()))?;
    let table = content
        .table
        .ok_or_else(|| failed("it has no users yet".to_owned()))?;
    let realm = Realm::of_membership(membership)?;
    let info = realm_info(&realm).await?;
    let number = realm.ask(realm.store.restore(&info, &table)).await?;
    let users = u64::try_from(table.users.len()).unwrap_or(u64::MAX);
    realm
        .audit("restore", json!({ "node": word, "users": users }))
        .await;
    Ok((realm, users, number))
}

/// Has a running node write its users.
async fn restore_by_node(
    membership: Membership,
    word: &str,
) -> Result<(Realm, u64, ChangeId), Failure> {
    let realm = Realm::of_membership(membership)?;
    let info = realm_info(&realm).await?;
    // A flushed store has no realm, and no operation could reach the node.
    match realm.store.create_realm(&info).await {
        Err(why) if why.kind == StoreErrorKind::RealmExists => {}
        done => realm.ask(std::future::ready(done)).await?,
    }
    let node = wait_for_notice(&realm, word).await?;
    let Some(status) = &node.status else {
        let what = format!("{} is not running", sanitize_for_terminal(word));
        return Err(Failure::new(FailureCode::Failure, what).with_hint(
            "name a node that is, or run `adit fleet restore` on that node: it reads the local state",
        ));
    };
    // The node may have written its users before the next look at the store: its answer has a number above this one.
    let sent = realm.send(node.id, &NodeOp::Restore).await?;
    let held = status.change.max(sent.0);
    let since = Instant::now();
    loop {
        let head = realm.ask(realm.store.head()).await?;
        if head.0 > held {
            let snapshot = realm.ask(realm.store.snapshot()).await?;
            let users = u64::try_from(snapshot.users.len()).unwrap_or(u64::MAX);
            realm
                .audit("restore", json!({ "node": word, "users": users }))
                .await;
            return Ok((realm, users, head));
        }
        if since.elapsed() >= LIMIT {
            let what = format!(
                "{} did not write its users within {} s",
                sanitize_for_terminal(word),
                LIMIT.as_secs()
            );
            return Err(Failure::new(FailureCode::Failure, what)
                .with_hint("its log says why; another node may do it"));
        }
        sleep(LOOK).await;
    }
}

/// Returns a node. A store that was flushed knows it again as soon as it reports.
async fn reporting(realm: &Realm, word: &str) -> Result<NodeEntry, Failure> {
    let since = Instant::now();
    loop {
        let found = realm.find_node(word).await;
        let is_there = found.as_ref().is_ok_and(|node| node.status.is_some());
        if is_there || since.elapsed() >= REPORT {
            return found;
        }
        sleep(LOOK).await;
    }
}

/// Waits until a node that is ahead of the store reports that the store has lost changes. An operation for it is a change
/// of the store, whose number could then be that of the node, and hide the loss from it.
async fn wait_for_notice(realm: &Realm, word: &str) -> Result<NodeEntry, Failure> {
    let since = Instant::now();
    loop {
        let node = reporting(realm, word).await?;
        let head = realm.ask(realm.store.head()).await?;
        let is_ahead = |status: &NodeStatus| status.change > head.0 && status.degraded.is_none();
        if !node.status.as_ref().is_some_and(is_ahead) || since.elapsed() >= NOTICE {
            return Ok(node);
        }
        sleep(LOOK).await;
    }
}

/// Returns the description of the realm, also for a store that has none.
async fn realm_info(realm: &Realm) -> Result<RealmInfo, Failure> {
    match realm.store.realm_info().await {
        Ok(info) => {
            let checked = info.check(realm.cipher());
            realm.ask(std::future::ready(checked)).await?;
            Ok(info)
        }
        Err(why) if why.kind == StoreErrorKind::WrongRealm => {
            let now = realm.ask(realm.store.time()).await? / 1000;
            Ok(RealmInfo::new(realm.cipher(), now))
        }
        Err(why) => realm.ask(std::future::ready(Err(why))).await,
    }
}
