//! The node's end of `adit fleet push` and `pull`: `adit fleet receive` reads one document from standard input, and
//! `adit fleet report` prints one.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_fleet::Membership;
use adit_net::persistent_file::{read_bounded, write_atomically};
use adit_wire::UnixTime;
use zeroize::Zeroizing;

use super::interrupt::run;
use super::push::{Bundle, Report, kept_labels};
use super::realm::{Realm, node_file, read_membership};
use crate::args::fleet::FleetNodeEndArgs;

/// Maximum size of what a node receives or reports.
const MAX_DOCUMENT: u64 = 256 << 20;
/// The file of a node's realm, beside its membership.
const STORE_FILE: &str = "realm.store";
/// The file with the change of the last push, beside the membership.
const PUSHED_FILE: &str = "pushed";

/// The node's end of `push`.
pub(super) fn run_receive(typed: &FleetNodeEndArgs) -> CommandResult {
    let failed = |why: String| Failure::new(FailureCode::Config, why);
    let mut input = Zeroizing::new(Vec::new());
    let read = io::stdin()
        .lock()
        .take(MAX_DOCUMENT)
        .read_to_end(&mut input);
    read.map_err(|why| failed(format!("standard input: {why}")))?;
    let bundle: Bundle = serde_json::from_slice(&input).map_err(|_| {
        failed("standard input has no users: `adit fleet push` runs this".to_owned())
    })?;
    let path = node_file(typed.membership.as_deref())?;
    let folder = path.parent().unwrap_or_else(|| Path::new(".")).to_owned();
    let pushed = folder.join(PUSHED_FILE);
    let membership = receive_membership(&path, &folder, bundle.membership)?;
    let version = bundle.users.version.0;
    let before = read_bounded(&pushed, 32).ok();
    let before = before.and_then(|bytes| String::from_utf8(bytes).ok()?.trim().parse::<u64>().ok());
    if let Some(before) = before.filter(|before| *before > version) {
        return Err(failed(format!(
            "this node has users up to change {before}, and was sent those up to {version}: an old copy of the realm"
        )));
    }
    run(async {
        let realm = Realm::of_membership(membership)?;
        let checked = bundle.info.check(realm.cipher());
        realm.ask(std::future::ready(checked)).await?;
        realm
            .ask(realm.store.restore(&bundle.info, &bundle.users))
            .await
    })?;
    write_atomically(&pushed, format!("{version}\n").as_bytes())
        .map_err(|why| failed(format!("{}: {why}", pushed.display())))
}

/// Returns the membership of this node, which is written if there is none.
fn receive_membership(path: &Path, folder: &Path, sent: Membership) -> Result<Membership, Failure> {
    if path.exists() {
        let own = read_membership(path)?;
        let is_same = own.realm == sent.realm
            && own.realm_key == sent.realm_key
            && own.node_id == sent.node_id
            && own.store.starts_with("file://");
        return match is_same {
            true => Ok(own),
            false => {
                let what = format!(
                    "{}: this machine is another node, or uses a store server",
                    path.display()
                );
                Err(Failure::new(FailureCode::Config, what).with_hint("`adit fleet leave` on it"))
            }
        };
    }
    let store: PathBuf = std::path::absolute(folder.join(STORE_FILE)).unwrap_or_default();
    let membership = Membership {
        store: format!("file://{}", store.display()),
        ..sent
    };
    membership
        .write(path)
        .map_err(|why| Failure::new(FailureCode::Failure, format!("{}: {why}", path.display())))?;
    Ok(membership)
}

/// The node's end of `pull`.
pub(super) fn run_report(typed: &FleetNodeEndArgs) -> CommandResult {
    let report = run(async {
        let (realm, node) = Realm::open_own(typed.membership.as_deref()).await?;
        let now = UnixTime(realm.ask(realm.store.time()).await? / 1000);
        let mut usage = Vec::new();
        // Also of periods that are over: the end of one is counted after the last pull in it.
        for label in kept_labels(now) {
            usage.extend(realm.ask(realm.store.usage(&label, None)).await?);
        }
        let realm = realm.membership.realm;
        Ok(Report { realm, node, usage })
    })?;
    let text = serde_json::to_string(&report);
    println!("{}", text.unwrap_or_default());
    Ok(())
}
