//! The SOCKS clients over arbitrary bytes from a proxy.

#![no_main]

use adit_fuzz::{SplitInput, split_flags};
use adit_socks::client::{Socks4Connect, Socks5Connect, second_reply};
use adit_socks::{Command, Version};
use adit_wire::codec_laws::{HandshakeFailure, HandshakeOutcome, run_handshake};
use adit_wire::{Handshake, Target};
use libfuzzer_sys::fuzz_target;

fn run_client<H: Handshake>(
    mut core: H,
    bytes: &[u8],
    pieces: &[usize],
) -> Result<HandshakeOutcome<H::Output>, HandshakeFailure<String>>
where
    H::Error: ToString,
{
    run_handshake(&mut core, bytes, pieces).map_err(|(why, sent)| (why.to_string(), sent))
}

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let target: Target = if flags & 8 == 0 {
        "example.test:443"
    } else {
        "192.0.2.7:80"
    }
    .parse()
    .expect("a target");
    let login = (flags & 16 != 0).then(|| ("user".to_owned(), "pw".to_owned()));
    let command = if flags & 32 == 0 {
        Command::Connect
    } else {
        Command::Bind
    };
    let connect = || Socks5Connect::new(command, target.clone(), login.clone());
    let outcome =
        SplitInput::new(input).assert_split_independent(|bytes, pieces| match flags % 6 {
            0 => run_client(connect(), bytes, pieces),
            1 => run_client(connect().with_optional_auth(), bytes, pieces),
            2 => run_client(connect().with_pipelining(), bytes, pieces),
            3 => run_client(
                Socks4Connect::new(command, target.clone(), None),
                bytes,
                pieces,
            ),
            4 => run_client(second_reply(Version::V5), bytes, pieces),
            _ => run_client(second_reply(Version::V4), bytes, pieces),
        });
    if let Ok((_, sent, rest)) = outcome {
        assert!(rest.len() <= input.len() && sent.len() < 600);
    }
});
