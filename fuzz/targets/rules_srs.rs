//! Rule sets of sing-box in their binary format: the whole file, or its content before compression.

#![no_main]

use adit_fuzz::rules::{LIMITS, check};
use adit_fuzz::split_flags;
use adit_rules::read::read_srs;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let document = match flags & 1 {
        0 => input.to_vec(),
        _ => {
            let packed = miniz_oxide::deflate::compress_to_vec_zlib(input, 1);
            [&b"SRS\x03"[..], &packed].concat()
        }
    };
    check(read_srs(&document, &LIMITS));
});
