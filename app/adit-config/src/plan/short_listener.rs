//! Listeners without a scheme: `1080`, `:1080` and `127.0.0.1:1080` are `mixed://` listeners.

use crate::grammar::parse_address;
use crate::text::Span;

/// Returns the URL of a listener in a short form, or `None` if the text is not in a short form.
///
/// | text | URL |
/// |---|---|
/// | `1080` | `mixed://127.0.0.1:1080` |
/// | `:1080` | `mixed://:1080`, all addresses, which needs `allow_open_proxy` |
/// | `HOST:1080` | `mixed://HOST:1080` |
///
/// The keys of a query may follow, as in `1080?udp=false`.
#[must_use]
pub fn expand_short_listener(text: &str) -> Option<String> {
    if text.contains("://") || text.contains('@') {
        return None;
    }
    let address = text.split(['?', '#']).next()?;
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if is_port(address) {
        return Some(format!("mixed://127.0.0.1:{text}"));
    }
    let (host, port) = address.rsplit_once(':')?;
    let valid = parse_address(host, Span::new(0, host.len())).is_ok();
    (is_port(port) && valid).then(|| format!("mixed://{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_have_one_meaning() {
        for (short, url) in [
            ("1080", "mixed://127.0.0.1:1080"),
            (":1080", "mixed://:1080"),
            ("127.0.0.1:1080", "mixed://127.0.0.1:1080"),
            ("localhost:0", "mixed://localhost:0"),
            ("[::1]:1080", "mixed://[::1]:1080"),
            ("1080?udp=false#a", "mixed://127.0.0.1:1080?udp=false#a"),
        ] {
            assert_eq!(expand_short_listener(short).as_deref(), Some(url));
        }
        for other in [
            "",
            ":",
            "x",
            "host",
            "host:",
            "host:http",
            "::1",
            "1080/target",
            "a b:1",
            "user:word@:1080",
            "mixed://127.0.0.1:1080",
            "adit.toml",
        ] {
            assert_eq!(expand_short_listener(other), None, "{other}");
        }
        // The range of the port is checked with its place.
        for (short, url) in [
            ("70000", "mixed://127.0.0.1:70000"),
            (":70000", "mixed://:70000"),
        ] {
            assert_eq!(expand_short_listener(short).as_deref(), Some(url));
        }
    }
}
