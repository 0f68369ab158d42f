//! Authentication: who is accepted, and who is not.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_crypto::Secret;
use adit_interop::openssh::Sshd;
use adit_ssh::client::{Agent, Client, Login, Prompter};
use adit_ssh::server::{AuthPolicy, Server};
use adit_ssh::{BoxFuture, ConnectError};
use adit_ssh_proto::auth::{AuthMethod, InteractivePrompt, ServerAnswer, passwords_equal};
use adit_ssh_proto::connection::Originator;
use adit_ssh_proto::key::{AnyKey, PrivateKey};
use adit_stream::Tcp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::time::timeout;

use crate::ours::config;
use crate::server::{OneKey, key, serve, settings};
use crate::world::{config_for, dial, enter};

const SOON: Duration = Duration::from_secs(20);

/// A policy with a password or two questions.
struct Words;

impl AuthPolicy for Words {
    fn check_password<'a>(
        &'a self,
        user: &'a str,
        password: &'a Secret<String>,
    ) -> BoxFuture<'a, ServerAnswer> {
        Box::pin(async move {
            match user == "me" && passwords_equal(password.expose(), "open sesame") {
                true => ServerAnswer::Accept,
                false => ServerAnswer::Reject,
            }
        })
    }

    fn prompt_user<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ServerAnswer> {
        let prompt = |text: &str, echo| InteractivePrompt {
            text: text.to_owned(),
            echo,
        };
        let prompts = vec![prompt("Colour? ", true), prompt("Word? ", false)];
        Box::pin(async move {
            ServerAnswer::Questions {
                name: "Quiz".to_owned(),
                instruction: String::new(),
                prompts,
            }
        })
    }

    fn check_responses<'a>(
        &'a self,
        _: &'a str,
        responses: &'a [Secret<String>],
    ) -> BoxFuture<'a, ServerAnswer> {
        Box::pin(async move {
            match responses {
                [colour, word] if colour.expose() == "blue" && word.expose() == "please" => {
                    ServerAnswer::Accept
                }
                _ => ServerAnswer::Reject,
            }
        })
    }
}

/// A prompter that answers the second time.
struct Person;

impl Prompter for Person {
    fn ask_password(&self, failed: u32) -> BoxFuture<'_, Option<Secret<String>>> {
        let words = ["sesame", "open sesame"];
        let word = words.get(usize::try_from(failed).unwrap());
        let word = word.map(|word| Secret::new((*word).to_owned()));
        Box::pin(std::future::ready(word))
    }

    fn ask_questions<'a>(
        &'a self,
        name: &'a str,
        _: &'a str,
        prompts: &'a [InteractivePrompt],
    ) -> BoxFuture<'a, Option<Vec<Secret<String>>>> {
        assert_eq!((name, prompts.len()), ("Quiz", 2));
        let answers = ["blue", "please"].map(|word| Secret::new(word.to_owned()));
        Box::pin(std::future::ready(Some(answers.into())))
    }
}

/// Logs in to a server that offers these methods; returns both sides' results.
async fn meet(
    login: Login,
    methods: &[AuthMethod],
) -> (
    Result<(), ConnectError>,
    Result<Vec<AuthMethod>, ConnectError>,
) {
    let (mut settings, host) = settings();
    settings.auth.methods = methods.to_vec();
    settings.auth.banner = Some("welcome\r\n".to_owned());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let near = async {
        Client::connect(dial(port).await, config(host, login))
            .await
            .map(drop)
    };
    let far = async {
        let (socket, _) = listener.accept().await.unwrap();
        let entered = Server::accept(Box::new(Tcp::new(socket)), &settings, &Words).await;
        entered.map(|connection| connection.login().methods.clone())
    };
    timeout(SOON, async { tokio::join!(near, far) })
        .await
        .unwrap()
}

fn person() -> Login {
    let mut login = Login::new("me");
    login.prompter = Some(Arc::new(Person));
    login
}

#[tokio::test]
async fn passwords_and_questions() {
    let (near, far) = meet(person(), &[AuthMethod::Password]).await;
    near.unwrap();
    assert_eq!(far.unwrap(), [AuthMethod::Password]);
    let (near, far) = meet(person(), &[AuthMethod::KeyboardInteractive]).await;
    near.unwrap();
    assert_eq!(far.unwrap(), [AuthMethod::KeyboardInteractive]);
    let wrong = Login::new("me").with_password("open");
    let (near, far) = meet(wrong, &[AuthMethod::Password]).await;
    let near = near.unwrap_err();
    assert!(
        matches!(&near, ConnectError::Auth { methods } if *methods == ["password"]),
        "{near}"
    );
    far.unwrap_err();
    let (near, far) = meet(person().with_key(key()), &[AuthMethod::PublicKey]).await;
    let near = near.unwrap_err().to_string();
    assert_eq!(
        near,
        "authentication failed (the server accepts: publickey)"
    );
    far.unwrap_err();
}

#[tokio::test]
async fn keys_of_hosts_are_judged() {
    let sshd = Sshd::start("").unwrap();
    let mut config = config_for(&sshd);
    let other = AnyKey::Plain(key().public_key().clone());
    config.host_key = Arc::new(adit_ssh::client::PinnedKeys(vec![other]));
    let refused = Client::connect(dial(sshd.port()).await, config).await;
    assert!(matches!(refused, Err(ConnectError::HostKey(_))));
}

#[tokio::test]
async fn what_has_nothing_in_common_is_told() {
    let (settings, host) = settings();
    let port = serve(settings, key().public_key().clone()).await;
    let mut config = config(host, Login::new("me"));
    let none = &mut config.transport.preferred.kex;
    none.retain(|kex| kex.name() == "ecdh-sha2-nistp256");
    let mut strange = config.transport.preferred.host_key.clone();
    strange.retain(|name| name.name() == "rsa-sha2-256");
    config.transport.preferred.host_key = strange;
    let why = Client::connect(dial(port).await, config).await.unwrap_err();
    let told = why.to_string();
    assert!(
        told.contains("rsa-sha2-256") && told.contains("ssh-ed25519"),
        "{told}"
    );
}

#[tokio::test]
async fn who_says_nothing_is_not_waited_for() {
    let (mut settings, host) = settings();
    settings.login_grace = Duration::from_millis(300);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let policy = OneKey(host.clone());
    let silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    let start = Instant::now();
    let why = Server::accept(Box::new(Tcp::new(socket)), &settings, &policy).await;
    assert!(matches!(why, Err(ConnectError::Timeout { .. })));
    assert!(start.elapsed() < Duration::from_secs(5));
    drop(silent);
    // A server that is not an SSH server.
    let mut config = config(host, Login::new("me"));
    config.timeout = Duration::from_millis(300);
    let why = Client::connect(dial(port).await, config).await.unwrap_err();
    let told = why.to_string();
    assert!(
        told.contains("did not answer") && told.contains("exchanging keys"),
        "{told}"
    );
}

#[tokio::test]
async fn what_is_no_ssh_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        socket.shutdown().await.unwrap();
        let _ = socket.read_to_end(&mut Vec::new()).await;
    });
    let config = config(key().public_key().clone(), Login::new("me"));
    let why = Client::connect(dial(port).await, config).await.unwrap_err();
    assert!(
        matches!(why, ConnectError::Ended(_) | ConnectError::Ssh(_)),
        "{why}"
    );
}

/// A running `ssh-agent`, stopped with the test.
struct AgentProcess(std::process::Child);

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn agents_sign_and_are_forwarded() {
    let sshd = Sshd::start("").unwrap();
    let path = sshd.folder().join("agent");
    let mut agent = Command::new("ssh-agent")
        .args(["-D", "-a"])
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = agent.stdout.take().unwrap();
    let _agent = AgentProcess(agent);
    BufReader::new(out).read_line(&mut line).unwrap();
    let added = Command::new("ssh-add")
        .arg("-q")
        .arg(sshd.folder().join("id"))
        .env("SSH_AUTH_SOCK", &path)
        .status();
    assert!(added.unwrap().success());

    let agent = Agent::connect(&path).await.unwrap();
    let keys = agent.keys().await.unwrap();
    assert_eq!((keys.len(), keys[0].comment()), (1, "id"));
    let mut config = config_for(&sshd);
    config.login.identities = keys.into_iter().map(|key| Arc::new(key) as _).collect();
    let session = Client::connect(dial(sshd.port()).await, config)
        .await
        .unwrap();

    let mut wanted = session.agent_channels().unwrap();
    let forward = tokio::spawn(async move {
        while let Some(opening) = wanted.accept().await {
            let mut channel = opening.accept().unwrap();
            let mut socket = tokio::net::UnixStream::connect(&path).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut channel, &mut socket).await;
        }
    });
    let program = session.open_session().await.unwrap();
    program.control().forward_agent().await.unwrap();
    let output = timeout(SOON, program.collect_output("ssh-add -l"))
        .await
        .unwrap()
        .unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.contains(" id (ED25519)"), "{listed}");
    forward.abort();
}

#[tokio::test]
async fn sockets_of_file_systems() {
    let sshd = Sshd::start("StreamLocalBindUnlink yes").unwrap();
    let session = enter(&sshd).await;
    let path = sshd.folder().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let channel = session.open_direct_streamlocal(path.to_str().unwrap());
    let (channel, accepted) = tokio::join!(channel, listener.accept());
    let (mut channel, (mut socket, _)) = (channel.unwrap(), accepted.unwrap());
    channel.write_all(b"ping").await.unwrap();
    channel.shutdown().await.unwrap();
    let mut got = String::new();
    socket.read_to_string(&mut got).await.unwrap();
    assert_eq!(got, "ping");

    let path = sshd.folder().join("forwarded");
    let mut forwarded = session
        .forward_streamlocal(path.to_str().unwrap())
        .await
        .unwrap();
    let mut socket = tokio::net::UnixStream::connect(&path).await.unwrap();
    let mut channel = forwarded.accept().await.unwrap().accept().unwrap();
    socket.write_all(b"pong").await.unwrap();
    socket.shutdown().await.unwrap();
    got.clear();
    channel.read_to_string(&mut got).await.unwrap();
    assert_eq!(got, "pong");
    let mut forwarded = session.forward_tcpip("localhost", 0).await.unwrap();
    let port = forwarded.port().unwrap();
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let opening = forwarded.accept().await.unwrap();
    assert_eq!(opening.originator().unwrap().0, "127.0.0.1");
    drop(opening);
    // Dropping the channel refuses it, and the server closes the connection.
    assert_eq!(socket.read(&mut [0]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn one_session_goes_through_another() {
    let sshd = Sshd::start("").unwrap();
    let outer = enter(&sshd).await;
    let far = outer.open_direct_tcpip("127.0.0.1", sshd.port(), Originator::default());
    let far = far.await.unwrap();
    let inner = Client::connect(Box::new(far), config_for(&sshd))
        .await
        .unwrap();
    drop(outer);
    let program = inner.open_session().await.unwrap();
    let output = program
        .collect_output("head -c 8000000 /dev/zero")
        .await
        .unwrap();
    assert_eq!(output.stdout.len(), 8_000_000);
    // The encrypted key is the same key.
    let text = fs::read_to_string(sshd.folder().join("id")).unwrap();
    let key = PrivateKey::from_text(&text, None).unwrap();
    assert_eq!(key.comment(), "id");
}
