//! ShadowsocksR: the meaning of URLs and share links, and the messages for them.

use adit_config::{
    Endpoint, Hop, HopKind, ListenerKind, Plan, SecretText, SsrHop, SsrServer, Stage, UdpTransport,
    WarningKind, explain_plan, link,
};
use base64::Engine;
use proptest::prelude::*;

use crate::shortcuts::{words, words_with};
use adit_config::text::MemorySources;

/// The example from the format's documentation.
const LINK: &str = "ssr://MTI3LjAuMC4xOjEyMzQ6YXV0aF9hZXMxMjhfbWQ1OmFlcy0xMjgtY2ZiOnRsczEuMl90aWNrZXRfYXV0aDpZV0ZoWW1KaS8_b2Jmc3BhcmFtPVluSmxZV3QzWVRFeExtMXZaUQ";
const PLAIN: &str = "ssr://aes-128-cfb:aaabbb@127.0.0.1:1234?protocol=auth_aes128_md5\
    &obfs=tls1.2_ticket_auth&obfs_param=breakwa11.moe";

fn server(url: &str) -> SsrServer {
    let mut plan = words(&[url]).unwrap_or_else(|why| panic!("{url}: {why:?}"));
    match plan.routes.remove(0).listen.remove(0).kind {
        ListenerKind::ShadowsocksR(server) => server,
        other => panic!("{other:?}"),
    }
}

fn hop(url: &str) -> SsrHop {
    let words = words(&["mixed://127.0.0.1:0", url]);
    let mut plan = words.unwrap_or_else(|why| panic!("{url}: {why:?}"));
    match plan.routes.remove(0).via.stages.remove(0) {
        Stage::Single(Hop::Server(hop)) => match hop.kind {
            HopKind::ShadowsocksR(hop) => *hop,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn problem(words_: &[&str]) -> String {
    let Err(problems) = words(words_) else {
        panic!("{words_:?} is a plan");
    };
    let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
    all.join("\n")
}

#[test]
fn one_url_serves_on_both_ends() {
    let url = "ssr://aes-256-ctr:p@127.0.0.1:1?protocol=auth_aes128_fast&protocol_param=&\
        obfs=go_quiet&obfs_param=bing.com";
    let (server, hop) = (server(url), hop(url));
    assert_eq!(server.method, hop.method);
    assert_eq!(server.protocol.kind, hop.protocol);
    assert_eq!(hop.protocol.name(), "auth_aes128_fast");
    assert_eq!((server.obfs, hop.obfs.name()), (hop.obfs, "go_quiet"));
    assert_eq!(hop.obfs_param.hosts(), ["bing.com".into()]);
    assert_eq!(
        (server.password.expose(), hop.password.expose()),
        ("p", "p")
    );
    // Users are written once for both.
    let url = "ssr://none:p@127.0.0.1:1?protocol=auth_chain_a&protocol_param=";
    for (written, of_server, of_hop) in [("7:u", "64#7:u", "7:u"), ("9%237:u", "9#7:u", "7:u")] {
        let url = format!("{url}{written}");
        assert_eq!(server_of(&url), of_server);
        assert_eq!(crate::ssr::hop(&url).protocol_param.expose(), of_hop);
    }
}

fn server_of(url: &str) -> String {
    server(url).protocol_param.expose().to_owned()
}

#[test]
fn users_can_stand_in_a_file() {
    let cabinet = MemorySources::default().with_file("/u", "64#7:a\r\n\n 8:b \n");
    let url = "ssr://none:p@127.0.0.1:1?protocol=auth_chain_a&protocol_param=@/u";
    let mut plan = words_with(&[url], &cabinet).unwrap();
    let ListenerKind::ShadowsocksR(server) = plan.routes.remove(0).listen.remove(0).kind else {
        panic!();
    };
    assert_eq!(server.protocol_param.expose(), "64#7:a,8:b");
}

#[test]
fn a_share_link_is_read_and_written() {
    assert_eq!(link::canonical_url(LINK).unwrap(), PLAIN);
    assert_eq!(link::toggle_form(LINK).unwrap(), PLAIN);
    assert_eq!(link::toggle_form(PLAIN).unwrap(), LINK);
    assert_eq!(link::share_link(LINK).unwrap(), LINK);
    assert_eq!(hop(LINK), hop(PLAIN));
    assert_eq!(server(LINK), server(PLAIN));
    let named = format!("{PLAIN}#a%20b");
    let folded = link::toggle_form(&named).unwrap();
    assert_eq!(link::toggle_form(&folded).unwrap(), named);
}

#[test]
fn datagrams_in_a_connection_are_part_of_a_link() {
    let url = format!("{PLAIN}&udp=over-tcp");
    let folded = link::toggle_form(&url).unwrap();
    assert_eq!(link::toggle_form(&folded).unwrap(), url);
    assert_eq!(hop(&folded).udp, UdpTransport::OverTcp);
    assert_eq!(hop(LINK).udp, UdpTransport::Native);
    assert!(!server(&url).udp, "a stream carries them");
    assert!(server(LINK).udp);
}

/// Padding, both alphabets, IPv6, empty parts, and keys that are unknown.
#[test]
fn links_of_others_are_read() {
    let fold = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let link = format!(
        "ssr://{}",
        fold(
            "2001:db8::1:443::rc4-md5::cD9+fg/?protoparam=&udpport=443&uot=0&group=Zw&remarks=w7w_"
        )
    );
    let url = Endpoint::parse(&link).unwrap();
    assert_eq!(url.host.as_ref().unwrap().value.to_string(), "2001:db8::1");
    assert_eq!(url.port.as_ref().unwrap().value, 443);
    let Some(SecretText::Literal(secret)) = url.secret.as_ref().map(|s| &s.value) else {
        panic!();
    };
    assert_eq!(secret.expose(), "p?~~");
    assert!(url.params.is_empty(), "{:?}", url.params);
    // Unsupported settings are reported, not ignored.
    let link = format!(
        "ssr://{}",
        fold(
            "h.example:443:auth_sha1_v4_compatible:rc4-md5:http_simple_compatible:cA/?udpport=99&uot=1"
        )
    );
    let plan = words(&["mixed://127.0.0.1:0", &link]).unwrap();
    let ignored = plan
        .warnings
        .iter()
        .filter(|w| w.kind == WarningKind::IgnoredKey);
    assert_eq!(ignored.count(), 1, "udpport");
    assert_eq!(hop(&link).protocol.name(), "auth_sha1_v4");
    for bad in [
        "h:443:origin:rc4-md5:plain",
        "h:x:origin:rc4-md5:plain:cA",
        "nothing",
    ] {
        assert!(
            Endpoint::parse(&format!("ssr://{}", fold(bad))).is_err(),
            "{bad}"
        );
    }
    let file = format!(
        "h:1:auth_chain_a:none:plain:cA/?protoparam={}",
        fold("@/etc/passwd")
    );
    let why = Endpoint::parse(&format!("ssr://{}", fold(&file))).unwrap_err();
    assert!(why.title.contains("cannot name a file"), "{why}");
}

#[test]
fn mistakes_are_told() {
    let local = "mixed://127.0.0.1:0";
    for (url, told) in [
        ("ssr://aes-256-crt:p@h:1", "did you mean `aes-256-ctr`?"),
        ("ssr://aes-256-gcm:p@h:1", "this is a method of `ss://`"),
        (
            "ssr://aes-256-ctr:p@h:1?protocol=auth_aes128_fats",
            "did you mean `auth_aes128_fast`?",
        ),
        (
            "ssr://aes-256-ctr:p@h:1?obfs=go_quite",
            "did you mean `go_quiet`?",
        ),
        (
            "ssr://aes-256-ctr:p@h:1?protocl=origin",
            "did you mean `protocol`?",
        ),
        ("ssr://aes-256-ctr@h:1", "the password is missing"),
        ("ssr://h:1", "method and password are missing"),
        ("ssr://none:@h:1?obfs=go_quiet", "the password is missing"),
        (
            "ssr://none:p@h:1?protocol=auth_chain_a&protocol_param=x:y",
            "a user id is a number",
        ),
        (
            "ssr://none:p@h:1?protocol=auth_chain_a&protocol_param=64#7:secret&obfs=plain",
            "write `#` as `%23`",
        ),
        (
            "ssr://none:p@h:1?protocol=auth_chain_a&protocol_param=64#7:secret",
            "write `#` as `%23`",
        ),
        ("ssr://!!", "a share link"),
    ] {
        let said = problem(&[local, url]);
        assert!(said.contains(told), "{url}: {said}");
        assert!(
            !said.contains("secret\n") && !said.contains("7:secret"),
            "{said}"
        );
    }
    let said = problem(&["ssr://none:p@:1?protocol=auth_sha1_v4&protocol_param=64%237:x"]);
    assert!(said.contains("this protocol has no users"), "{said}");
    let said = problem(&["ssr://none:p@:1?redirect=a*%23b:1"]);
    assert!(said.contains("plain text"), "{said}");
    let long = "a".repeat(102);
    let said = problem(&[
        local,
        &format!("ssr://none:p@h:1?obfs=go_quiet&obfs_param={long}"),
    ]);
    assert!(said.contains("101 bytes"), "{said}");
    assert_eq!(
        problem(&[local, "ssr://YWJjOmRlZg"]),
        "\
error: neither `METHOD:PASSWORD@HOST:PORT` nor a share link
 --> command line, column 7
  | ssr://***
  |       ^^^
  = help: write `ssr://METHOD:PASSWORD@HOST:PORT?protocol=…&obfs=…`, or a share link"
    );
}

#[test]
fn what_it_is_worth_is_said_once() {
    for (url, title) in [
        (
            "ssr://none:p@127.0.0.1:1",
            "method `none` with protocol `origin` does not encrypt",
        ),
        (
            "ssr://rc4-md5:p@127.0.0.1:1?protocol=auth_sha1_v4",
            "protocol `auth_sha1_v4` does not authenticate its data",
        ),
        (
            "ssr://none:p@127.0.0.1:1?protocol=auth_chain_a",
            "protocol `auth_chain_a` relies on old ciphers and tags of 2 to 4 bytes",
        ),
    ] {
        for words_ in [&[url][..], &["mixed://127.0.0.1:0", url]] {
            let plan = words(words_).unwrap();
            let legacy = plan
                .warnings
                .iter()
                .filter(|w| w.kind == WarningKind::LegacyCipher);
            let titles: Vec<_> = legacy.map(|w| w.about.title.as_str()).collect();
            assert_eq!(titles, [title], "{url}");
        }
    }
}

#[test]
fn it_is_drawn() {
    let plan = words(&[
        "ssr://aes-256-ctr:p@127.0.0.1:1?protocol=auth_aes128_fast&protocol_param=8%237:a,8:b\
         &obfs=http_simple_compatible&redirect=w.com:443",
        "ssr://none:p@a.example:2?protocol=auth_chain_a&obfs=go_quiet&obfs_param=bing.com",
    ]);
    assert_eq!(
        explain_plan(&plan.unwrap()),
        "\
route route1
  ● ssr://127.0.0.1:1
  │   aes-256-ctr, frames of auth_aes128_fast in http_simple, or none; TCP and UDP; without the key: 1 redirection, else silence
  │   2 users, identified by id
  │   limits: handshake 10s, dial 10s, idle 1h, half-closed 2m, connections up to the descriptor limit, UDP idle 5m
  │   access: public destinations
  ▼
  ○ hop 1: ssr://a.example:2  (none, frames of auth_chain_a in go_quiet as bing.com; waits 250ms for first bytes; UDP +141 bytes; dial 10s)
  ▼
  ◎ target
  UDP     passes, 1331 bytes of payload in a packet of 1500
  splice  no: ssr://127.0.0.1:1 seals every byte
"
    );
}

fn text() -> impl Strategy<Value = String> {
    "[ -~äß€]{1,12}"
}

fn percent(text: &str) -> String {
    text.bytes().map(|b| format!("%{b:02X}")).collect()
}

proptest! {
    #[test]
    fn both_forms_mean_the_same(
        method in proptest::sample::select(adit_crypto::StreamKind::ALL.to_vec()),
        protocol in proptest::sample::select(adit_shadowsocksr::ProtocolKind::ALL.to_vec()),
        obfs in proptest::sample::select(adit_obfs::ObfsKind::ALL.to_vec()),
        password in text(), user in any::<u32>(), name in text(),
        host in proptest::sample::select(vec!["192.0.2.7", "[2001:db8::1]", "a.example"]),
        port in 1u16..,
    ) {
        let url = format!(
            "ssr://{method}:{}@{host}:{port}?obfs={obfs}&protocol={protocol}\
             &protocol_param={user}:{}&obfs_param=a.com,b.com#{}",
            percent(&password), percent(&password), percent(&name),
        );
        let canonical = link::canonical_url(&url).unwrap();
        prop_assert_eq!(&link::canonical_url(&canonical).unwrap(), &canonical);
        let folded = link::toggle_form(&url).unwrap();
        prop_assert_eq!(&link::share_link(&folded).unwrap(), &folded);
        let (one, other) = (hop(&url), hop(&folded));
        prop_assert_eq!(&one, &other);
        prop_assert_eq!(one.password.expose(), password.as_str());
        let again = Endpoint::parse(&folded).unwrap();
        prop_assert_eq!(again.name.unwrap().value, name);
    }

    #[test]
    fn no_link_panics(text in "[A-Za-z0-9+/=_-]{0,80}") {
        let _ = Endpoint::parse(&format!("ssr://{text}"));
        let _ = Plan::from_words(&["mixed://127.0.0.1:0".into(), format!("ssr://{text}")]);
    }
}

#[test]
fn a_plugin_is_carried_and_never_lost() {
    let url = "ssr://aes-256-ctr:p@127.0.0.1:1?plugin=obfs%3Bobfs%3Dtls&plugin_mode=tcp_and_udp";
    for plugin in [server(url).plugin, hop(url).plugin] {
        let plugin = plugin.unwrap();
        assert_eq!((&*plugin.program, &*plugin.options), ("obfs", "obfs=tls"));
        assert!(plugin.mode.udp());
    }
    for end in [&[url][..], &["mixed://127.0.0.1:0", url]] {
        let text = explain_plan(&words(end).unwrap());
        assert!(text.contains("TCP and UDP through plugin `obfs`"), "{text}");
    }
    // The form for other programs has no place for it, and names none from elsewhere.
    let why = link::share_link(url).unwrap_err();
    assert_eq!(why[0].title, "a share link cannot contain a plugin");
    let folded = base64::engine::general_purpose::STANDARD
        .encode("h:443:origin:rc4-md5:plain:cA/?plugin=sh");
    let why = problem(&["mixed://127.0.0.1:0", &format!("ssr://{folded}")]);
    assert!(
        why.contains("a link of this form cannot name a plugin"),
        "{why}"
    );
    let why = problem(&[&url.replacen("ssr", "ssr+kcp", 1)]);
    assert!(
        why.contains("a plugin cannot be combined with KCP"),
        "{why}"
    );
}
