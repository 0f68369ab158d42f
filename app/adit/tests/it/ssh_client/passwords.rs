//! Passwords and prompts of a server that asks for both.

use std::sync::Arc;
use std::time::Duration;

use adit_crypto::Secret;
use adit_interop::TempFolder;
use adit_net::system::ThreadRng;
use adit_ssh::BoxFuture;
use adit_ssh::server::{AuthPolicy, Incoming, Server, ServerConfig};
use adit_ssh_proto::auth::{AuthMethod, InteractivePrompt, ServerAnswer};
use adit_ssh_proto::connection::SshChannelRequest;
use adit_ssh_proto::key::{KeySet, KeyType, PrivateKey};
use adit_stream::Tcp;
use tokio::net::TcpListener;

use super::terminal::Terminal;
use crate::setup::bin;

const PASSWORD: &str = "corr\u{e9}ct h\u{f6}rse";
const CODE: &str = "123 456";

/// First the password, then a code.
struct Both;

impl AuthPolicy for Both {
    fn check_password<'a>(
        &'a self,
        _: &'a str,
        password: &'a Secret<String>,
    ) -> BoxFuture<'a, ServerAnswer> {
        let right = password.expose() == PASSWORD;
        Box::pin(async move {
            if right {
                ServerAnswer::Accept
            } else {
                ServerAnswer::Reject
            }
        })
    }

    fn prompt_user<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ServerAnswer> {
        Box::pin(async {
            ServerAnswer::Questions {
                name: String::new(),
                instruction: "two of them".to_owned(),
                prompts: vec![
                    InteractivePrompt {
                        text: "your\u{1b}[31m name? ".to_owned(),
                        echo: true,
                    },
                    InteractivePrompt {
                        text: "the code? ".to_owned(),
                        echo: false,
                    },
                ],
            }
        })
    }

    fn check_responses<'a>(
        &'a self,
        _: &'a str,
        responses: &'a [Secret<String>],
    ) -> BoxFuture<'a, ServerAnswer> {
        let given: Vec<&str> = responses.iter().map(|one| one.expose().as_str()).collect();
        let right = given == ["me", CODE];
        Box::pin(async move {
            if right {
                ServerAnswer::Accept
            } else {
                ServerAnswer::Reject
            }
        })
    }
}

/// Runs a server that accepts users who know both; every program succeeds immediately.
async fn serve(listener: TcpListener) {
    let host = PrivateKey::generate(KeyType::Ed25519, &mut ThreadRng).unwrap();
    let mut config = ServerConfig::new(Arc::new(KeySet::from(vec![host])));
    config.auth.methods = vec![AuthMethod::Password, AuthMethod::KeyboardInteractive];
    config.auth.require = vec![vec![AuthMethod::Password, AuthMethod::KeyboardInteractive]];
    config.auth.banner = Some("members only".to_owned());
    while let Ok((socket, _)) = listener.accept().await {
        let accepted = Server::accept(Box::new(Tcp::new(socket)), &config, &Both).await;
        let Ok(mut connection) = accepted else {
            continue;
        };
        while let Some(incoming) = connection.accept().await {
            let Incoming::Session(opening) = incoming else {
                continue;
            };
            let session = opening.accept().unwrap();
            while let Some(asked) = session.next_request().await {
                if matches!(asked.request, SshChannelRequest::Exec(_)) {
                    asked.reply.grant();
                    break;
                }
            }
            session.control().send_exit_status(9);
            drop(session.into_parts());
        }
    }
}

/// Runs `adit ssh` at a terminal.
fn at_terminal(home: &TempFolder, port: u16, options: &str) -> Terminal {
    let line = format!(
        "'{}' ssh -F none -p {port} {options} -o StrictHostKeyChecking=accept-new \
         -o UserKnownHostsFile='{}/known' me@127.0.0.1 hello",
        bin().display(),
        home.path().display()
    );
    Terminal::new(&line, |command| {
        command.env("HOME", home.path()).env_remove("SSH_AUTH_SOCK");
    })
}

#[test]
fn they_are_asked_for_and_not_shown() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    runtime.spawn(serve(listener));
    let home = TempFolder::new("ssh-home").unwrap();
    let mut terminal = at_terminal(&home, port, "");
    terminal.wait("members only");
    terminal.wait("password for me@127.0.0.1: ");
    terminal.keys("wrong\r");
    terminal.wait("permission denied; password for me@127.0.0.1: ");
    // A typing error, corrected with backspace.
    terminal.keys(&format!("x\u{e9}\u{7f}\u{7f}{PASSWORD}\r"));
    terminal.wait("two of them");
    // Without the control characters of the server.
    terminal.wait("(me@127.0.0.1) your[31m name? ");
    terminal.keys("me\r");
    terminal.wait("(me@127.0.0.1) the code? ");
    terminal.keys(&format!("{CODE}\r"));
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(9), "{shown}");
    for secret in [PASSWORD, CODE, "wrong"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
    // An interrupt ends it immediately.
    let mut terminal = at_terminal(&home, port, "");
    terminal.wait("password for me@127.0.0.1: ");
    terminal.keys("half\u{3}");
    terminal.wait("SIGINT");
    assert_eq!(terminal.end().0, Some(130));
    // No prompts.
    let (code, shown) = at_terminal(
        &home,
        port,
        "-o BatchMode=yes -o PasswordAuthentication=yes",
    )
    .end();
    assert_eq!(code, Some(255), "{shown}");
    assert!(!shown.contains("password for"), "{shown}");
    // Nor are there prompts for a host that shows a key of another type than the known one.
    let other = home.path().join("other");
    super::keygen(&other, "ecdsa", "");
    let other = std::fs::read_to_string(other.with_extension("pub")).unwrap();
    home.write_file("known", format!("[127.0.0.1]:{port} {other}"))
        .unwrap();
    let (code, shown) = at_terminal(&home, port, "-o StrictHostKeyChecking=no").end();
    assert_eq!(code, Some(255), "{shown}");
    assert!(shown.contains("of another type"), "{shown}");
    for question in ["password for", "the code", "name? "] {
        assert!(!shown.contains(question), "{question}: {shown}");
    }
    runtime.shutdown_timeout(Duration::from_millis(100));
}
