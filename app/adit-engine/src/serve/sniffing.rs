//! The name in a client's first bytes, for the rules about a request for an address.

use std::io;
use std::time::Duration;

use adit_rules::sniff::{MAX_SNIFFED_BYTES, sniff_name};
use adit_stream::{BoxStream, Stream, fill_to};
use adit_wire::{HandshakeProgress, Name};
use tokio::time::{Instant, timeout_at};

use super::opening_client::OpeningClient;
use crate::acceptor::{FirstBytesPlace, PendingRequest};

/// Maximum wait for a name. Protocols in which the server sends the first bytes are delayed by this time.
const MAX_WAIT: Duration = Duration::from_millis(300);

/// Reads the first bytes of a client into `first` until the name is known, and returns the name if there is one.
/// Clients that wait for the reply for success receive it before.
///
/// # Errors
///
/// The client has closed its connection.
pub(super) async fn read_name(
    mut pending: PendingRequest,
    first: &mut Vec<u8>,
) -> io::Result<(OpeningClient, Option<Name>)> {
    match pending.first_bytes_place() {
        FirstBytesPlace::Elsewhere => Ok((OpeningClient::Waiting(pending), None)),
        FirstBytesPlace::InStream => {
            let name = match pending.client_stream() {
                Some(io) => read_name_from(io, first).await?,
                None => None,
            };
            Ok((OpeningClient::Waiting(pending), name))
        }
        FirstBytesPlace::AfterReply => {
            let mut io = pending.reply_success(None).await?;
            let name = read_name_from(&mut io, first).await?;
            Ok((OpeningClient::Replied(io), name))
        }
    }
}

async fn read_name_from(io: &mut BoxStream, first: &mut Vec<u8>) -> io::Result<Option<Name>> {
    let deadline = Instant::now() + MAX_WAIT;
    loop {
        let required = match sniff_name(first) {
            HandshakeProgress::Done(name) => return Ok(name),
            HandshakeProgress::NeedMore { total } => total,
        };
        while first.len() < required {
            match timeout_at(deadline, fill_to(io, 1)).await {
                // The time is over, or the client sends nothing further.
                Err(_) | Ok(Ok(0)) => return Ok(None),
                Ok(filled) => filled?,
            };
            let limit = MAX_SNIFFED_BYTES.saturating_sub(first.len());
            let filled = io.filled();
            let taken = filled.get(..limit).unwrap_or(filled);
            first.extend_from_slice(taken);
            let taken = taken.len();
            io.consume(taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use adit_stream::Buffered;
    use tokio::io::{AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    fn stream() -> (DuplexStream, BoxStream) {
        let (client, server) = duplex(64 << 10);
        (client, Box::new(Buffered::from_tokio(server)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_in_parts_is_found_and_later_bytes_stay_in_the_stream() {
        let (mut client, mut io) = stream();
        let mut first = b"GET / HT".to_vec();
        let sender = tokio::spawn(async move {
            for part in ["TP/1.1\r", "\nHost: a.exa", "mple\r", "\n", "\r\n"] {
                tokio::time::sleep(Duration::from_millis(50)).await;
                client.write_all(part.as_bytes()).await.unwrap();
            }
            client
        });
        let name = read_name_from(&mut io, &mut first).await.unwrap();
        assert_eq!(name, Some(Name::new("a.example").unwrap()));
        assert_eq!(first, b"GET / HTTP/1.1\r\nHost: a.example\r\n");
        let _client = sender.await.unwrap();
        assert_eq!(fill_to(&mut io, 2).await.unwrap(), 2);
        assert_eq!(io.filled(), b"\r\n");
    }

    #[tokio::test(start_paused = true)]
    async fn silent_slow_and_ended_clients_have_no_name() {
        let (_client, mut io) = stream();
        let (since, mut first) = (Instant::now(), Vec::new());
        assert_eq!(read_name_from(&mut io, &mut first).await.unwrap(), None);
        assert_eq!(since.elapsed(), MAX_WAIT);

        let (mut client, mut io) = stream();
        let sender = tokio::spawn(async move {
            for byte in [22, 3, 1].into_iter().chain([2; 200]) {
                client.write_all(&[byte]).await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        let since = Instant::now();
        assert_eq!(read_name_from(&mut io, &mut first).await.unwrap(), None);
        assert!(since.elapsed() <= MAX_WAIT + Duration::from_millis(1));
        assert!(first.starts_with(&[22, 3, 1, 2]) && first.len() < 20);
        sender.abort();

        let (mut client, mut io) = stream();
        client.write_all(&[22, 3]).await.unwrap();
        drop(client);
        let (since, mut first) = (Instant::now(), Vec::new());
        assert_eq!(read_name_from(&mut io, &mut first).await.unwrap(), None);
        assert_eq!((first, since.elapsed()), (vec![22, 3], Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_the_limit_is_read() {
        let (mut client, mut io) = stream();
        let head = format!("GET / HTTP/1.1\r\n{}", "A: b\r\n".repeat(4000));
        client.write_all(head.as_bytes()).await.unwrap();
        let mut first = Vec::new();
        assert_eq!(read_name_from(&mut io, &mut first).await.unwrap(), None);
        assert_eq!(first.len(), MAX_SNIFFED_BYTES);
        let rest = head.len() - first.len();
        while first.len() < head.len() {
            assert!(fill_to(&mut io, 1).await.unwrap() > 0, "{rest}");
            first.extend_from_slice(io.filled());
            let n = io.filled().len();
            io.consume(n);
        }
        assert_eq!(first, head.as_bytes());
    }
}
