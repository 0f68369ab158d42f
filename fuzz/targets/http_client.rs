//! The CONNECT client over arbitrary bytes from a proxy.

#![no_main]

use adit_fuzz::{SplitInput, split_flags};
use adit_http::MAX_HEAD;
use adit_http::client::HttpConnect;
use adit_wire::HandshakeProgress;
use adit_wire::codec_laws::run_handshake;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let login = (flags & 1 != 0).then(|| ("user".to_owned(), "pw".to_owned()));
    let outcome = SplitInput::new(input).assert_split_independent(|bytes, pieces| {
        let mut core =
            HttpConnect::new("example.test:443".parse().expect("a target"), login.clone());
        run_handshake(&mut core, bytes, pieces).map_err(|(why, sent)| (why.to_string(), sent))
    });
    match outcome {
        Ok((HandshakeProgress::NeedMore { .. }, _, held)) => assert!(held.len() <= MAX_HEAD),
        Ok((HandshakeProgress::Done(_), _, rest)) => assert!(rest.len() < input.len()),
        Err(_) => {}
    }
});
