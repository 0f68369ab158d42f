//! Custom ciphers.

use adit_crypto::{CryptoError, Direction};
use adit_wire::Entropy;

use super::memory::{Net, pair_over};
use super::*;

/// XOR with bytes derived from a key and a nonce, followed by a sum of the payload.
#[derive(Debug)]
struct Xor {
    key: u64,
    /// The value of `authenticates`.
    authenticates: bool,
}

impl Xor {
    fn apply(&self, nonce: u64, bytes: &mut [u8]) {
        let stream = BytePattern::new(self.key ^ nonce).next_bytes(bytes.len());
        bytes
            .iter_mut()
            .zip(stream)
            .for_each(|(byte, mask)| *byte ^= mask);
    }

    fn sum(payload: &[u8]) -> u32 {
        let add = |sum: u32, byte: &u8| sum.rotate_left(5).wrapping_add((*byte).into());
        payload.iter().fold(7, add)
    }
}

impl PacketCrypt for Xor {
    fn head_len(&self) -> usize {
        8
    }

    fn tail_len(&self) -> usize {
        4
    }

    fn seal(&self, packet: &mut [u8], rng: &mut dyn Entropy) -> Result<(), CryptoError> {
        let (nonce, rest) = packet.split_first_chunk_mut().ok_or(CryptoError::NoRoom)?;
        let (payload, sum) = rest.split_last_chunk_mut().ok_or(CryptoError::NoRoom)?;
        rng.fill(nonce);
        *sum = Self::sum(payload).to_le_bytes();
        self.apply(u64::from_le_bytes(*nonce), rest);
        Ok(())
    }

    fn open(&self, packet: &mut [u8]) -> Result<(), CryptoError> {
        assert!(packet.len() >= 12, "shorter ones must be dropped before");
        let (nonce, rest) = packet.split_first_chunk_mut().unwrap();
        self.apply(u64::from_le_bytes(*nonce), rest);
        let (payload, sum) = rest.split_last_chunk_mut().unwrap();
        let right = *sum == Self::sum(payload).to_le_bytes();
        right.then_some(()).ok_or(CryptoError::Unauthentic)
    }

    fn authenticates(&self) -> bool {
        self.authenticates
    }
}

fn xor(key: u64, fec: Option<Fec>) -> Settings {
    let crypt = Xor {
        key,
        authenticates: false,
    };
    Settings {
        crypt: Some(Arc::new(crypt)),
        fec,
        ..plain()
    }
}

#[tokio::test]
async fn a_cipher_of_the_program_seals_both_ways() {
    for (fec, seed) in [(None, 1), (Some(FEC), 2)] {
        let (_listener, near, far) = pair(xor(5, fec), xor(5, fec)).await;
        echo(near, far, 200_000, seed).await;
    }
    let net = Net::new(FaultRates::default());
    let (listener, mut near, mut far) = pair_over(&net, xor(5, None), xor(5, None)).await;
    let text = [b'z'; 5_000];
    near.write_all(&text).await.unwrap();
    let mut got = [0; 5_000];
    timeout(PATIENCE, far.read_exact(&mut got))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(got, text);
    let sent = net.sent_to(1);
    assert!(
        sent.iter().any(|datagram| datagram.len() == 1400),
        "it fills the MTU"
    );
    let plain = |datagram: &Vec<u8>| datagram.windows(20).any(|bytes| bytes == &text[..20]);
    assert!(!sent.iter().any(plain), "nothing may be sent in plaintext");
    // Datagrams shorter than nonce and sum never reach the cipher.
    (0..12).for_each(|len| net.forge(2, 1, &vec![1; len]));
    near.write_all(b"!").await.unwrap();
    timeout(PATIENCE, far.read_u8()).await.unwrap().unwrap();
    drop(listener);
}

#[tokio::test]
async fn another_key_of_such_a_cipher_is_refused() {
    let server = xor(5, None);
    let counters = Arc::clone(&server.counters);
    let mut listener = KcpListener::bind(any(), server).unwrap();
    let at = listener.local_addr().unwrap();
    let mut near = KcpStream::connect(at, xor(6, None)).await.unwrap();
    near.write_all(b"hello").await.unwrap();
    let none = timeout(Duration::from_millis(300), listener.accept()).await;
    assert!(none.is_err(), "{none:?}");
    let counts = counters.counts();
    assert!(
        counts.in_csum_errors > 0 && counts.passive_opens == 0,
        "{counts:?}"
    );
    // A session does not accept packets sealed under another key either, from any address.
    let net = Net::new(FaultRates::default());
    let client = xor(5, None);
    let counters = Arc::clone(&client.counters);
    let (_listener, mut near, mut far) = pair_over(&net, xor(5, None), client).await;
    let mut forged = [&[0; 8][..], &push(near.conv(), 0, Command::Push), &[0; 4]].concat();
    let other = xor(6, None).crypt.unwrap();
    other
        .seal(&mut forged, &mut adit_net::system::ThreadRng)
        .unwrap();
    net.forge(1, 2, &forged);
    far.write_all(b"real").await.unwrap();
    let mut got = [0; 4];
    timeout(PATIENCE, near.read_exact(&mut got))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((&got, counters.counts().in_csum_errors), (b"real", 1));
}

/// One of the built-in ciphers, in the form of a custom one.
struct Brought(PacketKey);

impl BlockCrypt for Brought {
    fn encrypt(&self, packet: &mut [u8]) {
        self.0.apply_cipher(Direction::Encrypt, packet);
    }

    fn decrypt(&self, packet: &mut [u8]) {
        self.0.apply_cipher(Direction::Decrypt, packet);
    }
}

#[tokio::test]
async fn a_cipher_in_kcp_gos_frame_is_the_same_as_the_one_that_is_here() {
    let brought = |kind| {
        let key = PacketKey::new(kind, PacketCheck::Crc32, b"it's a secrect").unwrap();
        Settings {
            crypt: Some(Arc::new(ChecksumCrypt(Brought(key)))),
            ..plain()
        }
    };
    for kind in [PacketKind::Aes, PacketKind::Salsa20, PacketKind::Xor] {
        let (_listener, near, far) = pair(settings(kind, None), brought(kind)).await;
        echo(near, far, 60_000, 3).await;
        let (_listener, near, far) = pair(brought(kind), settings(kind, None)).await;
        echo(near, far, 60_000, 4).await;
    }
}

#[tokio::test]
async fn births_are_limited_where_such_a_cipher_authenticates_nobody() {
    for authenticates in [false, true] {
        let crypt: Arc<dyn PacketCrypt> = Arc::new(Xor {
            key: 5,
            authenticates,
        });
        let server = Settings {
            crypt: Some(Arc::clone(&crypt)),
            backlog: 2_000,
            ..plain()
        };
        let (net, counters) = (
            Net::new(FaultRates::default()),
            Arc::clone(&server.counters),
        );
        let _listener = KcpListener::bind_over(net.end(1), server).unwrap();
        for from in 0..1_000 {
            let mut opening = [&[0; 8][..], &push(7, 0, Command::Push), &[0; 4]].concat();
            let mut rng = adit_net::system::ThreadRng;
            crypt.seal(&mut opening, &mut rng).unwrap();
            net.forge(1_000 + from, 1, &opening);
        }
        let since = Instant::now();
        let received = async {
            while counters.counts().in_pkts < 1_000 {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let received = timeout(PATIENCE, received).await;
        received.expect("all datagrams must be received");
        let begun = counters.counts().passive_opens;
        // Those that nothing authenticates: 512, and 256 more each second.
        let limited = 512..=512 + 256 * (since.elapsed().as_secs() + 1);
        match authenticates {
            true => assert_eq!(begun, 1_000),
            false => assert!(limited.contains(&begun), "{begun}"),
        }
    }
}

#[test]
fn a_cipher_that_leaves_no_room_is_refused() {
    struct Wide(usize);
    impl PacketCrypt for Wide {
        fn head_len(&self) -> usize {
            self.0
        }
        fn seal(&self, _: &mut [u8], _: &mut dyn Entropy) -> Result<(), CryptoError> {
            Ok(())
        }
        fn open(&self, _: &mut [u8]) -> Result<(), CryptoError> {
            Ok(())
        }
    }
    for (head, fits) in [(1_350, true), (1_351, false), (usize::MAX, false)] {
        let wide = Settings {
            crypt: Some(Arc::new(Wide(head))),
            ..plain()
        };
        assert_eq!(wide.check().is_ok(), fits, "{head}");
    }
}
