//! The SOCKS5 server's dialogue over arbitrary bytes, with and without a password.

#![no_main]

use adit_fuzz::{SingleUserAuth, SplitInput, split_flags};
use adit_socks::server::Socks5;
use adit_wire::HandshakeProgress;
use adit_wire::codec_laws::run_handshake;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let door = SingleUserAuth {
        required: flags & 1 != 0,
    };
    let outcome = SplitInput::new(input).assert_split_independent(|bytes, pieces| {
        run_handshake(&mut Socks5::new(&door), bytes, pieces)
            .map_err(|(why, sent)| (why.to_string(), sent))
    });
    if let Ok((HandshakeProgress::Done(request), sent, rest)) = outcome {
        assert!(rest.len() < input.len() && sent.len() <= 4);
        assert!(request.target.port != 0 || request.command != adit_socks::Command::Connect);
        assert!(
            !door.required || request.verified,
            "a request passed without the required login"
        );
    }
});
