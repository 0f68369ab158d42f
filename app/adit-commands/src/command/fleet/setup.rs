//! `adit fleet init`, `token`, `join` and `leave`.

use std::io::Read;
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
use super::logins::{self, Logins};
use super::nodes::check_name;
use super::realm::{Realm, node_file, operator_file, read_membership};
use crate::args::fleet::{FleetInitArgs, FleetJoinArgs, FleetLeaveArgs, FleetTokenArgs};
use crate::json;

/// Maximum size of a file with a certificate, a password or a token.
const MAX_FILE: u64 = 128 << 10;
/// The name of the operator.
const OPERATOR: &str = "operator";
/// Number of names that are tried for a node without a name.
const MAX_NUMBERED: u32 = 100_000;

/// A token, and what there is to say about it.
struct Issued {
    node: u32,
    name: String,
    token: Zeroizing<String>,
    notes: Vec<String>,
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
fn is_file(address: &str) -> bool {
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
        match logins::create_operator(&admin).await {
            Logins::Created {
                user,
                password,
                note,
            } => {
                membership.store_user = Some(user);
                membership.store_password = Some(password);
                notes.extend(note);
            }
            Logins::Shared { note } => notes.push(note),
        }
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
        issue(&realm, typed.node.as_deref(), typed.node_engine.as_deref()).await
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
    print_token(&issued);
    Ok(())
}

fn print_notes(notes: &[String]) {
    for note in notes {
        println!("note          {note}");
    }
}

fn print_token(issued: &Issued) {
    let minutes = JOIN_TIME.as_secs() / 60;
    println!(
        "token         for node {}, valid once and for {minutes} minutes; on the node:",
        sanitize_for_terminal(&issued.name)
    );
    println!("adit fleet join {}", *issued.token);
}

/// Makes a membership for one more node, and puts it into the store, sealed for the token.
async fn issue(
    realm: &Realm,
    name: Option<&str>,
    address: Option<&str>,
) -> Result<Issued, Failure> {
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
    let own = &realm.membership;
    let mut membership = Membership {
        role: Role::Node,
        node_id: Some(node),
        name: record.name.clone(),
        ..own.clone()
    };
    let mut notes = Vec::new();
    let operator = StoreLogin::from(own);
    match logins::create_node(&operator, node).await {
        Logins::Created {
            user,
            password,
            note,
        } => {
            membership.store_user = Some(user);
            membership.store_password = Some(password);
            notes.extend(note);
        }
        Logins::Shared { note } => notes.push(note),
    }
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
        .audit("token", json!({ "node": node, "name": record.name }))
        .await;
    Ok(Issued {
        node,
        name: record.name,
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

pub(super) fn run_join(typed: &FleetJoinArgs) -> CommandResult {
    let text = read_token(&typed.token)?;
    let token = JoinToken::from_text(&text).map_err(|why| {
        Failure::new(FailureCode::Usage, why.to_string())
            .with_hint("`adit fleet token` prints one, on the operator's machine")
    })?;
    let path = node_file(typed.membership.as_deref())?;
    refuse_existing(
        &path,
        "`adit fleet leave` deletes it; --membership FILE writes another one",
    )?;
    // Before the token is used up.
    check_writable(&path)?;
    let membership = run(async {
        let failed = |why| to_failure(&why, &token.store);
        let store = open_store(&StoreLogin::from(&token)).map_err(failed)?;
        let sealed = store.take_join(&token.id()).await.map_err(failed)?;
        let Some(sealed) = sealed else {
            let what = "this token was used already, or has expired";
            return Err(Failure::new(FailureCode::Failure, what)
                .with_hint("`adit fleet token` prints another one, on the operator's machine"));
        };
        let membership = token.open(&sealed).map_err(|why| {
            Failure::new(FailureCode::Failure, why.to_string())
                .with_hint("someone has changed the store server's data: make another token")
        })?;
        write(&membership, &path)?;
        let realm = Realm::of_membership(membership)?;
        realm.check().await?;
        let about = json!({ "node": realm.membership.node_id, "name": realm.membership.name });
        realm.audit("join", about).await;
        Ok(realm.membership)
    })?;
    let shown = path.display().to_string();
    if typed.json.json {
        let result = json!({
            "realm": membership.realm,
            "store": membership.store,
            "node": membership.name,
            "id": membership.node_id,
            "membership": shown,
        });
        json::print_result("fleet join", &result);
        return Ok(());
    }
    println!(
        "joined        realm {} as {}",
        sanitize_for_terminal(&format!("{} at {}", membership.realm, membership.store)),
        sanitize_for_terminal(&membership.name)
    );
    println!("membership    {shown}");
    println!("Add this to the configuration file, and `users=fleet` to the listeners of users:\n");
    print!("{}", config_lines(&path));
    Ok(())
}

/// Returns the lines that the configuration of a node needs.
fn config_lines(membership: &Path) -> String {
    let state = membership.parent().unwrap_or_else(|| Path::new("."));
    // A string of TOML in JSON's notation.
    let quoted = |path: &Path| json!(path.display().to_string()).to_string();
    format!(
        "[fleet]\nmembership = {}\nstate = {}\n\n[route.users]\n\
         listen = \"ss://2022-blake3-aes-128-gcm@:8388?users=fleet\"\n",
        quoted(membership),
        quoted(state)
    )
}

pub(super) fn run_leave(typed: &FleetLeaveArgs) -> CommandResult {
    let path = node_file(typed.membership.as_deref())?;
    let membership = read_membership(&path)?;
    let Some(node) = membership.node_id else {
        let what = format!("{}: this is the membership of an operator", path.display());
        return Err(Failure::new(FailureCode::Config, what)
            .with_hint("--membership FILE names that of a node, which `adit fleet join` wrote"));
    };
    let name = membership.name.clone();
    let note =
        run(async {
            let realm = Realm::of_membership(membership)?;
            let left = async {
                realm.check().await?;
                match realm.store.remove_node(node).await {
                    // An operator has removed it.
                    Err(why) if why.kind == StoreErrorKind::Gone => Ok(()),
                    removed => realm.ask(std::future::ready(removed)).await,
                }
            };
            match left.await {
            Ok(()) => {
                realm.audit("leave", json!({ "node": node, "name": name })).await;
                Ok(None)
            }
            Err(why) if typed.force => Ok(Some(why.to_log_line())),
            Err(why) => Err(why.with_hint(
                "--force deletes the membership all the same; then `adit fleet node remove` on the \
                 operator's machine",
            )),
        }
        })?;
    std::fs::remove_file(&path).map_err(|why| {
        Failure::new(
            FailureCode::Failure,
            format!("cannot delete {}: {why}", path.display()),
        )
    })?;
    if typed.json.json {
        let result =
            json!({ "name": name, "membership": path.display().to_string(), "note": note });
        json::print_result("fleet leave", &result);
        return Ok(());
    }
    println!(
        "{}  has left the realm; {} is deleted",
        sanitize_for_terminal(&name),
        path.display()
    );
    if let Some(note) = note {
        println!("note          {note}");
    }
    println!(
        "note          its login at the store server ends with `adit fleet node remove`, or was shared"
    );
    Ok(())
}

/// Writes a membership, and creates its folder.
fn write(membership: &Membership, path: &Path) -> Result<(), Failure> {
    membership.write(path).map_err(|why| {
        let what = format!("cannot write {}: {why}", path.display());
        Failure::new(FailureCode::Failure, what).with_hint("--membership FILE names another file")
    })
}

fn refuse_existing(path: &Path, hint: &str) -> Result<(), Failure> {
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

/// Checks that a file can be created.
fn check_writable(path: &Path) -> Result<(), Failure> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    let probe = folder.join(format!(".adit-join-{}", std::process::id()));
    let done = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&probe, ""));
    let _ = std::fs::remove_file(&probe);
    done.map_err(|why| {
        let what = format!("cannot write into {}: {why}", folder.display());
        Failure::new(FailureCode::Failure, what).with_hint("--membership FILE names another file")
    })
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

fn read_file(path: &Path) -> Result<Zeroizing<String>, String> {
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

/// Returns a token: as typed, or from a file or standard input.
fn read_token(typed: &str) -> Result<Zeroizing<String>, Failure> {
    let failed = |place: &str, why: String| {
        Failure::new(FailureCode::Config, format!("{place}: {why}"))
            .with_hint("the token is one word, which `adit fleet token` prints")
    };
    let text = if typed == "-" {
        let mut text = Zeroizing::new(String::new());
        let mut input = std::io::stdin().lock().take(MAX_FILE);
        let read = input.read_to_string(&mut text);
        read.map_err(|why| failed("standard input", why.to_string()))?;
        text
    } else if let Some(path) = typed.strip_prefix('@') {
        read_file(Path::new(path)).map_err(|why| failed(path, why))?
    } else {
        Zeroizing::new(typed.to_owned())
    };
    // The whole line that `adit fleet token` prints is as good.
    let word = text
        .split_whitespace()
        .find(|word| word.starts_with("adit-join:"));
    Ok(Zeroizing::new(
        word.unwrap_or_else(|| text.trim()).to_owned(),
    ))
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

    #[test]
    fn the_lines_are_toml() {
        let text = config_lines(Path::new("/var/lib/adit/fleet/membership.json"));
        assert!(
            text.starts_with("[fleet]\nmembership = \"/var/lib/adit/fleet/membership.json\"\n")
        );
        assert!(text.contains("state = \"/var/lib/adit/fleet\"\n"), "{text}");
    }

    #[test]
    fn a_token_is_found_in_its_line() {
        let token = read_token("adit fleet join adit-join:abc\n").unwrap();
        assert_eq!(*token, "adit-join:abc");
        assert_eq!(*read_token("adit-join:abc").unwrap(), "adit-join:abc");
    }
}
