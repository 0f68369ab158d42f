//! `adit fleet push` and `pull`: a fleet without a store server.
//!
//! ```text
//! operator: file of the realm ── sealed users, over SSH ──▶ node: file of its own, which its process follows
//!           sum of usage      ◀── totals, over SSH ───────  node
//! ```
//!
//! The node's end is in `push_target`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::text::sanitize_for_terminal;
use adit_fleet::{
    DEFAULT_WEIGHT, Membership, NodeEntry, NodeRecord, NodeState, PeriodLabel, RealmInfo, Role,
    Snapshot, UsageBatch, UserTotal, UserUsage,
};
use adit_net::persistent_file::{read_bounded, write_atomically};
use adit_wire::{QuotaPeriod, UnixTime};
use serde::{Deserialize, Serialize};
use serde_json::json;
use zeroize::Zeroizing;

use super::interrupt::run;
use super::nodes::check_name;
use super::realm::Realm;
use crate::args::fleet::FleetPushArgs;
use crate::json;

/// Maximum number of entries of a batch of usage.
const MAX_BATCH: usize = adit_fleet::usage_batch::MAX_BATCH;
/// A machine of the file of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NodeHost {
    /// `[user@]host`.
    host: String,
    port: Option<u16>,
    name: String,
}

/// The data that a node receives.
#[derive(Serialize, Deserialize)]
pub(super) struct Bundle {
    pub(super) membership: Membership,
    pub(super) info: RealmInfo,
    pub(super) users: Snapshot,
}

/// The report of a node.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) realm: String,
    pub(super) node: u32,
    pub(super) usage: Vec<UserTotal>,
}

/// The totals of a node at the last pull, and before it: the store may not have the last batch yet.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
struct Pulled {
    number: u64,
    before: Vec<UserTotal>,
    after: Vec<UserTotal>,
}

/// Reads the file of nodes: `[user@]host[:port] [NAME]` in each line.
fn parse_hosts(text: &str) -> Result<Vec<NodeHost>, String> {
    let mut hosts: Vec<NodeHost> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(address) = words.next() else {
            continue;
        };
        let wrong = |why: &str| format!("line {}: {why}", at + 1);
        let (host, port) = match address.rsplit_once(':') {
            // An IPv6 address has several.
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                let port = port.parse().map_err(|_| wrong("no port"))?;
                (host, Some(port))
            }
            _ => (address, None),
        };
        let bare = host.rsplit_once('@').map_or(host, |(_, bare)| bare);
        let bare = bare.trim_matches(['[', ']']);
        if bare.is_empty() || host.starts_with('-') {
            return Err(wrong("no host"));
        }
        let name = words.next().unwrap_or(bare).to_owned();
        if words.next().is_some() {
            return Err(wrong("more than a host and a name"));
        }
        if hosts.iter().any(|known| known.name == name) {
            return Err(wrong("a name that another line has"));
        }
        hosts.push(NodeHost {
            host: host.replace(['[', ']'], ""),
            port,
            name,
        });
    }
    match hosts.is_empty() {
        true => Err("no nodes: one `[user@]host[:port] [NAME]` per line".to_owned()),
        false => Ok(hosts),
    }
}

fn read_hosts(path: &Path) -> Result<Vec<NodeHost>, Failure> {
    let failed = |why: String| {
        Failure::new(FailureCode::Config, format!("{}: {why}", path.display()))
            .with_hint("each line is `[user@]host[:port] [NAME]`")
    };
    let text =
        adit_config::text::read_file(path, 1 << 20).map_err(|why| failed(why.to_string()))?;
    let hosts = parse_hosts(&text.text).map_err(failed)?;
    for host in &hosts {
        check_name(&host.name)?;
    }
    Ok(hosts)
}

impl FleetPushArgs {
    /// Runs a command of adit on a node, and returns what it prints.
    fn run_on(&self, node: &NodeHost, words: &str, input: &[u8]) -> Result<Vec<u8>, String> {
        let own = std::env::current_exe().map_err(|why| why.to_string())?;
        let mut command = Command::new(own);
        command.args(["ssh", "-o", "BatchMode=yes"]);
        if let Some(file) = &self.ssh_config {
            command.arg("-F").arg(file);
        }
        if let Some(port) = node.port {
            command.arg("-p").arg(port.to_string());
        }
        command.arg(&node.host);
        command.arg(format!("{} {words}", self.program));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|why| why.to_string())?;
        let written = child
            .stdin
            .take()
            .map_or(Ok(()), |mut stdin| stdin.write_all(input));
        let output = child.wait_with_output().map_err(|why| why.to_string())?;
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            let lines = told.lines().filter(|line| !line.trim().is_empty());
            let why = lines.take(2).collect::<Vec<_>>().join("; ");
            return Err(match why.is_empty() {
                true => format!("`adit ssh` has ended with {}", output.status),
                false => sanitize_for_terminal(&why),
            });
        }
        written.map_err(|why| why.to_string())?;
        Ok(output.stdout)
    }
}

/// The outcome at each node.
type Outcomes = Vec<(String, Result<u64, String>)>;

fn print_outcomes(command: &str, is_json: bool, what: &str, outcomes: &Outcomes) -> CommandResult {
    let failed = outcomes.iter().filter(|(_, done)| done.is_err()).count();
    if is_json {
        let nodes: Vec<_> = outcomes
            .iter()
            .map(|(name, done)| match done {
                Ok(count) => json!({ "node": name, "count": count, "error": null }),
                Err(why) => json!({ "node": name, "count": null, "error": why }),
            })
            .collect();
        json::print_result(command, &json!({ "nodes": nodes }));
    } else {
        for (name, done) in outcomes {
            match done {
                Ok(count) => println!("{}  {count} {what}", sanitize_for_terminal(name)),
                Err(why) => println!("{}  failed: {why}", sanitize_for_terminal(name)),
            }
        }
    }
    match failed {
        0 => Ok(()),
        // Each failure has been printed.
        _ => Err(Failure::Exit {
            status: FailureCode::Network as u8,
            why: None,
        }),
    }
}

pub(super) fn run_push(typed: &FleetPushArgs) -> CommandResult {
    let hosts = read_hosts(&typed.nodes)?;
    let (realm, info, users, nodes) = run(async {
        let realm = Realm::open(typed.operator.membership.as_deref()).await?;
        let info = realm.ask(realm.store.realm_info()).await?;
        let users = realm.ask(realm.store.snapshot()).await?;
        let known = realm.ask(realm.store.nodes()).await?;
        let mut nodes = Vec::new();
        for host in &hosts {
            nodes.push(node_number(&realm, &known, &host.name).await?);
        }
        realm
            .audit(
                "push",
                json!({ "nodes": hosts.len(), "change": users.version.0 }),
            )
            .await;
        Ok((realm, info, users, nodes))
    })?;
    let count = u64::try_from(users.users.len()).unwrap_or(u64::MAX);
    let mut outcomes = Vec::new();
    for (host, id) in hosts.iter().zip(nodes) {
        let own = &realm.membership;
        let membership = Membership {
            role: Role::Node,
            node_id: Some(id),
            name: host.name.clone(),
            // The node has a file of its own, which the receiver names.
            store: String::new(),
            store_user: None,
            store_password: None,
            ca_pem: None,
            ..own.clone()
        };
        let bundle = Bundle {
            membership,
            info: info.clone(),
            users: users.clone(),
        };
        let pushed = serde_json::to_vec(&bundle).map(Zeroizing::new);
        let pushed = pushed.map_err(|why| why.to_string());
        let pushed = pushed.and_then(|input| typed.run_on(host, "fleet receive", &input));
        outcomes.push((host.name.clone(), pushed.map(|_| count)));
    }
    print_outcomes("fleet push", typed.json.json, "users", &outcomes)
}

/// Returns the number of the node with this name, which is assigned now if there is none.
async fn node_number(realm: &Realm, known: &[NodeEntry], name: &str) -> Result<u32, Failure> {
    if let Some(node) = known.iter().find(|node| node.record.name == name) {
        return Ok(node.id);
    }
    let record = NodeRecord {
        name: name.to_owned(),
        weight: DEFAULT_WEIGHT,
        state: NodeState::Active,
        joined_unix: realm.ask(realm.store.time()).await? / 1000,
    };
    realm.ask(realm.store.add_node(&record)).await
}

pub(super) fn run_pull(typed: &FleetPushArgs) -> CommandResult {
    let hosts = read_hosts(&typed.nodes)?;
    let membership = super::realm::operator_file(typed.operator.membership.as_deref())?;
    let mut outcomes = Vec::new();
    for host in &hosts {
        let report = typed.run_on(host, "fleet report", &[]);
        let report = report.and_then(|text| {
            let report: Result<Report, _> = serde_json::from_slice(&text);
            report.map_err(|_| "it has reported something unexpected".to_owned())
        });
        let done = match report {
            Ok(report) => run(add_report(&membership, &host.name, &report))?,
            Err(why) => Err(why),
        };
        outcomes.push((host.name.clone(), done));
    }
    print_outcomes("fleet pull", typed.json.json, "new bytes", &outcomes)
}

/// Adds what a node has counted since the last pull, once.
async fn add_report(
    membership: &Path,
    name: &str,
    report: &Report,
) -> Result<Result<u64, String>, Failure> {
    let realm = Realm::open(Some(membership)).await?;
    let node = realm.find_node(name).await?.id;
    if report.node != node || report.realm != realm.membership.realm {
        return Ok(Err(
            "it is another node, or belongs to another realm".to_owned()
        ));
    }
    let file = membership.with_extension(format!("pulled-{node}.json"));
    let failed = |why: String| {
        Failure::new(FailureCode::Failure, format!("{}: {why}", file.display()))
            .with_hint("without this file, a pull would count what it has counted before")
    };
    let pulled: Pulled = match read_bounded(&file, MAX_STATE) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Pulled::default(),
        Err(why) => return Err(failed(why.to_string())),
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|why| failed(why.to_string()))?,
    };
    let last = realm.ask(realm.store.last_batch(node)).await?;
    // What was not added is added with the rest.
    let mut base = if pulled.number > last {
        pulled.before
    } else {
        pulled.after
    };
    let now = UnixTime(realm.ask(realm.store.time()).await? / 1000);
    forget_old_periods(&mut base, now);
    let entries = difference(&base, &report.usage);
    let bytes = entries
        .iter()
        .map(|entry| entry.up.saturating_add(entry.down))
        .fold(0, u64::saturating_add);
    // Several batches of one pull are one step for the file: it names the last.
    let batches: Vec<UsageBatch> = (last + 1..)
        .zip(entries.chunks(MAX_BATCH))
        .map(|(number, entries)| UsageBatch {
            number,
            entries: entries.to_vec(),
        })
        .collect();
    for batch in &batches {
        let before = apply(&base, &batches, batch.number);
        let next = Pulled {
            number: batch.number,
            after: apply(&base, &batches, batch.number + 1),
            before,
        };
        let text = serde_json::to_vec(&next).map_err(|why| failed(why.to_string()))?;
        write_atomically(&file, &text).map_err(|why| failed(why.to_string()))?;
        realm.ask(realm.store.add_usage(node, batch)).await?;
    }
    Ok(Ok(bytes))
}

/// Maximum size of the file of a node's totals.
const MAX_STATE: usize = 256 << 20;

pub(super) fn kept_labels(now: UnixTime) -> impl Iterator<Item = PeriodLabel> {
    let periods = QuotaPeriod::ALL.into_iter();
    periods.flat_map(move |period| PeriodLabel::kept(period, now))
}

/// Removes totals of periods that no node reports any more. The clocks of nodes may be a day behind.
fn forget_old_periods(totals: &mut Vec<UserTotal>, now: UnixTime) {
    let yesterday = UnixTime(now.0.saturating_sub(86_400));
    let kept: BTreeSet<PeriodLabel> = kept_labels(now).chain(kept_labels(yesterday)).collect();
    totals.retain(|total| kept.contains(&total.period));
}

/// Returns what is in the new totals and not in the old ones. A node that has lost its file starts from zero.
fn difference(old: &[UserTotal], new: &[UserTotal]) -> Vec<UserUsage> {
    let old: BTreeMap<(&PeriodLabel, u32), &UserTotal> = old
        .iter()
        .map(|total| ((&total.period, total.user), total))
        .collect();
    let added = |new: &UserTotal| {
        let (up, down) = match old.get(&(&new.period, new.user)) {
            Some(old) if old.up <= new.up && old.down <= new.down => {
                (new.up - old.up, new.down - old.down)
            }
            _ => (new.up, new.down),
        };
        (up > 0 || down > 0).then(|| UserUsage {
            user: new.user,
            period: new.period.clone(),
            up,
            down,
        })
    };
    new.iter().filter_map(added).collect()
}

/// Returns the totals with the batches before `until`.
fn apply(base: &[UserTotal], batches: &[UsageBatch], until: u64) -> Vec<UserTotal> {
    let mut totals: BTreeMap<(PeriodLabel, u32), [u64; 2]> = base
        .iter()
        .map(|total| ((total.period.clone(), total.user), [total.up, total.down]))
        .collect();
    let before = batches.iter().filter(|batch| batch.number < until);
    for entry in before.flat_map(|batch| &batch.entries) {
        let sums = totals
            .entry((entry.period.clone(), entry.user))
            .or_default();
        for (sum, more) in sums.iter_mut().zip([entry.up, entry.down]) {
            *sum = sum.saturating_add(more);
        }
    }
    let total = |((period, user), [up, down]): ((PeriodLabel, u32), [u64; 2])| UserTotal {
        user,
        period,
        up,
        down,
    };
    totals.into_iter().map(total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_lines() {
        let text =
            "# ours\nroot@a.example:22 paris\n\n b.example # no name\n[2001:db8::1]:2222 v6\n";
        let hosts = parse_hosts(text).unwrap();
        let of = |host: &str, port, name: &str| NodeHost {
            host: host.to_owned(),
            port,
            name: name.to_owned(),
        };
        assert_eq!(
            hosts,
            [
                of("root@a.example", Some(22), "paris"),
                of("b.example", None, "b.example"),
                of("2001:db8::1", Some(2222), "v6"),
            ]
        );
        for (text, why) in [
            ("", "no nodes"),
            ("a:x", "line 1: no port"),
            ("a b c", "line 1: more than"),
            ("a n\nb n", "line 2: a name that"),
            ("-oProxyCommand=x", "line 1: no host"),
        ] {
            assert!(parse_hosts(text).unwrap_err().contains(why), "{text}");
        }
    }

    fn total(user: u32, up: u64, down: u64) -> UserTotal {
        UserTotal {
            user,
            period: PeriodLabel::new(QuotaPeriod::Total, UnixTime(0)),
            up,
            down,
        }
    }

    #[test]
    fn usage_is_added_once() {
        let old = [total(1, 5, 5), total(2, 9, 9)];
        let new = [total(1, 7, 5), total(2, 9, 9), total(3, 1, 0)];
        let entries = difference(&old, &new);
        let moved: Vec<_> = entries
            .iter()
            .map(|one| (one.user, one.up, one.down))
            .collect();
        assert_eq!(moved, [(1, 2, 0), (3, 1, 0)]);
        // A node that counts from zero again.
        let moved = difference(&old, &[total(1, 3, 0)]);
        assert_eq!((moved[0].up, moved[0].down), (3, 0));
        let batches = vec![UsageBatch { number: 4, entries }];
        assert_eq!(apply(&old, &batches, 5), new);
        assert_eq!(apply(&old, &batches, 4), old);
    }

    #[test]
    fn totals_of_old_periods_are_forgotten() {
        let now = UnixTime(1_795_867_200);
        let mut totals: Vec<UserTotal> = ["total", "2026-11", "2026-10", "2020-01", "2020-01-01"]
            .map(|label| UserTotal {
                period: PeriodLabel::from_text(label).unwrap(),
                ..total(1, 1, 1)
            })
            .into();
        forget_old_periods(&mut totals, now);
        let labels: Vec<&str> = totals.iter().map(|one| one.period.as_str()).collect();
        assert_eq!(labels, ["total", "2026-11", "2026-10"]);
    }
}
