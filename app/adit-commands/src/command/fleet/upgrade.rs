//! `adit fleet upgrade`: the nodes replace their programs one after the other.
//!
//! ```text
//! canary: operation ─▶ new process ─▶ watched ─┬─▶ the others, N at a time
//!                                              └─▶ fault: the old program again, and the end
//! ```
//!
//! A node performs the operation as `adit upgrade` does: the new process continues the sockets of the old one, and no
//! connection is closed.

use std::time::{Duration, Instant};

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::text::sanitize_for_terminal;
use adit_fleet::{NodeEntry, NodeOp, NodeState, NodeStatus};
use serde_json::json;
use tokio::time::sleep;

use super::interrupt::run;
use super::realm::Realm;
use crate::args::fleet::FleetUpgradeArgs;
use crate::json;

/// Time limit of a node for the start of its new process and the first report of it.
const START: Duration = Duration::from_secs(120);
/// Time between two looks at the nodes.
const LOOK: Duration = Duration::from_secs(1);
/// Failures among 10,000 sessions that are no fault, however few the other nodes have.
const FEW_ERRORS: u32 = 50;
/// Time of handshakes that is no fault, however fast the other nodes are, in microseconds.
const FAST_HANDSHAKE: u64 = 20_000;

/// A node that is upgraded, as it was before.
#[derive(Debug, Clone)]
struct Subject {
    id: u32,
    name: String,
    before: NodeStatus,
}

/// The figures that a canary is compared with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Figures {
    errors: u32,
    handshake: u64,
}

impl Figures {
    const fn of(status: &NodeStatus) -> Self {
        Self {
            errors: status.errors_per_10000,
            handshake: status.handshake_p99_us,
        }
    }

    /// Returns the medians of several nodes.
    fn median(all: &[Self]) -> Self {
        fn middle<T: Copy + Ord + Default>(values: impl Iterator<Item = T>) -> T {
            let mut values: Vec<T> = values.collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or_default()
        }
        Self {
            errors: middle(all.iter().map(|one| one.errors)),
            handshake: middle(all.iter().map(|one| one.handshake)),
        }
    }

    /// Returns the fault of a node beside these medians.
    fn fault_of(self, node: Self) -> Option<String> {
        let errors = self.errors.saturating_mul(2).max(FEW_ERRORS);
        let handshake = self.handshake.saturating_mul(2).max(FAST_HANDSHAKE);
        if node.errors > errors {
            return Some(format!(
                "{:.2} % of sessions fail, {:.2} % at the median node",
                f64::from(node.errors) / 100.0,
                f64::from(self.errors) / 100.0
            ));
        }
        if node.handshake > handshake {
            return Some(format!(
                "handshakes take {} ms (p99), {} ms at the median node",
                node.handshake / 1000,
                self.handshake / 1000
            ));
        }
        None
    }
}

pub(super) fn run_upgrade(typed: &FleetUpgradeArgs) -> CommandResult {
    let is_json = typed.json.json;
    run(async {
        let realm = Realm::open(typed.operator.membership.as_deref()).await?;
        let entries = realm.ask(realm.store.nodes()).await?;
        let subjects = choose(&realm, &entries, &typed.node).await?;
        let Some((canary, others)) = subjects.split_first() else {
            let what = "no node is in service";
            return Err(Failure::new(FailureCode::Failure, what)
                .with_hint("`adit fleet status` lists the nodes"));
        };
        let others_before: Vec<Figures> = entries
            .iter()
            .filter(|node| node.id != canary.id)
            .filter_map(|node| node.status.as_ref().map(Figures::of))
            .collect();
        // A realm with one node is compared with what it was.
        let median = match others_before.is_empty() {
            true => Figures::of(&canary.before),
            false => Figures::median(&others_before),
        };
        let names: Vec<&str> = subjects.iter().map(|node| node.name.as_str()).collect();
        realm.audit("upgrade", json!({ "nodes": names })).await;
        let program = typed.program.as_deref();
        upgrade(&realm, std::slice::from_ref(canary), program, is_json).await?;
        if let Err(why) = watch(&realm, canary, median, typed.canary, is_json).await {
            return Err(give_up(&realm, canary, typed.previous.as_deref(), why).await);
        }
        for group in others.chunks(typed.max_unavailable.into()) {
            upgrade(&realm, group, program, is_json).await?;
        }
        let done = json!({ "nodes": names });
        match is_json {
            true => json::print_event("fleet upgrade", "done", &done),
            false => println!("{} nodes upgraded", names.len()),
        }
        Ok(())
    })
}

/// Returns the nodes to upgrade: those in service, or those that were named.
async fn choose(
    realm: &Realm,
    entries: &[NodeEntry],
    typed: &[String],
) -> Result<Vec<Subject>, Failure> {
    let subject = |node: &NodeEntry| {
        Some(Subject {
            id: node.id,
            name: node.record.name.clone(),
            before: node.status.clone()?,
        })
    };
    if typed.is_empty() {
        let in_service = entries
            .iter()
            .filter(|node| node.record.state == NodeState::Active);
        return Ok(in_service.filter_map(subject).collect());
    }
    let mut chosen = Vec::new();
    for word in typed {
        let node = realm.find_node(word).await?;
        chosen.push(subject(&node).ok_or_else(|| {
            let what = format!("{} is not running", sanitize_for_terminal(word));
            Failure::new(FailureCode::Failure, what).with_hint("start it first")
        })?);
    }
    Ok(chosen)
}

/// Upgrades nodes at the same time, and waits for their new processes.
async fn upgrade(
    realm: &Realm,
    nodes: &[Subject],
    program: Option<&str>,
    is_json: bool,
) -> Result<(), Failure> {
    let op = NodeOp::Upgrade {
        program: program.map(str::to_owned),
    };
    for node in nodes {
        realm.send(node.id, &op).await?;
    }
    let since = Instant::now();
    let mut waiting: Vec<&Subject> = nodes.iter().collect();
    while !waiting.is_empty() {
        if since.elapsed() >= START {
            let names: Vec<&str> = waiting.iter().map(|node| node.name.as_str()).collect();
            let what = sanitize_for_terminal(&format!(
                "{} did not report a new process within {} s",
                names.join(", "),
                START.as_secs()
            ));
            return Err(Failure::new(FailureCode::Failure, what).with_hint(HINT));
        }
        sleep(LOOK).await;
        let entries = realm.ask(realm.store.nodes()).await?;
        let mut left = Vec::new();
        for node in waiting {
            let now = entries.iter().find(|entry| entry.id == node.id);
            match outcome(&node.before, now.and_then(|entry| entry.status.as_ref())) {
                Outcome::Pending => left.push(node),
                Outcome::Failed(why) => {
                    let what = format!("{} was not upgraded, and continues: {why}", node.name);
                    return Err(
                        Failure::new(FailureCode::Failure, sanitize_for_terminal(&what))
                            .with_hint(HINT),
                    );
                }
                Outcome::Done(version) => print_upgraded(node, &version, is_json),
            }
        }
        waiting = left;
    }
    Ok(())
}

const HINT: &str = "the nodes after it were not touched; its log says why";

fn print_upgraded(node: &Subject, version: &str, is_json: bool) {
    if is_json {
        let result = json!({ "node": node.name, "id": node.id, "version": version, "before": node.before.version });
        json::print_event("fleet upgrade", "upgraded", &result);
        return;
    }
    let text = format!(
        "{}  upgraded from {} to {version}",
        node.name, node.before.version
    );
    println!("{}", sanitize_for_terminal(&text));
}

/// The outcome of an upgrade so far.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Pending,
    /// Another process reports, of this version.
    Done(String),
    /// The old process continues, for this reason.
    Failed(String),
}

fn outcome(before: &NodeStatus, now: Option<&NodeStatus>) -> Outcome {
    let Some(now) = now else {
        return Outcome::Pending;
    };
    if now.instance != before.instance {
        return Outcome::Done(now.version.clone());
    }
    match &now.upgrade {
        // That of an earlier upgrade.
        result if *result == before.upgrade => Outcome::Pending,
        Some(why) => Outcome::Failed(why.clone()),
        None => Outcome::Pending,
    }
}

/// Watches the first node for a time. Returns its fault.
async fn watch(
    realm: &Realm,
    node: &Subject,
    median: Figures,
    time: Duration,
    is_json: bool,
) -> Result<(), Failure> {
    let seconds = time.as_secs();
    match is_json {
        true => {
            let result = json!({ "node": node.name, "id": node.id, "seconds": seconds });
            json::print_event("fleet upgrade", "canary", &result);
        }
        false => {
            let name = sanitize_for_terminal(&node.name);
            println!("{name}  is watched for {seconds} s before the others follow");
        }
    }
    let since = Instant::now();
    let mut missing = 0;
    while since.elapsed() < time {
        sleep(LOOK.min(time)).await;
        let entries = realm.ask(realm.store.nodes()).await?;
        let status = entries.iter().find(|entry| entry.id == node.id);
        let fault = match status.and_then(|entry| entry.status.as_ref()) {
            None => {
                missing += 1;
                (missing > 3).then(|| "it does not report any more".to_owned())
            }
            Some(status) => {
                missing = 0;
                let fault = status.degraded.clone();
                fault.or_else(|| median.fault_of(Figures::of(status)))
            }
        };
        if let Some(fault) = fault {
            let what = format!("the upgrade has stopped after {}: {fault}", node.name);
            return Err(Failure::new(
                FailureCode::Failure,
                sanitize_for_terminal(&what),
            ));
        }
    }
    Ok(())
}

/// Has the first node run its previous program again, and returns the failure.
async fn give_up(realm: &Realm, node: &Subject, previous: Option<&str>, why: Failure) -> Failure {
    let Some(previous) = previous else {
        return why.with_hint(
            "the other nodes run the old version; `adit fleet upgrade --node NODE --program FILE` starts \
             another program on this one, `--previous FILE` does so without being asked",
        );
    };
    let op = NodeOp::Upgrade {
        program: Some(previous.to_owned()),
    };
    match realm.send(node.id, &op).await {
        Ok(_) => why.with_hint(format!(
            "{} starts {} again, and the other nodes were not touched",
            sanitize_for_terminal(&node.name),
            sanitize_for_terminal(previous)
        )),
        Err(second) => why.with_hint(format!(
            "the previous program was not started: {}",
            second.to_log_line()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn figures(errors: u32, handshake: u64) -> Figures {
        Figures { errors, handshake }
    }

    #[test]
    fn a_canary_is_compared_with_the_median() {
        let all = [figures(0, 1000), figures(10, 30_000), figures(900, 90_000)];
        let median = Figures::median(&all);
        assert_eq!(median, figures(10, 30_000));
        assert_eq!(median.fault_of(figures(50, 60_000)), None);
        assert!(median.fault_of(figures(51, 0)).unwrap().contains("0.51 %"));
        assert!(
            median
                .fault_of(figures(0, 60_001))
                .unwrap()
                .contains("60 ms")
        );
        // Little is no fault beside nothing.
        assert_eq!(Figures::default().fault_of(figures(50, 20_000)), None);
        assert_eq!(Figures::median(&[]), Figures::default());
    }

    #[test]
    fn another_process_is_an_upgrade() {
        let before = NodeStatus {
            instance: 1,
            version: "1".to_owned(),
            upgrade: Some("old news".to_owned()),
            ..NodeStatus::default()
        };
        assert_eq!(outcome(&before, None), Outcome::Pending);
        assert_eq!(outcome(&before, Some(&before)), Outcome::Pending);
        let mut now = before.clone();
        now.upgrade = Some("no such file".to_owned());
        assert_eq!(
            outcome(&before, Some(&now)),
            Outcome::Failed("no such file".to_owned())
        );
        (now.instance, now.version) = (2, "2".to_owned());
        assert_eq!(outcome(&before, Some(&now)), Outcome::Done("2".to_owned()));
    }
}
