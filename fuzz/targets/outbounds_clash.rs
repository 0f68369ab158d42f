//! YAML of Clash: the whole document, or an outbound of a good one.

#![no_main]

use adit_fuzz::outbounds::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| check(
    input,
    "c.yaml",
    (
        "proxies: [{name: a, type: ss, server: a.b, port: 1, cipher: none}, {",
        "}]\nproxy-groups: [{name: g, type: select, proxies: [a]}]\n"
    )
));
