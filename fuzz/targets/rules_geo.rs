//! `geosite.dat` and `geoip.dat` of v2ray.

#![no_main]

use adit_fuzz::rules::{LIMITS, check};
use adit_fuzz::split_flags;
use adit_rules::read::{read_geoip, read_geosite};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    match flags % 4 {
        0 => check(read_geosite(input, "CN", &LIMITS)),
        1 => check(read_geosite(input, "cn@ads", &LIMITS)),
        2 => check(read_geoip(input, "CN", &LIMITS)),
        _ => check(read_geoip(input, "!cn", &LIMITS)),
    }
});
