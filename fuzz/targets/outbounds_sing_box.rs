//! JSON of sing-box: the whole document, or an outbound of a good one.

#![no_main]

use adit_fuzz::outbounds::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| check(
    input,
    "c.json",
    (
        r#"{"outbounds":[{"type":"socks","tag":"a","server":"a.b","server_port":1},{"#,
        "}]}"
    )
));
