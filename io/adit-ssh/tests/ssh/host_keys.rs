//! Announced and proved host keys, and session bindings for agents.

use std::sync::Arc;
use std::time::Duration;

use adit_interop::openssh::Sshd;
use adit_ssh::RequestError;
use adit_ssh::client::{
    Agent, AgentError, AgentPurpose, Client, HostKeyProofError, Login, Session,
};
use adit_ssh_proto::SshError;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::key::agent::split_frame;
use adit_ssh_proto::key::{KeySet, PrivateKey, PublicKey, RSA_MIN_BITS, Signer, verify_with_blob};
use adit_ssh_proto::wire::{MessageReader, SshBufMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::timeout;

use crate::ours::config;
use crate::server::{key, serve, settings};
use crate::world::{dial, enter};

const SOON: Duration = Duration::from_secs(20);

/// Returns a session with an adit server that has these keys and uses the first.
async fn with_host(host_keys: Arc<dyn Signer>, tell: bool) -> Session {
    let (mut server, _) = settings();
    let (used, _) = first(&*host_keys);
    server.host_keys = host_keys;
    server.announce_host_keys = tell;
    let id = key();
    let port = serve(server, id.public_key().clone()).await;
    let config = config(used, Login::new("me").with_key(id));
    Client::connect(dial(port).await, config).await.unwrap()
}

fn first(signer: &dyn Signer) -> (PublicKey, KeyAlgorithm) {
    let algorithm = signer.algorithms()[0];
    (
        PublicKey::parse(&signer.public_blob(algorithm)).unwrap(),
        algorithm,
    )
}

async fn told(session: &Session) -> Vec<PublicKey> {
    let mut told = session.host_key_announcements().unwrap();
    timeout(SOON, told.next_keys()).await.unwrap().unwrap()
}

#[tokio::test]
async fn all_keys_are_told_and_proved() {
    let keys = [key(), key()];
    let public = keys.each_ref().map(|key| key.public_key().clone());
    let session = with_host(Arc::new(KeySet::from(Vec::from(keys))), true).await;
    let told = told(&session).await;
    assert_eq!(told, public);
    assert!(session.host_key_announcements().is_none(), "once");
    session
        .request_host_key_proof(RSA_MIN_BITS, &told)
        .await
        .unwrap();
    let strange = [key().public_key().clone()];
    let refused = session.request_host_key_proof(RSA_MIN_BITS, &strange).await;
    assert!(
        matches!(
            refused,
            Err(HostKeyProofError::Request(RequestError::Refused(_)))
        ),
        "a key that is not the server's"
    );
}

#[tokio::test]
async fn a_server_may_keep_its_keys_to_itself() {
    let session = with_host(Arc::new(KeySet::from(vec![key()])), false).await;
    session.ping().await.unwrap();
    assert!(
        session
            .host_key_announcements()
            .unwrap()
            .try_next_keys()
            .is_none()
    );
}

/// A server that announces a key that it does not have: a signature by another key proves nothing.
#[tokio::test]
async fn a_key_that_is_told_only_is_not_proved() {
    struct Liar(PrivateKey, Vec<u8>);
    impl Signer for Liar {
        fn algorithms(&self) -> Vec<KeyAlgorithm> {
            vec![KeyAlgorithm::Ed25519]
        }
        fn public_blob(&self, algorithm: KeyAlgorithm) -> Vec<u8> {
            self.0.public_blob(algorithm)
        }
        fn sign_data(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, SshError> {
            Signer::sign_data(&self.0, algorithm, data)
        }
        fn plain_blobs(&self) -> Vec<Vec<u8>> {
            vec![self.0.public_key().to_blob(), self.1.clone()]
        }
        fn sign_with_key(
            &self,
            _: &[u8],
            by: KeyAlgorithm,
            data: &[u8],
        ) -> Result<Vec<u8>, SshError> {
            Signer::sign_data(&self.0, by, data)
        }
    }
    let victim = key().public_key().clone();
    let session = with_host(Arc::new(Liar(key(), victim.to_blob())), true).await;
    let told = told(&session).await;
    assert_eq!(told[1], victim);
    session
        .request_host_key_proof(RSA_MIN_BITS, &told[..1])
        .await
        .unwrap();
    for keys in [&told[1..], &told] {
        let proof = session.request_host_key_proof(RSA_MIN_BITS, keys).await;
        assert!(
            matches!(proof, Err(HostKeyProofError::Ssh(SshError::Kex(_)))),
            "{proof:?}"
        );
    }
}

#[tokio::test]
async fn openssh_tells_and_proves() {
    let sshd = Sshd::start("").unwrap();
    let session = enter(&sshd).await;
    let told = told(&session).await;
    let (own, _) = PublicKey::from_line(&sshd.host_key().unwrap())
        .map(|(key, comment)| (key, comment.len()))
        .unwrap();
    assert_eq!(told, [own]);
    session
        .request_host_key_proof(RSA_MIN_BITS, &told)
        .await
        .unwrap();
}

/// An agent that checks its messages, has one key, and supports session bindings or not.
async fn agent(mut io: DuplexStream, key: PrivateKey, knows: bool) -> Vec<&'static str> {
    let mut asked = Vec::new();
    let mut bytes = Vec::new();
    loop {
        while let Some((body, len)) = split_frame(&bytes).unwrap() {
            let mut r = MessageReader::new(body, "question");
            let mut answer = Vec::new();
            match r.read_u8().unwrap() {
                11 => {
                    asked.push("keys");
                    answer.push(12);
                    answer.put_u32(1);
                    answer.put_string(&key.public_key().to_blob());
                    answer.put_string(b"");
                }
                13 => {
                    asked.push("sign");
                    r.read_string().unwrap();
                    let data = r.read_string().unwrap();
                    answer.push(14);
                    answer.put_string(&key.sign(KeyAlgorithm::Ed25519, data).unwrap());
                }
                27 => {
                    assert_eq!(r.read_string().unwrap(), b"session-bind@openssh.com");
                    let [host, id, proof] = [(); 3].map(|()| r.read_string().unwrap());
                    verify_with_blob(RSA_MIN_BITS, KeyAlgorithm::Ed25519, host, id, proof).unwrap();
                    asked.push(match r.read_bool().unwrap() {
                        false => "bind",
                        true => "bind, forwarded",
                    });
                    // Unsupported extensions.
                    answer.push(if knows { 6 } else { 5 });
                }
                other => panic!("{other}"),
            }
            bytes.drain(..len);
            let mut framed = Vec::new();
            framed.put_string(&answer);
            io.write_all(&framed).await.unwrap();
        }
        if io.read_buf(&mut bytes).await.unwrap() == 0 {
            return asked;
        }
    }
}

#[tokio::test]
async fn agents_are_told_before_they_sign() {
    for knows in [true, false] {
        let (id, again) = twice(key());
        let public = id.public_key().clone();
        let (near, far) = duplex(4096);
        let agent_task = tokio::spawn(agent(far, id, knows));
        let keys = Agent::from_stream(near).keys().await.unwrap();
        let (server, host) = settings();
        let port = serve(server, public).await;
        let mut login = Login::new("me");
        for key in keys {
            login = login.with_identity(key);
        }
        let session = Client::connect(dial(port).await, config(host, login)).await;
        let session = session.unwrap();
        let asked = timeout(SOON, agent_task).await.unwrap().unwrap();
        assert_eq!(asked, ["keys", "bind", "sign"]);

        let (mut near, far) = duplex(4096);
        let agent_task = tokio::spawn(agent(far, again, knows));
        let binding = session.session_binding();
        let done = binding
            .send_to_agent(&mut near, AgentPurpose::Forwarding)
            .await;
        match knows {
            true => done.unwrap(),
            false => assert!(matches!(done, Err(AgentError::Refused))),
        }
        drop(near);
        let asked = timeout(SOON, agent_task).await.unwrap().unwrap();
        assert_eq!(asked, ["bind, forwarded"]);
    }
}

/// Returns a key twice.
fn twice(key: PrivateKey) -> (PrivateKey, PrivateKey) {
    let text = key
        .to_openssh(None, &mut adit_net::system::ThreadRng)
        .unwrap();
    let copy = PrivateKey::from_text(text.expose(), None).unwrap();
    (key, copy)
}
