//! `known_hosts` and `authorized_keys`.

use super::*;
use crate::algorithm::KeyAlgorithm;
use adit_wire::UnixTime;
use proptest::prelude::*;

const NOW: UnixTime = UnixTime(1_705_000_000);

fn host(name: &str, port: u16) -> HostName {
    HostName::new(name, port).unwrap()
}

fn any(line: &str) -> AnyKey {
    AnyKey::Plain(public(line))
}

fn cert(line: &str) -> AnyKey {
    AnyKey::Certificate(Box::new(Certificate::from_line(line).unwrap().0))
}

fn hosts(text: &str) -> KnownHosts {
    let mut known = KnownHosts::default();
    assert_eq!(known.add_file("hosts", text.as_bytes()), Ok(vec![]));
    known
}

fn at(line: usize) -> LinePosition {
    LinePosition {
        file: "hosts".into(),
        line,
    }
}

#[test]
fn hashed_hosts_of_ssh_keygen() {
    let known = hosts(vector!("known_hosts_hashed"));
    let key = any(vector!("ed25519.pub"));
    for (name, port, line) in [
        ("plain.example.org", 22, 1),
        ("PLAIN.example.org", 22, 1),
        ("port.example.org", 2222, 2),
        ("192.0.2.1", 22, 3),
    ] {
        let verdict = known.check_host(&host(name, port), &key, NOW);
        assert_eq!(verdict, HostKeyVerdict::Known(at(line)));
    }
    let unknown = HostKeyVerdict::Unknown;
    for (name, port) in [("port.example.org", 22), ("plain.example.org", 2222)] {
        assert_eq!(known.check_host(&host(name, port), &key, NOW), unknown);
    }
}

#[test]
fn lines_that_are_written_are_read() {
    let key = public(vector!("ecdsa384.pub"));
    for salt in [None, Some([9; 20])] {
        for port in [22, 2200] {
            let name = host("Example.org", port);
            let line = name.known_hosts_line(&key, salt);
            assert_eq!(line.contains("example"), salt.is_none());
            let known = hosts(&line);
            let verdict = known.check_host(&name, &AnyKey::Plain(key.clone()), NOW);
            assert_eq!(verdict, HostKeyVerdict::Known(at(1)));
        }
    }
    for bad in [
        "",
        "a b",
        "a,b",
        "*",
        "a\nb",
        "@cert-authority",
        "|1|a",
        "[a]",
        "a\0",
        "é",
    ] {
        assert_eq!(HostName::new(bad, 22), None, "{bad:?}");
    }
}

#[test]
fn another_key_is_no_unknown_one() {
    let (ed, p256, rsa) = (
        vector!("ed25519.pub"),
        vector!("ecdsa256.pub"),
        vector!("rsa2048.pub"),
    );
    let text = format!("# comment\n\na.org,!b.org {ed}*.org {p256}b.org {ed}");
    let known = hosts(&text);
    let check = |name, line| known.check_host(&host(name, 22), &any(line), NOW);
    assert_eq!(check("a.org", ed), HostKeyVerdict::Known(at(3)));
    assert_eq!(check("b.org", ed), HostKeyVerdict::Known(at(5)));
    assert_eq!(check("a.org", p256), HostKeyVerdict::Known(at(4)));
    assert_eq!(
        check("a.org", vector!("ca.pub")),
        HostKeyVerdict::Changed(at(3))
    );
    assert_eq!(check("a.org", rsa), HostKeyVerdict::OtherType(at(3)));
    assert_eq!(check("a.net", rsa), HostKeyVerdict::Unknown);
    let both =
        |a, b, line| known.check_name_and_address(&host(a, 22), &host(b, 22), &any(line), NOW);
    assert_eq!(both("b.org", "9.9.9.9", ed), HostKeyVerdict::Known(at(5)));
    let (foreign, other) = (
        hosts(&format!("n {ed}1.1.1.1 {}", vector!("ca.pub"))),
        any(ed),
    );
    let verdict = foreign.check_name_and_address(&host("n", 22), &host("1.1.1.1", 22), &other, NOW);
    assert_eq!(verdict, HostKeyVerdict::Changed(at(2)));
}

#[test]
fn revoked_keys_are_never_known() {
    let (ed, ca) = (vector!("ed25519.pub"), vector!("ca.pub"));
    let text = format!("h {ed}@revoked * {ed}@revoked * {ca}@cert-authority * {ca}");
    let known = hosts(&text);
    let name = host("h", 22);
    assert_eq!(
        known.check_host(&name, &any(ed), NOW),
        HostKeyVerdict::Revoked(at(2))
    );
    let certified = cert(vector!("host-cert.pub"));
    assert_eq!(
        known.check_host(&name, &certified, NOW),
        HostKeyVerdict::Revoked(at(2))
    );
    let by_ca = hosts(&format!("@revoked * {ca}@cert-authority * {ca}"));
    assert_eq!(
        by_ca.check_host(&name, &certified, NOW),
        HostKeyVerdict::Revoked(at(1))
    );
}

#[test]
fn hosts_with_certificates() {
    let (ed, ca) = (vector!("ed25519.pub"), vector!("ca.pub"));
    let known = hosts(&format!("@cert-authority *.example.org {ca}"));
    let certified = cert(vector!("host-cert.pub"));
    let check = |name| known.check_host(&host(name, 22), &certified, NOW);
    assert_eq!(check("host.example.org"), HostKeyVerdict::Known(at(1)));
    let wrong = HostKeyVerdict::BadCertificate(at(1), CertError::WrongPrincipal);
    assert_eq!(check("other.example.org"), wrong);
    assert_eq!(check("host.example.net"), HostKeyVerdict::Unknown);
    // A user certificate is not a host certificate, and the authority's key is not a host key.
    let user = known.check_host(
        &host("a.example.org", 22),
        &cert(vector!("user-cert.pub")),
        NOW,
    );
    assert_eq!(
        user,
        HostKeyVerdict::BadCertificate(at(1), CertError::WrongKind)
    );
    let itself = known.check_host(&host("a.example.org", 22), &any(ca), NOW);
    assert_eq!(itself, HostKeyVerdict::Unknown);
    // Without its authority, a certificate counts as its key.
    let plain = hosts(&format!("host.example.net {ed}"));
    let verdict = plain.check_host(&host("host.example.net", 22), &certified, NOW);
    assert_eq!(verdict, HostKeyVerdict::Known(at(1)));
}

#[test]
fn keys_of_a_host_and_whose_lines_they_are() {
    let (one, two) = (
        include_str!("../../../vectors/ssh/keys/ed25519.pub").trim_end(),
        include_str!("../../../vectors/ssh/keys/ecdsa256.pub").trim_end(),
    );
    let name = host("h", 2222);
    let hashed = name.known_hosts_line(any(two).key(), Some([7; 20]));
    let known = hosts(&format!(
        "[h]:2222 {one}\n{hashed}\n[h]:2222,i {two}\n[?]:2222 {two}\n@revoked [h]:2222 {one}\n\
         @cert-authority * {one}\nh {one}\n"
    ));
    let found: Vec<_> = known
        .keys_of(&name)
        .map(|known| (known.place.line, known.alone, known.key.type_name()))
        .collect();
    let (ed, ec) = ("ssh-ed25519", "ecdsa-sha2-nistp256");
    // Key files contain their own line ends.
    let lines: Vec<_> = found
        .iter()
        .map(|(_, alone, kind)| (*alone, *kind))
        .collect();
    assert_eq!(lines, [(true, ed), (true, ec), (false, ec), (false, ec)]);
    assert!(found.is_sorted());
}

#[test]
fn known_algorithms_come_first() {
    use KeyAlgorithm::{EcdsaP256, Ed25519, Ed25519Cert, RsaSha256, RsaSha512};
    let offered = [Ed25519Cert, Ed25519, EcdsaP256, RsaSha512, RsaSha256];
    let known = hosts(&format!(
        "h {}@cert-authority c {}",
        vector!("rsa2048.pub"),
        vector!("ca.pub")
    ));
    let prefer = |name| known.prefer_known(&host(name, 22), &offered);
    assert_eq!(
        prefer("h"),
        [RsaSha512, RsaSha256, Ed25519Cert, Ed25519, EcdsaP256]
    );
    assert_eq!(prefer("c"), offered);
    assert_eq!(prefer("x"), offered);
}

#[test]
fn bad_lines_are_told() {
    let mut known = KnownHosts::default();
    let ed = vector!("ed25519.pub");
    let text = format!(
        "h\n@maybe h {ed}h ssh-dss AAAAB3NzaC1kc3M=\n|2|a|b {ed}|1|AA==|AA== {ed}a,,b {ed}h {ed}"
    );
    let problems = known.add_file("hosts", text.as_bytes()).unwrap();
    let lines: Vec<_> = problems.iter().map(|p| p.place.line).collect();
    assert_eq!((lines, known.len()), (vec![1, 2, 3, 4, 5, 6], 1));
    assert_eq!(problems[1].to_string(), "hosts:2: unknown marker");
    let long = format!("{},h {ed}", "x".repeat(70_000));
    assert_eq!(known.add_file("hosts", long.as_bytes()).unwrap().len(), 1);
}

fn keys(text: &str) -> AuthorizedKeys {
    let mut keys = AuthorizedKeys::default();
    assert_eq!(keys.add_file("keys", text.as_bytes()), Ok(vec![]));
    keys
}

fn find(text: &str, key: &AnyKey, from: &str) -> Result<KeyGrant, KeyDenied> {
    keys(text).find_grant(&KeyOffer {
        user: "alice",
        key,
        presence: None,
        from: from.parse().unwrap(),
        from_name: None,
        now: NOW,
    })
}

fn of_keys() -> LinePosition {
    LinePosition {
        file: "keys".into(),
        line: 1,
    }
}

#[test]
fn keys_with_options() {
    let ed = vector!("ed25519.pub");
    let key = any(ed);
    let find = |options: &str, from: &str| find(&format!("{options}{ed}"), &key, from);
    assert_eq!(find("", "192.0.2.1"), Ok(KeyGrant::allow_all()));
    let grant = find(
        r#"restrict,pty,permitopen="[::1]:80",permitlisten="8080" "#,
        "::1",
    )
    .unwrap();
    assert!(grant.pty && !grant.port_forwarding && !grant.may_open("::1", 80));
    let grant = find(
        r#"permitopen="db:5432",permitopen="web:*",permitlisten="8080" "#,
        "::1",
    );
    let grant = grant.unwrap();
    assert!(grant.may_open("db", 5432) && !grant.may_open("db", 22) && grant.may_open("web", 1));
    assert!(grant.may_listen("localhost", 8080) && !grant.may_listen("localhost", 8081));
    let from = r#"from="10.0.0.0/8,!10.6.6.6" "#;
    assert!(find(from, "10.1.1.1").is_ok());
    for elsewhere in ["10.6.6.6", "192.0.2.1", "::1"] {
        assert_eq!(find(from, elsewhere), Err(KeyDenied::Source(of_keys())));
    }
    assert!(find(r#"expiry-time="20250101" "#, "::1").is_ok());
    let expired = find(r#"expiry-time="20231231" "#, "::1");
    assert_eq!(expired, Err(KeyDenied::Expired(of_keys())));
    let twice = find(r#"expiry-time="20231231",expiry-time="20990101" "#, "::1");
    assert_eq!(twice, Err(KeyDenied::Expired(of_keys())));
}

#[test]
fn unknown_options_let_nobody_in() {
    let ed = vector!("ed25519.pub");
    let mut authorized = AuthorizedKeys::default();
    let text = format!("no-such-option {ed}command=unquoted {ed}pty,zap=\"x\" {ed}ssh-dss AAAA\n");
    let problems = authorized.add_file("keys", text.as_bytes()).unwrap();
    assert_eq!((problems.len(), authorized.is_empty()), (4, true));
    assert_eq!(problems[0].to_string(), "keys:1: unknown option");
}

#[test]
fn other_keys_are_unknown() {
    let text = vector!("ed25519.pub");
    let denied = find(text, &any(vector!("ecdsa256.pub")), "::1");
    assert_eq!(denied, Err(KeyDenied::Unknown));
    // A certificate of a listed key is not that key, and an authority's own key is not a user's.
    assert_eq!(
        find(text, &cert(vector!("user-cert.pub")), "::1"),
        Err(KeyDenied::Unknown)
    );
    let ca = format!("cert-authority {}", vector!("ca.pub"));
    assert_eq!(
        find(&ca, &any(vector!("ca.pub")), "::1"),
        Err(KeyDenied::Unknown)
    );
    // A certificate by a key that is listed, but not as an authority.
    let plain = vector!("ca.pub");
    assert_eq!(
        find(plain, &cert(vector!("user-cert.pub")), "::1"),
        Err(KeyDenied::Unknown)
    );
}

#[test]
fn users_with_certificates() {
    let ca = vector!("ca.pub");
    let find = |options: &str, certificate: &str| {
        find(&format!("{options} {ca}"), &cert(certificate), "10.0.0.1")
    };
    let user = vector!("user-cert.pub");
    assert_eq!(find("cert-authority", user), Ok(KeyGrant::allow_all()));
    let restricted = find("cert-authority,no-pty", user).unwrap();
    assert!(!restricted.pty && restricted.user_rc);
    assert!(find(r#"cert-authority,principals="x,bob""#, user).is_ok());
    let why = |why| Err(KeyDenied::Certificate(of_keys(), why));
    assert_eq!(
        find(r#"cert-authority,principals="x""#, user),
        why(CertError::WrongPrincipal)
    );
    assert_eq!(
        find("cert-authority", vector!("expired-cert.pub")),
        why(CertError::Expired)
    );
    assert_eq!(
        find("cert-authority", vector!("nobody-cert.pub")),
        why(CertError::WrongPrincipal)
    );
    let forced = vector!("forced-cert.pub");
    let grant = find(r#"cert-authority,command="echo hi""#, forced).unwrap();
    assert_eq!(grant.command.as_deref(), Some("echo hi"));
    let other = find(r#"cert-authority,command="sh""#, forced);
    assert_eq!(other, Err(KeyDenied::Commands(of_keys())));
}

#[test]
fn tokens_that_were_not_touched() {
    let key = PublicKey::SkEd25519 {
        key: [1; 32],
        application: "ssh:".into(),
    };
    let (line, key) = (key.to_line(""), AnyKey::Plain(key));
    let find = |options: &str, touched, verified| {
        keys(&format!("{options}{line}")).find_grant(&KeyOffer {
            user: "alice",
            key: &key,
            presence: Some(UserPresence {
                touched,
                verified,
                counter: 1,
            }),
            from: "::1".parse().unwrap(),
            from_name: None,
            now: NOW,
        })
    };
    assert!(find("", true, false).is_ok());
    assert_eq!(find("", false, false), Err(KeyDenied::Presence(of_keys())));
    assert!(find("no-touch-required ", false, false).is_ok());
    assert_eq!(
        find("verify-required ", true, false),
        Err(KeyDenied::Presence(of_keys()))
    );
    assert!(find("verify-required ", true, true).is_ok());
}

proptest! {
    #[test]
    fn no_lines_panic(text in "(?s).{0,120}", options in r#"[a-z=",\\ ]{0,40}"#) {
        let line = format!("{options} {}{text}", vector!("ed25519.pub"));
        for text in [text.as_bytes(), line.as_bytes()] {
            let mut known = KnownHosts::default();
            let problems = known.add_file("f", text).unwrap().len();
            prop_assert!(problems + known.len() <= text.split(|b| *b == b'\n').count());
            let _ = AuthorizedKeys::default().add_file("f", text).unwrap();
        }
    }
}
