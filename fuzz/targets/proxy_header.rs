//! The PROXY header over arbitrary bytes.

#![no_main]

use adit_fuzz::Pieces;
use adit_socks::ProxyHeader;
use adit_wire::Step;
use adit_wire::codec_laws::run_handshake;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let outcome = Pieces::new(input).same(|bytes, pieces| {
        run_handshake(&mut ProxyHeader, bytes, pieces)
            .map_err(|(why, sent)| (why.to_string(), sent))
    });
    if let Ok((step, sent, rest)) = outcome {
        assert!(sent.is_empty());
        match step {
            Step::Done(_) => assert!(rest.len() + 16 <= input.len()),
            Step::NeedMore { total } => assert!(total <= 16 + 4096),
        }
    }
});
