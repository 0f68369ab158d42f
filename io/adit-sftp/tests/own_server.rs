//! The server against the client of this crate, in one process.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use adit_sftp::server::{
    Answer, Entries, FileTreeOptions, Handler, Refusal, ServeError, serve_files, serve_tokio,
};
use adit_sftp::{SftpError, SftpSession};
use adit_ssh_proto::sftp::{ExtensionSet, FileAttrs, OpenFlags, SftpStatus};
use adit_stream::Buffered;
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;

/// Time after which a session is considered stalled.
const STALLED: Duration = Duration::from_secs(60);

/// A temporary directory, which is removed at its end.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("adit-sftp-own-{}-{number}", std::process::id());
        let path = fs::canonicalize(std::env::temp_dir()).unwrap().join(name);
        fs::create_dir_all(path.join("root")).unwrap();
        fs::write(path.join("secret"), "secret").unwrap();
        Self(path)
    }

    fn options(&self) -> FileTreeOptions {
        FileTreeOptions {
            root: Some(self.0.join("root")),
            ..FileTreeOptions::default()
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn start(options: FileTreeOptions) -> (DuplexStream, JoinHandle<Result<(), ServeError>>) {
    let (client, server) = duplex(64 << 10);
    let stream = Buffered::from_tokio(server);
    (client, tokio::spawn(serve_files(stream, options)))
}

async fn ended(server: JoinHandle<Result<(), ServeError>>) -> Result<(), ServeError> {
    let ended = tokio::time::timeout(STALLED, server).await;
    ended.expect("the server stalls").unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn files_below_a_root() {
    let place = Place::new();
    let (client, server) = start(place.options());
    let sftp = SftpSession::from_tokio(client).await.unwrap();
    assert_eq!(sftp.extensions(), ExtensionSet::ALL);
    assert_eq!(sftp.real_path(".").await.unwrap(), b"/");
    let data: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 253) as u8).collect();
    sftp.write("/f", &data).await.unwrap();
    assert!(fs::read(place.0.join("root/f")).unwrap() == data);
    assert!(sftp.read("f", data.len()).await.unwrap() == data);
    symlink("../secret", place.0.join("root/up")).unwrap();
    for path in ["../secret", "up", "/../secret"] {
        let why = sftp.read(path, 100).await.unwrap_err();
        assert!(why.is_not_found(), "{path}: {why}");
    }
    let mut names: Vec<_> = sftp.read_dir("/").await.unwrap();
    names.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(
        names
            .iter()
            .map(|entry| &entry.name[..])
            .eq([&b"f"[..], b"up"])
    );
    assert!(names[0].line.starts_with(b"-rw"));
    let [users, _] = sftp.owner_names(&[0], &[]).await.unwrap();
    assert_eq!(users, [b"root".to_vec()]);
    assert_eq!(sftp.home_directory("").await.unwrap(), b"/");
    assert_eq!(sftp.expand_path("~/x").await.unwrap(), b"/x");
    drop(sftp);
    ended(server).await.unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn sessions_end_with_a_reason() {
    let place = Place::new();
    let mut read_only = place.options();
    read_only.read_only = true;
    let (client, server) = start(read_only);
    let sftp = SftpSession::from_tokio(client).await.unwrap();
    let refused = sftp.write("f", b"text").await.unwrap_err();
    assert_eq!(refused.status(), Some(SftpStatus::PermissionDenied));
    let missing = sftp.posix_rename("a", "b").await.unwrap_err();
    assert!(matches!(missing, SftpError::Unsupported(_)), "{missing}");
    // A server that is dropped ends the session.
    server.abort();
    let _ = tokio::time::timeout(STALLED, server).await.unwrap();
    // The requests that arrive at that moment may still be executed.
    let _ = tokio::time::timeout(STALLED, sftp.stat("f")).await.unwrap();
    let lost = tokio::time::timeout(STALLED, sftp.stat("f")).await.unwrap();
    assert!(
        matches!(lost, Err(SftpError::ConnectionLost(_))),
        "{lost:?}"
    );

    let mut absent = place.options();
    absent.start = Some("absent".into());
    let (_client, server) = start(absent);
    let why = ended(server).await.unwrap_err();
    assert!(matches!(why, ServeError::Directory { .. }), "{why}");

    let (mut client, server) = start(place.options());
    client.write_all(&[0, 0, 0, 5, 1, 0]).await.unwrap();
    drop(client);
    let why = ended(server).await.unwrap_err();
    assert!(matches!(why, ServeError::Truncated), "{why}");

    let (mut client, server) = start(place.options());
    client.write_all(&[0xff; 9]).await.unwrap();
    let why = ended(server).await.unwrap_err();
    assert!(matches!(why, ServeError::Protocol(_)), "{why}");
}

/// Files of one byte each, named by a number, whose reads wait.
struct Slow {
    listed: u32,
}

impl Handler for Slow {
    type File = u8;
    type Directory = u32;

    async fn open(&mut self, path: &[u8], _: OpenFlags, _: FileAttrs) -> Answer<u8> {
        let name = std::str::from_utf8(path).map_err(|_| Refusal::NOT_FOUND)?;
        name.parse().map_err(|_| Refusal::NOT_FOUND)
    }

    async fn read(&mut self, file: &mut u8, offset: u64, buffer: &mut [u8]) -> Answer<usize> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        match (offset, buffer.first_mut()) {
            (0, Some(first)) => {
                *first = *file;
                Ok(1)
            }
            (13, _) => Err(Refusal::with_message(SftpStatus::Failure, "bad luck")),
            _ => Ok(0),
        }
    }

    async fn stat_open(&mut self, _: &mut u8) -> Answer<FileAttrs> {
        Ok(FileAttrs::default())
    }

    async fn stat(&mut self, _: &[u8]) -> Answer<FileAttrs> {
        Err(Refusal::DENIED)
    }

    async fn open_dir(&mut self, _: &[u8]) -> Answer<u32> {
        Ok(0)
    }

    async fn read_dir(&mut self, next: &mut u32, entries: &mut Entries<'_>) -> Answer<()> {
        while *next < self.listed && !entries.is_full() {
            entries.push(next.to_string().as_bytes(), &FileAttrs::default());
            *next += 1;
        }
        Ok(())
    }

    async fn real_path(&mut self, path: &[u8]) -> Answer<Vec<u8>> {
        Ok(path.to_vec())
    }
}

#[tokio::test]
async fn a_handler_that_waits() {
    let (client, server) = duplex(64 << 10);
    let server = tokio::spawn(serve_tokio(server, Slow { listed: 5000 }));
    let sftp = SftpSession::from_tokio(client).await.unwrap();
    assert_eq!(sftp.extensions(), ExtensionSet::default());
    let reads = (0..50u8).map(|number| {
        let sftp = sftp.clone();
        tokio::spawn(async move { sftp.read(number.to_string(), 10).await })
    });
    let reads: Vec<_> = reads.collect();
    for (number, read) in (0u8..).zip(reads) {
        let read = tokio::time::timeout(STALLED, read).await.unwrap();
        assert_eq!(read.unwrap().unwrap(), [number]);
    }
    let file = sftp.open_file("1", OpenFlags::READ).await.unwrap();
    let why = file.read_at(&mut [0], 13).await.unwrap_err();
    assert_eq!(why.to_string(), "Failure: bad luck");
    assert_eq!(sftp.read_dir("x").await.unwrap().len(), 5000);
    let refused = sftp.create_dir("x", FileAttrs::default()).await;
    let status = refused.unwrap_err().status();
    assert_eq!(status, Some(SftpStatus::Unsupported));
    assert!(sftp.stat("1").await.is_err());
    drop((file, sftp));
    ended(server).await.unwrap();
}
