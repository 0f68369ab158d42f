//! The SOCKS4 server's dialogue over arbitrary bytes.

#![no_main]

use adit_fuzz::{SplitInput, split_flags};
use adit_socks::server::Socks4;
use adit_wire::HandshakeProgress;
use adit_wire::codec_laws::run_handshake;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let allowed = flags & 1 == 0;
    let outcome = SplitInput::new(input).assert_split_independent(|bytes, pieces| {
        run_handshake(&mut Socks4::new(allowed), bytes, pieces)
            .map_err(|(why, sent)| (why.to_string(), sent))
    });
    if let Ok((HandshakeProgress::Done(request), _, _)) = outcome {
        assert!(allowed && !request.verified);
        assert!(request.user.is_none_or(|user| user.len() <= 255));
    }
});
