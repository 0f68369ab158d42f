//! Answers, split so that each datagram is valid JSON.

use serde::Serialize;

/// Maximum size of a datagram, in bytes, which fits into one packet and into the buffers of common
/// clients.
const MOST: usize = 1400;

/// A server in the answer to `list`.
#[derive(Serialize)]
pub(crate) struct ListedServer<'a> {
    /// The port as a string, as in shadowsocks-libev: clients parse both forms.
    pub(crate) server_port: String,
    pub(crate) password: &'a str,
    pub(crate) method: &'a str,
}

/// Returns the answer to `list`, in one or more datagrams.
pub(crate) fn list<'a>(servers: impl Iterator<Item = ListedServer<'a>>) -> Vec<String> {
    // Strings never fail to serialize.
    let items = servers.map(|server| serde_json::to_string(&server).unwrap_or_default());
    cut("[", "]", items)
}

/// Returns the answer to `ping`: the bytes that each port has carried, in both directions together.
pub(crate) fn stat(ports: impl Iterator<Item = (u16, u64)>) -> Vec<String> {
    let items = ports.map(|(port, bytes)| format!("\"{port}\":{bytes}"));
    cut("stat: {", "}", items)
}

/// Splits the items into as few datagrams as possible, at least one.
fn cut(open: &str, close: &str, items: impl Iterator<Item = String>) -> Vec<String> {
    let mut done = Vec::new();
    let mut text = open.to_owned();
    for item in items {
        let empty = text.len() == open.len();
        if !empty && text.len() + 1 + item.len() + close.len() > MOST {
            text.push_str(close);
            done.push(std::mem::replace(&mut text, open.to_owned()));
        } else if !empty {
            text.push(',');
        }
        text.push_str(&item);
    }
    text.push_str(close);
    done.push(text);
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_piece_is_json_and_nothing_is_lost() {
        let mut all = BTreeMap::new();
        let pieces = stat((1..=1000).map(|port| (port, u64::MAX - u64::from(port))));
        assert!(pieces.len() > 10);
        for piece in &pieces {
            assert!(piece.len() <= MOST);
            let json = piece.strip_prefix("stat: ").unwrap();
            let some: BTreeMap<String, u64> = serde_json::from_str(json).unwrap();
            all.extend(some);
        }
        assert_eq!(all.len(), 1000);
        assert_eq!(all["7"], u64::MAX - 7);
    }

    #[test]
    fn nothing_is_told_too() {
        assert_eq!(stat(std::iter::empty()), ["stat: {}"]);
        assert_eq!(list(std::iter::empty()), ["[]"]);
    }

    #[test]
    fn passwords_are_escaped() {
        let (some, long) = (format!("a\"b\\c\n{}", "y".repeat(100)), "x".repeat(1200));
        let servers = [(some.as_str(), "1"), (&long, "2"), ("", "3")];
        let pieces = list(servers.iter().map(|(password, port)| ListedServer {
            server_port: (*port).to_owned(),
            password,
            method: "aes-256-gcm",
        }));
        assert_eq!(pieces.len(), 2);
        let read = |piece: &String| serde_json::from_str::<serde_json::Value>(piece).unwrap();
        assert_eq!(read(&pieces[0])[0]["password"], some);
        assert_eq!(read(&pieces[1])[0]["server_port"], "2");
        assert_eq!(read(&pieces[1])[1]["server_port"], "3");
    }
}
