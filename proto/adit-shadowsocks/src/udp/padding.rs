//! The padding rule `plain-dns`: only datagrams of port 53 are padded.

use adit_wire::{Entropy, narrow_int, subslice};

/// Maximum length of payload and padding together, in bytes, for a padded datagram. The sum stays
/// far below any path's MTU.
pub const PADDING_MAX: usize = 900;

const DNS: u16 = 53;

static ZEROS: [u8; PADDING_MAX] = [0; PADDING_MAX];

/// Returns padding for a payload of `payload` bytes with `spare` bytes of room in front of it. The
/// padding is zeros, because it is encrypted.
pub(super) fn choose_padding(
    port: u16,
    payload: usize,
    spare: usize,
    entropy: &mut dyn Entropy,
) -> &'static [u8] {
    let most = PADDING_MAX.saturating_sub(payload).min(spare);
    if port != DNS || most == 0 {
        return &[];
    }
    let most = narrow_int(most);
    let len = usize::from(entropy.in_range(1, most));
    subslice(&ZEROS, ..len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_wire::FixedEntropy;

    #[test]
    fn dns_alone_is_padded_within_the_room() {
        let len = |port, payload, spare, rng: u64| {
            choose_padding(
                port,
                payload,
                spare,
                &mut FixedEntropy::new(rng.to_le_bytes()),
            )
            .len()
        };
        assert_eq!(len(443, 40, 1000, 7), 0);
        assert_eq!(len(53, 40, 1000, 0), 1);
        assert_eq!(len(53, 40, 1000, 859), 860);
        assert_eq!(len(53, 40, 1000, 860), 1);
        assert_eq!(len(53, 40, 10, 9), 10);
        assert_eq!(len(53, 40, 0, 9), 0);
        assert_eq!(len(53, 900, 1000, 9), 0);
    }
}
