//! `adit fleet rotate-key`: another key for the realm, other logins for all members, and tokens with which the nodes join
//! again.
//!
//! A key is replaced because someone has it who should not. The new one is therefore never sent under the old one: it
//! is in the operator's membership, and in those that tokens open.
//!
//! ```text
//! FILE.new: new key ─▶ store: users under the new key ─▶ FILE ─▶ logins ─▶ tokens
//! ```
//!
//! The key is in a file before the store needs it. A command that was interrupted continues when it is run again.

use std::path::{Path, PathBuf};

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::text::sanitize_for_terminal;
use adit_fleet::{
    ChangeId, FleetUser, JOIN_TIME, Membership, RealmInfo, RealmKey, RealmWriter, StoreError,
    StoreErrorKind, StoreLogin, reseal,
};
use adit_net::system::SystemRng;
use serde_json::json;

use super::failure::to_record_failure;
use super::interrupt::run;
use super::logins::{self, Logins};
use super::realm::{Realm, operator_file, read_membership};
use super::setup::{self, Issued};
use crate::args::fleet::FleetRotateKeyArgs;
use crate::json;

/// Number of attempts while others change the realm.
const ATTEMPTS: usize = 50;

/// The result.
struct Rotated {
    realm: Realm,
    change: ChangeId,
    users: usize,
    tokens: Vec<Issued>,
    notes: Vec<String>,
}

pub(super) fn run_rotate_key(typed: &FleetRotateKeyArgs) -> CommandResult {
    let path = operator_file(typed.operator.membership.as_deref())?;
    let done = run(rotate(typed, &path))?;
    if typed.json.json {
        let node = |issued: &Issued| {
            json!({
                "id": issued.node,
                "node": issued.name,
                "token": issued.token.as_str(),
                "notes": issued.notes,
            })
        };
        let result = json!({
            "realm": done.realm.membership.realm,
            "membership": path.display().to_string(),
            "login": done.realm.membership.store_user,
            "change": done.change.0,
            "users": done.users,
            "usersHaveNewKeys": typed.users,
            "nodes": done.tokens.iter().map(node).collect::<Vec<_>>(),
            "seconds": JOIN_TIME.as_secs(),
            "notes": done.notes,
        });
        json::print_result("fleet rotate-key", &result);
        return Ok(());
    }
    println!(
        "rotated       {} users of realm {} are under a new key, as change {}",
        done.users,
        done.realm.shown(),
        done.change
    );
    println!("membership    {}", path.display());
    println!("              keep a copy: copies of the old one open nothing any more");
    if let Some(user) = &done.realm.membership.store_user {
        println!("login         {}", sanitize_for_terminal(user));
    }
    setup::print_notes(&done.notes);
    for issued in &done.tokens {
        setup::print_notes(&issued.notes);
        setup::print_token_again(issued);
    }
    Ok(())
}

/// Returns the file of a membership whose key the store may not have yet.
fn pending_file(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

async fn rotate(typed: &FleetRotateKeyArgs, path: &Path) -> Result<Rotated, Failure> {
    let pending = pending_file(path);
    let realm = Realm::open_operator(Some(path))?;
    let address = typed.node_engine.as_deref();
    setup::check_joinable(&realm, address)?;
    let (membership, change, users) = match interrupted(&realm, &pending).await? {
        Some(membership) => {
            let head = realm.ask(realm.store.head()).await?;
            let users = realm.ask(realm.store.snapshot()).await?.users.len();
            (membership, head, users)
        }
        None => replace_key(&realm, &pending, typed.users).await?,
    };
    setup::write(&membership, path)?;
    remove(&pending)?;
    let old = realm.membership.store_user.clone();
    let (realm, notes) = replace_login(membership, old, path).await?;
    let about = json!({ "change": change.0, "users": users, "usersHaveNewKeys": typed.users });
    realm.audit("rotate-key", about).await;
    let mut tokens = Vec::new();
    for node in realm.ask(realm.store.nodes()).await? {
        tokens.push(setup::issue_again(&realm, &node, address).await?);
    }
    Ok(Rotated {
        realm,
        change,
        users,
        tokens,
        notes,
    })
}

/// Returns the membership of a command that was interrupted after it had changed the store.
async fn interrupted(realm: &Realm, pending: &Path) -> Result<Option<Membership>, Failure> {
    if pending.exists() {
        let membership = read_membership(pending)?;
        let info = realm.ask(realm.store.realm_info()).await?;
        if info.check(&membership.cipher()).is_ok() {
            return Ok(Some(membership));
        }
    }
    // The key of another one was never used.
    realm.check().await?;
    Ok(None)
}

/// Seals all users under a new key, and returns the membership that has it.
async fn replace_key(
    realm: &Realm,
    pending: &Path,
    has_new_users: bool,
) -> Result<(Membership, ChangeId, usize), Failure> {
    let membership = Membership {
        realm_key: RealmKey::generate(&mut SystemRng),
        ..realm.membership.clone()
    };
    let cipher = membership.cipher();
    // The key must not exist in the store alone.
    setup::write(&membership, pending)?;
    let change = |user: &mut FleetUser| {
        if has_new_users {
            user.secret = RealmWriter::new_secret();
            (user.password, user.psk) = (None, None);
        }
    };
    for _ in 0..ATTEMPTS {
        let info = realm.ask(realm.store.realm_info()).await?;
        let info = RealmInfo::new(&cipher, info.created_unix);
        let before = realm.ask(realm.store.snapshot()).await?;
        let sealed = reseal(&before, realm.cipher(), &cipher, change, &mut SystemRng);
        let sealed =
            sealed.map_err(|(id, why)| to_record_failure(&why, &format!("user number {id}")))?;
        match realm
            .store
            .replace_key(before.version, &info, &sealed)
            .await
        {
            Ok(number) => return Ok((membership, number, sealed.users.len())),
            Err(StoreError {
                kind: StoreErrorKind::Conflict { .. },
                ..
            }) => {}
            Err(why) => return realm.ask(std::future::ready(Err(why))).await,
        }
    }
    let what = "others change the realm all the time";
    Err(Failure::new(FailureCode::Failure, what).with_hint("try again"))
}

fn remove(pending: &Path) -> Result<(), Failure> {
    match std::fs::remove_file(pending) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
            let what = format!("cannot delete {}: {why}", pending.display());
            Err(Failure::new(FailureCode::Failure, what)
                .with_hint("delete it: it has the key of the realm"))
        }
        _ => Ok(()),
    }
}

/// Replaces the operator's login, and returns the realm with it, and what there is to say.
async fn replace_login(
    mut membership: Membership,
    old: Option<String>,
    path: &Path,
) -> Result<(Realm, Vec<String>), Failure> {
    let mut notes = Vec::new();
    match logins::replace_operator(&StoreLogin::from(&membership)).await {
        Logins::Created {
            user,
            password,
            note,
        } => {
            membership.store_user = Some(user);
            membership.store_password = Some(password);
            notes.extend(note);
            setup::write(&membership, path)?;
            if let Some(old) = old {
                let operator = StoreLogin::from(&membership);
                notes.extend(logins::remove_operator(&operator, &old).await);
            }
        }
        Logins::Shared { note } => notes.push(note),
    }
    let realm = Realm::of_membership(membership)?;
    realm.check().await?;
    Ok((realm, notes))
}
