//! Users and next servers of Shadowsocks, from files and from tables.

use std::path::{Path, PathBuf};

use adit_config::{
    ListenerConfig, ListenerKind, Plan, Problem, RelayTarget, Secret, SsRole, SsUser,
    SystemSources, WarningKind, read_users,
};
use adit_shadowsocks::Method;

use crate::shortcuts::words_with;
use adit_config::text::MemorySources;

/// The server's own key, 16 bytes.
pub(crate) const OWN: &str = "AAECAwQFBgcICQoLDA0ODw==";
pub(crate) const ALICE: &str = "EBESExQVFhcYGRobHB0eHw==";
pub(crate) const BOB: &str = "ICEiIyQlJicoKSorLC0uLw==";
pub(crate) const METHOD: &str = "2022-blake3-aes-128-gcm";

fn role(plan: &mut Plan) -> SsRole {
    let ListenerConfig { kind, .. } = plan.routes.remove(0).listen.remove(0);
    match kind {
        ListenerKind::Shadowsocks(server) => server.role,
        other => panic!("{other:?}"),
    }
}

fn user(name: &str, key: &str) -> SsUser {
    SsUser {
        name: name.to_owned(),
        secret: key.into(),
    }
}

pub(crate) fn users(file: &str) -> Result<Plan, Vec<Problem>> {
    let cabinet = MemorySources::default()
        .with_file("users.json", file)
        .with_variable("OWN", OWN);
    let url = format!("ss://{METHOD}:$OWN@127.0.0.1:0?users=@users.json");
    words_with(&[&url], &cabinet)
}

pub(crate) fn relay(file: &str) -> Result<Plan, Vec<Problem>> {
    let cabinet = MemorySources::default()
        .with_file("relay.json", file)
        .with_variable("OWN", OWN);
    let url = format!("ss://{METHOD}:$OWN@127.0.0.1:0?relay=@relay.json");
    words_with(&[&url], &cabinet)
}

pub(crate) fn table(text: &str) -> Result<Plan, Vec<Problem>> {
    let cabinet = MemorySources::default()
        .with_variable("OWN", OWN)
        .with_file("etc/bob.key", BOB);
    Plan::from_toml_with(text, "etc/adit.toml", &cabinet)
}

#[test]
fn users_are_read_in_three_forms() {
    let bare = ALICE.trim_end_matches('=');
    for file in [
        format!(r#"{{"alice": "{ALICE}", "bob":"{BOB}"}}"#),
        format!(
            r#"[{{"name": "alice", "password": "{ALICE}"}},
                {{"password": "{BOB}", "email": ["b", {{}}], "name": "\u0062ob"}}]"#
        ),
        format!("# staff\nalice:{ALICE}\n\nbob: {BOB} \r\n"),
        format!(
            "\u{feff}\n {{\"alice\": \"{}\", \"bob\": \"{BOB}\"}}\n",
            ALICE.replace('/', "\\/")
        ),
    ] {
        let mut plan = users(&file).unwrap_or_else(|problems| panic!("{problems:?}"));
        assert_eq!(plan.warnings, []);
        let expected = SsRole::Users {
            identity: Some(OWN.into()),
            users: vec![user("alice", ALICE), user("bob", BOB)],
            file: Some("users.json".into()),
        };
        assert_eq!(role(&mut plan), expected, "{file}");
    }
    let SsRole::Users { users, .. } = role(&mut users(&format!("alice:{bare}")).unwrap()) else {
        panic!("no users");
    };
    assert_eq!(users, [user("alice", bare)]);
}

#[test]
fn passwords_stand_alone() {
    let cabinet = MemorySources::default().with_file("/u", "anna:a:b \nbert: c\n");
    let expected = SsRole::Users {
        identity: None,
        users: vec![user("anna", "a:b "), user("bert", " c")],
        file: Some("/u".into()),
    };
    for url in [
        "ss://aes-256-gcm@127.0.0.1:0?users=@/u",
        "ss://AEAD_AES_256_GCM:@127.0.0.1:0/?users=@/u",
        "ss://aes%2d256-gcm@127.0.0.1:0?users=@/u",
    ] {
        let mut plan = words_with(&[url], &cabinet).unwrap();
        assert_eq!(plan.warnings, [], "{url}");
        assert_eq!(role(&mut plan), expected, "{url}");
    }
    let own = "ss://aes-256-gcm:$K@127.0.0.1:0?users=@/u";
    let problems = words_with(&[own], &cabinet.with_variable("K", "pw")).unwrap_err();
    assert_eq!(
        problems[0].title,
        "a server with users has no password of its own"
    );
}

#[test]
fn a_relay_is_read() {
    let file = format!(
        r#"[{{"server":"127.0.0.1","port":8388,"psk":"{ALICE}"}},
            {{"name":"far","psk":"{BOB}","port":1,"server":"2001:db8::1"}}]"#
    );
    let expected = SsRole::Relay {
        identity: OWN.into(),
        next: vec![
            RelayTarget {
                name: None,
                server: "127.0.0.1:8388".parse().unwrap(),
                secret: ALICE.into(),
            },
            RelayTarget {
                name: Some("far".to_owned()),
                server: "[2001:db8::1]:1".parse().unwrap(),
                secret: BOB.into(),
            },
        ],
    };
    assert_eq!(role(&mut relay(&file).unwrap()), expected);
    let tables = format!(
        "[route.a]\nlisten = \"ss://{METHOD}:$OWN@127.0.0.1:0\"\n\
         [[route.a.relay]]\nserver = \"127.0.0.1\"\nport = 8388\npsk = \"{ALICE}\"\n\
         [[route.a.relay]]\nserver = \"[2001:db8::1]\"\nport = 0x1\npsk = \"@bob.key\"\nname = \"far\"\n"
    );
    assert_eq!(role(&mut table(&tables).unwrap()), expected);
}

#[test]
fn a_table_gives_the_users_of_the_one_listener() {
    for text in [
        format!(
            "[route.a]\nlisten = [\"ss://{METHOD}:$OWN@127.0.0.1:0\", \"http://127.0.0.1:0\"]\n\
             [route.a.users]\nalice = \"{ALICE}\"\nbob = \"@bob.key\"\n"
        ),
        format!(
            "[route.a]\nusers.alice = '{ALICE}'\nusers.bob = '{BOB}'\n\
             listen = 'SS://{METHOD}:$OWN@127.0.0.1:0'\n"
        ),
        format!(
            "[route.a]\nusers = {{ alice = '{ALICE}', bob = '{BOB}' }}\n\
             listen = 'ss://{METHOD}:{OWN}@127.0.0.1:0'\n"
        ),
    ] {
        let mut plan = table(&text).unwrap_or_else(|problems| panic!("{problems:?}"));
        let expected = SsRole::Users {
            identity: Some(OWN.into()),
            users: vec![user("alice", ALICE), user("bob", BOB)],
            file: None,
        };
        assert_eq!(role(&mut plan), expected, "{text}");
    }
}

#[test]
fn users_are_read_again() {
    let cabinet = MemorySources::default()
        .with_file("/u", &format!("a:{ALICE}\n"))
        .with_file("/own", &format!("a:{OWN}\n"));
    let own = Secret::from(OWN);
    let read = |path: &str| {
        read_users(
            Method::Blake3Aes128Gcm,
            Some(&own),
            Path::new(path),
            &cabinet,
        )
    };
    assert_eq!(read("/u"), Ok(vec![user("a", ALICE)]));
    assert_eq!(
        read("/own").unwrap_err()[0].title,
        "user `a` has the identity key of the server"
    );
    assert_eq!(
        read("/no").unwrap_err()[0].title,
        "cannot read `/no`: no such file"
    );
    let plain = read_users(Method::Aes256Gcm, None, Path::new("/own"), &cabinet);
    assert_eq!(plain, Ok(vec![user("a", OWN)]));
}

#[test]
fn a_path_is_that_of_the_run_time() {
    let text = format!("[route.a]\nlisten = 'ss://{METHOD}:$OWN@127.0.0.1:0?users=@bob.key'\n");
    let cabinet = MemorySources::default()
        .with_variable("OWN", OWN)
        .with_open_file("etc/bob.key", &format!("bob:{BOB}"));
    let mut plan = Plan::from_toml_with(&text, "etc/adit.toml", &cabinet).unwrap();
    assert_eq!(plan.warnings[0].kind, WarningKind::ReadableSecret);
    let SsRole::Users { file, .. } = role(&mut plan) else {
        panic!("no users");
    };
    assert_eq!(file, Some(PathBuf::from("etc/bob.key")));
}

/// More than the file of a secret may have, and far below the limit of users.
#[test]
fn a_file_of_users_can_be_long() {
    let path = std::env::temp_dir().join(format!("adit-users-{}", std::process::id()));
    let long: String = (0..30_000)
        .map(|i| format!("user-of-a-long-name-{i}:{i:030}\n"))
        .collect();
    assert!(long.len() > 1024 * 1024);
    std::fs::write(&path, long).unwrap();
    let read = read_users(Method::Aes256Gcm, None, &path, &SystemSources);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(read.unwrap().len(), 30_000);
}
