//! The client against servers of every kind.

use super::*;
use crate::error::SshError;
use proptest::prelude::*;

fn client(config: ClientAuthConfig) -> ClientAuth {
    let mut client = ClientAuth::new(config, SESSION, HOST);
    assert_eq!(numbers(|| client.poll_output()), [msg::SERVICE_REQUEST]);
    let accept = message::service_message(msg::SERVICE_ACCEPT, message::USERAUTH);
    assert!(matches!(client.handle_input(&accept), Ok(ClientStep::Wait)));
    let out = client.poll_output().unwrap();
    assert!(out.payload.expose().ends_with(b"\0\0\0\x04none"));
    client
}

fn failed(methods: &[&str], partial: bool) -> Vec<u8> {
    let mut out = vec![msg::USERAUTH_FAILURE];
    out.put_names(methods.iter().copied());
    out.put_bool(partial);
    out
}

fn with_keys(keys: &[(AnyKey, bool)]) -> ClientAuthConfig {
    let mut config = ClientAuthConfig::new("u");
    let identity = |(key, query): &(AnyKey, bool)| ClientIdentity {
        key: key.clone(),
        query: *query,
    };
    config.identities = keys.iter().map(identity).collect();
    config
}

fn asked(step: ClientStep) -> ClientAuthQuery {
    match step {
        ClientStep::Query(ask) => ask,
        other => panic!("{other:?}"),
    }
}

fn rsa() -> AnyKey {
    let line = include_str!("../../../vectors/ssh/keys/rsa2048.pub");
    AnyKey::Plain(crate::key::PublicKey::from_line(line).unwrap().0)
}

#[test]
fn methods_in_their_order() {
    let mut client = client(with_keys(&[(shown(&key(1)), false)]));
    let all = ["password", "keyboard-interactive", "publickey", "hostbased"];
    let step = client.handle_input(&failed(&all, false)).unwrap();
    assert!(matches!(
        asked(step),
        ClientAuthQuery::Signature { identity: 0, .. }
    ));
    let signature = key(1).sign(KeyAlgorithm::Ed25519, b"").unwrap();
    let _ = client
        .answer_query(ClientAnswer::Signature(signature))
        .unwrap();
    assert_eq!(numbers(|| client.poll_output()), [msg::USERAUTH_REQUEST]);
    // Keyboard-interactive: refused without any prompt, and not tried again.
    let step = client.handle_input(&failed(&all, false)).unwrap();
    assert!(matches!(step, ClientStep::Wait));
    assert_eq!(numbers(|| client.poll_output()), [msg::USERAUTH_REQUEST]);
    for failures in 0..3 {
        let step = client.handle_input(&failed(&all, false)).unwrap();
        assert!(matches!(asked(step), ClientAuthQuery::Password { failed } if failed == failures));
        let _ = client
            .answer_query(ClientAnswer::Password(secret("pw")))
            .unwrap();
        assert!(client.poll_output().is_some_and(|out| out.hide_length));
    }
    let step = client.handle_input(&failed(&all, false)).unwrap();
    assert!(matches!(step, ClientStep::Failed { methods } if methods == all));
    assert!(client.handle_input(&[52]).is_err(), "it is over");
}

#[test]
fn nothing_left() {
    let mut client = client(ClientAuthConfig::new("u"));
    let step = client
        .handle_input(&failed(&["publickey", "gssapi-with-mic"], false))
        .unwrap();
    assert!(matches!(step, ClientStep::Failed { .. }));
}

#[test]
fn rsa_by_what_the_server_takes() {
    use KeyAlgorithm::{Ed25519, RsaSha256, RsaSha512};
    for (taken, wanted) in [
        (None, Some(RsaSha512)),
        (Some(vec![RsaSha256, Ed25519]), Some(RsaSha256)),
        (Some(vec![RsaSha256, RsaSha512]), Some(RsaSha512)),
        // The server seems to support only SHA-1: the key is not offered.
        (Some(vec![Ed25519]), None),
    ] {
        let mut client = client(with_keys(&[(rsa(), false)]));
        client.set_server_extensions(taken.as_deref(), false);
        let step = client.handle_input(&failed(&["publickey"], false)).unwrap();
        let chosen = match step {
            ClientStep::Query(ClientAuthQuery::Signature { algorithm, .. }) => Some(algorithm),
            _ => None,
        };
        assert_eq!(chosen, wanted, "{taken:?}");
    }
    // A key with a single algorithm is tried nevertheless.
    let mut client = client(with_keys(&[(shown(&key(1)), false)]));
    client.set_server_extensions(Some(&[RsaSha512]), false);
    let step = client.handle_input(&failed(&["publickey"], false)).unwrap();
    assert!(matches!(
        asked(step),
        ClientAuthQuery::Signature {
            algorithm: Ed25519,
            ..
        }
    ));
}

#[test]
fn agents_that_sign_with_sha1() {
    let mut client = client(with_keys(&[(rsa(), false)]));
    let _ = client.handle_input(&failed(&["publickey"], false)).unwrap();
    let mut signature = Vec::new();
    signature.put_string(b"ssh-rsa");
    signature.put_string(&[1; 256]);
    let step = client
        .answer_query(ClientAnswer::Signature(signature))
        .unwrap();
    assert!(matches!(step, ClientStep::Failed { .. }), "it is not sent");
    assert_eq!(numbers(|| client.poll_output()), [0u8; 0]);
}

#[test]
fn queries_have_to_be_answered_as_asked() {
    let (one, two) = (key(1), key(2));
    let ok = |key: &PrivateKey, name: &str| {
        let mut out = vec![msg::USERAUTH_PK_OK];
        out.put_string(name.as_bytes());
        out.put_string(&key.public_key().to_blob());
        out
    };
    let start = || {
        let mut client = client(with_keys(&[(shown(&one), true), (shown(&two), true)]));
        let step = client.handle_input(&failed(&["publickey"], false)).unwrap();
        assert!(matches!(step, ClientStep::Wait), "nothing is signed yet");
        let first = client.poll_output().unwrap();
        assert_eq!(*first.payload.expose(), query("u", &one));
        client
    };
    let step = start().handle_input(&ok(&one, "ssh-ed25519")).unwrap();
    assert!(matches!(
        asked(step),
        ClientAuthQuery::Signature { identity: 0, .. }
    ));
    assert!(start().handle_input(&ok(&two, "ssh-ed25519")).is_err());
    assert!(start().handle_input(&ok(&one, "rsa-sha2-512")).is_err());
    let mut refused = start();
    let _ = refused
        .handle_input(&failed(&["publickey"], false))
        .unwrap();
    let next = refused.poll_output().unwrap();
    assert_eq!(*next.payload.expose(), query("u", &two));
}

#[test]
fn what_is_signed() {
    let mut client = client(with_keys(&[(shown(&key(1)), false)]));
    client.set_server_extensions(None, true);
    let step = client.handle_input(&failed(&["publickey"], false)).unwrap();
    let ClientAuthQuery::Signature { data, .. } = asked(step) else {
        panic!("a signature");
    };
    let mut wanted = Vec::new();
    wanted.put_string(SESSION);
    wanted.put_u8(50);
    for text in [
        &b"u"[..],
        b"ssh-connection",
        b"publickey-hostbound-v00@openssh.com",
    ] {
        wanted.put_string(text);
    }
    wanted.put_bool(true);
    wanted.put_string(b"ssh-ed25519");
    wanted.put_string(&key(1).public_key().to_blob());
    wanted.put_string(HOST);
    assert_eq!(data, wanted);
}

#[test]
fn lengths_of_secrets_are_hidden() {
    for len in [0, 1, 7, 100, 255, 256, 300] {
        let mut client = client(ClientAuthConfig::new("u"));
        let _ = client.handle_input(&failed(&["password"], false)).unwrap();
        let _ = client
            .answer_query(ClientAnswer::Password(secret(&"x".repeat(len))))
            .unwrap();
        let out = client.poll_output().unwrap();
        let mut cover = Vec::new();
        out.put_length_cover(&mut cover);
        assert!(out.hide_length && cover[0] == msg::IGNORE);
        let both = out.payload.expose().len() + cover.len();
        assert_eq!(both % HIDDEN_MULTIPLE, 0);
        let shown = format!("{out:?} {client:?}");
        assert!(len < 7 || !shown.contains("xxxxxxx"));
    }
}

#[test]
fn passwords_are_changed() {
    let mut client = client(ClientAuthConfig::new("u"));
    let _ = client.handle_input(&failed(&["password"], false)).unwrap();
    let _ = client
        .answer_query(ClientAnswer::Password(secret("old")))
        .unwrap();
    let mut change = vec![msg::USERAUTH_PASSWD_CHANGEREQ];
    change.put_string(b"too \x1b[31mold");
    change.put_string(b"");
    let step = client.handle_input(&change).unwrap();
    assert!(
        matches!(asked(step), ClientAuthQuery::NewPassword { prompt } if prompt == "too [31mold")
    );
    let (old, new) = (secret("old"), secret("new"));
    let _ = client.poll_output();
    let _ = client
        .answer_query(ClientAnswer::NewPassword { old, new })
        .unwrap();
    let out = client.poll_output().unwrap();
    assert!(
        out.payload
            .expose()
            .ends_with(b"\x01\0\0\0\x03old\0\0\0\x03new")
    );
    // A server that never stops asking.
    let mut rounds = 0;
    while let ClientStep::Query(_) = client.handle_input(&change).unwrap() {
        rounds += 1;
        let (old, new) = (secret("old"), secret("new"));
        let _ = client
            .answer_query(ClientAnswer::NewPassword { old, new })
            .unwrap();
    }
    assert!(rounds <= 3);
}

fn info(texts: &[&str]) -> Vec<u8> {
    let mut out = vec![msg::USERAUTH_INFO_REQUEST];
    for text in ["name", "words\x07", ""] {
        out.put_string(text.as_bytes());
    }
    out.put_u32(u32::try_from(texts.len()).unwrap());
    for text in texts {
        out.put_string(text.as_bytes());
        out.put_bool(false);
    }
    out
}

#[test]
fn questions_are_bounded() {
    let start = || {
        let mut client = client(ClientAuthConfig::new("u"));
        let _ = client
            .handle_input(&failed(&["keyboard-interactive"], false))
            .unwrap();
        client
    };
    let mut client = start();
    let step = client.handle_input(&info(&["a\u{202e}b", "c"])).unwrap();
    let ClientAuthQuery::Questions {
        instruction,
        prompts,
        ..
    } = asked(step)
    else {
        panic!("questions");
    };
    assert_eq!(
        (instruction.as_str(), prompts[0].text.as_str()),
        ("words", "ab")
    );
    assert!(
        client
            .answer_query(ClientAnswer::Responses(vec![secret("1")]))
            .is_err(),
        "one is missing"
    );
    assert!(matches!(
        start().handle_input(&info(&["x"; 33])),
        Err(SshError::TooMuch { .. })
    ));
    let mut many = info(&[]);
    let at = many.len() - 4;
    many[at..].copy_from_slice(&[0, 0, 0, 9]);
    assert!(start().handle_input(&many).is_err());
    let mut client = start();
    let ended = (0..1000).find(|_| match client.handle_input(&info(&[])) {
        Ok(_) => {
            let _ = client
                .answer_query(ClientAnswer::Responses(vec![]))
                .unwrap();
            false
        }
        Err(_) => true,
    });
    assert!(ended.is_some_and(|n| n < 100));
    // Declined: the next method, or none.
    let mut client = start();
    let _ = client.handle_input(&info(&["x"])).unwrap();
    let step = client.answer_query(ClientAnswer::Decline).unwrap();
    assert!(matches!(step, ClientStep::Failed { .. }));
}

#[test]
fn parts_are_bounded() {
    let mut client = client(ClientAuthConfig::new("u"));
    let ended = (0..1000).find(
        |_| match client.handle_input(&failed(&["password"], true)) {
            Ok(ClientStep::Query(_)) => {
                let _ = client
                    .answer_query(ClientAnswer::Password(secret("x")))
                    .unwrap();
                false
            }
            _ => true,
        },
    );
    assert!(ended.is_some_and(|n| n < 20));
}

#[test]
fn messages_out_of_turn() {
    let mut early = ClientAuth::new(ClientAuthConfig::new("u"), SESSION, HOST);
    assert!(
        early.handle_input(&[msg::USERAUTH_SUCCESS]).is_err(),
        "nothing was tried"
    );
    let other = message::service_message(msg::SERVICE_ACCEPT, "ssh-connection");
    assert!(early.handle_input(&other).is_err());
    let config = || with_keys(&[(shown(&key(1)), false)]);
    let mut asking = client(config());
    let _ = asking.handle_input(&failed(&["publickey"], false)).unwrap();
    assert!(
        asking.handle_input(&[msg::USERAUTH_SUCCESS]).is_err(),
        "while it asks"
    );
    for payload in [&[][..], &[50], &[60], &[61], &[51], &[52, 0], &[53], &[6]] {
        assert!(
            client(config()).handle_input(payload).is_err(),
            "{payload:?}"
        );
    }
    let mut banner = vec![msg::USERAUTH_BANNER];
    banner.put_string("hi\r\n\u{9b}31m\x00!".as_bytes());
    banner.put_string(b"");
    let mut client = client(config());
    let step = client.handle_input(&banner).unwrap();
    assert!(matches!(step, ClientStep::Banner(text) if text == "hi\n31m!"));
    assert!(
        (0..100).any(|_| client.handle_input(&banner).is_err()),
        "banners end"
    );
}

proptest! {
    /// For any input from a server, each side ends or waits, and a password is sent only after it
    /// was asked for.
    #[test]
    fn no_payload_panics(script in prop::collection::vec((any::<u8>(), any::<Vec<u8>>(), 0u8..6), 0..20)) {
        let mut client = client(with_keys(&[(shown(&key(1)), true)]));
        let mut server = server_with(&AuthMethod::ALL);
        for (number, body, answer) in script {
            let kinds = [6, 50, 51, 52, 53, 60, 61, number];
            let mut payload = vec![kinds[usize::from(number) % kinds.len()]];
            match answer {
                0 => payload = failed(&["publickey", "password", "keyboard-interactive"], number & 1 == 0),
                1 => payload = info(&["x"]),
                _ => payload.extend(&body),
            }
            if let Ok(ClientStep::Query(ask)) = client.handle_input(&payload) {
                let answer = match ask {
                    ClientAuthQuery::Password { .. } => ClientAnswer::Password(secret("pw")),
                    ClientAuthQuery::Questions { prompts, .. } => {
                        ClientAnswer::Responses(prompts.iter().map(|_| secret("r")).collect())
                    }
                    _ => ClientAnswer::Decline,
                };
                prop_assert!(client.answer_query(answer).is_ok());
            }
            if let Ok(ServerStep::Query(_)) = server.handle_input(&payload) {
                prop_assert!(server.answer_query(ServerAnswer::Reject).is_ok() || !server.is_asking());
            }
        }
    }
}
