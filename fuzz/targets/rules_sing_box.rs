//! Rule sets of sing-box in their source format: the whole document, or a rule of a good one.

#![no_main]

use adit_fuzz::rules::{LIMITS, check};
use adit_fuzz::split_flags;
use adit_rules::read::read_sing_box_json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let document = match flags & 1 {
        0 => input.to_vec(),
        _ => [&br#"{"version":3,"rules":[{"#[..], input, b"}]}"].concat(),
    };
    check(read_sing_box_json(&document, &LIMITS));
});
