//! Nested record layers carry any amount of data in any splitting.

use adit_stream::{Layered, Stream, fill_to, finish_stream, flush_stream, write_and_flush};
use adit_wire::{Overhead, ProtocolError, Seal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::toy::{ToyOpen, ToySeal, pair, pattern};

type Stack = Layered<Layered<adit_stream::Tcp, ToySeal, ToyOpen>, ToySeal, ToyOpen>;

fn stack(below: adit_stream::Tcp, client: bool) -> Stack {
    let layer = |max| (ToySeal { max, head: client }, ToyOpen { head: !client });
    let ((s1, o1), (s2, o2)) = (layer(60_000), layer(3_000));
    Layered::new(Layered::new(below, s1, o1), s2, o2)
}

async fn two() -> (Stack, Stack) {
    let (a, b) = pair().await;
    (stack(a, true), stack(adit_stream::Tcp::new(b), false))
}

#[tokio::test]
async fn nested_layers_carry_a_megabyte_both_ways_in_place() {
    let (mut a, mut b) = two().await;
    let sent = pattern(1_000_003);
    let reader = async {
        let mut got = Vec::new();
        while fill_to(&mut b, 1).await.unwrap() > 0 {
            let n = b.filled().len();
            got.extend_from_slice(b.filled());
            b.consume(n);
        }
        (b, got)
    };
    let writer = async {
        write_and_flush(&mut a, &sent).await.unwrap();
        finish_stream(&mut a).await.unwrap();
        a
    };
    let (mut a, (mut b, got)) = tokio::join!(writer, reader);
    assert!(got == sent, "the received bytes differ");
    // The other direction is still open after the half close.
    let (back, _) = tokio::join!(
        async {
            assert_eq!(fill_to(&mut a, 5).await.unwrap(), 5);
            a.filled().to_vec()
        },
        send_owned(&mut b, b"hello")
    );
    assert_eq!(back, b"hello");
}

async fn send_owned(io: &mut Stack, bytes: &[u8]) {
    // Side b has no head to send, so its codec must not expect one at a.
    write_and_flush(io, bytes).await.unwrap();
}

#[tokio::test]
async fn contiguous_bytes_are_made_across_records() {
    let (mut a, mut b) = two().await;
    let sent = pattern(9_000);
    let (got, ()) = tokio::join!(
        async {
            assert!(fill_to(&mut b, 9_000).await.unwrap() >= 9_000);
            let mut got = b.filled().to_vec();
            b.consume(2_999);
            assert!(fill_to(&mut b, 6_001).await.unwrap() == 6_001);
            got.truncate(2_999);
            got.extend_from_slice(b.filled());
            got
        },
        async { write_and_flush(&mut a, &sent).await.unwrap() }
    );
    assert!(got == sent);
}

#[tokio::test]
async fn an_owed_head_leaves_with_the_first_flush() {
    let (a, mut raw) = pair().await;
    let mut a = Layered::new(
        a,
        ToySeal {
            max: 10,
            head: true,
        },
        ToyOpen::default(),
    );
    assert!(a.owes_head());
    flush_stream(&mut a).await.unwrap();
    assert!(!a.owes_head());
    let mut wire = [0; 4];
    raw.read_exact(&mut wire).await.unwrap();
    assert_eq!(wire, [b'H', 0, 0, 0x5a]);
}

#[tokio::test]
async fn a_cut_record_is_an_error_after_the_good_ones() {
    let (a, mut raw) = pair().await;
    let mut a = Layered::new(
        a,
        ToySeal {
            max: 10,
            head: false,
        },
        ToyOpen::default(),
    );
    raw.write_all(&[0, 1, b'x' ^ 0xff, 0x5a ^ b'x', 0, 9, 1])
        .await
        .unwrap();
    drop(raw);
    assert_eq!(fill_to(&mut a, 1).await.unwrap(), 1);
    assert_eq!(a.filled(), b"x");
    a.consume(1);
    assert_eq!(
        fill_to(&mut a, 1).await.unwrap_err().kind(),
        std::io::ErrorKind::InvalidData
    );
}

#[tokio::test]
async fn a_bad_record_does_not_swallow_the_good_one_before_it() {
    let (a, mut raw) = pair().await;
    let mut a = Layered::new(
        a,
        ToySeal {
            max: 10,
            head: false,
        },
        ToyOpen::default(),
    );
    raw.write_all(&[0, 1, b'x' ^ 0xff, 0x5a ^ b'x', 0, 1, 7, 0])
        .await
        .unwrap();
    assert_eq!(fill_to(&mut a, 1).await.unwrap(), 1);
    a.consume(1);
    assert!(fill_to(&mut a, 1).await.is_err());
}

#[tokio::test]
async fn one_read_fills_many_records_and_the_first_may_be_larger() {
    let (a, mut raw) = pair().await;
    let mut a = Layered::new(
        a,
        ToySeal {
            max: 5_000,
            head: true,
        },
        ToyOpen::default(),
    );
    std::future::poll_fn(|cx| a.poll_slot(cx, 1)).await.unwrap();
    let sent = pattern(12_345);
    let mut slots: [std::io::IoSliceMut<'_>; 4] =
        std::array::from_fn(|_| std::io::IoSliceMut::new(&mut []));
    let count = a.slots(&mut slots);
    assert!(count >= 3, "{count}");
    let mut rest = &sent[..];
    for slot in &mut slots[..count] {
        let (now, later) = rest.split_at(rest.len().min(slot.len()));
        slot[..now.len()].copy_from_slice(now);
        rest = later;
    }
    assert!(rest.is_empty());
    a.commit(sent.len()).unwrap();
    finish_stream(&mut a).await.unwrap();
    let mut wire = Vec::new();
    raw.read_to_end(&mut wire).await.unwrap();
    let opened = adit_wire::codec_laws::open_all(&mut ToyOpen { head: true }, &wire, &[7]).unwrap();
    assert!(opened == (sent, 0));
}

/// A codec whose first record has nearly no space.
struct SmallFirst(ToySeal);

impl Seal for SmallFirst {
    fn overhead(&self) -> Overhead {
        let room = self.0.overhead();
        let max = if self.0.head { 1 } else { room.max_payload };
        Overhead {
            max_payload: max,
            ..room
        }
    }
    fn seal(
        &mut self,
        record: &mut [u8],
        p: std::ops::Range<usize>,
    ) -> Result<std::ops::Range<usize>, ProtocolError> {
        self.0.seal(record, p)
    }
    fn must_send_head(&self) -> bool {
        self.0.must_send_head()
    }
}

/// A record that does not fit into the first one of the layer below waits for the second.
#[tokio::test]
async fn a_small_first_record_goes_ahead_without_payload() {
    let (a, mut raw) = pair().await;
    let small = SmallFirst(ToySeal {
        max: 100,
        head: true,
    });
    let below = Layered::new(a, small, ToyOpen::default());
    let above = ToySeal {
        max: 10,
        head: false,
    };
    let mut above = Layered::new(below, above, ToyOpen::default());
    write_and_flush(&mut above, b"x").await.unwrap();
    let mut wire = [0; 4 + 3 + 4];
    raw.read_exact(&mut wire).await.unwrap();
    assert_eq!(wire[..6], [b'H', 0, 0, 0x5a, 0, 4]);
}
