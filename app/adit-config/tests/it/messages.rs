//! The exact texts of error messages.

use crate::shortcuts::{shown, words};

/// A listener, so that the URL under test is a hop.
const NEAR: &str = "mixed://127.0.0.1:1080";

#[track_caller]
fn says(url: &[&str], text: &str) {
    assert_eq!(shown(words(url)), text.trim_start_matches('\n'));
}

#[test]
fn an_open_proxy_is_refused() {
    says(
        &["mixed://:1080"],
        "
error: refusing to be an open proxy: everyone who can reach this address could use it
 --> command line, column 9
  | mixed://:1080
  |         ^^^^^ not a loopback address, and no users
  = help: for this machine only: `mixed://127.0.0.1:1080`
  = help: for users: `USER:PASSWORD@` before the host, or `?users=@FILE`
  = help: for everyone: `?allow_open_proxy=true`",
    );
    for url in [
        "http://0.0.0.0:1",
        "socks5://[::]:1",
        "mixed://192.0.2.1:1",
        "http://box:1",
    ] {
        assert!(
            shown(words(&[url])).contains("refusing to be an open proxy"),
            "{url}"
        );
        assert!(
            words(&[&format!("{url}?allow_open_proxy=true")]).is_ok(),
            "{url}"
        );
    }
}

#[test]
fn a_transparent_listener_for_everyone_is_refused() {
    says(
        &["redir://:12345"],
        "
error: refusing to serve everyone: a transparent listener has no passwords
 --> command line, column 9
  | redir://:12345
  |         ^^^^^^ not a loopback address
  = help: for this machine's own traffic: `redir://127.0.0.1:12345`
  = help: for everyone whose traffic the firewall redirects here: `?allow_open_proxy=true`",
    );
    says(
        &["tproxy://0.0.0.0:1"],
        "
error: refusing to serve everyone: a transparent listener has no passwords
 --> command line, column 10
  | tproxy://0.0.0.0:1
  |          ^^^^^^^^^ not a loopback address
  = help: `tproxy://127.0.0.1:1` also works on a gateway: `TPROXY --on-ip 127.0.0.1`
  = help: for everyone whose traffic the firewall redirects here: `?allow_open_proxy=true`",
    );
    for scheme in ["redir", "tproxy"] {
        let url = format!("{scheme}://[::]:1?allow_open_proxy=true");
        assert!(words(&[&url]).is_ok(), "{url}");
    }
}

#[test]
fn unknown_keys_have_a_suggestion() {
    says(
        &["mixed://127.0.0.1:1080?upd=true"],
        "
error: unknown key `upd`
 --> command line, column 24
  | mixed://127.0.0.1:1080?upd=***
  |                        ^^^ did you mean `udp`?
  = help: `adit help mixed` lists the keys",
    );
    says(
        &[NEAR, "direct://?x=1"],
        "
error: unknown key `x`
 --> command line, column 11
  | direct://?x=***
  |           ^
  = help: `direct://` has no keys",
    );
    says(
        &[NEAR, "http://h:1?allow_private=all"],
        "
error: `allow_private` is a key of the listener role
 --> command line, column 12
  | http://h:1?allow_private=all
  |            ^^^^^^^^^^^^^",
    );
}

#[test]
fn unknown_schemes_and_carriers() {
    says(
        &["sock5://127.0.0.1:1"],
        "
error: unknown scheme `sock5`
 --> command line, column 1
  | sock5://127.0.0.1:1
  | ^^^^^ did you mean `socks5`?
  = help: schemes: mixed, socks5, socks4a, http, ss, ssr, ssh, tcp, udp, tcp+udp, kcptun, redir, tproxy, dns, direct, reject",
    );
    says(
        &[NEAR, "ss+quic://h:1"],
        "
error: unknown scheme `ss+quic`
 --> command line, column 1
  | ss+quic://h:1
  | ^^^^^^^ there is no carrier `quic`
  = help: carriers: `kcp` for every dialect, `fec` for `udp`; for plugins write `?plugin=`",
    );
    says(
        &[NEAR, "ss+fec://h:1"],
        "
error: unknown scheme `ss+fec`
 --> command line, column 1
  | ss+fec://h:1
  | ^^^^^^ `fec` does not carry `ss`
  = help: it carries `udp+fec`",
    );
}

#[test]
fn keys_of_the_2022_edition_are_checked() {
    says(
        &[
            NEAR,
            "ss://2022-blake3-aes-256-gcm:AAECAwQFBgcICQoLDA0ODw==@h:8388",
        ],
        "
error: the key has the wrong length
 --> command line, column 30
  | ss://2022-blake3-aes-256-gcm:***@h:8388
  |                              ^^^ `2022-blake3-aes-256-gcm` needs 32 bytes, this is 16
  = help: `adit keygen 2022-blake3-aes-256-gcm` makes one",
    );
    says(
        &[NEAR, "ss://2022-blake3-aes-128-gcm:hello@h:8388"],
        "
error: the key is not base64
 --> command line, column 30
  | ss://2022-blake3-aes-128-gcm:***@h:8388
  |                              ^^^ `2022-blake3-aes-128-gcm` needs 16 bytes in base64
  = help: `adit keygen 2022-blake3-aes-128-gcm` makes one",
    );
    says(
        &[
            NEAR,
            "ss://2022-blake3-aes-128-gcm:_-ECAwQFBgcICQoLDA0ODw@h:8388",
        ],
        "
error: the key is not base64
 --> command line, column 30
  | ss://2022-blake3-aes-128-gcm:***@h:8388
  |                              ^^^ `2022-blake3-aes-128-gcm` needs 16 bytes in base64
  = help: this looks like base64url: write `+` for `-` and `/` for `_`
  = help: `adit keygen 2022-blake3-aes-128-gcm` makes one",
    );
    says(
        &[
            NEAR,
            "ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw==:AAEC@h:8388",
        ],
        "
error: the key has the wrong length
 --> command line, column 30
  | ss://2022-blake3-aes-128-gcm:***@h:8388
  |                              ^^^ key 2 of 2: `2022-blake3-aes-128-gcm` needs 16 bytes, this is 3
  = help: `adit keygen 2022-blake3-aes-128-gcm` makes one",
    );
    says(
        &[NEAR, "ss://2022-blake3-chacha20-poly1305:a:b@h:8388"],
        "
error: `2022-blake3-chacha20-poly1305` has no identity headers
 --> command line, column 36
  | ss://2022-blake3-chacha20-poly1305:***@h:8388
  |                                    ^^^ it has a single key
  = help: the AES methods have them (SIP023): `2022-blake3-aes-256-gcm`",
    );
    says(
        &["ss://2022-blake3-aes-128-gcm@:1"],
        "
error: the key is missing
 --> command line, column 6
  | ss://2022-blake3-aes-128-gcm@:1
  |      ^^^^^^^^^^^^^^^^^^^^^^^
  = help: `adit keygen 2022-blake3-aes-128-gcm` makes one",
    );
    says(
        &[NEAR, "ss://aes-256-gmc@h:1"],
        "
error: neither `METHOD:KEY` nor base64 of it
 --> command line, column 6
  | ss://***@h:1
  |      ^^^ did you mean the method `aes-256-gcm`?
  = help: write `ss://METHOD:KEY@HOST:PORT`; `adit keygen METHOD` makes a key",
    );
    says(
        &[NEAR, "ss://2022-blake3-aes-128gcm:k@h:8388"],
        "
error: unknown method `2022-blake3-aes-128gcm`
 --> command line, column 6
  | ss://2022-blake3-aes-128gcm:***@h:8388
  |      ^^^^^^^^^^^^^^^^^^^^^^ did you mean `2022-blake3-aes-128-gcm`?
  = help: methods: 2022-blake3-aes-128-gcm, 2022-blake3-aes-256-gcm, \
2022-blake3-chacha20-poly1305, 2022-blake3-chacha8-poly1305, aes-128-gcm, aes-192-gcm, \
aes-256-gcm, chacha20-ietf-poly1305, xchacha20-ietf-poly1305, none
  = help: legacy: table, rc4, rc4-md5, rc4-md5-6, aes-128-cfb, aes-128-cfb8, aes-128-cfb1, \
aes-128-ctr, aes-128-ofb, aes-192-cfb, aes-192-cfb8, aes-192-cfb1, aes-192-ctr, aes-192-ofb, \
aes-256-cfb, aes-256-cfb8, aes-256-cfb1, aes-256-ctr, aes-256-ofb, camellia-128-cfb, \
camellia-128-cfb8, camellia-128-cfb1, camellia-128-ctr, camellia-128-ofb, camellia-192-cfb, \
camellia-192-cfb8, camellia-192-cfb1, camellia-192-ctr, camellia-192-ofb, camellia-256-cfb, \
camellia-256-cfb8, camellia-256-cfb1, camellia-256-ctr, camellia-256-ofb, bf-cfb, cast5-cfb, \
des-cfb, idea-cfb, rc2-cfb, seed-cfb, salsa20, chacha20, chacha20-ietf, xchacha20",
    );
}

#[test]
fn plugins_say_what_is_wrong_and_foreign_keys_are_ignored() {
    says(
        &[
            NEAR,
            "ss://YWVzLTEyOC1nY206dGVzdA@h:8888/?plugin=%3Bobfs%3Dhttp#Example",
        ],
        "
error: bad value for `plugin`
 --> command line, column 44
  | ss://***@h:8888/?plugin=***#Example
  |                         ^^^ expected a program, then `;` and its options",
    );
    says(
        &[
            NEAR,
            "ss://YWVzLTEyOC1nY206dGVzdA@h:8888/?plugin=p&plugin_mode=udp",
        ],
        "
error: bad value for `plugin_mode`
 --> command line, column 58
  | ss://***@h:8888/?plugin=***&plugin_mode=udp
  |                                         ^^^ expected one of tcp_only|udp_only|tcp_and_udp",
    );
    let plan = words(&[
        NEAR,
        "ss://YWVzLTEyOC1nY206dGVzdA@h:8888?prefix=%16%03&security=none",
    ])
    .unwrap();
    let texts: Vec<_> = plan
        .warnings
        .iter()
        .map(|w| w.about.title.as_str())
        .collect();
    assert_eq!(
        texts[..2],
        ["unknown key `prefix`", "unknown key `security`"]
    );
    // Settings of other programs, or of other schemes, that determine the route are not ignored.
    for key in [
        "uot=1",
        "security=tls",
        "type=ws",
        "obfs=tls",
        "redirect=h:1",
        "crypt=aes",
    ] {
        for scheme in ["ss://aes-128-gcm", "ssr://aes-256-ctr"] {
            let url = format!("{scheme}:test@h:8888?{key}");
            let name = key.split('=').next().unwrap();
            if scheme.starts_with("ssr") && ["obfs", "redirect"].contains(&name) {
                continue;
            }
            let told = shown(words(&[NEAR, &url]));
            assert!(
                told.contains(&format!("error: unknown key `{name}`")),
                "{told}"
            );
            assert!(
                told.contains("in a different form than the link says"),
                "{told}"
            );
        }
    }
    let slip = shown(words(&[
        NEAR,
        "ss://YWVzLTEyOC1nY206dGVzdA@h:8888?first_wiat=1s",
    ]));
    assert!(slip.contains("did you mean `first_wait`?"), "{slip}");
}

#[test]
fn values_say_what_was_expected() {
    for (url, label) in [
        ("mixed://127.0.0.1:1?udp=yes", "expected one of true|false"),
        (
            "mixed://127.0.0.1:1?idle=10",
            "expected a duration like `10s`, `500ms`, `2m` or `1h`",
        ),
        (
            "mixed://127.0.0.1:1?max_connections=0",
            "expected a whole number of at least 1",
        ),
        (
            "mixed://127.0.0.1:1?users=a:b",
            "expected `@` and the path of a file, or `fleet`",
        ),
        (
            "mixed://127.0.0.1:1?allow_private=lan",
            "expected `all`, `none` or networks like `10.0.0.0/8,fd00::/8`",
        ),
        (
            "tcp://:1/a:1?first_wait=10s",
            "expected a duration from `0ms` to `9s`",
        ),
        ("tcp://:1/a:1?first_wait=2s&dial=1s", "`dial` is 1s"),
        ("mixed://127.0.0.1:1?udp", "expected one of true|false"),
    ] {
        let problems = words(&[url]).unwrap_err();
        assert_eq!(problems.len(), 1, "{url}");
        assert_eq!(problems[0].label, label, "{url}");
    }
}

#[test]
fn parts_that_are_missing_or_too_many() {
    let long = format!("socks5://u:{}@h:1", "x".repeat(256));
    for (url, title) in [
        ("mixed://127.0.0.1", "the port is missing"),
        ("mixed://127.0.0.1:1/x", "`mixed://` has no target"),
        ("mixed://u@127.0.0.1:1", "a user without a password"),
        ("mixed://:p@127.0.0.1:1", "a password without a user"),
        ("mixed://u:@127.0.0.1:1", "the password is empty"),
        (
            "http://a%3Ab:p@127.0.0.1:1",
            "a user name for HTTP Basic cannot contain a colon",
        ),
        ("tcp://:1", "the target is missing"),
        ("tcp://:1/a", "not a target"),
        ("tcp://:1/a:0", "the port of a target cannot be 0"),
        ("tcp://u@:1/a:1", "`tcp://` has no users"),
        ("redir://u@127.0.0.1:1", "`redir://` has no users"),
        ("tproxy://127.0.0.1:1/a:1", "`tproxy://` has no target"),
        (
            "tproxy://127.0.0.1:0",
            "the port of a transparent listener cannot be 0",
        ),
        ("redir://127.0.0.1:1?udp=true", "unknown key `udp`"),
        ("ss://:1", "method and key are missing"),
        ("ss://aes-128-gcm:@@:1", "cannot read ``"),
        ("ss://aes-128-gcm:@:1", "the password is empty"),
        ("ss://rc4-md5:@:1", "the password is empty"),
        ("socks4a://h:1", "`socks4a://` cannot be a listener"),
        ("direct://", "`direct://` cannot be a listener"),
        (
            "ss://rc4-md5:p@:1?users=@users",
            "`rc4-md5` cannot distinguish users",
        ),
        (
            "ss://none:@:1?tcp=false&udp=false",
            "both TCP and UDP are off",
        ),
        (
            "mixed://u:p@127.0.0.1:1?socks4=true",
            "SOCKS4 cannot check passwords, and this listener has users",
        ),
    ] {
        let problems = words(&[url]).expect_err(url);
        assert_eq!(problems[0].title, title, "{url}");
    }
    for (url, title) in [
        ("http://:1", "the host is missing"),
        ("http://h", "the port is missing"),
        ("http://h:0", "the port of a server cannot be 0"),
        (
            "http://a%3Ab:p@h:1",
            "a user name for HTTP Basic cannot contain a colon",
        ),
        ("socks4a://u:p@h:1", "SOCKS4a has no passwords"),
        ("socks4a://a%00b@h:1", "not a valid user for SOCKS4a"),
        ("direct://h", "`direct://` has no other parts"),
        (
            "mixed://h:1",
            "`mixed://` is a listener and cannot be a hop",
        ),
        (
            "tproxy://h:1",
            "`tproxy://` is a listener and cannot be a hop",
        ),
        (&long, "user `u` is too long for SOCKS5"),
    ] {
        let problems = words(&[NEAR, url]).expect_err(url);
        assert_eq!(problems[0].title, title, "{url}");
    }
}

#[test]
fn chains_that_make_no_sense() {
    for (chain, title) in [
        (
            ["direct://", "http://h:1"],
            "`direct://` has no effect with other hops",
        ),
        (
            ["http://h:1", "reject://"],
            "`reject://` has no effect with other hops",
        ),
    ] {
        let problems = words(&[NEAR, chain[0], chain[1]]).unwrap_err();
        assert_eq!(problems[0].title, title);
    }
    says(
        &["udp://:53/8.8.8.8:53", "http://h:1"],
        "
error: UDP from `udp://:53/8.8.8.8:53` cannot pass `http://h:1`
 --> command line, column 7
  | udp://:53/8.8.8.8:53
  |       ^^^ this listener accepts UDP
  = help: `ss` and `socks5` hops carry UDP",
    );
    says(
        &[],
        "error: no endpoint to listen on\n  = help: start with `mixed://127.0.0.1:1080`",
    );
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let problems = words(&[
        "mixed://127.0.0.1:1?udp=x&upd=1",
        "ss://nope:k@h:1",
        "gopher://h:1",
        "http://h",
    ])
    .unwrap_err();
    let titles: Vec<_> = problems
        .iter()
        .map(|problem| problem.title.as_str())
        .collect();
    assert_eq!(
        titles,
        [
            "unknown key `upd`",
            "bad value for `udp`",
            "unknown method `nope`",
            "unknown scheme `gopher`",
            "the port is missing",
        ]
    );
}
