//! The server against clients of every kind. The names of the module and its tests are those in the
//! list of past failures of other implementations.

use super::*;
use crate::algorithm::KeyAlgorithm;
use crate::error::SshError;
use crate::key::Certificate;

/// x/crypto/ssh, CVE-2024-45337: a client queries one key and signs with another; the permissions
/// have to be those of the key that signed.
#[test]
fn query_then_sign_other() {
    let (asked, signer) = (key(1), key(2));
    let mut server = server_with(&[AuthMethod::PublicKey]);
    let ServerAuthQuery::KeyQuery { key, .. } = ask(&mut server, &query("u", &asked)) else {
        panic!("a query");
    };
    assert_eq!(key, shown(&asked));
    let step = server.answer_query(ServerAnswer::Accept).unwrap();
    assert!(matches!(step, ServerStep::Wait), "a query does not log in");
    assert_eq!(numbers(|| server.poll_output()), [msg::USERAUTH_PK_OK]);
    let ServerAuthQuery::Key { key, .. } =
        ask(&mut server, &signed("u", &signer, &signer, SESSION))
    else {
        panic!("a signature");
    };
    assert_eq!(key, shown(&signer), "the key that signed is asked about");
    let ServerStep::Success(login) = server.answer_query(ServerAnswer::Accept).unwrap() else {
        panic!("in");
    };
    assert_eq!(
        (login.user.as_str(), login.key),
        ("u", Some(shown(&signer)))
    );
}

/// The reverse: the last query is for another key than the one that signed and was accepted.
#[test]
fn sign_is_refused_then_query_accepted() {
    let (bad, good) = (key(1), key(2));
    let mut server = server_with(&[AuthMethod::PublicKey]);
    ask(&mut server, &signed("u", &bad, &bad, SESSION));
    assert!(matches!(
        server.answer_query(ServerAnswer::Reject),
        Ok(ServerStep::Wait)
    ));
    assert_eq!(failure(&mut server), ("publickey".into(), false));
    ask(&mut server, &query("u", &good));
    assert!(matches!(
        server.answer_query(ServerAnswer::Accept),
        Ok(ServerStep::Wait)
    ));
    // A signature of the refused key with the accepted key's blob.
    let step = server
        .handle_input(&signed("u", &good, &bad, SESSION))
        .unwrap();
    assert!(
        matches!(step, ServerStep::Wait),
        "nothing is asked: nothing was proven"
    );
}

#[test]
fn nothing_is_asked_without_a_valid_signature() {
    let key = key(1);
    let good = signed("u", &key, &key, SESSION);
    let mut attempts = vec![
        signed("u", &key, &key, b"the id of another session"),
        // For another user.
        {
            let other = signed("v", &key, &key, SESSION);
            let at = good.iter().position(|b| *b == b'u').unwrap();
            let mut swapped = other;
            swapped[at] = b'u';
            swapped
        },
    ];
    let mut last = good.clone();
    *last.last_mut().unwrap() ^= 1;
    attempts.push(last);
    for attempt in attempts {
        let mut server = server_with(&[AuthMethod::PublicKey]);
        assert!(matches!(
            server.handle_input(&attempt),
            Ok(ServerStep::Wait)
        ));
        assert_eq!(failure(&mut server), ("publickey".into(), false));
        assert!(
            server.answer_query(ServerAnswer::Accept).is_err(),
            "no question is open"
        );
    }
    let mut server = server_with(&[AuthMethod::PublicKey]);
    assert!(matches!(
        ask(&mut server, &good),
        ServerAuthQuery::Key { .. }
    ));
}

/// Methods that succeeded for one user do not count for the next.
#[test]
fn another_user_starts_anew() {
    let key = key(1);
    let mut server = server(ServerAuthConfig {
        methods: vec![AuthMethod::PublicKey, AuthMethod::Password],
        require: vec![vec![AuthMethod::PublicKey, AuthMethod::Password]],
        ..ServerAuthConfig::default()
    });
    ask(&mut server, &signed("alice", &key, &key, SESSION));
    assert!(matches!(
        server.answer_query(ServerAnswer::Accept),
        Ok(ServerStep::Wait)
    ));
    assert_eq!(failure(&mut server), ("password".into(), true));
    // Bob's password does not complete Alice's authentication.
    assert!(matches!(
        server.handle_input(&password("bob", "x")),
        Ok(ServerStep::Wait)
    ));
    assert_eq!(failure(&mut server), ("publickey".into(), false));
    // Returning to Alice does not continue it, either.
    assert!(matches!(
        server.handle_input(&password("alice", "x")),
        Ok(ServerStep::Wait)
    ));
    assert_eq!(failure(&mut server), ("publickey".into(), false));
}

#[test]
fn several_methods() {
    let (one, two) = (key(1), key(2));
    let config = ServerAuthConfig {
        methods: AuthMethod::ALL.to_vec(),
        require: vec![
            vec![AuthMethod::PublicKey, AuthMethod::PublicKey],
            vec![AuthMethod::PublicKey, AuthMethod::Password],
            vec![AuthMethod::KeyboardInteractive],
        ],
        ..ServerAuthConfig::default()
    };
    let mut server = server(config);
    assert!(matches!(
        server.handle_input(&nothing("u")),
        Ok(ServerStep::Wait)
    ));
    assert_eq!(
        failure(&mut server),
        ("publickey,keyboard-interactive".into(), false)
    );
    assert!(
        matches!(
            server.handle_input(&password("u", "p")),
            Ok(ServerStep::Wait)
        ),
        "too early"
    );
    assert_eq!(failure(&mut server).0, "publickey,keyboard-interactive");
    ask(&mut server, &signed("u", &one, &one, SESSION));
    assert!(matches!(
        server.answer_query(ServerAnswer::Accept),
        Ok(ServerStep::Wait)
    ));
    assert_eq!(failure(&mut server), ("publickey,password".into(), true));
    // The same key does not count twice.
    assert!(matches!(
        server.handle_input(&signed("u", &one, &one, SESSION)),
        Ok(ServerStep::Wait)
    ));
    assert_eq!(failure(&mut server), ("publickey,password".into(), false));
    ask(&mut server, &signed("u", &two, &two, SESSION));
    let ServerStep::Success(login) = server.answer_query(ServerAnswer::Accept).unwrap() else {
        panic!("in");
    };
    assert_eq!(
        login.methods,
        [AuthMethod::PublicKey, AuthMethod::PublicKey]
    );
    assert_eq!(login.key, Some(shown(&two)));
    assert_eq!(numbers(|| server.poll_output()), [msg::USERAUTH_SUCCESS]);
    assert!(
        matches!(server.handle_input(&nothing("u")), Ok(ServerStep::Wait)),
        "left alone"
    );
    assert_eq!(numbers(|| server.poll_output()), [0u8; 0]);
}

#[test]
fn who_may_come_in_may_go_on_with_other_methods() {
    let (one, two) = (key(1), key(2));
    let go_on = |methods: &[AuthMethod], partial| ServerAnswer::Continue {
        methods: methods.to_vec(),
        partial,
    };
    let mut server = server_with(&[AuthMethod::PublicKey, AuthMethod::Password]);
    // A key that was only queried does not count.
    ask(&mut server, &query("u", &one));
    let step = server.answer_query(go_on(&[AuthMethod::PublicKey], true));
    assert!(matches!(step, Ok(ServerStep::Wait)));
    assert_eq!(failure(&mut server), ("publickey".into(), false));
    ask(&mut server, &signed("u", &one, &one, SESSION));
    assert_eq!(server.algorithm(), Some(KeyAlgorithm::Ed25519));
    let step = server.answer_query(go_on(&[AuthMethod::PublicKey], true));
    assert!(matches!(step, Ok(ServerStep::Wait)));
    assert_eq!(failure(&mut server), ("publickey".into(), true));
    // The same key does not count twice, and a password is no longer offered.
    for again in [signed("u", &one, &one, SESSION), password("u", "p")] {
        assert!(matches!(server.handle_input(&again), Ok(ServerStep::Wait)));
        assert_eq!(failure(&mut server), ("publickey".into(), false));
    }
    ask(&mut server, &signed("u", &two, &two, SESSION));
    let step = server.answer_query(go_on(&AuthMethod::ALL, false));
    assert!(matches!(step, Ok(ServerStep::Wait)));
    assert_eq!(
        failure(&mut server),
        ("publickey,password,keyboard-interactive".into(), false)
    );
    ask(&mut server, &signed("u", &two, &two, SESSION));
    assert!(matches!(
        server.answer_query(ServerAnswer::Accept),
        Ok(ServerStep::Success(_))
    ));
}

#[test]
fn tries_end() {
    let mut server = server_with(&[AuthMethod::Password]);
    assert!(matches!(
        server.handle_input(&nothing("u")),
        Ok(ServerStep::Wait)
    ));
    for _ in 0..5 {
        assert!(matches!(
            ask(&mut server, &password("u", "x")),
            ServerAuthQuery::Password { .. }
        ));
        assert!(matches!(
            server.answer_query(ServerAnswer::Reject),
            Ok(ServerStep::Wait)
        ));
    }
    // Another user name does not reset the number of attempts.
    ask(&mut server, &password("v", "x"));
    let end = server.answer_query(ServerAnswer::Reject);
    assert!(matches!(end, Err(SshError::Policy(_))), "{end:?}");
}

#[test]
fn queries_end() {
    let key = key(1);
    let mut server = server_with(&[AuthMethod::PublicKey]);
    let ended = (0..1000).find(|_| match server.handle_input(&query("u", &key)) {
        Ok(ServerStep::Query(_)) => {
            let _ = server.answer_query(ServerAnswer::Accept).unwrap();
            assert_eq!(numbers(|| server.poll_output()), [msg::USERAUTH_PK_OK]);
            false
        }
        _ => true,
    });
    assert!(ended.is_some_and(|n| n < 200));
}

#[test]
fn passwords() {
    let mut server = server_with(&[AuthMethod::Password]);
    let ServerAuthQuery::Password {
        user,
        password: given,
    } = ask(&mut server, &password("u", "open"))
    else {
        panic!("a password");
    };
    assert_eq!((user.as_str(), format!("{given:?}").as_str()), ("u", "***"));
    assert!(passwords_equal(given.expose(), "open") && !passwords_equal(given.expose(), "opem"));
    assert!(!passwords_equal("", "open") && passwords_equal("", ""));
    let change = ServerAnswer::ChangePassword {
        prompt: "too old".into(),
    };
    assert!(matches!(server.answer_query(change), Ok(ServerStep::Wait)));
    assert_eq!(
        numbers(|| server.poll_output()),
        [msg::USERAUTH_PASSWD_CHANGEREQ]
    );
    let mut out = Vec::new();
    put_request(&mut out, "u", "password");
    out.put_bool(true);
    out.put_string(b"open");
    out.put_string(b"sesame");
    let ServerAuthQuery::NewPassword { old, new, .. } = ask(&mut server, &out) else {
        panic!("a new password");
    };
    assert_eq!(
        (old.expose().as_str(), new.expose().as_str()),
        ("open", "sesame")
    );
    assert!(matches!(
        server.answer_query(ServerAnswer::Accept),
        Ok(ServerStep::Success(_))
    ));
}

#[test]
fn questions() {
    let ask_one = || ServerAnswer::Questions {
        name: String::new(),
        instruction: "hello".into(),
        prompts: vec![InteractivePrompt {
            text: "code".into(),
            echo: true,
        }],
    };
    let reply = |texts: &[&[u8]]| {
        let mut out = vec![msg::USERAUTH_INFO_RESPONSE];
        out.put_u32(u32::try_from(texts.len()).unwrap());
        texts.iter().for_each(|text| out.put_string(text));
        out
    };
    let start = || {
        let mut server = server_with(&[AuthMethod::KeyboardInteractive]);
        assert!(matches!(
            ask(&mut server, &interactive("u")),
            ServerAuthQuery::Interactive { .. }
        ));
        server
    };
    // No one is authenticated before the driver has answered.
    assert!(start().answer_query(ServerAnswer::Accept).is_err());
    let mut server = start();
    let _ = server.answer_query(ask_one()).unwrap();
    assert_eq!(
        numbers(|| server.poll_output()),
        [msg::USERAUTH_INFO_REQUEST]
    );
    assert!(
        server.answer_query(ServerAnswer::Accept).is_err(),
        "no question is open"
    );
    let mut server = start();
    let _ = server.answer_query(ask_one()).unwrap();
    let ServerAuthQuery::Responses { responses, .. } = ask(&mut server, &reply(&[b"123"])) else {
        panic!("responses");
    };
    assert_eq!(responses[0].expose(), "123");
    assert!(matches!(
        server.answer_query(ServerAnswer::Accept),
        Ok(ServerStep::Success(_))
    ));
    // Too few responses, too many, and responses without prompts.
    for texts in [&[][..], &[&b"1"[..], b"2"]] {
        let mut server = start();
        let _ = server.answer_query(ask_one()).unwrap();
        assert!(server.handle_input(&reply(texts)).is_err());
    }
    let mut server = server_with(&[AuthMethod::KeyboardInteractive]);
    assert!(server.handle_input(&reply(&[])).is_err());
    // A new request cancels the prompts.
    let mut server = start();
    let _ = server.answer_query(ask_one()).unwrap();
    let _ = server.handle_input(&nothing("u")).unwrap();
    assert!(server.handle_input(&reply(&[b"123"])).is_err());
}

#[test]
fn bound_to_the_host() {
    let key = key(1);
    let bound = |host: &[u8]| {
        let blob = key.public_key().to_blob();
        let mut out = Vec::new();
        put_key(&mut out, "u", true, "ssh-ed25519", &blob, Some(host));
        let data = data_to_sign(SESSION, &out);
        out.put_string(&key.sign(KeyAlgorithm::Ed25519, &data).unwrap());
        out
    };
    let mut here = server_with(&[AuthMethod::PublicKey]);
    assert!(matches!(
        ask(&mut here, &bound(HOST)),
        ServerAuthQuery::Key { .. }
    ));
    let mut here = server_with(&[AuthMethod::PublicKey]);
    assert!(matches!(
        here.handle_input(&bound(b"another host")),
        Ok(ServerStep::Wait)
    ));
    let mut without = server(ServerAuthConfig {
        hostbound: false,
        ..ServerAuthConfig::default()
    });
    assert!(matches!(
        without.handle_input(&bound(HOST)),
        Ok(ServerStep::Wait)
    ));
    // One key's signature is not valid for the other.
    let plain = signed("u", &key, &key, SESSION);
    let signature = &plain[plain.len() - 87..];
    let mut mixed = bound(HOST);
    mixed.truncate(mixed.len() - 87);
    mixed.extend(signature);
    let mut here = server_with(&[AuthMethod::PublicKey]);
    assert!(matches!(here.handle_input(&mixed), Ok(ServerStep::Wait)));
}

#[test]
fn algorithms_that_are_not_taken() {
    let key = key(1);
    let mut server = server(ServerAuthConfig {
        algorithms: vec![KeyAlgorithm::RsaSha512],
        ..ServerAuthConfig::default()
    });
    assert!(matches!(
        server.handle_input(&signed("u", &key, &key, SESSION)),
        Ok(ServerStep::Wait)
    ));
    assert_eq!(failure(&mut server).0, "publickey");
    // A name that differs from the blob's, and the legacy SHA-1.
    for name in [
        "ecdsa-sha2-nistp256",
        "ssh-rsa",
        "ssh-ed25519-cert-v01@openssh.com",
        "\u{1b}",
    ] {
        let mut server = server_with(&[AuthMethod::PublicKey]);
        let mut out = Vec::new();
        put_key(
            &mut out,
            "u",
            false,
            name,
            &key.public_key().to_blob(),
            None,
        );
        assert!(
            matches!(server.handle_input(&out), Ok(ServerStep::Wait)),
            "{name}"
        );
    }
}

/// Possession of a certificate's key is verified here; the driver decides about the authority.
#[test]
fn certificates_are_possessed_by_a_signature() {
    let text = include_str!("../../../vectors/ssh/keys/ed25519");
    let line = include_str!("../../../vectors/ssh/keys/user-cert.pub");
    let holder = PrivateKey::from_text(text, None).unwrap();
    let certificate = Certificate::from_line(line).unwrap().0;
    let name = KeyAlgorithm::Ed25519Cert.name();
    for (signer, fine) in [(&holder, true), (&key(9), false)] {
        let mut out = Vec::new();
        put_key(&mut out, "alice", true, name, certificate.blob(), None);
        let data = data_to_sign(SESSION, &out);
        out.put_string(&signer.sign(KeyAlgorithm::Ed25519Cert, &data).unwrap());
        let mut server = server_with(&[AuthMethod::PublicKey]);
        let step = server.handle_input(&out).unwrap();
        let asked = matches!(
            &step,
            ServerStep::Query(ServerAuthQuery::Key {
                key: AnyKey::Certificate(_),
                ..
            })
        );
        assert_eq!(asked, fine, "{step:?}");
    }
}

#[test]
fn messages_out_of_turn() {
    let mut early = ServerAuth::new(ServerAuthConfig::default(), SESSION, HOST);
    assert!(
        early.handle_input(&nothing("u")).is_err(),
        "before the service"
    );
    let other = message::service_message(msg::SERVICE_REQUEST, "ssh-connection");
    assert!(early.handle_input(&other).is_err());
    let mut asking = server_with(&[AuthMethod::Password]);
    ask(&mut asking, &password("u", "x"));
    assert!(asking.is_asking() && asking.handle_input(&nothing("u")).is_err());
    for payload in [
        &[][..],
        &[51, 0, 0, 0, 0, 0],
        &[52],
        &[60],
        &[50],
        &[50, 0xff, 0xff, 0xff, 0xff],
    ] {
        assert!(
            server_with(&[AuthMethod::Password])
                .handle_input(payload)
                .is_err(),
            "{payload:?}"
        );
    }
    let long = "u".repeat(2000);
    assert!(matches!(
        server_with(&[]).handle_input(&nothing(&long)),
        Err(SshError::TooMuch { .. })
    ));
    // A service other than the connection service.
    let mut out = vec![msg::USERAUTH_REQUEST];
    for text in ["u", "ssh-userauth", "none"] {
        out.put_string(text.as_bytes());
    }
    assert!(server_with(&[]).handle_input(&out).is_err());
}

#[test]
fn nobody_needs_nothing_unless_asked() {
    let mut server = server_with(&[AuthMethod::Password]);
    assert!(matches!(
        server.handle_input(&nothing("u")),
        Ok(ServerStep::Wait)
    ));
    let config = ServerAuthConfig {
        ask_none: true,
        ..ServerAuthConfig::default()
    };
    let mut open = super::server(config);
    assert!(matches!(
        ask(&mut open, &nothing("u")),
        ServerAuthQuery::NoAuthentication { .. }
    ));
    let ServerStep::Success(login) = open.answer_query(ServerAnswer::Accept).unwrap() else {
        panic!("in");
    };
    assert_eq!((login.methods, login.key), (vec![], None));
}
