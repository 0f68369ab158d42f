//! Every stream cipher in any pieces: the same bytes as in one piece, in both directions, and back
//! again.

#![no_main]

use std::sync::LazyLock;

use adit_crypto::{Direction, StreamCipher, StreamKey, StreamKind};
use adit_fuzz::{ActionScript, SplitInput};
use libfuzzer_sys::fuzz_target;

/// Expanded once: some keys take milliseconds.
static KEYS: LazyLock<Vec<StreamKey>> = LazyLock::new(|| {
    let all = StreamKind::ALL.into_iter();
    let key = |kind: StreamKind| {
        StreamKey::new(kind, kind.key_from_password(b"barfoo!").expose()).expect("a key")
    };
    all.map(key).collect()
});

fn apply_in_parts(cipher: &mut StreamCipher, bytes: &[u8], pieces: &[usize]) -> Vec<u8> {
    let mut done = bytes.to_vec();
    let mut rest = &mut done[..];
    for piece in pieces.iter().cycle() {
        let (now, later) = rest.split_at_mut(rest.len().min(*piece));
        cipher.apply(now);
        // An empty piece changes nothing.
        cipher.apply(&mut []);
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    done
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let key = &KEYS[script.read_below(KEYS.len())];
    let times = script.read_below(4) + 1;
    let mut iv = script.take_up_to(key.kind().iv_len()).to_vec();
    iv.resize(key.kind().iv_len(), 0);
    let SplitInput { sizes, bytes } = SplitInput::new(script.take_rest());
    // Long enough for the code that processes many blocks at once. CFB1 is eight times slower.
    let times = if key.kind().name().ends_with("cfb1") {
        1
    } else {
        times
    };
    let plain = bytes.repeat(times);
    let message = SplitInput {
        sizes: sizes.clone(),
        bytes: &plain,
    };
    let start = |direction| key.start_stream(&iv, direction).expect("a right IV");
    let sealed = message
        .assert_split_independent(|b, p| apply_in_parts(&mut start(Direction::Encrypt), b, p));
    // Decrypted in other pieces than it was encrypted in, and as if it were arbitrary ciphertext.
    let (mut first, mut back) = (sealed.clone(), start(Direction::Decrypt));
    let middle = first.len() / 2;
    let (front, rest) = first.split_at_mut(middle);
    back.apply(front);
    back.apply(rest);
    assert!(first == plain, "{} does not decrypt", key.kind());
    message.assert_split_independent(|b, p| apply_in_parts(&mut start(Direction::Decrypt), b, p));
    // CFB1 under half of all keys, and CFB8 under one in 256, leave zeros after an IV of zeros
    // unchanged: the first bits of that block's encryption are zero, and the register stays the
    // same. Data after the first other byte is encrypted.
    let zeros = plain.iter().take_while(|&&byte| byte == 0).count();
    let begins = match key.kind().name().contains("cfb") {
        true => zeros,
        false => 0,
    };
    if key.kind() != StreamKind::None && plain.len() - begins > 64 {
        assert!(sealed != plain, "{} does not encrypt", key.kind());
    }
});
