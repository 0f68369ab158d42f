//! Copies stay in the target folder, with any names that the server sends.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use adit_interop::{TempFolder, openssh};
use adit_net::system::ThreadRng;
use adit_ssh::server::{AuthPolicy, Incoming, KeyProof, Server, ServerConfig};
use adit_ssh::{BoxFuture, Channel};
use adit_ssh_proto::auth::AuthMethod;
use adit_ssh_proto::connection::SshChannelRequest as Asked;
use adit_ssh_proto::key::{AnyKey, KeySet, KeyType, PrivateKey};
use adit_ssh_proto::sftp::{
    ExtendedRequest, Extension, ExtensionSet, FileAttrs, FileEntry, FrameReader, HandleId,
    ReplyTicket, SftpRequest, SftpServer as Sftp, SftpServerStep, SftpStatus,
};
use adit_stream::Tcp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::copy_setup::{LIMIT, with_both};
use crate::setup::bin;

#[test]
fn folders_without_a_name_get_their_own() {
    with_both(|setup| {
        fs::create_dir_all(setup.there("up/in")).unwrap();
        fs::write(setup.there("up/in/one"), "1").unwrap();
        fs::write(setup.there("up/two"), "2").unwrap();
        for (source, copied) in [
            ("up/in/..", &["up/in/one", "up/two"][..]),
            ("up/in/../", &["up/in/one", "up/two"]),
            ("up/in/.", &["in/one"]),
            ("up/in/", &["in/one"]),
            ("*/in/..", &["up/in/one", "up/two"]),
        ] {
            fs::create_dir_all(setup.here("around/into")).unwrap();
            let word = setup.word(source);
            setup
                .scp(&["-r", &word, "around/into"])
                .expect_success()
                .unwrap();
            for name in copied {
                assert!(setup.here("around/into").join(name).is_file(), "{source}");
            }
            assert_eq!(names(&setup.here("around")), ["into"], "{source}");
            fs::remove_dir_all(setup.here("around")).unwrap();
            // A target that does not exist is created with this name, and nothing else.
            fs::create_dir(setup.here("around")).unwrap();
            setup
                .scp(&["-r", &word, "around/new"])
                .expect_success()
                .unwrap();
            assert_eq!(names(&setup.here("around")), ["new"], "{source}");
            fs::remove_dir_all(setup.here("around")).unwrap();
        }
    });
}

/// Returns the names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names
}

/// Accepts every user.
struct Anybody;

impl AuthPolicy for Anybody {
    fn check_public_key<'a>(
        &'a self,
        _: &'a str,
        _: &'a AnyKey,
        _: KeyProof,
    ) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(true))
    }
}

/// Runs a server whose paths have these real paths, and whose folders lead everywhere.
async fn serve(listener: TcpListener, real: &'static [u8]) {
    let host = PrivateKey::generate(KeyType::Ed25519, &mut ThreadRng).unwrap();
    let mut config = ServerConfig::new(Arc::new(KeySet::from(vec![host])));
    config.auth.methods = vec![AuthMethod::PublicKey];
    while let Ok((socket, _)) = listener.accept().await {
        let accepted = Server::accept(Box::new(Tcp::new(socket)), &config, &Anybody).await;
        let Ok(mut connection) = accepted else {
            continue;
        };
        tokio::spawn(async move {
            while let Some(incoming) = connection.accept().await {
                let Incoming::Session(opening) = incoming else {
                    continue;
                };
                tokio::spawn(async move {
                    let mut session = opening.accept().unwrap();
                    while let Some(asked) = session.next_request().await {
                        if matches!(asked.request, Asked::Subsystem(_)) {
                            asked.reply.grant();
                            break;
                        }
                    }
                    lie(session.channel(), real).await;
                });
            }
        });
    }
}

/// Serves SFTP on a channel, with false answers.
async fn lie(channel: &mut Channel, real: &[u8]) {
    let mut server = Sftp::new(ExtensionSet::default().with(Extension::ExpandPath));
    let (mut frames, mut buffer, mut out) = (FrameReader::new(), vec![0; 65_536], Vec::new());
    while let Ok(read @ 1..) = channel.read(&mut buffer).await {
        let mut data = &buffer[..read];
        while let Some(frame) = frames.next_frame(&mut data).unwrap() {
            if let SftpServerStep::Execute(ticket, request) =
                server.handle_input(frame, &mut out).unwrap()
            {
                answer(&mut server, ticket, &request, real, &mut out);
            }
        }
        if channel.write_all(&out).await.is_err() || channel.flush().await.is_err() {
            return;
        }
        out.clear();
    }
}

/// Stores for each open handle whether everything was sent.
fn answer(
    server: &mut Sftp<bool>,
    ticket: ReplyTicket,
    request: &SftpRequest<'_, HandleId>,
    real: &[u8],
    out: &mut Vec<u8>,
) {
    let file = FileAttrs {
        size: Some(4),
        permissions: Some(0o100_644),
        ..FileAttrs::default()
    };
    let folder = FileAttrs {
        permissions: Some(0o040_755),
        ..FileAttrs::default()
    };
    match request {
        SftpRequest::Realpath { .. } => ticket.answer_path(real, out),
        SftpRequest::Extended(ExtendedRequest::ExpandPath { .. }) => {
            ticket.answer_path(b"/home/me/..", out);
        }
        SftpRequest::Stat { path } | SftpRequest::Lstat { path } => {
            let leads_up = path.ends_with(b"..") || path.ends_with(b".");
            ticket.answer_attrs(if leads_up { &folder } else { &file }, out);
        }
        SftpRequest::Open { .. } | SftpRequest::Opendir { .. } => {
            server.answer_opened(ticket, false, out);
        }
        SftpRequest::Close { handle } => {
            server.close(*handle);
            ticket.answer_status(SftpStatus::Ok, out);
        }
        SftpRequest::Readdir { handle } => {
            let said = server
                .get_mut(*handle)
                .is_none_or(|said| std::mem::replace(said, true));
            let mut entries = ticket.begin_names(out);
            let all: &[(&[u8], FileAttrs)] = &[
                (b"../beside", file),
                (b"/adit-never", file),
                (b"..", folder),
                (b".", folder),
                (b"", file),
                (b"sub/../../beside", file),
                (b"nul\0", file),
                (b"fine", file),
            ];
            for (name, attrs) in all.iter().filter(|_| !said) {
                let (line, attrs) = (&b"?"[..], *attrs);
                entries.push(&FileEntry { name, line, attrs });
            }
            entries.finish();
        }
        SftpRequest::Read { offset: 0, .. } => {
            let filled: Result<(), (ReplyTicket, ())> = ticket.answer_data(4, out, |room| {
                room.copy_from_slice(b"evil");
                Ok(4)
            });
            assert!(filled.is_ok());
        }
        _ => ticket.answer_status(SftpStatus::Eof, out),
    }
}

#[test]
fn no_word_of_the_server_leads_out_of_the_folder() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = TempFolder::new("outside").unwrap();
    openssh::generate_key(folder.path(), "id").unwrap();
    for real in [
        &b"/home/me/.."[..],
        b"..",
        b"/home/me/.",
        b"",
        b"/a/nul\0",
        b"/home/me",
    ] {
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = runtime.spawn(serve(listener, real));
        // Also a pattern, a home of another user, and a file under the name that was typed.
        let all = [
            "..", ".", "", "x/..", "*/..", "~you", "~you/..", "~/file", "*",
        ];
        let all = match real {
            b"/home/me" | b".." => &all[..],
            _ => &all[..1],
        };
        for source in all {
            let around = folder.path().join("around");
            fs::create_dir_all(around.join("into")).unwrap();
            for program in ["scp", "sftp"] {
                if program == "sftp" && !source.ends_with("..") {
                    continue;
                }
                let mut command = Command::new(bin());
                command.args([program, "-F", "none", "-P", &port.to_string()]);
                command.arg("-i").arg(folder.path().join("id"));
                for option in [
                    "IdentitiesOnly=yes",
                    "StrictHostKeyChecking=no",
                    "UserKnownHostsFile=/dev/null",
                    "LogLevel=ERROR",
                    "BatchMode=yes",
                ] {
                    command.args(["-o", option]);
                }
                command.current_dir(&around).stdin(Stdio::null());
                if program == "scp" {
                    command.args(["-r", &format!("127.0.0.1:{source}"), "into"]);
                } else {
                    let batch = format!("get -r \"{source}\" into\n");
                    let batch = folder.write_file("batch", batch).unwrap();
                    command.arg("-b").arg(batch).arg("127.0.0.1");
                }
                let ended = openssh::run_command(command, LIMIT).unwrap();
                assert_ne!(ended.code, Some(255), "{}", ended.output);
                let shown = format!(
                    "{program} {source} {}: {}",
                    real.escape_ascii(),
                    ended.output
                );
                assert_eq!(names(&around), ["into"], "{shown}");
                if *source == "~/file" {
                    assert_eq!(names(&around.join("into")), ["file"], "{shown}");
                }
                if real == b"/home/me" && *source == ".." && program == "scp" {
                    assert_eq!(names(&around.join("into/me")), ["fine"], "{shown}");
                }
                assert!(!Path::new("/adit-never").exists(), "{shown}");
            }
            fs::remove_dir_all(&around).unwrap();
        }
        server.abort();
    }
    assert_eq!(names(folder.path()), ["batch", "id", "id.pub"]);
    runtime.shutdown_timeout(Duration::from_millis(100));
}
