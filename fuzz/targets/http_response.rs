//! An origin's response on its way to the client: arbitrary bytes, split anywhere, have the same
//! wire bytes.

#![no_main]

use adit_fuzz::{SplitInput, split_flags};
use adit_http::Framing;
use adit_http::body::exchange_codecs;
use adit_wire::codec_laws::seal_all;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let (upgrade, to_head) = (flags & 1 != 0, flags & 2 != 0);
    let pieces = SplitInput::new(input);
    let wire = pieces.assert_split_independent(|bytes, sizes| {
        let (_, mut seal) = exchange_codecs(Framing::None, upgrade, to_head);
        // `seal_all` takes one size; the first one is used.
        let wire = seal_all(&mut seal, bytes, sizes[0]);
        (wire, seal.fault(), seal.at_boundary())
    });
    if let (Ok(wire), fault, _) = wire {
        assert!(
            fault.is_none() || wire.windows(13).any(|w| w == b"HTTP/1.1 502 "),
            "a fault without a 502"
        );
        assert!(
            wire.is_empty() || wire.starts_with(b"HTTP/1."),
            "{}",
            wire.escape_ascii()
        );
    }
});
