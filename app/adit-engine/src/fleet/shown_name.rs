//! Names as acceptors show them in logs and requests: escaped, if they are not plain ASCII.

/// Returns the name whose `escape_ascii` is this text; `None` if there is none.
pub(super) fn unescape(shown: &str) -> Option<String> {
    let mut name = Vec::with_capacity(shown.len());
    let mut rest = shown.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'\\' => match rest.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'x' => hex_digit(rest.next()?)? << 4 | hex_digit(rest.next()?)?,
                quoted @ (b'\\' | b'\'' | b'"') => quoted,
                _ => return None,
            },
            plain => plain,
        };
        name.push(byte);
    }
    String::from_utf8(name).ok()
}

fn hex_digit(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_escaped_is_the_name_again() {
        let all: String = (0..=0x2ff).filter_map(char::from_u32).collect();
        for name in [
            "",
            "ann",
            "жанна",
            "a\\b",
            "\\xd0",
            "'\"\t\r\n",
            "名前",
            &all,
        ] {
            let shown = name.as_bytes().escape_ascii().to_string();
            assert_eq!(unescape(&shown).as_deref(), Some(name));
        }
    }

    #[test]
    fn what_nothing_is_escaped_to_is_no_name() {
        for shown in ["\\", "\\q", "\\x", "\\x1", "\\xgg", "\\xff"] {
            assert_eq!(unescape(shown), None, "{shown}");
        }
    }
}
