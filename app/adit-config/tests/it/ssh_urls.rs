//! `ssh://`: the resulting hops and listeners, and the messages for mistakes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use adit_config::{
    Hop, HopKind, HostTrust, ListenerConfig, ListenerKind, PrivateAccess, ServerHop, SshHop,
    SshServer, Stage, WarningKind, explain_plan, link,
};
use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};

use crate::shortcuts::{shown, words_with};
use adit_config::text::MemorySources;

const NEAR: &str = "mixed://127.0.0.1:1080";
const PIN: &str = "SHA256:2nbE5lzxtTLcdVH4yLTnkDwU2dLY6SGlqsW0lG3ePbs";

fn vector(name: &str) -> String {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto/adit-ssh-proto/vectors/ssh/keys");
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

fn home() -> MemorySources {
    MemorySources::default()
        .with_variable("HOME", "/home/u")
        .with_variable("USER", "u")
}

fn server_hop(url: &str, cabinet: &MemorySources) -> ServerHop {
    let plan = words_with(&[NEAR, url], cabinet);
    let mut plan = plan.unwrap_or_else(|why| panic!("{url}: {why:?}"));
    match plan.routes.remove(0).via.stages.remove(0) {
        Stage::Single(Hop::Server(hop)) => hop,
        other => panic!("{other:?}"),
    }
}

fn hop(url: &str, cabinet: &MemorySources) -> SshHop {
    match server_hop(url, cabinet).kind {
        HopKind::Ssh(hop) => *hop,
        other => panic!("{other:?}"),
    }
}

fn listen(url: &str, cabinet: &MemorySources) -> ListenerConfig {
    let plan = words_with(&[url], cabinet);
    let mut plan = plan.unwrap_or_else(|why| panic!("{url}: {why:?}"));
    plan.routes.remove(0).listen.remove(0)
}

fn server(url: &str, cabinet: &MemorySources) -> SshServer {
    match listen(url, cabinet).kind {
        ListenerKind::Ssh(server) => *server,
        other => panic!("{other:?}"),
    }
}

fn mistakes(role: &[&str], cabinet: &MemorySources) -> String {
    shown(words_with(role, cabinet))
}

#[test]
fn the_usual_keys_are_found_and_the_port_is_22() {
    let cabinet = home()
        .with_file("/home/u/.ssh/id_ed25519", &vector("ed25519"))
        .with_file("/home/u/.ssh/id_ecdsa", &vector("enc_aes256ctr"))
        .with_file("/home/u/.ssh/id_rsa", &vector("rsa2048"));
    let found = server_hop("ssh://h.example", &cabinet);
    assert_eq!(found.display_name(), "ssh://h.example:22");
    let hop = hop("ssh://h.example", &cabinet);
    assert_eq!((hop.user.as_str(), hop.sessions), ("u", 1));
    let files: Vec<&str> = hop.keys.iter().map(|key| key.file.as_str()).collect();
    // The second key cannot be read without its passphrase.
    assert_eq!(files, ["~/.ssh/id_ed25519", "~/.ssh/id_rsa"]);
    assert_eq!(hop.keepalive, Duration::from_secs(30));
    assert!(hop.agent.is_none() && hop.password.is_none() && !hop.udp);
    assert_eq!(
        hop.trust,
        HostTrust::Known {
            files: vec![
                PathBuf::from("/home/u/.ssh/known_hosts"),
                PathBuf::from("/etc/ssh/ssh_known_hosts"),
            ],
            accept_new: false,
        }
    );
    assert_eq!(agent_of("ssh://h"), Some(PathBuf::from("/run/agent")));
    for named in ["ssh://h?key=@~/.ssh/id_rsa", "ssh://u:%40pw@h"] {
        assert_eq!(agent_of(named), None, "{named}");
    }
    assert!(agent_of("ssh://u:pw@h?agent=true").is_some());
}

fn agent_of(url: &str) -> Option<PathBuf> {
    let cabinet = home()
        .with_variable("SSH_AUTH_SOCK", "/run/agent")
        .with_file("/home/u/.ssh/id_rsa", &vector("rsa2048"));
    hop(url, &cabinet).agent
}

#[test]
fn keys_secrets_and_algorithms_are_read() {
    let cabinet = home()
        .with_file("/pw", "pass\n")
        .with_variable("PW", "in a variable");
    let url = "ssh://me:@/pw@h:2222?strict=accept-new&known_hosts=@hosts&cipher=aes128-ctr,\
        chacha20-poly1305&mac=umac-64-etm&kex=mlkem768x25519-sha256&compression=true&keepalive=5s\
        &sessions=4&udp=over-tcp&dial=3s";
    let hop = hop(url, &cabinet);
    assert_eq!(hop.user, "me");
    assert_eq!(hop.password.as_ref().map(|p| p.expose()), Some("pass"));
    assert!(hop.keys.is_empty());
    assert_eq!(
        hop.algorithms.cipher,
        [Cipher::Aes128Ctr, Cipher::ChaCha20Poly1305]
    );
    assert_eq!(hop.algorithms.mac, [Mac::Umac64Etm]);
    assert_eq!(hop.algorithms.kex, [Kex::MlKem768X25519]);
    assert!(hop.algorithms.compression && hop.udp);
    assert_eq!((hop.sessions, hop.keepalive), (4, Duration::from_secs(5)));
    assert_eq!(
        hop.trust,
        HostTrust::Known {
            files: vec![PathBuf::from("hosts")],
            accept_new: true,
        }
    );
    assert_eq!(server_hop(url, &cabinet).dial, Duration::from_secs(3));
    let variable = self::hop("ssh://me:$PW@h", &cabinet);
    assert_eq!(
        variable.password.as_ref().map(|p| p.expose()),
        Some("in a variable")
    );
    let pinned = self::hop(&format!("ssh://me:$PW@h?host_key={PIN}"), &cabinet);
    assert_eq!(pinned.trust, HostTrust::Pinned(vec![PIN.to_owned()]));
}

#[test]
fn a_passphrase_opens_the_key() {
    let cabinet = home()
        .with_file("/k", &vector("enc_aes256ctr"))
        .with_file("/c", &vector("ed25519"))
        .with_file("/c-cert.pub", &vector("user-cert.pub"))
        .with_file("/p", "correct horse\n");
    let text = mistakes(&[NEAR, "ssh://h?key=@/k"], &cabinet);
    assert!(text.contains("`/k` is not a usable private key"), "{text}");
    assert!(text.contains("a passphrase is required"), "{text}");
    assert!(text.contains("`?passphrase=@FILE`"), "{text}");
    let text = mistakes(&[NEAR, "ssh://h?key=@/k&passphrase=wrong"], &cabinet);
    assert!(text.contains("the passphrase is wrong"), "{text}");
    assert!(!text.contains("passphrase=wrong"), "{text}");
    assert_eq!(
        hop("ssh://h?key=@/k&passphrase=@/p", &cabinet).keys.len(),
        1
    );
    let hop = hop("ssh://h?key=@/c", &cabinet);
    assert_eq!(hop.keys.len(), 1);
    assert_eq!(
        hop.keys.first().and_then(|key| key.certificate.clone()),
        Some(vector("user-cert.pub"))
    );
}

#[test]
fn a_listener_lets_keys_or_passwords_in() {
    let key = vector("ed25519.pub");
    let cabinet = home()
        .with_open_file(
            "/home/u/keys",
            &format!("# mine\nrestrict,permitopen=\"a:1\" {key}"),
        )
        .with_file("/users", "a:b\n");
    let by_key = server("ssh://127.0.0.1:2222?authorized_keys=@~/keys", &cabinet);
    assert_eq!(by_key.authorized_keys, Some(PathBuf::from("/home/u/keys")));
    assert_eq!((by_key.user.as_deref(), by_key.users.len()), (None, 0));
    assert_eq!(
        by_key.host_key,
        PathBuf::from("/home/u/.local/state/adit/ssh_host_ed25519_key")
    );
    let named = server("ssh://me@:2222?authorized_keys=@~/keys", &cabinet);
    assert_eq!(named.user.as_deref(), Some("me"));
    let both = server(
        "ssh://me:pw@:2222?authorized_keys=@~/keys&users=@/users&host_key=@hk",
        &cabinet,
    );
    let users: Vec<&str> = both.users.iter().map(|login| login.user.as_str()).collect();
    assert_eq!(
        (users, both.host_key),
        (vec!["me", "a"], PathBuf::from("hk"))
    );
    // A user who logs in has no access to private addresses, even through a loopback listener.
    let listen = listen("ssh://me:pw@127.0.0.1:2222?host_key=@hk", &cabinet);
    assert_eq!(listen.access.private, PrivateAccess::Deny);
    // A file of public keys is not a secret.
    let plan = words_with(&["ssh://127.0.0.1:1?authorized_keys=@~/keys"], &cabinet).unwrap();
    let kinds: Vec<WarningKind> = plan.warnings.iter().map(|warning| warning.kind).collect();
    assert_eq!(kinds, []);
    let state = home().with_variable("XDG_STATE_HOME", "/state");
    let kept = server("ssh://me:pw@:2222", &state).host_key;
    assert_eq!(kept, PathBuf::from("/state/adit/ssh_host_ed25519_key"));
}

#[test]
fn mistakes_are_named() {
    let cabinet = home()
        .with_file("/bad", "no key\n")
        .with_file("/keys", "ssh-ed25519 AAAA\n")
        .with_file("/home/u/.ssh/id_ed25519", &vector("enc_aes256ctr"));
    for (url, part) in [
        ("ssh://h", "no credentials to log in with"),
        (
            "ssh://h",
            "`~/.ssh/id_ed25519` cannot be read without its passphrase",
        ),
        ("ssh://u:p@h:0", "the port of a server cannot be 0"),
        ("ssh://u:p@h/x", "`ssh://` has no target"),
        ("ssh://u:p@h?udp=true", "SSH does not carry UDP"),
        ("ssh://u:p@h?agent=true", "no SSH agent is available"),
        ("ssh://u:p@h?sessions=65", "at most 64 connections"),
        (
            "ssh://u:p@h?cipher=aes128-cbc",
            "did you mean `aes128-ctr`?",
        ),
        ("ssh://u:p@h?strict=no", "expected `yes` or `accept-new`"),
        (
            "ssh://u:p@h?host_key=@/k",
            "a hop's `host_key` is a fingerprint",
        ),
        (
            "ssh://u:p@h?host_key=SHA256:abc",
            "expected `SHA256:` and 43 characters",
        ),
        ("ssh://u:p@h?key=@/bad", "is not a usable private key"),
        ("ssh://u:p@h?key=@/none", "cannot read `/none`"),
        (
            "ssh://u:p@h?authorized_keys=@/k",
            "is a key of the listener role",
        ),
    ] {
        let text = mistakes(&[NEAR, url], &cabinet);
        assert!(text.contains(part), "{url}\n{text}");
        assert!(!text.contains(":p@"), "{text}");
    }
    let pinned = format!("ssh://u:p@h?host_key={PIN}&strict=accept-new");
    let text = mistakes(&[NEAR, &pinned], &cabinet);
    assert!(
        text.contains("`strict` has no effect with `host_key`"),
        "{text}"
    );
    for (url, part) in [
        ("ssh://:2222", "no user could log in"),
        ("ssh://me@:2222", "a user without a password"),
        ("ssh://u:p@", "the port is missing"),
        (
            "ssh://:2222?authorized_keys=@/keys",
            "`/keys` has a line without a valid key",
        ),
        ("ssh://:2222?authorized_keys=@/none", "cannot read `/none`"),
        (
            &format!("ssh://u:p@:1?host_key={PIN}"),
            "a listener needs a private key",
        ),
        ("ssh://u:p@:1?key=@/k", "is a key of the hop role"),
        ("ssh+kcp://u:p@:1", "`kcp` does not carry `ssh`"),
    ] {
        let text = mistakes(&[url], &cabinet);
        assert!(text.contains(part), "{url}\n{text}");
    }
    // Without a user and a home directory, there is no place to search.
    let bare = MemorySources::default();
    let text = mistakes(&[NEAR, "ssh://:p@h"], &bare);
    assert!(text.contains("the user is missing"), "{text}");
    let text = mistakes(&["ssh://u:p@:1"], &bare);
    assert!(text.contains("there is no directory for"), "{text}");
    let user = words_with(&[NEAR, "ssh://u:p@h?udp=false"], &bare);
    assert!(user.is_ok(), "{user:?}");
}

#[test]
fn what_is_shown_has_no_secrets_in_it() {
    let cabinet = home().with_file("/home/u/k", &vector("ed25519"));
    let words = [
        "ssh://me:hunter2@127.0.0.1:2222?host_key=@hk&compression=true",
        "ssh://u:hunter3@h?key=@~/k&cipher=aes256-gcm&udp=over-tcp",
        "ssh://v:hunter4@i:23",
    ];
    let plan = words_with(&words, &cabinet).unwrap();
    let drawn = explain_plan(&plan);
    for line in [
        "  ● ssh://127.0.0.1:2222",
        "  │   SSH, compressed; streams only; accepts 1 user by password",
        "  │   host key hk; keepalive after 30s",
        "  │   limits: handshake 2m, dial 10s, idle 1h, half-closed 2m, connections up to the \
         descriptor limit",
        "  │   access: public destinations",
        "  ○ hop 1: ssh://h:22  (as u by key ~/k, password, aes256-gcm@openssh.com; hosts in \
         /home/u/.ssh/known_hosts; 1 connection kept open; UDP in a connection; dial 10s)",
        "  UDP     not offered",
        "  splice  no: ssh://127.0.0.1:2222 seals every byte",
    ] {
        assert!(drawn.lines().any(|drawn| drawn == line), "{line}\n{drawn}");
    }
    assert!(!drawn.contains("hunter"), "{drawn}");
    assert!(!format!("{plan:?}").contains("hunter"));
    assert!(!format!("{plan:?}").contains("BEGIN"));
    let url = format!("ssh://u:p@h:22?host_key={PIN}&mac=umac-64-etm%40openssh.com");
    let canonical = link::canonical_url(&url).unwrap();
    assert_eq!(link::canonical_url(&canonical).unwrap(), canonical);
}
