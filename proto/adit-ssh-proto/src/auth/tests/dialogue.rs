//! Both state machines against each other, over payloads.

use super::*;
use crate::key::{AuthorizedKeys, Certificate, CertifiedKey, KeyDenied, KeyOffer, Signer};
use adit_wire::UnixTime;

/// A user with keys, a password and a code.
struct User<'a> {
    keys: Vec<&'a CertifiedKey>,
    password: &'a str,
}

/// Data of a server.
struct Host {
    keys: AuthorizedKeys,
    password: &'static str,
}

/// Result: the login or nothing, and the number of signatures.
fn converse(
    mut client: ClientAuth,
    mut server: ServerAuth,
    user: &User<'_>,
    host: &Host,
) -> (Option<AuthenticatedUser>, usize) {
    let (mut login, mut signatures) = (None, 0);
    for _ in 0..200 {
        let mut idle = true;
        while let Some(out) = client.poll_output() {
            idle = false;
            let mut step = server.handle_input(out.payload.expose()).unwrap();
            while let ServerStep::Query(ask) = step {
                step = server.answer_query(host.answer(ask)).unwrap();
            }
            if let ServerStep::Success(user) = step {
                login = Some(user);
            }
        }
        while let Some(out) = server.poll_output() {
            idle = false;
            let mut step = client.handle_input(out.payload.expose()).unwrap();
            while let ClientStep::Query(ask) = step {
                signatures += usize::from(matches!(ask, ClientAuthQuery::Signature { .. }));
                step = client.answer_query(user.answer(ask)).unwrap();
            }
            match step {
                ClientStep::Success => return (login, signatures),
                ClientStep::Failed { .. } => return (None, signatures),
                _ => {}
            }
        }
        assert!(!idle, "both wait");
    }
    panic!("no end");
}

impl User<'_> {
    fn answer(&self, ask: ClientAuthQuery) -> ClientAnswer {
        match ask {
            ClientAuthQuery::Signature {
                identity,
                algorithm,
                data,
            } => {
                let signature = self.keys[identity].sign_data(algorithm, &data).unwrap();
                ClientAnswer::Signature(signature)
            }
            ClientAuthQuery::Password { .. } => ClientAnswer::Password(secret(self.password)),
            ClientAuthQuery::Questions { prompts, .. } => {
                ClientAnswer::Responses(prompts.iter().map(|p| secret(&p.text)).collect())
            }
            ClientAuthQuery::NewPassword { .. } => ClientAnswer::Decline,
        }
    }
}

impl Host {
    fn answer(&self, ask: ServerAuthQuery) -> ServerAnswer {
        let yes = |yes| {
            if yes {
                ServerAnswer::Accept
            } else {
                ServerAnswer::Reject
            }
        };
        match ask {
            ServerAuthQuery::NoAuthentication { .. } => ServerAnswer::Reject,
            ServerAuthQuery::KeyQuery { user, key } => yes(self.find(&user, &key, None).is_ok()),
            ServerAuthQuery::Key {
                user,
                key,
                presence,
            } => yes(self.find(&user, &key, presence).is_ok()),
            ServerAuthQuery::Password { password, .. } => {
                yes(passwords_equal(password.expose(), self.password))
            }
            ServerAuthQuery::NewPassword { .. } => ServerAnswer::Reject,
            ServerAuthQuery::Interactive { .. } => ServerAnswer::Questions {
                name: String::new(),
                instruction: String::new(),
                prompts: vec![InteractivePrompt {
                    text: "say it".into(),
                    echo: true,
                }],
            },
            ServerAuthQuery::Responses { responses, .. } => yes(responses[0].expose() == "say it"),
        }
    }

    fn find(
        &self,
        user: &str,
        key: &AnyKey,
        presence: Option<crate::key::UserPresence>,
    ) -> Result<crate::key::KeyGrant, KeyDenied> {
        self.keys.find_grant(&KeyOffer {
            user,
            key,
            presence,
            from: "192.0.2.1".parse().unwrap(),
            from_name: None,
            now: UnixTime(1_705_000_000),
        })
    }
}

fn host(lines: &str) -> Host {
    let mut keys = AuthorizedKeys::default();
    assert_eq!(keys.add_file("keys", lines.as_bytes()), Ok(vec![]));
    Host {
        keys,
        password: "open",
    }
}

fn run(
    user: &User<'_>,
    host: &Host,
    query: bool,
    config: ServerAuthConfig,
) -> (Option<AuthenticatedUser>, usize) {
    let mut wanted = ClientAuthConfig::new("alice");
    for key in &user.keys {
        let blob = key.public_blob(key.algorithms()[0]);
        wanted.identities.push(ClientIdentity {
            key: AnyKey::parse(&blob).unwrap(),
            query,
        });
    }
    let mut client = ClientAuth::new(wanted, SESSION, HOST);
    client.set_server_extensions(Some(&config.algorithms), config.hostbound);
    let server = ServerAuth::new(config, SESSION, HOST);
    converse(client, server, user, host)
}

fn plain(text: &str) -> CertifiedKey {
    CertifiedKey::new(PrivateKey::from_text(text, None).unwrap(), None).unwrap()
}

macro_rules! vector {
    ($name:literal) => {
        include_str!(concat!("../../../vectors/ssh/keys/", $name))
    };
}

#[test]
fn keys_of_every_type() {
    for (text, line) in [
        (vector!("ed25519"), vector!("ed25519.pub")),
        (vector!("ecdsa256"), vector!("ecdsa256.pub")),
        (vector!("ecdsa384"), vector!("ecdsa384.pub")),
        (vector!("ecdsa521"), vector!("ecdsa521.pub")),
        (vector!("rsa2048"), vector!("rsa2048.pub")),
    ] {
        let key = plain(text);
        let user = User {
            keys: vec![&key],
            password: "",
        };
        for (query, hostbound) in [(false, false), (true, true)] {
            let config = ServerAuthConfig {
                hostbound,
                banner: Some("hi".into()),
                ..ServerAuthConfig::default()
            };
            let (login, signatures) = run(&user, &host(line), query, config);
            let login = login.expect("in");
            assert_eq!((login.user.as_str(), signatures), ("alice", 1));
            assert_eq!(login.key.unwrap().key(), key.key().public_key());
        }
    }
}

#[test]
fn queries_save_signatures() {
    let keys = [vector!("ecdsa256"), vector!("ecdsa384"), vector!("ed25519")].map(plain);
    let user = User {
        keys: keys.iter().collect(),
        password: "",
    };
    let host = host(vector!("ed25519.pub"));
    let (login, signatures) = run(&user, &host, true, ServerAuthConfig::default());
    assert!(login.is_some() && signatures == 1);
    let (login, signatures) = run(&user, &host, false, ServerAuthConfig::default());
    assert!(login.is_some() && signatures == 3);
}

#[test]
fn certificates() {
    let certificate = |line| Some(Certificate::from_line(line).unwrap().0);
    let key = |text| PrivateKey::from_text(text, None).unwrap();
    let ca = format!("cert-authority {}", vector!("ca.pub"));
    let good = CertifiedKey::new(
        key(vector!("ed25519")),
        certificate(vector!("user-cert.pub")),
    )
    .unwrap();
    let rsa = CertifiedKey::new(
        key(vector!("rsa2048")),
        certificate(vector!("user_rsa-cert.pub")),
    )
    .unwrap();
    let expired = CertifiedKey::new(
        key(vector!("ed25519")),
        certificate(vector!("expired-cert.pub")),
    )
    .unwrap();
    for (key, fine) in [(&good, true), (&rsa, true), (&expired, false)] {
        let user = User {
            keys: vec![key],
            password: "",
        };
        let (login, _) = run(&user, &host(&ca), false, ServerAuthConfig::default());
        assert_eq!(login.is_some(), fine);
    }
    let other = CertifiedKey::new(
        key(vector!("ecdsa256")),
        certificate(vector!("user-cert.pub")),
    );
    assert!(other.is_err(), "it is another key's");
}

#[test]
fn passwords_questions_and_several_methods() {
    let key = plain(vector!("ed25519"));
    let user = |password| User {
        keys: vec![&key],
        password,
    };
    let config = |methods: &[AuthMethod], require: &[&[AuthMethod]]| ServerAuthConfig {
        methods: methods.to_vec(),
        require: require.iter().map(|list| list.to_vec()).collect(),
        ..ServerAuthConfig::default()
    };
    let none = host("");
    let only = config(&[AuthMethod::Password], &[]);
    assert!(run(&user("open"), &none, false, only.clone()).0.is_some());
    assert!(run(&user("shut"), &none, false, only).0.is_none());
    let only = config(&[AuthMethod::KeyboardInteractive], &[]);
    let login = run(&user(""), &none, false, only).0.unwrap();
    assert_eq!(login.methods, [AuthMethod::KeyboardInteractive]);
    let both = || {
        config(
            &AuthMethod::ALL,
            &[&[AuthMethod::PublicKey, AuthMethod::Password]],
        )
    };
    let known = host(vector!("ed25519.pub"));
    let login = run(&user("open"), &known, true, both()).0.unwrap();
    assert_eq!(login.methods, [AuthMethod::PublicKey, AuthMethod::Password]);
    assert_eq!(login.key.unwrap().key(), key.key().public_key());
    assert!(run(&user("shut"), &known, true, both()).0.is_none());
    assert!(run(&user("open"), &none, true, both()).0.is_none());
}
