//! The client against OpenSSH's `sftp-server`, which runs as a child over pipes.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use adit_sftp::client::TransferOptions;
use adit_sftp::{SftpError, SftpSession};
use adit_ssh_proto::sftp::{Extension, FileAttrs, FileType, OpenFlags, SftpStatus};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// Paths of the server in common distributions.
const SERVERS: [&str; 3] = [
    "/usr/lib/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
];

/// Time after which an operation is considered stalled.
const STALLED: Duration = Duration::from_secs(60);

/// A temporary directory, which is removed at its end.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("adit-sftp-client-{}-{number}", std::process::id());
        let path = fs::canonicalize(std::env::temp_dir()).unwrap().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Starts a server whose relative paths start at `place`.
async fn serve(place: &Path, options: &[&str]) -> (Child, SftpSession) {
    let server = SERVERS.iter().find(|path| Path::new(path).exists());
    let mut child = Command::new(server.expect("OpenSSH's sftp-server is not installed"))
        .args(options)
        .current_dir(place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (output, input) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let session = SftpSession::from_tokio(tokio::io::join(output, input))
        .await
        .unwrap();
    (child, session)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at % 251) as u8 ^ (at >> 8) as u8)
        .collect()
}

#[tokio::test]
async fn paths_and_attributes() {
    let place = Place::new();
    let (_child, sftp) = serve(&place.0, &[]).await;
    assert!(sftp.supports(Extension::PosixRename) && sftp.supports(Extension::Limits));
    assert!(sftp.limits().read >= 32_768);
    let root = sftp.real_path(".").await.unwrap();
    assert_eq!(root, place.0.to_str().unwrap().as_bytes());

    let mode = FileAttrs {
        permissions: Some(0o750),
        ..FileAttrs::default()
    };
    sftp.create_dir("d", mode).await.unwrap();
    assert!(sftp.is_dir("d").await.unwrap() && !sftp.is_dir("e").await.unwrap());
    sftp.write("d/a", b"one").await.unwrap();
    sftp.write("d/b", b"two").await.unwrap();
    let refused = sftp.rename("d/a", "d/b").await.unwrap_err();
    assert_eq!(refused.status(), Some(SftpStatus::Failure), "{refused}");
    sftp.posix_rename("d/a", "d/b").await.unwrap();
    sftp.rename("d/b", "d/c").await.unwrap();
    sftp.symlink("c", "d/link").await.unwrap();
    assert_eq!(sftp.read_link("d/link").await.unwrap(), b"c");
    sftp.hard_link("d/c", "d/second").await.unwrap();
    assert_eq!(fs::metadata(place.join("d/c")).unwrap().nlink(), 2);
    assert_eq!(sftp.read("d/link", 3).await.unwrap(), b"one");

    let mut entries = sftp.read_dir("d").await.unwrap();
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    let found: Vec<_> = entries
        .iter()
        .map(|entry| (entry.name.as_slice(), entry.attrs.file_kind()))
        .collect();
    let regular = Some(FileType::Regular);
    assert_eq!(
        found,
        [
            (&b"c"[..], regular),
            (b"link", Some(FileType::Symlink)),
            (b"second", regular)
        ]
    );
    let times = FileAttrs {
        times: Some((1_000_000, 2_000_000)),
        permissions: Some(0o600),
        ..FileAttrs::default()
    };
    sftp.set_stat("d/link", times).await.unwrap();
    let attrs = sftp.stat("d/c").await.unwrap();
    assert_eq!(attrs.times, Some((1_000_000, 2_000_000)));
    assert_eq!((attrs.size, attrs.permissions), (Some(3), Some(0o100_600)));
    let link = sftp.lstat("d/link").await.unwrap();
    assert_eq!(link.file_kind(), Some(FileType::Symlink));
    assert!(sftp.stat_vfs("d").await.unwrap().blocks > 0);

    for name in ["c", "link", "second"] {
        sftp.remove_file(format!("d/{name}")).await.unwrap();
    }
    sftp.remove_dir("d").await.unwrap();
    let missing = sftp.stat("d").await.unwrap_err();
    assert!(missing.is_not_found() && !missing.is_fatal());
    assert_eq!(
        std::io::Error::from(missing).kind(),
        std::io::ErrorKind::NotFound
    );
}

#[tokio::test]
async fn reads_and_writes_of_one_file() {
    let place = Place::new();
    let (_child, sftp) = serve(&place.0, &[]).await;
    let flags = OpenFlags::READ
        .union(OpenFlags::WRITE)
        .union(OpenFlags::CREATE);
    let file = sftp.open_file("f", flags).await.unwrap();
    // More than 64 requests of any size that a server accepts.
    let data = pattern(20_000_003);
    file.write_all_at(&data, 5).await.unwrap();
    file.sync_all().await.unwrap();
    assert_eq!(file.stat().await.unwrap().size, Some(20_000_008));
    let mut all = vec![0xff; 20_001_000];
    let read = file.read_at(&mut all, 0).await.unwrap();
    assert_eq!(read, 20_000_008);
    assert_eq!(&all[..5], [0; 5], "a gap reads as zeros");
    assert!(all[5..read] == data, "other bytes came back");
    assert_eq!(file.read_at(&mut all, 1 << 40).await.unwrap(), 0);
    assert_eq!(file.read_at(&mut [], 0).await.unwrap(), 0);
    file.write_all_at(&[], 0).await.unwrap();

    let copy = sftp.open_file("g", flags).await.unwrap();
    file.copy_to(5, 1000, &copy, 0).await.unwrap();
    copy.close().await.unwrap();
    assert!(fs::read(place.join("g")).unwrap() == data[..1000]);
    let cut = FileAttrs {
        size: Some(7),
        ..FileAttrs::default()
    };
    file.set_stat(cut).await.unwrap();
    assert!(file.stat_vfs().await.unwrap().name_max > 0);
    drop(file);
    assert_eq!(sftp.read("f", 7).await.unwrap().len(), 7);
    let long = sftp.read("f", 6).await.unwrap_err();
    assert!(matches!(long, SftpError::LimitExceeded { limit: 6, .. }));

    let read_only = sftp.open_file("f", OpenFlags::READ).await.unwrap();
    let refused = read_only.write_all_at(&data, 0).await.unwrap_err();
    assert!(refused.status().is_some() && !refused.is_fatal());
    assert_eq!(sftp.read("f", 7).await.unwrap().len(), 7, "it goes on");
}

#[tokio::test]
async fn a_writer_and_a_reader_of_one_file() {
    let place = Place::new();
    let (_child, sftp) = serve(&place.0, &[]).await;
    let data = pattern(20_000_003);
    let flags = OpenFlags::WRITE.union(OpenFlags::CREATE);
    let mut writer = sftp.open_file("f", flags).await.unwrap().into_writer(5);
    let copy = async {
        writer.write_all(&data).await?;
        writer.flush().await?;
        assert_eq!(fs::metadata(place.join("f"))?.len(), 20_000_008);
        writer.shutdown().await
    };
    let copied = tokio::time::timeout(STALLED, copy).await;
    copied.expect("the writer stalls").unwrap();
    assert!(fs::read(place.join("f")).unwrap()[5..] == data);
    assert!(writer.write(b"x").await.is_err(), "it is closed");

    let file = sftp.open_file("f", OpenFlags::READ).await.unwrap();
    let (mut reader, mut read) = (file.into_reader(5), Vec::new());
    let copy = tokio::io::copy(&mut reader, &mut read);
    let copied = tokio::time::timeout(STALLED, copy).await;
    assert_eq!(copied.expect("the reader stalls").unwrap(), 20_000_003);
    assert!(read == data, "other bytes came back");

    // Requests in flight are not in the way of other operations of the session.
    let file = sftp.open_file("f", OpenFlags::READ).await.unwrap();
    let mut reader = file.into_reader(0);
    reader.read_exact(&mut [0; 100_000]).await.unwrap();
    assert_eq!(sftp.stat("f").await.unwrap().size, Some(20_000_008));
    reader.into_file().close().await.unwrap();

    // Refusals are returned by flush and by shutdown.
    let file = sftp.open_file("f", OpenFlags::READ).await.unwrap();
    let mut writer = file.into_writer(0);
    let written = async {
        writer.write_all(b"text").await?;
        writer.flush().await
    };
    assert!(written.await.is_err(), "the file is open for reading only");
    assert!(writer.shutdown().await.is_err());
    assert_eq!(fs::metadata(place.join("f")).unwrap().len(), 20_000_008);
}

#[tokio::test]
async fn operations_share_the_session() {
    let place = Place::new();
    let (_child, sftp) = serve(&place.0, &[]).await;
    let mut tasks = Vec::new();
    for number in 0..40usize {
        let sftp = sftp.clone();
        tasks.push(tokio::spawn(async move {
            let (name, data) = (format!("f{number}"), pattern(number * 10_000));
            sftp.write(&name, &data).await.unwrap();
            assert_eq!(
                sftp.stat(&name).await.unwrap().size,
                Some(data.len() as u64)
            );
            assert!(sftp.read(&name, data.len()).await.unwrap() == data);
        }));
    }
    for task in tasks {
        let ended = tokio::time::timeout(STALLED, task).await;
        ended.expect("a task stalls").unwrap();
    }
    assert_eq!(sftp.read_dir(".").await.unwrap().len(), 40);
}

#[tokio::test]
async fn an_operation_that_is_not_polled_stalls_no_other() {
    let place = Place::new();
    let (_child, sftp) = serve(&place.0, &[]).await;
    sftp.write("f", b"text").await.unwrap();
    let waker = std::task::Waker::noop();
    let mut cx = std::task::Context::from_waker(waker);
    // Their requests are sent, and nothing polls them any more.
    let mut stuck: Vec<_> = (0..20)
        .map(|_| Box::pin(sftp.open_file("f", OpenFlags::READ)))
        .collect();
    for future in &mut stuck {
        assert!(Future::poll(future.as_mut(), &mut cx).is_pending());
    }
    let second = tokio::spawn({
        let sftp = sftp.clone();
        async move { sftp.read("f", 4).await }
    });
    let first = tokio::time::timeout(STALLED, sftp.read("f", 4)).await;
    assert_eq!(first.unwrap().unwrap(), b"text");
    let second = tokio::time::timeout(STALLED, second).await;
    assert_eq!(second.unwrap().unwrap().unwrap(), b"text");
    let mut answered = stuck.pop().unwrap();
    let file = answered.as_mut().await.unwrap();
    assert_eq!(file.stat().await.unwrap().size, Some(4));
    drop((file, answered, stuck));
    // A server of OpenSSH has 100 handles at least: those of dropped operations are closed.
    for _ in 0..2000 {
        let mut dropped = Box::pin(sftp.open_file("f", OpenFlags::READ));
        assert!(Future::poll(dropped.as_mut(), &mut cx).is_pending());
        drop(dropped);
        sftp.stat("f").await.unwrap();
    }
    sftp.open_file("f", OpenFlags::READ).await.unwrap();
}

#[tokio::test]
async fn whole_files_in_both_directions() {
    let place = Place::new();
    let (_child, sftp) = serve(&place.0, &[]).await;
    let data = pattern(9_000_001);
    fs::write(place.join("local"), &data).unwrap();
    fs::set_permissions(place.join("local"), fs::Permissions::from_mode(0o640)).unwrap();
    let put = sftp.put(place.join("local"), "there").await.unwrap();
    assert_eq!(put, 9_000_001);
    assert!(fs::read(place.join("there")).unwrap() == data);
    let got = sftp.get("there", place.join("back")).await.unwrap();
    assert_eq!(got, 9_000_001);
    assert!(fs::read(place.join("back")).unwrap() == data);

    // A copy that was cut is resumed; what it has already is not touched.
    fs::write(place.join("back"), [7; 1000]).unwrap();
    let options = TransferOptions::new().with_resume(true).with_preserve(true);
    let mut get = sftp
        .start_get("there", place.join("back"), &options)
        .await
        .unwrap();
    assert_eq!((get.start(), get.size()), (1000, Some(9_000_001)));
    let mut moved = 0;
    while let Some(n) = get.advance().await.unwrap() {
        moved += n;
    }
    assert_eq!(moved, 9_000_001 - 1000);
    drop(get);
    let back = fs::read(place.join("back")).unwrap();
    assert!(back[..1000] == [7; 1000] && back[1000..] == data[1000..]);
    let mode = fs::metadata(place.join("back")).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o640);
    let mut done = sftp
        .start_get("there", place.join("back"), &options)
        .await
        .unwrap();
    assert!(done.is_complete() && done.advance().await.unwrap().is_none());

    fs::write(place.join("there"), &data[..500]).unwrap();
    let mut put = sftp
        .start_put(place.join("local"), "there", &options)
        .await
        .unwrap();
    assert_eq!(put.start(), 500);
    while put.advance().await.unwrap().is_some() {}
    assert!(fs::read(place.join("there")).unwrap() == data);
    fs::write(place.join("there"), vec![0; 9_000_002]).unwrap();
    let longer = sftp.start_put(place.join("local"), "there", &options).await;
    assert!(matches!(longer, Err(SftpError::LongerCopy)));

    // A dropped copy is cut before its first gap.
    let mut get = sftp
        .start_get("local", place.join("part"), &TransferOptions::new())
        .await
        .unwrap();
    for _ in 0..3 {
        get.advance().await.unwrap();
    }
    drop(get);
    let part = fs::read(place.join("part")).unwrap();
    assert!(part.len() < data.len() && data.starts_with(&part));
}

#[tokio::test]
async fn a_copy_between_two_servers() {
    let place = Place::new();
    let (_child, source) = serve(&place.0, &[]).await;
    let (_other, target) = serve(&place.0, &[]).await;
    let data = pattern(7_000_001);
    fs::write(place.join("a"), &data).unwrap();
    let options = TransferOptions::new();
    let mut copy = source
        .start_copy("a", &target, "b", &options)
        .await
        .unwrap();
    let mut moved = 0;
    while let Some(n) = copy.advance().await.unwrap() {
        moved += n;
    }
    assert_eq!(moved, data.len());
    assert!(fs::read(place.join("b")).unwrap() == data);
    let missing = source.start_copy("absent", &target, "c", &options).await;
    assert!(missing.is_err_and(|why| why.is_not_found()));
}

#[tokio::test]
async fn refusals_and_ends_are_typed() {
    let place = Place::new();
    fs::write(place.join("f"), "text").unwrap();
    let (mut child, sftp) = serve(&place.0, &["-R", "-P", "realpath"]).await;
    let refused = sftp.write("f", b"other").await.unwrap_err();
    assert_eq!(refused.status(), Some(SftpStatus::PermissionDenied));
    let refused = sftp.real_path(".").await.unwrap_err();
    assert_eq!(refused.status(), Some(SftpStatus::PermissionDenied));
    child.start_kill().unwrap();
    child.wait().await.unwrap();
    for _ in 0..2 {
        let lost = sftp.stat("f").await.unwrap_err();
        assert!(matches!(lost, SftpError::ConnectionLost(_)), "{lost}");
        assert!(lost.is_fatal());
    }
}
