//! Users of the server: what each may do, and the errors of what it may not.

use std::sync::Arc;
use std::time::Duration;

use adit_fleet::store::valkey::{AclRole, COMMANDS, acl_rule};
use adit_fleet::{
    ChangeId, NodeRecord, NodeStatus, PeriodLabel, SaltClaim, Store, StoreErrorKind, StoreLogin,
    UsageBatch, UserActivity, UserUsage, open_store,
};
use adit_interop::store_server::StoreServer;
use adit_net::system::SystemRng;
use zeroize::Zeroizing;

use crate::laws::check_store_laws;
use crate::servers::plain;
use crate::world::{REALM, add, cipher, eventually, info, login, open, writer};

const USER: &str = "adit-laws-3";
const PASSWORD: &str = "a password of a node";

fn login_as(server: &StoreServer, user: &str, password: &str) -> StoreLogin {
    StoreLogin {
        user: Some(user.to_owned()),
        password: Some(Zeroizing::new(password.to_owned())),
        ..login(server.url())
    }
}

fn open_as(server: &StoreServer, user: &str, password: &str) -> Arc<dyn Store> {
    open_store(&login_as(server, user, password)).unwrap()
}

fn set_user(server: &StoreServer, rule: &[String]) {
    let mut words = vec!["ACL", "SETUSER"];
    words.extend(rule.iter().map(String::as_str));
    assert_eq!(server.run(&words).unwrap(), "OK");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_laws_hold_for_the_user_of_a_node() {
    let server = plain();
    set_user(&server, &acl_rule(REALM, USER, PASSWORD, AclRole::Node));
    check_store_laws(open_as(&server, USER, PASSWORD)).await;
}

/// Performs each call once, and returns the errors.
async fn call_everything(store: &Arc<dyn Store>) -> Vec<adit_fleet::StoreError> {
    let mut errors = Vec::new();
    macro_rules! call {
        ($call:expr) => {
            match $call.await {
                Ok(value) => Some(value),
                Err(why) => {
                    errors.push(why);
                    None
                }
            }
        };
    }
    call!(store.create_realm(&info()));
    call!(store.realm_info());
    let head = call!(store.head()).unwrap_or_default();
    call!(store.allocate_users(1));
    let mut user = crate::world::user("everything");
    user.id = 70;
    let put = cipher().put(&user, head.next(), &mut SystemRng).unwrap();
    let delete = cipher().delete(70, head.plus(2), &mut SystemRng).unwrap();
    call!(store.write(head, std::slice::from_ref(&put)));
    call!(store.write(head.next(), &[delete]));
    call!(store.changes(ChangeId(0), Duration::ZERO));
    let snapshot = adit_fleet::Snapshot {
        version: head,
        users: vec![(70, put.sealed)],
    };
    call!(store.restore(&info(), &snapshot));
    let restored = call!(store.head()).unwrap_or_default();
    call!(store.replace_key(restored, &info(), &snapshot));
    call!(store.snapshot());
    call!(store.user(70));
    call!(store.user_by_name(cipher().name_digest("everything")));
    let period = PeriodLabel::from_text("2026-11").unwrap();
    let entries = vec![UserUsage {
        user: 1,
        period: period.clone(),
        up: 1,
        down: 1,
    }];
    let number = call!(store.last_batch(1)).unwrap_or_default() + 1;
    call!(store.add_usage(1, &UsageBatch { number, entries }));
    call!(store.usage(&period, Some(&[1])));
    call!(store.usage(&period, None));
    call!(store.reset_usage(1, std::slice::from_ref(&period)));
    call!(store.claim_salts(&[SaltClaim {
        bucket: 1,
        digest: [1; 8]
    }]));
    let active = UserActivity {
        user: 1,
        sessions: 1,
        max_devices: Some(1),
        devices: vec![[1; 8]],
        gone: vec![[2; 8]],
    };
    call!(store.report_activity(1, &[active]));
    let record = |name: String| NodeRecord {
        name,
        ..NodeRecord::default()
    };
    let node = call!(store.add_node(&record(format!("node-{number}-{}", head.0))));
    call!(store.put_node(
        node.unwrap_or(1),
        &record(format!("again-{number}-{}", head.0))
    ));
    call!(store.heartbeat(&NodeStatus {
        id: node.unwrap_or(1),
        ..NodeStatus::default()
    }));
    call!(store.nodes());
    call!(store.remove_node(node.unwrap_or(1)));
    call!(store.time());
    call!(store.put_join("a", b"b", Duration::from_secs(5)));
    call!(store.take_join("a"));
    call!(store.audit("{}"));
    call!(store.audit_log(1));
    errors
}

/// Commands that the scripts alone call: the server does not name them.
const INSIDE_SCRIPTS: [&str; 12] = [
    "exists", "hexists", "hincrby", "hlen", "hvals", "incr", "rename", "sadd", "zadd", "zcard",
    "zrem", "zscore",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_a_command_receives_an_error_that_names_it() {
    let server = plain();
    let rule = acl_rule(REALM, USER, PASSWORD, AclRole::Node);
    set_user(&server, &rule);
    let store = open_as(&server, USER, PASSWORD);
    // A realm, so that nothing else fails.
    let errors = call_everything(&store).await;
    assert_eq!(errors, [], "with all commands");
    for command in COMMANDS {
        let without: Vec<String> = rule
            .iter()
            .filter(|word| **word != format!("+{command}"))
            .cloned()
            .collect();
        assert_eq!(without.len() + 1, rule.len());
        server.run(&["SCRIPT", "FLUSH"]).unwrap();
        set_user(&server, &without);
        let errors = call_everything(&store).await;
        let denied = errors.iter().filter_map(|error| match &error.kind {
            StoreErrorKind::Denied { command } => Some((command.as_deref(), error.to_string())),
            _ => None,
        });
        let denied: Vec<(Option<&str>, String)> = denied.collect();
        assert!(!denied.is_empty(), "{command} is not needed: {errors:?}");
        // Inside scripts, the server does not say which one it is: the error lists all that the script calls.
        for (named, text) in &denied {
            assert!(
                named.is_none_or(|named| named == command),
                "{command}: {text}"
            );
            assert!(text.contains(command), "{command}: {text}");
        }
        if !INSIDE_SCRIPTS.contains(&command) {
            assert!(
                denied.iter().any(|(named, _)| named.is_some()),
                "{denied:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_one_realm_reaches_no_other() {
    let server = plain();
    set_user(&server, &acl_rule("other", USER, PASSWORD, AclRole::Node));
    let store = open_as(&server, USER, PASSWORD);
    let error = store.realm_info().await.unwrap_err();
    assert_eq!(
        error.kind,
        StoreErrorKind::Denied { command: None },
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_an_error_of_its_own() {
    let server = plain();
    set_user(&server, &acl_rule(REALM, USER, PASSWORD, AclRole::Node));
    for (user, password) in [(USER, "wrong"), ("stranger", PASSWORD)] {
        let error = open_as(&server, user, password).head().await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::WrongPassword, "{error}");
        assert!(!error.to_string().contains(password), "{error}");
    }
    assert_eq!(
        server
            .run(&["ACL", "SETUSER", "default", "off", "resetpass"])
            .unwrap(),
        "OK"
    );
    let error = open(server.url()).head().await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::WrongPassword, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_of_a_token_takes_a_membership_and_nothing_else() {
    let server = plain();
    let admin = open(server.url());
    admin.create_realm(&info()).await.unwrap();
    admin
        .put_join("id", b"sealed", Duration::from_secs(60))
        .await
        .unwrap();
    set_user(
        &server,
        &acl_rule(REALM, "adit-join", PASSWORD, AclRole::Join),
    );
    let store = open_as(&server, "adit-join", PASSWORD);
    assert!(matches!(
        store.head().await.unwrap_err().kind,
        StoreErrorKind::Denied { .. }
    ));
    assert_eq!(
        store.take_join("id").await.unwrap().as_deref(),
        Some(&b"sealed"[..])
    );
    assert_eq!(store.take_join("id").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_still_reads() {
    let server = plain();
    let store = open(server.url());
    store.create_realm(&info()).await.unwrap();
    add(&store, &["alice"]).await;
    server.run(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    let error = store.allocate_users(1).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::OutOfMemory, "{error}");
    assert!(error.is_outage());
    let full = adit_fleet::WriteError::Store(StoreErrorKind::OutOfMemory.into());
    let mut alice = writer(&store).find("alice").await.unwrap().unwrap();
    alice.disabled = true;
    let refused = writer(&store).put(&[alice]).await.unwrap_err();
    assert_eq!(refused.to_string(), full.to_string());
    assert_eq!(store.snapshot().await.unwrap().users.len(), 1);
    server.run(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    store.allocate_users(1).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_read_only() {
    let server = plain();
    let store = open(server.url());
    store.create_realm(&info()).await.unwrap();
    // A port that no server has: it stays a replica without a master.
    server.run(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
    let error = store.allocate_users(1).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::ReadOnly, "{error}");
    server.run(&["REPLICAOF", "NO", "ONE"]).unwrap();
    eventually("a write", || async { store.allocate_users(1).await.ok() }).await;
}
