//! Tests that sealing and opening, including the derived keys of the X variants, allocate nothing, and that
//! streams, packets and sessions under an existing key do not either.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use adit_wire::FixedEntropy;

use crate::{
    AeadKey, AeadKind, Direction, HmacKey, HmacKind, SshChaCha, SshGcm, StreamKey, StreamKind,
    packet::session::{Role, SessionCipher, SessionKey},
    packet::{PacketCheck, PacketKey, PacketKind},
    simd::CpuPath,
};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all calls go to the system's allocator; counting touches no memory that it manages.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller upholds the contract of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of the system's allocator.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn messages_allocate_nothing() {
    let before = ALLOCATIONS.get();
    drop(Box::new([7u8; 99]));
    assert!(ALLOCATIONS.get() > before, "the count does not count");
    for path in CpuPath::available() {
        for kind in AeadKind::ALL {
            let key = AeadKey::new_on_path(path, kind, &vec![1; kind.key_len()]).unwrap();
            let mut buf = vec![0; 65536];
            // AWS-LC initializes itself at the first call.
            key.seal_in_place(&[0; 24][..kind.nonce_len()], &mut buf)
                .unwrap();
            let before = ALLOCATIONS.get();
            for len in [0, 32, 1400, 16384, 65536] {
                let nonce = &[2; 24][..kind.nonce_len()];
                let tag = key.seal_in_place(nonce, &mut buf[..len]).unwrap();
                key.open_in_place(nonce, &mut buf[..len], &tag).unwrap();
            }
            assert_eq!(ALLOCATIONS.get(), before, "{kind:?} on {path:?}");
        }
    }
}

#[test]
fn streams_allocate_nothing() {
    let mut buf = vec![0; 1400];
    for kind in StreamKind::ALL {
        let key = StreamKey::new(kind, &vec![1; kind.key_len()]).unwrap();
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let before = ALLOCATIONS.get();
            let mut stream = key
                .start_stream(&[2; 24][..kind.iv_len()], direction)
                .unwrap();
            buf.chunks_mut(333).for_each(|piece| stream.apply(piece));
            drop(stream);
            assert_eq!(ALLOCATIONS.get(), before, "{kind}, {direction:?}");
        }
    }
}

#[test]
fn packets_allocate_nothing() {
    let mut packets = [[7; 1400]; 20];
    let mut rng = FixedEntropy::default();
    for kind in PacketKind::ALL {
        for check in [PacketCheck::Crc32, PacketCheck::HighwayHash] {
            let key = PacketKey::from_key(kind, check, &[1; 32]).unwrap();
            // AWS-LC initializes itself at the first call.
            key.seal(&mut packets[0], &mut rng).unwrap();
            let before = ALLOCATIONS.get();
            key.seal(&mut packets[0], &mut rng).unwrap();
            key.open(&mut packets[0]).unwrap();
            let mut batch = packets.each_mut().map(|packet| &mut packet[..]);
            key.seal_batch(&mut batch, &mut rng).unwrap();
            key.open_batch(&mut batch, &mut |_, opened| {
                opened.unwrap();
            });
            assert_eq!(ALLOCATIONS.get(), before, "{kind}, {check:?}");
        }
    }
}

#[test]
fn sessions_allocate_nothing() {
    let mut packet = [7; 1400];
    let mut rng = FixedEntropy::default();
    let key = SessionKey::new(&[1; 32]).unwrap();
    for cipher in [SessionCipher::Aes128Gcm, SessionCipher::ChaCha20Poly1305] {
        let mut client = key.connect(cipher, &mut rng).unwrap();
        client.seal(&mut packet).unwrap();
        let head = key.decrypt_header(Role::Client, &packet).unwrap();
        let (mut server, _) = key.accept(head, &mut packet, &mut rng).unwrap();
        let before = ALLOCATIONS.get();
        for _ in 0..3 {
            client.seal(&mut packet).unwrap();
            let head = key.decrypt_header(Role::Client, &packet).unwrap();
            server.open(head, &mut packet).unwrap();
            server.seal(&mut packet).unwrap();
        }
        assert_eq!(ALLOCATIONS.get(), before, "{cipher:?}");
    }
}

#[test]
fn ssh_packets_allocate_nothing() {
    let mut packet = vec![7; 32 * 1024];
    let mut seal = SshGcm::new(&[1; 16], &[2; 12]).unwrap();
    let mut open = SshGcm::new(&[1; 16], &[2; 12]).unwrap();
    let chacha = SshChaCha::new(&[1; 64]);
    let macs = [HmacKind::Sha1, HmacKind::Sha256, HmacKind::Sha512]
        .map(|kind| HmacKey::new(kind, &[1; 32]));
    let mut before = 0;
    // AWS-LC initializes itself in the first iteration.
    for turn in 0..3 {
        let tag = seal.seal(&mut packet).unwrap();
        open.open(&mut packet, &tag).unwrap();
        for len in [100, 32 * 1024] {
            let packet = &mut packet[..len];
            let tag = chacha.seal(turn, packet).unwrap();
            chacha.open(turn, packet, &tag).unwrap();
        }
        for mac in &macs {
            std::hint::black_box(mac.tag(&[&packet, &packet]));
        }
        if turn == 0 {
            before = ALLOCATIONS.get();
        }
    }
    assert_eq!(ALLOCATIONS.get(), before);
}
