//! UMAC-128 (RFC 4418) of a file: prints the tag, or verifies one.
//!
//! The key is secret. The number is a nonce: never use one twice with the same key.

use std::fs::File;
use std::io::{BufRead, BufReader};

use adit_umac::{Nonce, Umac};
use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: umac KEY_OF_32_HEX_DIGITS NUMBER FILE [TAG_OF_32_HEX_DIGITS]";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (key, number, path, expected) = match args.as_slice() {
        [key, number, path] => (key, number, path, None),
        [key, number, path, tag] => (key, number, path, Some(parse_hex(tag)?)),
        _ => bail!(USAGE),
    };
    let nonce = Nonce::from(number.parse::<u64>().context(USAGE)?);
    let umac = Umac::<16>::new(&parse_hex(key)?);
    let mut hasher = umac.new_hasher();
    let mut file = BufReader::new(File::open(path).with_context(|| path.clone())?);
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            break;
        }
        hasher.update(bytes);
        let len = bytes.len();
        file.consume(len);
    }
    match expected {
        None => {
            let tag = hasher.finish_tag(nonce).into_array();
            println!("{:032x}", u128::from_be_bytes(tag));
        }
        Some(tag) => {
            // Compares in constant time.
            hasher.verify_tag(nonce, &tag).context(path.clone())?;
            println!("{path}: OK");
        }
    }
    Ok(())
}

fn parse_hex(text: &str) -> Result<[u8; 16]> {
    let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_hex
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten();
    Ok(number.context(USAGE)?.to_be_bytes())
}
