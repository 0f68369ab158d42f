//! Padding of requests, over TCP and over UDP: zeros, because they are encrypted.

use adit_wire::{Entropy, narrow_int, subslice, u64_from};

/// Maximum length of payload and padding together, in bytes, for a padded request or datagram: for a
/// request the most that SIP022 has senders add. For datagrams the sum stays far below any path's MTU.
pub const PADDING_MAX: usize = 900;

const DNS: u16 = 53;

static ZEROS: [u8; PADDING_MAX] = [0; PADDING_MAX];

/// Returns padding for a TCP request with `payload` bytes of payload; `seed` is random. An empty request
/// has 1 to 900 bytes of it. A payload of 900 bytes or more hides its header well enough.
pub(crate) fn choose_request_padding(payload: usize, seed: u64) -> &'static [u8] {
    let room = u64_from(PADDING_MAX.saturating_sub(payload));
    let len = match payload {
        0 => 1 + seed % room,
        _ => seed % (room + 1),
    };
    subslice(&ZEROS, ..narrow_int::<usize>(len))
}

/// Returns padding for a datagram by the rule `plain-dns`, which pads those of port 53 alone: for a payload
/// of `payload` bytes with `spare` bytes of room in front of it.
pub(crate) fn choose_datagram_padding(
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
            choose_datagram_padding(
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
