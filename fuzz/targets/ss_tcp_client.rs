//! A Shadowsocks client over a server's stream that is raw, or sealed around arbitrary content; and
//! over legacy methods, for which raw bytes are equivalent to sealed ones.

#![no_main]

use std::sync::Arc;

use adit_fuzz::forged_wire::{ForgedEdition, ForgedStream, RESPONSE_SALT, SALT, legacy_key};
use adit_fuzz::{NOW, SplitInput, ZeroEntropy, split_flags};
use adit_shadowsocks::tcp::client_codecs;
use adit_wire::codec_laws::{open_all, seal_all};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let edition = ForgedEdition::from_lowest_bit(flags);
    let key = legacy_key(flags).cloned().unwrap_or_else(|| edition.key());
    let SplitInput { sizes, bytes } = SplitInput::new(input);
    let split = |wire: &[u8]| {
        SplitInput {
            sizes: sizes.clone(),
            bytes: wire,
        }
        .assert_split_independent(|wire, pieces| {
            let target = "example.test:443".parse().expect("a target");
            let codecs = client_codecs(
                &key.clone().into(),
                &target,
                Arc::new(NOW),
                &mut ZeroEntropy,
            );
            let (mut seal, mut open) = codecs.expect("a client");
            seal_all(&mut seal, b"hello", 5).expect("sealed");
            open_all(&mut open, wire, pieces)
        })
    };
    if let Some(key) = legacy_key(flags) {
        let iv = key.method().salt_len();
        if let Ok((plain, unread)) = split(bytes) {
            let opened = bytes.len().checked_sub(iv);
            assert_eq!(plain.len(), opened.unwrap_or(0));
            assert_eq!(unread, opened.map_or(bytes.len(), |_| 0));
        }
        return;
    }
    match (flags >> 1) % 3 {
        0 => {
            if let Ok((plain, _)) = split(bytes) {
                assert!(plain.is_empty(), "bytes without a key were opened");
            }
        }
        1 => {
            let mut stream = ForgedStream::new(edition, &RESPONSE_SALT);
            bytes
                .chunks(27)
                .for_each(|block| stream.append_block(block));
            let _ = split(&stream.wire);
        }
        _ => {
            // A correct response around arbitrary content and arbitrary chunk sizes.
            let (most, content) = split_flags(bytes);
            let mut stream = ForgedStream::new(edition, &RESPONSE_SALT);
            let mut rest = content;
            if edition == ForgedEdition::Aead2022 && !content.is_empty() {
                let (first, after) = content.split_at(content.len().min(usize::from(most) + 1));
                let stamp = NOW.0.to_be_bytes();
                let count = u16::try_from(first.len()).unwrap_or(u16::MAX).to_be_bytes();
                stream.append_block(&[&[1][..], &stamp, &SALT, &count].concat());
                stream.append_block(first);
                rest = after;
            }
            stream.append_chunks(rest, usize::from(most));
            assert_eq!(
                split(&stream.wire),
                Ok((content.to_vec(), if content.is_empty() { 16 } else { 0 }))
            );
        }
    }
});
