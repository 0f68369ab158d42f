//! Files as streams of bytes.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adit_sftp::SftpSession;
use adit_sftp::server::{Answer, Entries, Handler, Refusal, serve_tokio};
use adit_ssh_proto::sftp::{FileAttrs, OpenFlags, SftpStatus};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

/// Time after which a session is considered stalled.
const STALLED: Duration = Duration::from_secs(60);
/// Length of the files in bytes.
const LEN: usize = 3_000_001;
/// Offset from which on the broken file cannot be accessed.
const BROKEN: u64 = 2_000_000;

/// Returns the output of `work`; panics if it is only ready because the time is over.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        () = tokio::time::sleep(STALLED) => panic!("it stalls"),
        output = work => output,
    }
}

fn content() -> Vec<u8> {
    (0..LEN).map(|at| (at % 251) as u8).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Name {
    Good,
    Short,
    Broken,
    Late,
}

/// Four files with the same content, which is kept by all sessions.
struct Files(Arc<Mutex<Vec<u8>>>);

impl Handler for Files {
    type File = Name;
    type Directory = ();

    async fn open(&mut self, path: &[u8], _: OpenFlags, _: FileAttrs) -> Answer<Name> {
        match path {
            b"good" => Ok(Name::Good),
            b"short" => Ok(Name::Short),
            b"broken" => Ok(Name::Broken),
            b"late" => Ok(Name::Late),
            _ => Err(Refusal::NOT_FOUND),
        }
    }

    async fn read(&mut self, file: &mut Name, offset: u64, buffer: &mut [u8]) -> Answer<usize> {
        if *file == Name::Broken && offset >= BROKEN {
            return Err(Refusal::DENIED);
        }
        let content = self.0.lock().unwrap();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = content.get(start..).unwrap_or_default();
        let mut n = rest.len().min(buffer.len());
        match file {
            Name::Good | Name::Late => {}
            Name::Short => n = n.min(5000),
            Name::Broken => n = n.min(usize::try_from(BROKEN - offset).unwrap()),
        }
        buffer[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    async fn write(&mut self, file: &mut Name, offset: u64, data: &[u8]) -> Answer<()> {
        if *file == Name::Broken && offset >= BROKEN {
            return Err(Refusal::DENIED);
        }
        let mut content = self.0.lock().unwrap();
        let start = usize::try_from(offset).unwrap();
        let end = start + data.len();
        if content.len() < end {
            content.resize(end, 0);
        }
        content[start..end].copy_from_slice(data);
        Ok(())
    }

    async fn close(&mut self, file: Name) -> Answer<()> {
        match file {
            Name::Late => Err(Refusal::with_message(SftpStatus::Failure, "no space left")),
            _ => Ok(()),
        }
    }

    async fn stat_open(&mut self, _: &mut Name) -> Answer<FileAttrs> {
        Ok(FileAttrs::default())
    }

    async fn stat(&mut self, _: &[u8]) -> Answer<FileAttrs> {
        Ok(FileAttrs::default())
    }

    async fn open_dir(&mut self, _: &[u8]) -> Answer<()> {
        Err(Refusal::NOT_FOUND)
    }

    async fn read_dir(&mut self, (): &mut (), _: &mut Entries<'_>) -> Answer<()> {
        Ok(())
    }

    async fn real_path(&mut self, path: &[u8]) -> Answer<Vec<u8>> {
        Ok(path.to_vec())
    }
}

async fn start(content: Vec<u8>) -> (SftpSession, Arc<Mutex<Vec<u8>>>) {
    let content = Arc::new(Mutex::new(content));
    let (client, server) = duplex(64 << 10);
    tokio::spawn(serve_tokio(server, Files(Arc::clone(&content))));
    (SftpSession::from_tokio(client).await.unwrap(), content)
}

#[tokio::test]
async fn readers_return_the_file_in_order() {
    let (sftp, _) = start(content()).await;
    let all = content();
    for (name, from) in [
        ("good", 0),
        ("short", 0),
        ("good", 1_234_567),
        ("short", LEN),
    ] {
        let file = sftp.open_file(name, OpenFlags::READ).await.unwrap();
        let mut reader = file.into_reader(from as u64);
        let mut read = Vec::new();
        let done = in_time(reader.read_to_end(&mut read)).await;
        assert_eq!(done.unwrap(), LEN - from, "{name} from {from}");
        assert!(read == all[from..], "{name} from {from}");
        assert_eq!(reader.position(), LEN as u64);
        assert_eq!(reader.read(&mut [0]).await.unwrap(), 0, "the end stays");
    }
    let file = sftp.open_file("good", OpenFlags::READ).await.unwrap();
    let mut reader = file.into_reader(u64::MAX);
    let read = in_time(reader.read(&mut [0])).await;
    assert_eq!(read.unwrap(), 0);
}

#[tokio::test]
async fn a_reader_leaves_its_file_and_the_session_usable() {
    let (sftp, _) = start(content()).await;
    let file = sftp.open_file("good", OpenFlags::READ).await.unwrap();
    let mut reader = file.into_reader(7);
    let mut first = [0; 10];
    reader.read_exact(&mut first).await.unwrap();
    assert_eq!((first[0], reader.position()), (7, 17));
    let file = reader.into_file();
    let read = in_time(file.read_at(&mut first, 3)).await;
    assert_eq!((read.unwrap(), first[0]), (10, 3));
    file.close().await.unwrap();
}

#[tokio::test]
async fn an_error_follows_the_bytes_before_it() {
    let (sftp, _) = start(content()).await;
    let file = sftp.open_file("broken", OpenFlags::READ).await.unwrap();
    let mut reader = file.into_reader(0);
    let mut read = Vec::new();
    let why = in_time(reader.read_to_end(&mut read)).await;
    assert_eq!(why.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(read.len() as u64, BROKEN);
    assert!(reader.read(&mut [0]).await.is_err(), "the error stays");
}

#[tokio::test]
async fn writers_write_the_file_in_order() {
    let (sftp, written) = start(Vec::new()).await;
    let all = content();
    let file = sftp.open_file("good", OpenFlags::WRITE).await.unwrap();
    let mut writer = file.into_writer(3);
    let copy = async {
        writer.write_all(&all).await?;
        writer.flush().await?;
        assert!(written.lock().unwrap()[3..] == all, "flushed");
        writer.write_all(b"end").await?;
        writer.shutdown().await
    };
    in_time(copy).await.unwrap();
    assert_eq!(written.lock().unwrap().len(), 3 + LEN + 3);
    assert!(writer.write(b"x").await.is_err(), "it is closed");
    assert!(sftp.stat("good").await.is_ok(), "the session goes on");
}

#[tokio::test]
async fn refused_writes_are_reported() {
    let (sftp, _) = start(Vec::new()).await;
    let file = sftp.open_file("broken", OpenFlags::WRITE).await.unwrap();
    let mut writer = file.into_writer(0);
    let copy = async {
        writer.write_all(&content()).await?;
        writer.flush().await
    };
    let why = in_time(copy).await;
    assert_eq!(why.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert!(writer.write(b"x").await.is_err(), "the error stays");
    let closed = in_time(writer.shutdown()).await;
    assert!(closed.is_err());

    let file = sftp.open_file("late", OpenFlags::WRITE).await.unwrap();
    let mut writer = file.into_writer(0);
    writer.write_all(b"text").await.unwrap();
    let closed = in_time(writer.shutdown()).await;
    let why = closed.unwrap_err();
    assert_eq!(why.to_string(), "Failure: no space left");
}

/// Answers INIT, and every request with HANDLE, as a broken server may.
async fn answer_with_handles(mut io: DuplexStream) -> io::Result<()> {
    loop {
        let len = io.read_u32().await?;
        let mut request = vec![0; usize::try_from(len).unwrap()];
        io.read_exact(&mut request).await?;
        let reply = match request[0] {
            1 => vec![2, 0, 0, 0, 3],
            _ => [&[102][..], &request[1..5], &[0, 0, 0, 1, 7]].concat(),
        };
        io.write_u32(u32::try_from(reply.len()).unwrap()).await?;
        io.write_all(&reply).await?;
    }
}

#[tokio::test]
async fn a_close_without_a_status_is_no_success() {
    let (near, far) = duplex(64 << 10);
    tokio::spawn(answer_with_handles(far));
    let sftp = SftpSession::from_tokio(near).await.unwrap();
    let file = sftp.open_file("a", OpenFlags::WRITE).await.unwrap();
    let mut writer = file.into_writer(0);
    let closed = in_time(writer.shutdown()).await;
    assert_eq!(closed.unwrap_err().kind(), io::ErrorKind::InvalidData);
}
