//! MaxMind databases: the whole file, or a tree and data with good metadata behind them.

#![no_main]

use adit_fuzz::rules::{LIMITS, check};
use adit_fuzz::split_flags;
use adit_rules::read::read_mmdb;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    if flags & 1 == 0 {
        return check(read_mmdb(input, "CN", &LIMITS));
    }
    let size = [24_u8, 28, 32][usize::from(flags >> 1) % 3];
    let version = if flags & 16 == 0 { 4 } else { 6 };
    let nodes = flags >> 5;
    let mut document = input.to_vec();
    document.extend(b"\xab\xcd\xefMaxMind.com\xe3");
    for (key, value) in [
        ("node_count", nodes),
        ("record_size", size),
        ("ip_version", version),
    ] {
        document.push(0x40 | key.len() as u8);
        document.extend(key.bytes());
        document.extend([0xc1, value]);
    }
    check(read_mmdb(&document, "CN", &LIMITS));
});
