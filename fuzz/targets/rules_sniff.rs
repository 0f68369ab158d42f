//! Names in the first bytes of clients, over arbitrary bytes.

#![no_main]

use adit_rules::sniff::{MAX_SNIFFED_BYTES, sniff_name};
use adit_wire::HandshakeProgress;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let whole = sniff_name(input);
    // As a driver reads: no further than required.
    let mut len = 0;
    let stepwise = loop {
        match sniff_name(&input[..len]) {
            HandshakeProgress::NeedMore { total } => {
                assert!(total > len && total <= MAX_SNIFFED_BYTES);
                if total > input.len() {
                    break HandshakeProgress::NeedMore { total };
                }
                len = total;
            }
            done @ HandshakeProgress::Done(_) => break done,
        }
    };
    assert_eq!(stepwise, whole);
    if let HandshakeProgress::Done(Some(name)) = whole {
        assert!(name.as_str().len() <= 255 && name.as_str().is_ascii());
        // Nothing that follows changes the result.
        let longer = [input, b"\r\nHost: other.example\r\n\r\n"].concat();
        assert_eq!(sniff_name(&longer), HandshakeProgress::Done(Some(name)));
    }
});
