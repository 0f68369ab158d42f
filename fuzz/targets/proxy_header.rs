//! The PROXY header over arbitrary bytes.

#![no_main]

use adit_fuzz::SplitInput;
use adit_socks::ProxyHeader;
use adit_wire::HandshakeProgress;
use adit_wire::codec_laws::run_handshake;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let outcome = SplitInput::new(input).assert_split_independent(|bytes, pieces| {
        run_handshake(&mut ProxyHeader, bytes, pieces)
            .map_err(|(why, sent)| (why.to_string(), sent))
    });
    if let Ok((step, sent, rest)) = outcome {
        assert!(sent.is_empty());
        match step {
            HandshakeProgress::Done(_) => assert!(rest.len() + 16 <= input.len()),
            HandshakeProgress::NeedMore { total } => assert!(total <= 16 + 4096),
        }
    }
});
