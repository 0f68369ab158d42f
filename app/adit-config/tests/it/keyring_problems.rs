//! Mistakes in users and next servers of Shadowsocks: the message names the place, and never the key.

use adit_config::{Plan, Problem};

use crate::keyrings::{ALICE, BOB, METHOD, OWN, relay, table, users};
use crate::shortcuts::{shown, words_with};
use adit_config::text::MemorySources;

#[test]
fn what_is_wrong_in_a_file_of_users_has_its_line() {
    let short = "AAEC";
    for (file, line, title) in [
        (
            format!("{{\"alice\": \"{ALICE}\",\n \"bob\": \"{short}\"}}"),
            2,
            "user `bob`: the key has the wrong length",
        ),
        (
            format!("{{\"alice\": \"{ALICE}\",\n\n \"bob\": 7}}"),
            3,
            "the key of a user is not a string",
        ),
        (
            format!("{{\"alice\": \"{ALICE}\",\n\"alice\": \"{BOB}\"}}"),
            2,
            "user `alice` is defined twice",
        ),
        (
            format!("# x\nalice:{ALICE}\nbob:{}\n", ALICE.trim_end_matches('=')),
            3,
            "user `alice` and user `bob` have the same key",
        ),
        (
            format!("alice:{ALICE}\nbob:{}\n", OWN.trim_end_matches('=')),
            2,
            "user `bob` has the identity key of the server",
        ),
        (
            format!("alice:{ALICE}\n{BOB}\n"),
            2,
            "a line that is not `NAME:KEY`",
        ),
        (
            "alice:hunter2!\n".to_owned(),
            1,
            "user `alice`: the key is not base64",
        ),
        (format!("{{\"\": \"{ALICE}\"}}"), 1, "a name is empty"),
        (format!("{{\"a\\n\": \"{ALICE}\"}}"), 1, "not a valid name"),
        (
            format!("[{{\"name\": \"a\", \"password\": \"{ALICE}\"}},\n7]"),
            2,
            "not an object",
        ),
        (
            format!("[{{\"name\": \"a\",\n \"pasword\": \"{ALICE}\"}}]"),
            1,
            "a user without `name` or `password`",
        ),
        (
            format!("[{{\"name\": \"a\",\n\"name\": \"b\", \"password\": \"{ALICE}\"}}]"),
            2,
            "`name` is written twice",
        ),
        (
            format!("[{{\"name\": 1,\n\"password\": \"{ALICE}\"}}]"),
            1,
            "`name` is not a string",
        ),
        (
            format!("{{\"alice\": \"{ALICE}\"\n\"bob\": \"{BOB}\"}}"),
            2,
            "invalid JSON",
        ),
        (format!("{{\"alice\": \"{ALICE}\"}}\n}}"), 2, "invalid JSON"),
    ] {
        let problems = users(&file).expect_err(&file);
        assert_eq!(problems.len(), 1, "{problems:?}");
        let place = problems[0].place.as_ref().unwrap();
        assert_eq!(
            (problems[0].title.as_str(), place.line),
            (title, line),
            "{file}"
        );
        let text = problems[0].to_string();
        assert!(text.contains(&format!("--> users.json:{line}:")), "{text}");
        for key in [ALICE, BOB, OWN, "hunter2"] {
            assert!(!text.contains(key.trim_end_matches('=')), "{text}");
        }
    }
    for file in ["", "# no user\n\n", "{}", "[]", " \n"] {
        assert_eq!(
            users(file).unwrap_err()[0].title,
            "no user in `users.json`",
            "{file}"
        );
    }
}

#[test]
fn messages_show_the_place_and_never_the_key() {
    assert_eq!(
        shown(users(&format!(
            "{{\n  \"alice\": \"AAEC\", \"bob\": \"{OWN}\"\n}}"
        ))),
        "\
error: user `alice`: the key has the wrong length
 --> users.json:2:12
2 | alice: ***
  |        ^^^ `2022-blake3-aes-128-gcm` needs 16 bytes, this is 3
  = help: `adit keygen 2022-blake3-aes-128-gcm` makes one
error: user `bob` has the identity key of the server
 --> users.json:2:27
2 | bob: ***
  |      ^^^
  = help: `adit keygen 2022-blake3-aes-128-gcm` makes another key"
    );
    // The text in the place of a name can be the key.
    assert_eq!(
        shown(users(&format!("{{\"{ALICE}\": \"alice\"}}"))),
        "\
error: user 1: the key is not base64
 --> users.json:1:30
1 | ***
  | ^^^ `2022-blake3-aes-128-gcm` needs 16 bytes in base64
  = help: `adit keygen 2022-blake3-aes-128-gcm` makes one
  = help: the name looks like a key: are the two swapped?"
    );
    assert_eq!(
        shown(users("{\"alice\": \"hunter2\",}")),
        "\
error: invalid JSON
 --> users.json:1:21
1 | ***
  | ^^^ trailing comma"
    );
}

#[test]
fn many_problems_are_counted() {
    let file: String = (0..100).map(|i| format!("u{i}:x\n")).collect();
    let problems = users(&file).unwrap_err();
    assert_eq!(problems.len(), 17);
    assert_eq!(problems[16].title, "84 more like these in `users.json`");
    let same: String = (0..100).map(|i| format!("u{i}:{ALICE}\n")).collect();
    let problems = users(&same).unwrap_err();
    assert_eq!(
        problems[0].title,
        "user `u0` and user `u1` have the same key"
    );
    assert_eq!(problems[16].title, "83 more like these in `users.json`");
    let text: String = same
        .lines()
        .map(|line| line.replacen(':', " = \"", 1) + "\"\n")
        .collect();
    let text = format!("[route.a]\nlisten = 'ss://{METHOD}:$OWN@:0'\n[route.a.users]\n{text}");
    let problems = table(&text).unwrap_err();
    assert_eq!(
        (problems.len(), problems[15].help.last().map(String::as_str)),
        (16, Some("83 more like these"))
    );
}

#[test]
fn what_is_wrong_with_a_relay_is_said() {
    let next = |fields: &str| format!("[\n{{{fields}}}]");
    for (fields, title) in [
        (
            "\"server\":\"a\",\"port\":1",
            "a next server without `server`, `port` or `psk`",
        ),
        (
            "\"server\":\"a\",\"port\":0,\"psk\":\"KEY\"",
            "`port` must be a number from 1 to 65535",
        ),
        (
            "\"server\":\"a\",\"port\":\"1\",\"psk\":\"KEY\"",
            "`port` must be a number from 1 to 65535",
        ),
        (
            "\"server\":\"a/b\",\"port\":1,\"psk\":\"KEY\"",
            "a host name cannot contain `/`",
        ),
        (
            "\"server\":\"\",\"port\":1,\"psk\":\"KEY\"",
            "a host name must have 1 to 255 bytes",
        ),
        (
            "\"server\":\"a\",\"port\":1,\"psk\":\"x\"",
            "next server 1: the key is not base64",
        ),
        (
            "\"server\":\"a\",\"port\":1,\"psk\":\"OWN\"",
            "next server 1 has the identity key of the server",
        ),
        (
            "\"server\":\"a\",\"prot\":1,\"psk\":\"KEY\"",
            "unknown key `prot`",
        ),
        ("\"KEY\":1", "unknown key `***`"),
    ] {
        let file = next(&fields.replace("KEY", ALICE).replace("OWN", OWN));
        let problems = relay(&file).expect_err(&file);
        assert_eq!(problems[0].title, title, "{file}");
        assert_eq!(problems[0].place.as_ref().unwrap().line, 2);
        assert!(!shown(relay(&file)).contains(ALICE), "{file}");
    }
    let twice = format!(
        "[{{\"server\":\"a\",\"port\":1,\"psk\":\"{ALICE}\",\"name\":\"x\"}},\
          {{\"server\":\"b\",\"port\":1,\"psk\":\"{ALICE}\"}}]"
    );
    assert_eq!(
        relay(&twice).unwrap_err()[0].title,
        "next server `x` and next server 2 have the same key"
    );
    assert_eq!(
        relay("[]").unwrap_err()[0].title,
        "no server in `relay.json`"
    );
    assert_eq!(relay("{}").unwrap_err()[0].title, "invalid JSON");
}

#[test]
fn tables_are_judged_like_files() {
    let head = format!("[route.a]\nlisten = \"ss://{METHOD}:$OWN@127.0.0.1:0\"\n");
    assert_eq!(
        shown(table(&format!(
            "{head}[route.a.users]\nalice = \"AAEC\"\nbob = \"{OWN}\"\n"
        ))),
        "\
error: user `alice`: the key has the wrong length
 --> etc/adit.toml:4:9
4 | alice = ***
  |         ^^^ `2022-blake3-aes-128-gcm` needs 16 bytes, this is 3
  = help: `adit keygen 2022-blake3-aes-128-gcm` makes one
error: user `bob` has the identity key of the server
 --> etc/adit.toml:5:7
5 | bob = ***
  |       ^^^
  = help: `adit keygen 2022-blake3-aes-128-gcm` makes another key"
    );
    for (rest, title) in [
        (
            "[route.a.users]\n".to_owned(),
            "a listener must have 1 to 1000000 users",
        ),
        (
            "users = 1\n".to_owned(),
            "`users` must be a table of `NAME = \"KEY\"`",
        ),
        (
            "users = { a = 1 }\n".to_owned(),
            "the key of a user must be a string",
        ),
        ("users.a = '@no'\n".to_owned(), "cannot read `no`"),
        (
            "users.a = '$NO'\n".to_owned(),
            "the environment variable `NO` is not set",
        ),
        (
            "relay = 1\n".to_owned(),
            "`relay` must be a list of `{ server, port, psk }`",
        ),
        ("relay = []\n".to_owned(), "a relay without servers"),
        (
            format!("relay = [{{ server = 'a', psk = '{ALICE}' }}]\n"),
            "a next server without `port`",
        ),
        (
            format!("relay = [{{ server = 'a', port = 65536, psk = '{ALICE}' }}]\n"),
            "`port` must be a number from 1 to 65535",
        ),
        (
            format!("relay = [{{ server = 'a', port = 1, psk = '{ALICE}', pks = 1 }}]\n"),
            "unknown key `pks`",
        ),
        (
            format!("users.a = '{ALICE}'\nrelay = [{{ server = 'a', port = 1, psk = '{BOB}' }}]\n"),
            "a listener has users or relays, not both",
        ),
        ("usres.a = 'x'\n".to_owned(), "unknown key `usres`"),
    ] {
        let problems = table(&format!("{head}{rest}")).expect_err(&rest);
        assert_eq!(problems[0].title, title, "{rest}");
    }
    for listen in [
        "'http://127.0.0.1:0'".to_owned(),
        format!("['ss://{METHOD}:$OWN@127.0.0.1:0', 'ss://{METHOD}:$OWN@127.0.0.1:0']"),
    ] {
        let text = format!("[route.a]\nlisten = {listen}\nusers.a = '{ALICE}'\n");
        let problems = table(&text).unwrap_err();
        assert_eq!(
            problems[0].title,
            "these keys need a route with exactly one `ss://` listener"
        );
    }
    let both = format!(
        "[route.a]\nlisten = 'ss://{METHOD}:$OWN@127.0.0.1:0?users=@u'\nusers.a = '{ALICE}'\n"
    );
    assert_eq!(
        table(&both).unwrap_err()[0].title,
        "the URL of the listener also names a source of keys"
    );
}

#[test]
fn methods_without_identity_headers_are_refused() {
    let cabinet = MemorySources::default()
        .with_file("/u", &format!("a:{ALICE}\n"))
        .with_variable("K", &format!("{OWN}:{ALICE}"))
        .with_variable("OWN", OWN);
    for (url, title) in [
        (
            "ss://2022-blake3-chacha20-poly1305:$OWN@:1?users=@/u",
            "`2022-blake3-chacha20-poly1305` has no identity headers",
        ),
        (
            "ss://aes-256-gcm:$OWN@:1?relay=@/u",
            "`aes-256-gcm` has no identity headers",
        ),
        (
            "ss://none@:1?users=@/u",
            "method `none` has no keys, and so no users",
        ),
        (
            "ss://2022-blake3-aes-128-gcm@:1?users=@/u",
            "a server with users needs a key of its own, which is missing",
        ),
        (
            "ss://2022-blake3-aes-128-gcm:@:1?relay=@/u",
            "a relay needs a key of its own, which is missing",
        ),
        (
            "ss://2022-blake3-aes-128-gcm:$K@:1?users=@/u",
            "a listener has one key, not several joined by `:`",
        ),
        (
            "ss://2022-blake3-aes-128-gcm:$K@:1",
            "a listener has one key, not several joined by `:`",
        ),
        (
            "ss://2022-blake3-aes-128-gcm:aes-256-gcm:secret@:1",
            "the key begins with a method",
        ),
        (
            "ss://2022-blake3-aes-128-gcm:$OWN@:1?users=@/u&relay=@/u",
            "a listener has users or relays, not both",
        ),
        (
            "ss://2022-blake3-aes-128-gcm:$OWN@:1?users=/u",
            "bad value for `users`",
        ),
        (
            "ss://2022-blake3-aes-128-gcm:$OWN@:1?users=@/no",
            "cannot read `/no`",
        ),
    ] {
        let problems = words_with(&[url], &cabinet).expect_err(url);
        assert_eq!(problems[0].title, title, "{url}");
    }
}

/// Returns true if every quoted line hides what could be a key. The text in the place of a name is
/// shown.
fn hides_keys(result: Result<Plan, Vec<Problem>>) -> Result<(), String> {
    let Err(problems) = result else { return Ok(()) };
    let all: String = problems
        .iter()
        .map(|problem| format!("{problem}\n"))
        .collect();
    let name_alone = |line: &str| line.trim_end().ends_with('=');
    let shows = |line: &str| {
        line.contains(" | ")
            && line.contains("hunter2")
            && !line.contains("***")
            && !name_alone(line)
    };
    if all.lines().any(shows) {
        Err(all)
    } else {
        Ok(())
    }
}

proptest::proptest! {
    #[test]
    fn no_file_panics_or_quotes_a_key(
        text in r#"[\[\{]?(["a:,\{\}\[\] \n\\]|"name"|"password"|hunter2|#|=){0,40}[\]\}]?"#,
    ) {
        proptest::prop_assert_eq!(hides_keys(users(&text)), Ok(()));
        proptest::prop_assert_eq!(hides_keys(relay(&text)), Ok(()));
    }

    #[test]
    fn no_table_panics_or_quotes_a_key(
        text in r#"(["'a:,\{\} \n\\]|hunter2|=|[$]){0,40}"#,
        heading in proptest::sample::select(vec!["[route.a.users]", "[[route.a.relay]]", "[route.a.u"]),
    ) {
        let text = format!("[route.a]\nlisten = 'ss://{METHOD}:$OWN@:0'\n{heading}\n{text}");
        proptest::prop_assert_eq!(hides_keys(table(&text)), Ok(()));
    }
}
