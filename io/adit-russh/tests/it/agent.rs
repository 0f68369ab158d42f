//! Logins with the keys of OpenSSH's agent.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::{env, fs};

use adit_interop::openssh::{Sshd, current_user, generate_key};
use adit_interop::{ChildProcess, TEST_TIMEOUT, TempFolder, external_tools, wait_socket};
use adit_russh::keys::agent::AgentIdentity;
use adit_russh::keys::agent::client::AgentClient;
use adit_russh::keys::{self, Error as KeyError, HashAlg, PublicKeyOrCertificate};
use adit_russh::{AgentAuthError, Error, SendError, Signer, client};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::world::World;

/// A running agent.
struct OpenSshAgent {
    socket: PathBuf,
    _process: ChildProcess,
}

impl OpenSshAgent {
    fn start(folder: &TempFolder) -> Self {
        let socket = folder.path().join("socket");
        let mut command = Command::new("ssh-agent");
        command.arg("-D").arg("-a").arg(&socket);
        let process = ChildProcess::spawn(command).unwrap();
        wait_socket(&socket, TEST_TIMEOUT).unwrap();
        Self {
            socket,
            _process: process,
        }
    }

    fn add(&self, key: &Path) {
        let mut command = Command::new("ssh-add");
        command
            .arg("-q")
            .arg(key)
            .env("SSH_AUTH_SOCK", &self.socket);
        external_tools::run_to_end(command, TEST_TIMEOUT)
            .unwrap()
            .expect_success()
            .unwrap();
    }

    async fn client(&self) -> AgentClient<UnixStream> {
        AgentClient::connect_uds(&self.socket).await.unwrap()
    }
}

/// Accepts every host key.
struct Trusting;

impl client::Handler for Trusting {
    type Error = Error;

    async fn check_server_key(&mut self, _: &PublicKeyOrCertificate) -> Result<bool, Error> {
        Ok(true)
    }
}

async fn connect(sshd: &Sshd) -> client::Handle<Trusting> {
    let address = ("127.0.0.1", sshd.port());
    let connected = client::connect(Arc::default(), address, Trusting).await;
    connected.unwrap()
}

/// A signer without a key.
struct Unavailable;

#[derive(Debug, PartialEq, Eq)]
enum UnavailableError {
    NoKey,
    Session,
}

impl From<SendError> for UnavailableError {
    fn from(_: SendError) -> Self {
        Self::Session
    }
}

impl Signer for Unavailable {
    type Error = UnavailableError;

    async fn auth_sign(
        &mut self,
        _: &AgentIdentity,
        _: Option<HashAlg>,
        _: Vec<u8>,
    ) -> Result<Vec<u8>, UnavailableError> {
        Err(UnavailableError::NoKey)
    }
}

/// A signer that signs other data than requested.
struct Forging(AgentClient<UnixStream>);

impl Signer for Forging {
    type Error = AgentAuthError;

    async fn auth_sign(
        &mut self,
        key: &AgentIdentity,
        hash: Option<HashAlg>,
        mut data: Vec<u8>,
    ) -> Result<Vec<u8>, AgentAuthError> {
        let signed = self.0.sign_request(key, hash, b"other".to_vec()).await?;
        data.extend(&signed[b"other".len()..]);
        Ok(data)
    }
}

#[tokio::test]
async fn an_agent_signs_and_failures_leave_the_session_usable() {
    let folder = TempFolder::new("agent").unwrap();
    let agent = OpenSshAgent::start(&folder);
    let mut world = World::new().await;
    let key = world.key.public_key().clone();
    let (mut signer, mut unavailable) = (agent.client().await, Unavailable);
    assert!(signer.request_identities().await.unwrap().is_empty());

    // The agent does not have the key yet.
    let client = &mut world.client;
    let failed = client.authenticate_publickey_with("me", key.clone(), None, &mut signer);
    let why = failed.await.unwrap_err();
    let refused = matches!(why, AgentAuthError::Key(KeyError::AgentFailure));
    assert!(refused, "{why}");
    let failed = client.authenticate_publickey_with("me", key.clone(), None, &mut unavailable);
    assert_eq!(failed.await.unwrap_err(), UnavailableError::NoKey);

    let file = folder.path().join("id");
    fs::write(&file, world.key.to_openssh(None).unwrap().expose()).unwrap();
    set_private(&file);
    agent.add(&file);
    let found = signer.request_identities().await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(*found[0].public_key(), key);

    let mut forging = Forging(agent.client().await);
    let forged = client.authenticate_publickey_with("me", key.clone(), None, &mut forging);
    assert!(!forged.await.unwrap().success());

    let entered = client.authenticate_publickey_with("me", key.clone(), None, &mut signer);
    assert!(entered.await.unwrap().success());
    client.channel_open_session().await.unwrap();
    let late = client.authenticate_publickey_with("me", key, None, &mut unavailable);
    assert_eq!(late.await.unwrap_err(), UnavailableError::Session);
}

fn set_private(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

#[tokio::test]
async fn rsa_keys_sign_with_the_requested_hash() {
    let sshd = Sshd::start("").unwrap();
    let folder = TempFolder::new("agent-rsa").unwrap();
    let agent = OpenSshAgent::start(&folder);
    let file = folder.path().join("rsa");
    let mut command = Command::new("ssh-keygen");
    command.args([
        "-q", "-t", "rsa", "-b", "2048", "-N", "", "-C", "mine", "-f",
    ]);
    command.arg(&file);
    external_tools::run_to_end(command, TEST_TIMEOUT)
        .unwrap()
        .expect_success()
        .unwrap();
    agent.add(&file);
    fs::copy(
        folder.path().join("rsa.pub"),
        sshd.folder().join("authorized_keys"),
    )
    .unwrap();
    let mut signer = agent.client().await;
    let identity = signer.request_identities().await.unwrap().remove(0);
    assert_eq!(identity.comment(), "mine");

    for (hash, name) in [
        (None, "rsa-sha2-512"),
        (Some(HashAlg::Sha256), "rsa-sha2-256"),
        (Some(HashAlg::Sha512), "rsa-sha2-512"),
    ] {
        let signed = signer
            .sign_request(&identity, hash, b"data".to_vec())
            .await
            .unwrap();
        let named = signed.strip_prefix(b"data").unwrap();
        assert_eq!(&named[8..8 + name.len()], name.as_bytes());

        // An agent binds each connection once.
        let mut signer = agent.client().await.dynamic();
        let mut session = connect(&sshd).await;
        let binding = session.agent_session_binding().unwrap().clone();
        signer.bind_session(&binding, false).await.unwrap();
        let other = connect(&sshd).await;
        let other = signer.bind_session(other.agent_session_binding().unwrap(), false);
        assert!(matches!(other.await, Err(KeyError::AgentFailure)));
        let key = identity.public_key().into_owned();
        let entered = session
            .authenticate_publickey_with(current_user(), key, hash, &mut signer)
            .await;
        assert!(entered.unwrap().success(), "{name}");
        session.channel_open_session().await.unwrap();
    }
    // No signature is requested for a key that the server does not accept.
    let mut session = connect(&sshd).await;
    let mut unavailable = Unavailable;
    let other = keys::load_public_key(sshd.folder().join("id.pub")).unwrap();
    let refused =
        session.authenticate_publickey_with(current_user(), other, None, &mut unavailable);
    assert!(!refused.await.unwrap().success());
}

#[tokio::test]
async fn certificates_of_an_agent_log_in() {
    let folder = TempFolder::new("agent-cert").unwrap();
    for name in ["ca", "id"] {
        generate_key(folder.path(), name).unwrap();
    }
    let file = |name: &str| folder.path().join(name);
    let mut command = Command::new("ssh-keygen");
    command.arg("-q").arg("-s").arg(file("ca"));
    command
        .args(["-I", "test", "-n", &current_user()])
        .arg(file("id.pub"));
    external_tools::run_to_end(command, TEST_TIMEOUT)
        .unwrap()
        .expect_success()
        .unwrap();
    let authority = file("ca.pub");
    let more = format!(
        "TrustedUserCAKeys {}\nAuthorizedKeysFile none",
        authority.display()
    );
    let sshd = Sshd::start(&more).unwrap();
    let agent = OpenSshAgent::start(&folder);
    agent.add(&file("id"));
    let mut signer = agent.client().await;
    let identities = signer.request_identities().await.unwrap();
    assert_eq!(identities.len(), 2, "the key, and its certificate");
    let id = keys::load_public_key(file("id.pub")).unwrap();
    assert!(
        identities
            .iter()
            .all(|identity| *identity.public_key() == id)
    );
    let mut logins = Vec::new();
    for identity in identities {
        let mut session = connect(&sshd).await;
        let entered = match identity {
            AgentIdentity::PublicKey { key, .. } => session
                .authenticate_publickey_with(current_user(), key, None, &mut signer)
                .await
                .unwrap(),
            AgentIdentity::Certificate { certificate, .. } => session
                .authenticate_certificate_with(current_user(), certificate, None, &mut signer)
                .await
                .unwrap(),
        };
        logins.push(entered.success());
    }
    logins.sort_unstable();
    assert_eq!(logins, [false, true], "the certificate alone");
}

#[tokio::test]
async fn agents_that_are_missing_or_broken_are_errors() {
    let folder = TempFolder::new("agent-missing").unwrap();
    let missing = AgentClient::connect_uds(folder.path().join("none")).await;
    assert!(matches!(missing, Err(KeyError::IO(_))));
    if env::var_os("SSH_AUTH_SOCK").is_none() {
        let missing = AgentClient::connect_env().await;
        assert!(matches!(missing, Err(KeyError::EnvVar("SSH_AUTH_SOCK"))));
    }
    for (answer, broken) in [
        (&b"\xff\xff\xff\xff"[..], true),
        (b"\0\0\0\x01\x63", true),
        (b"\0\0\0\x01\x05", false),
    ] {
        let (near, mut far) = tokio::io::duplex(1000);
        let mut client = AgentClient::connect(near);
        let agent = async {
            let mut request = [0; 5];
            far.read_exact(&mut request).await.unwrap();
            assert_eq!(request, *b"\0\0\0\x01\x0b");
            far.write_all(answer).await.unwrap();
        };
        let (found, ()) = tokio::join!(client.request_identities(), agent);
        let why = found.unwrap_err();
        let as_expected = match why {
            KeyError::AgentProtocolError => broken,
            KeyError::AgentFailure => !broken,
            _ => false,
        };
        assert!(as_expected, "{why}");
    }
}
