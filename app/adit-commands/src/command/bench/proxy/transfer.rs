//! Transfers: a server of this process, which sends bytes, and the download through a proxy.

use std::net::SocketAddr;
use std::time::Duration;

use adit_proxy::{http, socks5};
use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::subject::Entry;

/// Size of reads and writes of this process, in bytes.
const CHUNK: usize = 256 << 10;

/// A server that reads a number of eight bytes, and answers with that many bytes.
pub(super) struct DownloadServer {
    addr: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for DownloadServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl DownloadServer {
    pub(super) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async {
                    // The download fails then.
                    let _ = send_download(stream).await;
                });
            }
        });
        Ok(Self { addr, task })
    }

    /// Downloads `bytes` through the proxy at `proxy`, and returns the time from the request to the last byte.
    pub(super) async fn download_through(
        &self,
        entry: Entry,
        proxy: SocketAddr,
        bytes: u64,
    ) -> Result<Duration> {
        let stream = match entry {
            Entry::Socks5 => socks5::connect(proxy, self.addr, None).await,
            Entry::Http => http::connect(proxy, self.addr, None).await,
        };
        let mut stream = stream.context("connecting through the proxy")?;
        let begun = Instant::now();
        stream.write_all(&bytes.to_be_bytes()).await?;
        let (mut chunk, mut received) = (vec![0; CHUNK], 0u64);
        loop {
            match stream.read(&mut chunk).await.context("downloading")? {
                0 => break,
                count => received += count as u64,
            }
            if received >= bytes {
                break;
            }
        }
        ensure!(received == bytes, "{received} bytes of {bytes} arrived");
        Ok(begun.elapsed())
    }
}

async fn send_download(mut stream: TcpStream) -> std::io::Result<()> {
    let mut left = stream.read_u64().await?;
    let chunk = vec![7; CHUNK];
    while left > 0 {
        let part = adit_wire::narrow_int::<usize>(left.min(CHUNK as u64));
        stream
            .write_all(adit_wire::subslice(&chunk, ..part))
            .await?;
        left -= part as u64;
    }
    stream.shutdown().await
}
