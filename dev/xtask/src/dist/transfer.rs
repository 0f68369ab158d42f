//! A transfer in both directions through a tunnel, with checksums.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

/// Length of the blocks of a transfer, in bytes.
const BLOCK: usize = 64 << 10;
/// The time without a byte after which a transfer has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The length of a SHA-256.
const SUM: usize = 32;

/// A server on loopback that sends a stream to every connection, and reads one from it.
#[derive(Debug)]
pub(super) struct TransferServer {
    pub(super) address: SocketAddr,
}

impl TransferServer {
    /// Starts a server for streams of `amount` bytes, which runs until this process ends.
    pub(super) fn start(amount: u64) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // A failure ends the connection, which the other end reports.
                thread::spawn(move || serve(&connection, amount));
            }
        });
        Ok(Self { address })
    }
}

fn serve(connection: &TcpStream, amount: u64) -> Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    send_with_sum(connection, amount)?;
    let came = receive(connection, amount)?;
    let mut connection = connection;
    connection.write_all(&came)?;
    Ok(())
}

/// Downloads `amount` bytes through the tunnel at `address` and uploads as many, and compares the
/// checksums of both ends.
pub(super) fn transfer(address: SocketAddr, amount: u64) -> Result<()> {
    let connection = TcpStream::connect_timeout(&address, PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let mut stream = &connection;
    let came = receive(stream, amount).context("download")?;
    let mut sent = [0; SUM];
    stream
        .read_exact(&mut sent)
        .context("checksum of the download")?;
    ensure!(came == sent, "the bytes of the download differ");
    let sent = send(stream, amount).context("upload")?;
    let mut came = [0; SUM];
    stream
        .read_exact(&mut came)
        .context("checksum of the upload")?;
    ensure!(came == sent, "the bytes of the upload differ");
    connection.shutdown(Shutdown::Both)?;
    Ok(())
}

fn send_with_sum(mut stream: &TcpStream, amount: u64) -> Result<()> {
    let sum = send(stream, amount)?;
    stream.write_all(&sum)?;
    Ok(())
}

/// Sends blocks that no other block equals, and returns their checksum.
fn send(mut stream: &TcpStream, amount: u64) -> Result<[u8; SUM]> {
    let mut block = vec![0; BLOCK];
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for byte in &mut block {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *byte = state.to_be_bytes()[0];
    }
    let mut digest = Sha256::new();
    let mut left = amount;
    while left > 0 {
        // Every block has its number.
        block[..8].copy_from_slice(&left.to_be_bytes());
        let part = &block[..usize::try_from(left).unwrap_or(BLOCK).min(BLOCK)];
        stream.write_all(part)?;
        digest.update(part);
        left -= part.len() as u64;
    }
    Ok(digest.finalize().into())
}

/// Receives `amount` bytes and returns their checksum.
fn receive(mut stream: &TcpStream, amount: u64) -> Result<[u8; SUM]> {
    let mut block = vec![0; BLOCK];
    let mut digest = Sha256::new();
    let mut left = amount;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
        let len = stream.read(&mut block[..most])?;
        ensure!(len > 0, "the stream ended {left} bytes early");
        digest.update(&block[..len]);
        left -= len as u64;
    }
    Ok(digest.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direct_transfer_is_correct() {
        let server = TransferServer::start(1_000_003).unwrap();
        transfer(server.address, 1_000_003).unwrap();
    }

    #[test]
    fn a_changed_byte_and_a_short_stream_are_faults() {
        // A tunnel that changes one byte of what the server sends, or ends after it.
        let through = |change: bool| {
            let server = TransferServer::start(100_000).unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            thread::spawn(move || {
                let (mut client, _) = listener.accept().unwrap();
                let mut behind = TcpStream::connect(server.address).unwrap();
                let mut bytes = vec![0; 50_000];
                behind.read_exact(&mut bytes).unwrap();
                bytes[40_000] ^= u8::from(change);
                client.write_all(&bytes).unwrap();
                if change {
                    let _ = std::io::copy(&mut behind, &mut client);
                }
            });
            transfer(address, 100_000)
                .unwrap_err()
                .root_cause()
                .to_string()
        };
        assert_eq!(through(true), "the bytes of the download differ");
        assert_eq!(through(false), "the stream ended 50000 bytes early");
    }
}
