//! Lists of addresses and headers of forwarded datagrams between two processes, from arbitrary bytes.

#![no_main]

use adit_net::handover::{MAX_SOURCES, RunHeader, encode_sources, parse_sources};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Some(sources) = parse_sources(input) {
        assert!(sources.len() <= MAX_SOURCES);
        let bytes = encode_sources(&sources);
        assert_eq!(bytes.len(), input.len());
        assert_eq!(parse_sources(&bytes), Some(sources));
    }
    if let Some((header, _)) = input.split_first_chunk() {
        let header = RunHeader::parse(*header);
        assert_eq!(RunHeader::parse(header.to_bytes()), header);
    }
});
