//! Sessions of tokio_kcp for the tests: bare KCP, without encryption and error correction.
//!
//! `tokiokcp echo MODE` sends back what it receives, and prints `ready ADDRESS`. `tokiokcp send
//! MODE SERVER BYTES` sends this many bytes, and prints `same` if they come back. MODE is `stream`
//! or `message`. Both end after a minute in any case.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_kcp::{KcpConfig, KcpListener, KcpNoDelayConfig, KcpStream};

/// Size of a write, in bytes: more fragments than a window are refused.
const PIECE: usize = 16 * 1024;
const LIFE: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let work = async {
        match words[..] {
            ["echo", mode] => echo(config(mode)?).await,
            ["send", mode, server, bytes] => {
                send(config(mode)?, server.parse()?, bytes.parse()?).await
            }
            _ => Err("echo MODE, or send MODE SERVER BYTES".into()),
        }
    };
    tokio::time::timeout(LIFE, work).await?
}

fn config(mode: &str) -> Result<KcpConfig, Box<dyn Error>> {
    let stream = match mode {
        "stream" => true,
        "message" => false,
        other => return Err(format!("unknown mode `{other}`").into()),
    };
    Ok(KcpConfig {
        nodelay: KcpNoDelayConfig::fastest(),
        wnd_size: (256, 256),
        flush_write: true,
        stream,
        ..KcpConfig::default()
    })
}

async fn echo(config: KcpConfig) -> Result<(), Box<dyn Error>> {
    let mut listener = KcpListener::bind(config, "127.0.0.1:0").await?;
    println!("ready {}", listener.local_addr()?);
    loop {
        let (mut stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let mut buf = vec![0; 1 << 17];
            while let Ok(len @ 1..) = stream.read(&mut buf).await {
                if stream.write_all(&buf[..len]).await.is_err() {
                    return;
                }
            }
        });
    }
}

async fn send(config: KcpConfig, server: SocketAddr, len: usize) -> Result<(), Box<dyn Error>> {
    let stream = KcpStream::connect(&config, server).await?;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let bytes: Vec<u8> = (0..len)
        .map(|n| (n % 251) as u8 ^ (n / 251) as u8)
        .collect();
    let mut back = vec![0; len];
    let write = async {
        for piece in bytes.chunks(PIECE) {
            writer.write_all(piece).await?;
        }
        writer.flush().await
    };
    let (wrote, read) = tokio::join!(write, reader.read_exact(&mut back));
    wrote?;
    read?;
    println!("{}", if back == bytes { "same" } else { "other bytes" });
    Ok(())
}
