//! `adit fleet join` and `leave`.

use std::io::Read;
use std::path::Path;

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::text::sanitize_for_terminal;
use adit_fleet::{JoinToken, Membership, StoreErrorKind, StoreLogin, open_store};
use serde_json::json;
use zeroize::Zeroizing;

use super::failure::to_failure;
use super::interrupt::run;
use super::realm::{Realm, node_file, read_membership};
use super::setup::{MAX_FILE, read_file, refuse_existing, write};
use crate::args::fleet::{FleetJoinArgs, FleetLeaveArgs};
use crate::json;

pub(super) fn run_join(typed: &FleetJoinArgs) -> CommandResult {
    let text = read_token(&typed.token)?;
    let token = JoinToken::from_text(&text).map_err(|why| {
        Failure::new(FailureCode::Usage, why.to_string())
            .with_hint("`adit fleet token` prints one, on the operator's machine")
    })?;
    let path = node_file(typed.membership.as_deref())?;
    let before = match typed.replace {
        true => membership_to_replace(&path, &token)?,
        false => None,
    };
    if before.is_none() {
        refuse_existing(
            &path,
            "--replace joins again; `adit fleet leave` deletes it; --membership FILE writes another one",
        )?;
    }
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
        if let Some(before) = before.filter(|before| before.node_id != membership.node_id) {
            let what = format!(
                "this token is for node {}, and {} is that of {}",
                sanitize_for_terminal(&membership.name),
                path.display(),
                sanitize_for_terminal(&before.name)
            );
            return Err(Failure::new(FailureCode::Usage, what).with_hint(
                "`adit fleet token --again NODE` prints another one, on the operator's machine",
            ));
        }
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
    if typed.replace {
        println!(
            "Restart adit here, or run `adit upgrade`: it reads its membership when it starts"
        );
        return Ok(());
    }
    println!("Add this to the configuration file, and `users=fleet` to the listeners of users:\n");
    print!("{}", config_lines(&path));
    Ok(())
}

/// Returns the membership that a token replaces, if there is one.
fn membership_to_replace(path: &Path, token: &JoinToken) -> Result<Option<Membership>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    let before = read_membership(path)?;
    if before.node_id.is_none() || before.realm != token.realm {
        let what = format!(
            "{} is no membership of a node in realm {}",
            path.display(),
            sanitize_for_terminal(&token.realm)
        );
        return Err(Failure::new(FailureCode::Usage, what)
            .with_hint("--membership FILE names the one to replace"));
    }
    Ok(Some(before))
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
