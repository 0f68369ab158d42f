//! What a cipher with its MAC costs on this processor.

use std::hint::black_box;
use std::time::Duration;

use adit_crypto::Secret;
use adit_ssh::algorithm::{Cipher, Compression, Mac};
use adit_ssh::packet::{DirectionKeys, Opened, Opener, Sealer};

use super::super::nanoseconds;

/// Octets of data in a packet, as channels send them.
const DATA: usize = 32 * 1024;
/// Packets in one buffer.
const TOGETHER: usize = 8;

/// Seconds of processor time of one end, per GiB of data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cost {
    pub(super) cipher: Cipher,
    /// None with a cipher that has a tag of its own.
    pub(super) mac: Option<Mac>,
    /// At the end that sends.
    pub(super) send: f64,
    /// At the end that receives.
    pub(super) receive: f64,
}

impl Cost {
    /// Of both directions.
    pub(super) const fn sum(&self) -> f64 {
        self.send + self.receive
    }

    /// Bits of the tag of each packet.
    pub(super) fn tag_bits(&self) -> usize {
        self.mac.map_or(128, |mac| mac.key_tag_len().1 * 8)
    }
}

/// Seals and opens packets in memory for about `spend`.
pub(super) fn measure(cipher: Cipher, mac: Option<Mac>, spend: Duration) -> Cost {
    let data = vec![0x5a; DATA];
    let (mut sealer, mut opener) = (Sealer::new(), Opener::new());
    // Keys of the right lengths are taken.
    let _ = sealer.set_keys(keys(cipher, mac), true);
    let _ = opener.set_keys(keys(cipher, mac), true);
    let mut out = Vec::with_capacity((DATA + 256) * TOGETHER);
    let mut seal_all = |out: &mut Vec<u8>| {
        out.clear();
        for _ in 0..TOGETHER {
            let start = sealer.begin(out);
            out.extend_from_slice(black_box(&data));
            let _ = sealer.finish(start, out);
        }
    };
    // Before, so that the opener has seen nothing when the pairs begin: numbers must follow.
    let both = nanoseconds(spend / 2, || {
        seal_all(&mut out);
        open_all(&mut opener, &mut out);
    });
    let send = nanoseconds(spend / 2, || seal_all(&mut out));
    let per_gib = |ns: f64| ns / 1e9 * f64::from(1 << 30) / (DATA * TOGETHER) as f64;
    Cost {
        cipher,
        mac,
        send: per_gib(send),
        // Noise may make the sum the smaller one.
        receive: per_gib((both - send).max(0.0)),
    }
}

fn open_all(opener: &mut Opener, mut wire: &mut [u8]) {
    while let Ok(Opened::Packet { consumed, payload }) = opener.open(wire) {
        black_box(opener.payload(wire, &payload));
        wire = wire.get_mut(consumed..).unwrap_or_default();
    }
}

fn keys(cipher: Cipher, mac: Option<Mac>) -> DirectionKeys {
    let (key, iv) = cipher.key_iv_len();
    DirectionKeys {
        cipher,
        mac,
        compression: Compression::None,
        key: Secret::new(vec![1; key]),
        iv: Secret::new(vec![2; iv]),
        mac_key: Secret::new(vec![3; mac.map_or(0, |mac| mac.key_tag_len().0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_sealed_is_opened() {
        let data = vec![7; 1000];
        for (cipher, mac) in [
            (Cipher::Aes128Gcm, None),
            (Cipher::Aes128Ctr, Some(Mac::Umac64)),
        ] {
            let (mut sealer, mut opener) = (Sealer::new(), Opener::new());
            sealer.set_keys(keys(cipher, mac), true).unwrap();
            opener.set_keys(keys(cipher, mac), true).unwrap();
            let mut wire = Vec::new();
            (0..TOGETHER).for_each(|_| sealer.seal(&data, &mut wire).unwrap());
            open_all(&mut opener, &mut wire);
            assert_eq!(opener.packets(), 8);
        }
    }

    #[test]
    fn a_cost_is_a_cost() {
        let spend = Duration::from_millis(40);
        let gcm = measure(Cipher::Aes128Gcm, None, spend);
        let sha = measure(Cipher::Aes128Ctr, Some(Mac::HmacSha512Etm), spend);
        assert!(gcm.send > 0.0 && sha.sum() > gcm.send);
        assert_eq!((gcm.tag_bits(), sha.tag_bits()), (128, 512));
    }
}
