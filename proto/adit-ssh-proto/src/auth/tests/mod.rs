//! Both state machines against each other, and each against a hostile peer.

mod client;
mod dialogue;
mod server;

use super::message::{data_to_sign, put_key, put_request};
use super::*;
use crate::algorithm::KeyAlgorithm;
use crate::key::{AnyKey, KeyType, PrivateKey};
use crate::msg;
use crate::wire::{MessageReader, SshBufMut};
use adit_crypto::Secret;
use adit_wire::FixedEntropy;

const SESSION: &[u8] = b"the id of the session";
const HOST: &[u8] = b"the host key";

fn key(seed: u8) -> PrivateKey {
    PrivateKey::generate(KeyType::Ed25519, &mut FixedEntropy::new([seed; 32])).unwrap()
}

fn shown(key: &PrivateKey) -> AnyKey {
    AnyKey::Plain(key.public_key().clone())
}

fn secret(text: &str) -> Secret<String> {
    Secret::new(text.to_owned())
}

/// Returns the numbers of the queued messages.
fn numbers(mut poll: impl FnMut() -> Option<AuthPayload>) -> Vec<u8> {
    core::iter::from_fn(|| poll().map(|out| out.payload.expose()[0])).collect()
}

/// Returns a server that has accepted the service.
fn server(config: ServerAuthConfig) -> ServerAuth {
    let mut server = ServerAuth::new(config, SESSION, HOST);
    let request = message::service_message(msg::SERVICE_REQUEST, message::USERAUTH);
    assert!(matches!(
        server.handle_input(&request),
        Ok(ServerStep::Wait)
    ));
    assert_eq!(numbers(|| server.poll_output()), [msg::SERVICE_ACCEPT]);
    server
}

/// Returns a server with these methods.
fn server_with(methods: &[AuthMethod]) -> ServerAuth {
    server(ServerAuthConfig {
        methods: methods.to_vec(),
        ..ServerAuthConfig::default()
    })
}

/// Returns a request with a signature over `session`, by `signer` for `shown`.
fn signed(user: &str, key: &PrivateKey, signer: &PrivateKey, session: &[u8]) -> Vec<u8> {
    let blob = key.public_key().to_blob();
    let mut out = Vec::new();
    put_key(&mut out, user, true, "ssh-ed25519", &blob, None);
    let data = data_to_sign(session, &out);
    out.put_string(&signer.sign(KeyAlgorithm::Ed25519, &data).unwrap());
    out
}

fn query(user: &str, key: &PrivateKey) -> Vec<u8> {
    let mut out = Vec::new();
    let blob = key.public_key().to_blob();
    put_key(&mut out, user, false, "ssh-ed25519", &blob, None);
    out
}

fn password(user: &str, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_request(&mut out, user, "password");
    out.put_bool(false);
    out.put_string(text.as_bytes());
    out
}

fn interactive(user: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_request(&mut out, user, "keyboard-interactive");
    out.put_string(b"");
    out.put_string(b"");
    out
}

fn nothing(user: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_request(&mut out, user, "none");
    out
}

/// Returns the methods and the partial success of the queued FAILURE.
fn failure(server: &mut ServerAuth) -> (String, bool) {
    let out = server.poll_output().expect("an answer");
    let mut r = MessageReader::new(out.payload.expose(), "x");
    assert_eq!(r.read_u8(), Ok(msg::USERAUTH_FAILURE));
    let list = r.read_name_list().unwrap().as_str().to_owned();
    let partial = r.read_bool().unwrap();
    r.expect_end().unwrap();
    (list, partial)
}

fn ask(server: &mut ServerAuth, payload: &[u8]) -> ServerAuthQuery {
    match server.handle_input(payload).unwrap() {
        ServerStep::Query(ask) => ask,
        other => panic!("{other:?}"),
    }
}
