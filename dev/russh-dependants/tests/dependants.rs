//! async-ssh2-tokio and russh-sftp, unchanged from the registry, with OpenSSH's server.

use std::process::Command;
use std::sync::Arc;
use std::{env, fs};

use adit_interop::openssh::{Sshd, current_user, generate_key};
use adit_interop::{ChildProcess, TEST_TIMEOUT, TempFolder, wait_socket};
use async_ssh2_tokio::{AuthMethod, Client, ServerCheckMethod};
use russh::client;
use russh::keys::{PrivateKeyWithHashAlg, PublicKeyOrCertificate, load_secret_key};
use russh_sftp::client::SftpSession;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// The address of the server for the test that runs with an agent.
const SERVER: &str = "ADIT_TEST_SERVER";

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

/// Runs one dialogue; a hanging one fails.
fn run<T>(dialogue: impl Future<Output = T>) -> T {
    let limited = async {
        timeout(TEST_TIMEOUT, dialogue)
            .await
            .expect("no end in time")
    };
    runtime().block_on(limited)
}

/// Returns the server's host key in base64.
fn host_key(sshd: &Sshd) -> String {
    let line = sshd.host_key().unwrap();
    line.split_whitespace().nth(1).unwrap().to_owned()
}

async fn connect(sshd: &Sshd, host_key: &str) -> Result<Client, async_ssh2_tokio::Error> {
    Client::connect(
        ("127.0.0.1", sshd.port()),
        &current_user(),
        AuthMethod::with_key_file(sshd.folder().join("id"), None),
        ServerCheckMethod::with_public_key(host_key),
    )
    .await
}

#[test]
fn async_ssh2_tokio_executes_commands() {
    let sshd = Sshd::start("").unwrap();
    run(async {
        let client = connect(&sshd, &host_key(&sshd)).await.unwrap();
        let ended = client
            .execute("printf out; printf err >&2; exit 7")
            .await
            .unwrap();
        assert_eq!(
            (&*ended.stdout, &*ended.stderr, ended.exit_status),
            ("out", "err", 7)
        );
        let long = client.execute("seq 100000").await.unwrap();
        assert_eq!(long.stdout.lines().count(), 100_000);
        assert_eq!(long.exit_status, 0);
        client.disconnect().await.unwrap();
    });
}

#[test]
fn async_ssh2_tokio_refuses_another_host_key_and_is_refused_with_another_key() {
    let (sshd, other) = (Sshd::start("").unwrap(), Sshd::start("").unwrap());
    run(async {
        let why = connect(&sshd, &host_key(&other)).await.unwrap_err();
        let russh = matches!(why, async_ssh2_tokio::Error::SshError(_));
        assert!(russh, "{why}");
        fs::copy(other.folder().join("id"), sshd.folder().join("id")).unwrap();
        let why = connect(&sshd, &host_key(&sshd)).await.unwrap_err();
        assert!(
            matches!(why, async_ssh2_tokio::Error::KeyAuthFailed),
            "{why}"
        );
    });
}

#[test]
fn async_ssh2_tokio_copies_files_and_connects_through_a_session() {
    let (sshd, inner) = (Sshd::start("").unwrap(), Sshd::start("").unwrap());
    let folder = TempFolder::new("dependants").unwrap();
    let bytes: Vec<u8> = (0..300_000_u32).flat_map(u32::to_be_bytes).collect();
    let local = folder.write_file("local", &bytes).unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    run(async {
        let outer = connect(&sshd, &host_key(&sshd)).await.unwrap();
        let client = Client::connect_via(
            &outer,
            ("127.0.0.1", inner.port()),
            &current_user(),
            AuthMethod::with_key(&inner.user_key().unwrap(), None),
            ServerCheckMethod::with_public_key(&host_key(&inner)),
        )
        .await
        .unwrap();
        let local = local.to_str().unwrap();
        client
            .upload_file(local, path("remote"), None, Some(32_768), false)
            .await
            .unwrap();
        assert_eq!(fs::read(path("remote")).unwrap(), bytes);
        client
            .download_file(path("remote"), path("again"))
            .await
            .unwrap();
        assert_eq!(fs::read(path("again")).unwrap(), bytes);
    });
}

/// The environment belongs to the process: the dialogue runs in a second one.
#[test]
fn async_ssh2_tokio_logs_in_with_an_agent() {
    if let Ok(port) = env::var(SERVER) {
        run(async {
            let client = Client::connect(
                ("127.0.0.1", port.parse().unwrap()),
                &current_user(),
                AuthMethod::with_agent(),
                ServerCheckMethod::NoCheck,
            )
            .await
            .unwrap();
            let ended = client.execute("echo agent").await.unwrap();
            assert_eq!(ended.stdout, "agent\n");
        });
        return;
    }
    let sshd = Sshd::start("").unwrap();
    let folder = TempFolder::new("agent").unwrap();
    let socket = folder.path().join("socket");
    let mut agent = Command::new("ssh-agent");
    agent.arg("-D").arg("-a").arg(&socket);
    let _agent = ChildProcess::spawn(agent).unwrap();
    wait_socket(&socket, TEST_TIMEOUT).unwrap();
    // A key that the server does not know is tried before.
    generate_key(folder.path(), "other").unwrap();
    for key in [folder.path().join("other"), sshd.folder().join("id")] {
        let mut add = Command::new("ssh-add");
        add.arg("-q").arg(key).env("SSH_AUTH_SOCK", &socket);
        assert!(add.status().unwrap().success());
    }
    let mut again = Command::new(env::current_exe().unwrap());
    again.args(["--exact", "async_ssh2_tokio_logs_in_with_an_agent"]);
    again
        .env("SSH_AUTH_SOCK", &socket)
        .env(SERVER, sshd.port().to_string());
    let output = again.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text:?}"
    );
}

/// A handler that accepts one host key.
struct Pinned(String);

impl client::Handler for Pinned {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        key: &PublicKeyOrCertificate,
    ) -> Result<bool, russh::Error> {
        use russh::keys::PublicKeyBase64;
        Ok(key.public_key().public_key_base64() == self.0)
    }
}

#[test]
fn russh_sftp_writes_and_reads_a_file() {
    let sshd = Sshd::start("").unwrap();
    let folder = TempFolder::new("sftp").unwrap();
    let remote = folder.path().join("file").to_str().unwrap().to_owned();
    let bytes: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    run(async {
        let address = ("127.0.0.1", sshd.port());
        let handler = Pinned(host_key(&sshd));
        let mut session = client::connect(Arc::default(), address, handler)
            .await
            .unwrap();
        let key = load_secret_key(sshd.folder().join("id"), None).unwrap();
        let key = PrivateKeyWithHashAlg::new(Arc::new(key), None);
        let entered = session
            .authenticate_publickey(current_user(), key)
            .await
            .unwrap();
        assert!(entered.success());
        let channel = session.channel_open_session().await.unwrap();
        channel.request_subsystem(true, "sftp").await.unwrap();
        let sftp = SftpSession::new(channel.into_stream()).await.unwrap();
        let mut file = sftp.create(&remote).await.unwrap();
        file.write_all(&bytes).await.unwrap();
        file.shutdown().await.unwrap();
        assert_eq!(fs::read(&remote).unwrap(), bytes);
        assert_eq!(sftp.read(&remote).await.unwrap(), bytes);
        assert_eq!(sftp.metadata(&remote).await.unwrap().size, Some(1_200_000));
        sftp.remove_file(&remote).await.unwrap();
        assert!(!fs::exists(&remote).unwrap());
    });
}
