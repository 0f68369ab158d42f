//! Headers of messages between two processes: arbitrary bytes, and a header with any fields.

#![no_main]

use adit_fuzz::ActionScript;
use adit_net::handover::{HEADER_BYTES, MAX_BODY_BYTES, MAX_DESCRIPTORS, MessageHeader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let (kind, fds) = (script.read_u16(), usize::from(script.read_u8()));
    let body = usize::try_from(script.read_u32()).expect("64 bits");
    match MessageHeader::new(kind, body, fds) {
        Ok(header) => {
            assert_eq!(MessageHeader::parse(header.to_bytes()).ok(), Some(header));
            assert!(fds <= MAX_DESCRIPTORS && body <= MAX_BODY_BYTES);
        }
        Err(_) => assert!(fds > MAX_DESCRIPTORS || body > MAX_BODY_BYTES),
    }
    let mut bytes = [0; HEADER_BYTES];
    let (front, _) = input.split_at(input.len().min(HEADER_BYTES));
    bytes[..front.len()].copy_from_slice(front);
    if let Ok(header) = MessageHeader::parse(bytes) {
        assert_eq!(header.to_bytes(), bytes);
        assert!(header.body_bytes() <= MAX_BODY_BYTES && header.descriptors() <= MAX_DESCRIPTORS);
    }
});
