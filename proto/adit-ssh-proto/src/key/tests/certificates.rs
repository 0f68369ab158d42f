//! Certificates made by `ssh-keygen -s`.

use super::*;
use adit_wire::UnixTime;

/// January 2024.
const NOW: UnixTime = UnixTime(1_705_000_000);

fn certificate(line: &str) -> Certificate {
    Certificate::from_line(line).unwrap().0
}

fn check(line: &str, by: &str, check: &CertCheck<'_>) -> Result<KeyGrant, CertError> {
    let authority = public(by);
    certificate(line).check_validity(check, |key| *key == authority)
}

/// Checks a certificate of the user alice, signed by `ca`, from an address that `forced` allows.
fn alice(line: &str) -> Result<KeyGrant, CertError> {
    let from = "10.9.8.7".parse().ok();
    check(
        line,
        vector!("ca.pub"),
        &CertCheck::user(&["alice"], NOW, from),
    )
}

#[test]
fn what_it_says() {
    let user = certificate(vector!("user-cert.pub"));
    assert_eq!(
        (user.serial(), user.kind(), user.id()),
        (7, CertPurpose::User, "user")
    );
    assert_eq!(user.principals(), ["alice", "bob"]);
    assert_eq!(user.validity(), (UnixTime(0), UnixTime(u64::MAX)));
    assert_eq!(*user.key(), public(vector!("ed25519.pub")));
    assert_eq!(*user.authority(), public(vector!("ca.pub")));
    let any = AnyKey::parse(user.blob()).unwrap();
    assert_eq!(
        (any.certificate(), any.to_blob()),
        (Some(&user), user.blob().to_vec())
    );
    assert_eq!(alice(vector!("user-cert.pub")), Ok(KeyGrant::allow_all()));
}

#[test]
fn keys_of_every_type_are_certified() {
    for (line, key) in [
        (vector!("user_rsa-cert.pub"), vector!("rsa2048.pub")),
        (vector!("user_p256-cert.pub"), vector!("ecdsa256.pub")),
        (vector!("user_p384-cert.pub"), vector!("ecdsa384.pub")),
        (vector!("user_p521-cert.pub"), vector!("ecdsa521.pub")),
    ] {
        let parsed = certificate(line);
        assert_eq!(*parsed.key(), public(key));
        assert!(parsed.algorithms().iter().all(|a| a.is_certificate()));
        assert!(!parsed.algorithms().is_empty());
        assert_eq!(alice(line), Ok(KeyGrant::allow_all()));
    }
}

/// Signatures of every algorithm, none of them made by this crate.
#[test]
fn authorities_of_every_type() {
    let user = CertCheck::user(&["alice"], NOW, None);
    for (line, by) in [
        (vector!("by_p256-cert.pub"), vector!("ecdsa256.pub")),
        (vector!("by_p384-cert.pub"), vector!("ecdsa384.pub")),
        (vector!("by_p521-cert.pub"), vector!("ecdsa521.pub")),
        (vector!("by_rsa512-cert.pub"), vector!("rsa2048.pub")),
        (vector!("by_rsa256-cert.pub"), vector!("rsa2048.pub")),
        (vector!("by_rsa9216-cert.pub"), vector!("rsa9216.pub")),
    ] {
        assert_eq!(check(line, by, &user), Ok(KeyGrant::allow_all()));
    }
    let sha1 = check(
        vector!("by_rsa_sha1-cert.pub"),
        vector!("rsa2048.pub"),
        &user,
    );
    assert_eq!(sha1, Err(KeyError::WrongAlgorithm.into()));
    let (line, by) = (vector!("by_rsa1024-cert.pub"), vector!("rsa1024.pub"));
    let (bits, least) = (1024, 2048);
    assert_eq!(
        check(line, by, &user),
        Err(KeyError::ShortRsa { bits, least }.into())
    );
    let lenient = CertCheck {
        rsa_min_bits: 1024,
        ..user
    };
    assert_eq!(check(line, by, &lenient), Ok(KeyGrant::allow_all()));
}

#[test]
fn times() {
    assert_eq!(alice(vector!("expired-cert.pub")), Err(CertError::Expired));
    assert_eq!(
        alice(vector!("future-cert.pub")),
        Err(CertError::NotYetValid)
    );
    let line = vector!("window-cert.pub");
    let (after, before) = certificate(line).validity();
    assert_eq!(
        (after, before),
        (UnixTime(1_704_067_200), UnixTime(1_706_745_600))
    );
    for (now, fine) in [
        (after.0 - 1, false),
        (after.0, true),
        (before.0 - 1, true),
        (before.0, false),
    ] {
        let got = check(
            line,
            vector!("ca.pub"),
            &CertCheck::user(&["alice"], UnixTime(now), None),
        );
        assert_eq!(got.is_ok(), fine, "{now}");
    }
}

#[test]
fn names() {
    let ca = vector!("ca.pub");
    let user = |names: &[&str]| {
        check(
            vector!("user-cert.pub"),
            ca,
            &CertCheck::user(names, NOW, None),
        )
    };
    assert_eq!(user(&["carol"]), Err(CertError::WrongPrincipal));
    assert_eq!(user(&[]), Err(CertError::WrongPrincipal));
    assert_eq!(user(&["carol", "bob"]), Ok(KeyGrant::allow_all()));
    assert_eq!(user(&["ALICE"]), Err(CertError::WrongPrincipal));
    assert_eq!(
        alice(vector!("nobody-cert.pub")),
        Err(CertError::WrongPrincipal)
    );
    let host = |name: &str| check(vector!("host-cert.pub"), ca, &CertCheck::host(&[name], NOW));
    assert!(host("host.example.org").is_ok() && host("a.wild.example.org").is_ok());
    assert_eq!(host("other.example.org"), Err(CertError::WrongPrincipal));
    assert_eq!(alice(vector!("host-cert.pub")), Err(CertError::WrongKind));
    let as_host = CertCheck::host(&["alice"], NOW);
    assert_eq!(
        check(vector!("user-cert.pub"), ca, &as_host),
        Err(CertError::WrongKind)
    );
}

#[test]
fn options() {
    let grant = alice(vector!("forced-cert.pub")).unwrap();
    assert_eq!(grant.command.as_deref(), Some("echo hi"));
    assert!(grant.pty && !grant.port_forwarding && !grant.agent_forwarding);
    assert!(!grant.x11_forwarding && !grant.user_rc);
    for from in [None, "192.0.2.1".parse().ok(), "::2".parse().ok()] {
        let user = CertCheck::user(&["alice"], NOW, from);
        let got = check(vector!("forced-cert.pub"), vector!("ca.pub"), &user);
        assert_eq!(got, Err(CertError::WrongSource), "{from:?}");
    }
    let grant = alice(vector!("verify-cert.pub")).unwrap();
    assert!(grant.verify_required && !grant.touch_required);
    let unknown = alice(vector!("unknown-cert.pub"));
    assert_eq!(
        unknown,
        Err(CertError::CriticalOption("shout@example.org".into()))
    );
    assert!(
        alice(vector!("extension-cert.pub")).is_ok(),
        "may be ignored"
    );
}

#[test]
fn authorities_have_to_be_trusted() {
    let user = CertCheck::user(&["alice"], NOW, None);
    let other = check(vector!("user-cert.pub"), vector!("ecdsa256.pub"), &user);
    assert_eq!(other, Err(CertError::Untrusted));
}

/// Each byte is either part of the format or covered by the signature.
#[test]
fn forged_certificates() {
    let blob = certificate(vector!("user-cert.pub")).blob().to_vec();
    for at in 0..blob.len() {
        for bit in [1, 0x80] {
            let mut forged = blob.clone();
            forged[at] ^= bit;
            let Ok(forged) = Certificate::parse(&forged) else {
                continue;
            };
            let user = CertCheck::user(&["alice"], NOW, None);
            assert!(
                forged.check_validity(&user, |_| true).is_err(),
                "octet {at}"
            );
        }
    }
    for len in 0..blob.len() {
        assert!(Certificate::parse(&blob[..len]).is_err());
    }
}

#[test]
fn an_authority_that_is_a_certificate() {
    use crate::wire::SshBufMut;
    let blob = certificate(vector!("user-cert.pub")).blob().to_vec();
    let ca = public(vector!("ca.pub")).to_blob();
    let at = blob.windows(ca.len()).position(|w| w == ca).unwrap() - 4;
    let mut chained = blob[..at].to_vec();
    chained.put_string(&blob);
    chained.extend(&blob[at + 4 + ca.len()..]);
    assert!(matches!(
        Certificate::parse(&chained),
        Err(KeyError::Unsupported(_))
    ));
}
