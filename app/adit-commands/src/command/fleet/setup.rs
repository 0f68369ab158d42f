//! `adit fleet init` and `token`.

use std::path::Path;

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::text::sanitize_for_terminal;
use adit_fleet::{
    DEFAULT_WEIGHT, JOIN_TIME, JoinToken, JoinTokenError, Membership, NodeEntry, NodeRecord,
    NodeState, RealmInfo, RealmKey, Role, StoreErrorKind, StoreLogin, open_store,
};
use adit_net::system::SystemRng;
use serde_json::json;
use zeroize::Zeroizing;

use super::failure::to_failure;
use super::interrupt::run;
use super::logins;
use super::nodes::check_name;
use super::realm::{Realm, operator_file};
use crate::args::fleet::{FleetInitArgs, FleetTokenArgs};
use crate::json;

/// Maximum size of a file with a certificate, a password or a token.
pub(super) const MAX_FILE: u64 = 128 << 10;
/// The name of the operator.
const OPERATOR: &str = "operator";
/// Number of names that are tried for a node without a name.
const MAX_NUMBERED: u32 = 100_000;

/// A token, and what there is to say about it.
pub(super) struct Issued {
    pub(super) node: u32,
    pub(super) name: String,
    pub(super) token: Zeroizing<String>,
    pub(super) notes: Vec<String>,
}

pub(super) fn run_init(typed: &FleetInitArgs) -> CommandResult {
    adit_fleet::check_name(&typed.realm)
        .map_err(|why| Failure::new(FailureCode::Usage, why).with_hint("--realm main"))?;
    check_address(&typed.engine)?;
    let path = operator_file(typed.operator.membership.as_deref())?;
    refuse_existing(&path, "--membership FILE writes another one")?;
    let ca_pem = typed.ca.as_deref().map(read_certificate).transpose()?;
    let (user, password) = match &typed.engine_password {
        Some(text) => read_login(text)?,
        None => (None, None),
    };
    let admin = Membership {
        version: Membership::VERSION,
        realm: typed.realm.clone(),
        realm_key: RealmKey::generate(&mut SystemRng),
        role: Role::Operator,
        node_id: None,
        name: OPERATOR.to_owned(),
        store: typed.engine.clone(),
        store_user: user,
        store_password: password,
        ca_pem,
    };
    let (realm, first, mut notes) = run(create(typed, admin, &path))?;
    notes.extend(first.iter().flat_map(|first| first.notes.iter().cloned()));
    if typed.json.json {
        let result = json!({
            "realm": realm.membership.realm,
            "store": realm.at(),
            "membership": path.display().to_string(),
            "login": realm.membership.store_user,
            "node": first.as_ref().map(|first| &first.name),
            "token": first.as_ref().map(|first| first.token.as_str()),
            "notes": notes,
        });
        json::print_result("fleet init", &result);
        return Ok(());
    }
    println!("created       realm {}", realm.shown());
    println!("membership    {}", path.display());
    println!("              keep a copy: without its key, the stored users cannot be read");
    if let Some(user) = &realm.membership.store_user {
        println!("login         {}", sanitize_for_terminal(user));
    }
    print_notes(&notes);
    match &first {
        Some(first) => print_token(first),
        None => println!("nodes         `adit fleet push --nodes FILE` copies the users to them"),
    }
    Ok(())
}

/// Returns true for a realm in a file, which only this machine reaches.
pub(super) fn is_file(address: &str) -> bool {
    address.starts_with("file://")
}

async fn create(
    typed: &FleetInitArgs,
    mut membership: Membership,
    path: &Path,
) -> Result<(Realm, Option<Issued>, Vec<String>), Failure> {
    let at = membership.store.clone();
    let admin = StoreLogin::from(&membership);
    let store = open_store(&admin).map_err(|why| to_failure(&why, &at))?;
    let failed = |why| to_failure(&why, &at);
    match store.realm_info().await {
        Ok(_) => return Err(failed(StoreErrorKind::RealmExists.into())),
        // There is none.
        Err(why) if why.kind == StoreErrorKind::WrongRealm => {}
        Err(why) => return Err(failed(why)),
    }
    let mut notes = Vec::new();
    if !is_file(&at) {
        let login = logins::create_operator(&admin).await;
        notes.extend(login.put_into(&mut membership));
    }
    // The key must not exist in the store alone.
    write(&membership, path)?;
    let realm = Realm::of_membership(membership)?;
    let now = store.time().await.map_err(failed)? / 1000;
    let info = RealmInfo::new(realm.cipher(), now);
    if let Err(why) = store.create_realm(&info).await {
        let _ = std::fs::remove_file(path);
        return Err(failed(why));
    }
    realm
        .audit("init", json!({ "realm": realm.membership.realm }))
        .await;
    if is_file(&at) {
        return Ok((realm, None, notes));
    }
    let first = issue(&realm, None, typed.node_engine.as_deref()).await?;
    Ok((realm, Some(first), notes))
}

pub(super) fn run_token(typed: &FleetTokenArgs) -> CommandResult {
    if let Some(name) = &typed.node {
        check_name(name)?;
    }
    let issued = run(async {
        let realm = Realm::open(typed.operator.membership.as_deref()).await?;
        let address = typed.node_engine.as_deref();
        match &typed.again {
            Some(word) => issue_again(&realm, &realm.find_node(word).await?, address).await,
            None => issue(&realm, typed.node.as_deref(), address).await,
        }
    })?;
    if typed.json.json {
        let result = json!({
            "node": issued.name,
            "id": issued.node,
            "token": *issued.token,
            "seconds": JOIN_TIME.as_secs(),
            "notes": issued.notes,
        });
        json::print_result("fleet token", &result);
        return Ok(());
    }
    print_notes(&issued.notes);
    match typed.again {
        Some(_) => print_token_again(&issued),
        None => print_token(&issued),
    }
    Ok(())
}

pub(super) fn print_notes(notes: &[String]) {
    for note in notes {
        println!("note          {note}");
    }
}

fn print_token(issued: &Issued) {
    println!("{}", token_line(issued));
    println!("adit fleet join {}", *issued.token);
}

/// Prints the token of a node that has a membership already.
pub(super) fn print_token_again(issued: &Issued) {
    println!("{}", token_line(issued));
    println!("adit fleet join --replace {}", *issued.token);
}

fn token_line(issued: &Issued) -> String {
    let minutes = JOIN_TIME.as_secs() / 60;
    let name = sanitize_for_terminal(&issued.name);
    format!("token         for node {name}, valid once and for {minutes} minutes; on the node:")
}

/// Checks that nodes of the realm can join, at `address` if there is one.
pub(super) fn check_joinable(realm: &Realm, address: Option<&str>) -> Result<(), Failure> {
    if let Some(address) = address {
        check_address(address)?;
    }
    if is_file(realm.at()) {
        let what = format!(
            "realm {} is in a file, which other machines do not reach",
            realm.shown()
        );
        return Err(Failure::new(FailureCode::Usage, what)
            .with_hint("`adit fleet push --nodes FILE` copies its users to nodes"));
    }
    Ok(())
}

/// Makes a membership for one more node.
async fn issue(
    realm: &Realm,
    name: Option<&str>,
    address: Option<&str>,
) -> Result<Issued, Failure> {
    check_joinable(realm, address)?;
    let now = realm.ask(realm.store.time()).await? / 1000;
    let nodes = realm.ask(realm.store.nodes()).await?;
    logins::forget_joined(&StoreLogin::from(&realm.membership), &nodes).await;
    let mut record = NodeRecord {
        name: String::new(),
        weight: DEFAULT_WEIGHT,
        state: NodeState::Active,
        joined_unix: now,
    };
    let node = match name {
        Some(name) => {
            record.name = name.to_owned();
            match realm.store.add_node(&record).await {
                Err(why) if why.kind == StoreErrorKind::NameTaken => {
                    let name = sanitize_for_terminal(name);
                    let what = format!("realm {} has a node `{name}` already", realm.shown());
                    return Err(Failure::new(FailureCode::Failure, what)
                        .with_hint("`adit fleet node remove` forgets it; or choose another name"));
                }
                node => realm.ask(std::future::ready(node)).await?,
            }
        }
        None => add_numbered(realm, &nodes, &mut record).await?,
    };
    issue_for(realm, node, record.name, address).await
}

/// Makes another membership for a node, whose login ends.
pub(super) async fn issue_again(
    realm: &Realm,
    node: &NodeEntry,
    address: Option<&str>,
) -> Result<Issued, Failure> {
    check_joinable(realm, address)?;
    // The old membership connects no one any more.
    let note = logins::remove_node(&realm.membership, node.id).await;
    let mut issued = issue_for(realm, node.id, node.record.name.clone(), address).await?;
    issued.notes.extend(note);
    Ok(issued)
}

/// Makes the membership of a node, and puts it into the store, sealed for the token.
async fn issue_for(
    realm: &Realm,
    node: u32,
    name: String,
    address: Option<&str>,
) -> Result<Issued, Failure> {
    let own = &realm.membership;
    let mut membership = Membership {
        role: Role::Node,
        node_id: Some(node),
        name: name.clone(),
        ..own.clone()
    };
    let operator = StoreLogin::from(own);
    let login = logins::create_node(&operator, node).await;
    let notes = Vec::from_iter(login.put_into(&mut membership));
    if let Some(address) = address {
        membership.store = address.to_owned();
    }
    let mut token = JoinToken::new(&membership, None, &mut SystemRng);
    let (user, password) = logins::create_join(&operator, &membership, node).await;
    (token.store_user, token.store_password) = (user, password);
    let unfit = |why: JoinTokenError| Failure::new(FailureCode::Failure, why.to_string());
    let sealed = token.seal(&membership, &mut SystemRng).map_err(unfit)?;
    realm
        .ask(realm.store.put_join(&token.id(), &sealed, JOIN_TIME))
        .await?;
    realm
        .audit("token", json!({ "node": node, "name": name }))
        .await;
    Ok(Issued {
        node,
        name,
        token: token.to_text().map_err(unfit)?,
        notes,
    })
}

/// Adds a node under the first free name of `node-1`, `node-2` and so on.
async fn add_numbered(
    realm: &Realm,
    nodes: &[NodeEntry],
    record: &mut NodeRecord,
) -> Result<u32, Failure> {
    for number in 1..MAX_NUMBERED {
        let name = format!("node-{number}");
        if nodes.iter().any(|node| node.record.name == name) {
            continue;
        }
        record.name = name;
        match realm.store.add_node(record).await {
            // Another operator was faster.
            Err(why) if why.kind == StoreErrorKind::NameTaken => {}
            node => return realm.ask(std::future::ready(node)).await,
        }
    }
    let what = "no name is left for a node";
    Err(Failure::new(FailureCode::Failure, what).with_hint("--node NAME"))
}

/// Writes a membership, and creates its folder.
pub(super) fn write(membership: &Membership, path: &Path) -> Result<(), Failure> {
    membership.write(path).map_err(|why| {
        let what = format!("cannot write {}: {why}", path.display());
        Failure::new(FailureCode::Failure, what).with_hint("--membership FILE names another file")
    })
}

/// Refuses to replace a membership.
pub(super) fn refuse_existing(path: &Path, hint: &str) -> Result<(), Failure> {
    if !path.exists() {
        return Ok(());
    }
    let realm = Membership::read(path).ok().map(|found| found.realm);
    let what = match realm {
        Some(realm) => format!(
            "{} is a membership of realm {realm} already",
            path.display()
        ),
        None => format!("{} exists already", path.display()),
    };
    Err(Failure::new(FailureCode::Failure, what).with_hint(hint))
}

/// Refuses an address with a password, which all users of this machine could read.
fn check_address(address: &str) -> Result<(), Failure> {
    let authority = address.split_once("://").map(|(_, rest)| rest);
    let authority = authority
        .and_then(|rest| rest.split('/').next())
        .unwrap_or_default();
    if !authority.contains('@') {
        return Ok(());
    }
    let what =
        "the address of the store server has a login, which all users of this machine can read";
    Err(Failure::new(FailureCode::Usage, what)
        .with_hint("write the address without it, and --engine-password @FILE"))
}

fn read_certificate(path: &Path) -> Result<String, Failure> {
    let failed = |why: String| {
        Failure::new(FailureCode::Config, format!("{}: {why}", path.display()))
            .with_hint("--ca names a certificate authority in PEM")
    };
    let text = read_file(path).map_err(failed)?;
    match text.contains("-----BEGIN CERTIFICATE-----") {
        true => Ok(text.as_str().to_owned()),
        false => Err(failed("no certificate in PEM".to_owned())),
    }
}

/// Reads a file with a certificate, a password or a token.
pub(super) fn read_file(path: &Path) -> Result<Zeroizing<String>, String> {
    let file = adit_config::text::read_file(path, MAX_FILE);
    Ok(file.map_err(|why| why.to_string())?.text)
}

/// A user and a password.
type UserPassword = (Option<String>, Option<Zeroizing<String>>);

/// Reads `PASSWORD` or `USER:PASSWORD` from a file.
fn read_login(typed: &str) -> Result<UserPassword, Failure> {
    let Some(path) = typed.strip_prefix('@') else {
        let what = "--engine-password is `@FILE`: all users of this machine can read a password on the command line";
        return Err(Failure::new(FailureCode::Usage, what)
            .with_hint("write the password into a file: --engine-password @FILE"));
    };
    let text = read_file(Path::new(path)).map_err(|why| {
        Failure::new(FailureCode::Config, format!("{path}: {why}"))
            .with_hint("the file has `PASSWORD` or `USER:PASSWORD` in one line")
    })?;
    let line = text.trim();
    if line.is_empty() || line.contains('\n') {
        return Err(
            Failure::new(FailureCode::Config, format!("{path}: no login"))
                .with_hint("the file has `PASSWORD` or `USER:PASSWORD` in one line"),
        );
    }
    Ok(match line.split_once(':') {
        Some((user, password)) => (
            Some(user.to_owned()).filter(|user| !user.is_empty()),
            Some(Zeroizing::new(password.to_owned())),
        ),
        None => (None, Some(Zeroizing::new(line.to_owned()))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_no_passwords() {
        for address in [
            "valkey://h:1",
            "unix:///run/a@b",
            "rediss://h",
            "valkey+sentinel://a,b/s",
        ] {
            check_address(address).unwrap();
        }
        assert!(check_address("valkey://:secret@h").is_err());
        let why = check_address("redis://user:secret@h:1/0").unwrap_err();
        assert!(!why.to_log_line().contains("secret"));
    }
}
