//! Streams under tokio's own functions, and back.

use std::io::{ErrorKind, IoSlice};

use adit_stream::{BoxStream, Buffered, Layered, Stream, Tcp, TokioStream, fill_to};
use adit_wire::{ProtocolError, Seal};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::bytes::Bytes;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use crate::toy::{ToyOpen, ToySeal, pair, pattern};

type Layer = Layered<Tcp, ToySeal, ToyOpen>;

/// Returns a layer that sends a head, or expects one.
fn layer(below: Tcp, client: bool) -> Layer {
    let (max, head) = (3_000, client);
    Layered::new(below, ToySeal { max, head }, ToyOpen { head: !client })
}

/// Returns two ends of a connection with layers over them; the first owes a head.
async fn layers() -> (Layer, Layer) {
    let (near, far) = pair().await;
    (layer(near, true), layer(far.into(), false))
}

#[tokio::test]
async fn copy_bidirectional_relays_between_a_layer_and_a_socket() {
    let (client, relay_near) = layers().await;
    let (relay_far, mut target) = pair().await;
    let relay = tokio::spawn(async move {
        let mut near: TokioStream<BoxStream> = BoxStream::into_tokio(Box::new(relay_near));
        let mut far = relay_far.into_inner().unwrap();
        copy_bidirectional(&mut near, &mut far).await.unwrap()
    });
    let (mut reader, mut writer) = tokio::io::split(client.into_tokio());
    let sent = pattern(1_000_003);
    let write = async {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let echo = async {
        let mut got = Vec::new();
        target.read_to_end(&mut got).await.unwrap();
        assert!(got == sent, "the target's bytes differ");
        target.write_all(&got).await.unwrap();
        target.write_all(b"end").await.unwrap();
        target.shutdown().await.unwrap();
    };
    let read = async {
        let mut got = Vec::new();
        reader.read_to_end(&mut got).await.unwrap();
        got
    };
    let ((), (), got) = tokio::join!(write, echo, read);
    assert!(got.strip_suffix(b"end") == Some(&sent), "the echo differs");
    assert_eq!(relay.await.unwrap(), (1_000_003, 1_000_006));
}

#[tokio::test]
async fn frames_of_a_codec_pass_in_both_directions() {
    let (near, far) = layers().await;
    let far = tokio::spawn(async move {
        let mut far = Framed::new(far.into_tokio(), LengthDelimitedCodec::new());
        let mut count = 0;
        while let Some(frame) = far.next().await {
            far.send(frame.unwrap().freeze()).await.unwrap();
            count += 1;
        }
        count
    });
    let mut near = Framed::new(near.into_tokio(), LengthDelimitedCodec::new());
    for size in [0, 1, 2_999, 3_000, 200_000] {
        let frame = Bytes::from(pattern(size));
        near.send(frame.clone()).await.unwrap();
        let back = near.next().await.unwrap().unwrap();
        assert!(back == frame, "the frame of {size} bytes differs");
    }
    near.get_mut().shutdown().await.unwrap();
    assert!(near.next().await.is_none());
    assert_eq!(far.await.unwrap(), 5);
}

#[tokio::test]
async fn a_write_is_sent_without_a_flush_and_gathers_its_buffers() {
    let (near, mut far) = pair().await;
    let mut near = layer(near, true).into_tokio();
    let bufs = [&b"ab"[..], b"", b"cde"].map(IoSlice::new);
    assert_eq!(near.write_vectored(&bufs).await.unwrap(), 5);
    let mut wire = [0; 9];
    far.read_exact(&mut wire).await.unwrap();
    // One head, one record.
    assert_eq!((wire[0], wire[1..3] == [0, 5]), (b'H', true), "{wire:?}");
    assert_eq!(near.write(&[]).await.unwrap(), 0);
}

#[tokio::test]
async fn what_was_read_ahead_stays_in_the_stream() {
    let (near, mut far) = pair().await;
    far.write_all(b"one line\nand the rest").await.unwrap();
    let mut near = near.into_tokio();
    let mut line = String::new();
    near.read_line(&mut line).await.unwrap();
    assert_eq!(line, "one line\n");
    let mut near = near.into_inner();
    assert_eq!(fill_to(&mut near, 12).await.unwrap(), 12);
    assert_eq!(near.filled(), b"and the rest");
}

#[tokio::test]
async fn a_complete_direction_accepts_no_more() {
    /// Accepts nothing.
    struct Complete(ToySeal);
    impl Seal for Complete {
        fn overhead(&self) -> adit_wire::Overhead {
            self.0.overhead()
        }
        fn seal(
            &mut self,
            record: &mut [u8],
            payload: std::ops::Range<usize>,
        ) -> Result<std::ops::Range<usize>, ProtocolError> {
            self.0.seal(record, payload)
        }
        fn is_finished(&self) -> bool {
            true
        }
    }
    let (near, _far) = pair().await;
    let seal = Complete(ToySeal {
        max: 9,
        head: false,
    });
    let mut near = Layered::new(near, seal, ToyOpen::default()).into_tokio();
    let failure = near.write(b"x").await.unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn a_socket_comes_back_out_of_every_wrapper() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let socket = TcpStream::connect(addr).await.unwrap();
    let (mut accepted, peer) = listener.accept().await.unwrap();
    let socket = Tcp::from(socket).into_tokio().into_inner();
    let socket = layer(socket, true).into_below().into_inner().unwrap();
    let mut socket = Buffered::from_tokio(socket).into_inner();
    assert_eq!(socket.local_addr().unwrap(), peer);
    socket.write_all(b"hi").await.unwrap();
    drop(socket);
    let mut got = String::new();
    accepted.read_to_string(&mut got).await.unwrap();
    assert_eq!(got, "hi");
    // A boxed stream can be used in place of a socket, too.
    let mut boxed = BoxStream::from(accepted).into_tokio();
    assert_eq!(boxed.read_to_end(&mut Vec::new()).await.unwrap(), 0);
}
