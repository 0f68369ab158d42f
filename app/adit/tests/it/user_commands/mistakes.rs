//! Commands and requests with mistakes, which change nothing.

use adit_interop::TempFolder;

use super::world::Served;
use crate::setup::{ALLOW, ended, says, start};

#[test]
fn wrong_options_are_explained() {
    let served = Served::start();
    for (args, code, words) in [
        (
            &["add", "bob", "--quota", "50"][..],
            2,
            &["50GB", "/month"][..],
        ),
        (&["add", "bob", "--quota", "50GB/year"], 2, &["/week"]),
        (
            &["add", "bob", "--expires", "tomorrow"],
            2,
            &["30d", "2027-01-01"],
        ),
        (
            &["add", "bob", "--expires", "2020-01-01"],
            2,
            &["begun already"],
        ),
        (
            &["add", "bob", "--rate", "10MB"],
            2,
            &["10MB/s", "100Mbit/s"],
        ),
        (&["add", "bob", "--sessions", "0"], 2, &["1 to 1000000"]),
        (&["add", ""], 1, &["1 to 255 bytes"]),
        (&["add", " bob"], 1, &["no space at its ends"]),
        (&["add", "a\nb"], 1, &["no control characters"]),
        (&["add", "a:b"], 1, &["has no `:`"]),
        (
            &["add", "admin"],
            1,
            &["has a user `admin` already", "rotate"],
        ),
        (
            &["add", "bob", "--listener", "mian"],
            1,
            &["no listener `mian`", "main, proxy"],
        ),
        (&["add", "bob", "--host", "a b"], 1, &["`host`"]),
        (&["show", "ghost"], 1, &["no such user", "adit user list"]),
        (&["rotate", "ghost"], 1, &["no such user"]),
        (&["remove", "ghost"], 1, &["no such user"]),
        (&["limit", "ghost", "--quota", "1GB"], 1, &["no such user"]),
        (&["reset", "ghost"], 1, &["no such user"]),
        (
            &["limit", "admin"],
            2,
            &["no limit to change", "--quota 50GB/month"],
        ),
        (&["remove", "admin"], 1, &["cannot remove the last user"]),
    ] {
        says(&served.fails(args, code), words);
    }
    assert!(!served.prints(&["list"]).contains("bob"));
    assert!(!served.file("users.json").contains("bob"));
    assert!(!served.file("proxy.users").contains("bob"));
    served.stop();
}

/// A failure at one listener leaves the others as they were.
#[test]
fn a_failure_is_undone() {
    let served = Served::start();
    let (keys, passwords) = (served.file("users.json"), "admin:admins-password\nbroken\n");
    served.write("proxy.users", passwords);
    says(
        &served.fails_at_socket(&["add", "bob", "--quota", "1GB"]),
        &["line 2 of"],
    );
    says(
        &served.fails_at_socket(&["rotate", "admin"]),
        &["line 2 of"],
    );
    says(
        &served.fails_at_socket(&["remove", "admin"]),
        &["cannot remove the last user"],
    );
    let users = |text: &str| -> serde_json::Value { serde_json::from_str(text).unwrap() };
    assert_eq!(users(&served.file("users.json")), users(&keys));
    assert_eq!(served.file("proxy.users"), passwords);
    let accounts = served.ask("GET /accounts", &[], "").body;
    assert!(!accounts.contains("bob"), "{accounts}");
    served.stop();
}

#[test]
fn requests_are_checked() {
    let served = Served::start();
    for (line, body, status, says) in [
        ("PUT /accounts/admin/limits", "{", 400, "not JSON"),
        (
            "PUT /accounts/admin/limits",
            "[]",
            400,
            "limits are an object",
        ),
        (
            "PUT /accounts/admin/limits",
            r#"{"quota": "1GB"}"#,
            400,
            "`quota` must be",
        ),
        (
            "PUT /accounts/admin/limits",
            r#"{"qouta": 1}"#,
            400,
            "did you mean `quota`?",
        ),
        ("PUT /accounts/ghost/limits", "{}", 404, "no such user"),
        ("PUT /accounts", "{}", 405, "GET, POST"),
        (
            "POST /accounts",
            r#"{"name": "x", "keys": 1}"#,
            400,
            "unknown field",
        ),
        (
            "POST /accounts",
            r#"{"name": "x", "limits": {"rate": 0}}"#,
            400,
            "`rate` must be",
        ),
        (
            "GET /accounts/admin?reveal=1",
            "",
            403,
            "`reveal` needs a token",
        ),
        ("GET /accounts/ghost", "", 404, "no such user"),
        ("GET /accounts/admin/keys", "", 404, "not found"),
    ] {
        let reply = served.ask(line, &[], body);
        assert_eq!(reply.status, status, "{line}: {}", reply.body);
        assert!(reply.body.contains(says), "{line}: {}", reply.body);
    }
    // Only the given fields change.
    let set = |body: &str| served.ask("PUT /accounts/admin/limits", &[], body).body;
    assert!(set(r#"{"quota": 5, "period": "day"}"#).contains(r#""quota":5,"period":"day""#));
    let changed = set(r#"{"devices": 2}"#);
    assert!(
        changed.contains(r#""quota":5"#) && changed.contains(r#""devices":2"#),
        "{changed}"
    );
    assert!(set(r#"{"quota": null}"#).contains(r#""quota":null"#));
    let reply = served.ask("DELETE /accounts/admin/limits", &[], "");
    assert_eq!(reply.status, 204, "{}", reply.body);
    assert!(
        served
            .ask("GET /accounts/admin", &[], "")
            .body
            .contains(r#""devices":null"#)
    );
    served.stop();
}

/// A process without users to change, and one that is not there.
#[test]
fn processes_without_users_say_so() {
    let folder = TempFolder::new("no-users").unwrap();
    let socket = folder.path().join("api.sock");
    let at = socket.to_str().unwrap();
    let missing = ended(&["user", "list", "--admin", at]);
    assert_eq!(missing.code, Some(4), "{}", missing.output);
    says(&missing.output, &["cannot reach the management API"]);
    let none = ended(&["user", "list"]);
    assert_eq!(none.code, Some(2), "{}", none.output);
    says(&none.output, &["--admin ADDRESS"]);

    let key = folder
        .write_file("key", "AAECAwQFBgcICQoLDA0ODw==")
        .unwrap();
    let server = format!(
        "ss://2022-blake3-aes-128-gcm:@{}@127.0.0.1:0?{ALLOW}#one",
        key.display()
    );
    let adit = start(&["run", &server, "--admin", at]);
    adit_interop::wait_socket(&socket, adit_interop::TEST_TIMEOUT).unwrap();
    let added = ended(&["user", "add", "bob", "--admin", at]);
    assert_eq!(added.code, Some(1), "{}", added.output);
    says(
        &added.output,
        &["listener `one`", "single key", "users=@FILE"],
    );
    let shown = ended(&["user", "show", "bob", "--reveal", "--admin", at]);
    assert_eq!(shown.code, Some(2), "{}", shown.output);
    says(&shown.output, &["--admin-token @FILE", "`reveal`"]);
    let list = ended(&["user", "list", "--admin", at])
        .expect_success()
        .unwrap();
    assert_eq!(list, "no users");
    adit.stop().unwrap();

    // A user in the URL is changed where it is.
    let password = folder.write_file("password", "secret").unwrap();
    let proxy = format!("mixed://ann:@{}@127.0.0.1:0#p", password.display());
    let adit = start(&["run", &proxy, "--admin", at]);
    adit_interop::wait_socket(&socket, adit_interop::TEST_TIMEOUT).unwrap();
    for command in ["rotate", "remove"] {
        let done = ended(&["user", command, "ann", "--admin", at]);
        assert_eq!(done.code, Some(1), "{}", done.output);
        says(&done.output, &["user `ann` is in the URL of listener `p`"]);
    }
    let limited = ended(&["user", "limit", "ann", "--sessions", "2", "--admin", at]);
    says(
        &limited.expect_success().unwrap(),
        &["2 sessions", "listeners     p", "set `store` in `[admin]`"],
    );
    adit.stop().unwrap();
}
