//! `/etc/hosts`: host names and their addresses.

use std::net::{IpAddr, SocketAddr};

/// Maximum length read of the file, in bytes. Lists that block advertisements have a few MiB.
pub(super) const MAX_LEN: u64 = 32 << 20;
/// Maximum number of addresses of one name.
const EACH: usize = 32;

/// The parsed file. It is compact, since such a list can have 200,000 names: one text and a sorted index.
#[derive(Debug, Default)]
pub(super) struct HostsFile {
    text: Box<str>,
    /// The position of each name in the text, and its address; equal names are in the order of the file.
    index: Box<[HostsEntry]>,
}

#[derive(Debug)]
struct HostsEntry {
    at: u32,
    len: u8,
    ip: IpAddr,
}

impl HostsFile {
    /// Parses the file. Unreadable lines are skipped, as other resolvers do.
    pub(super) fn parse(file: &[u8]) -> Self {
        let mut text = String::new();
        let mut index = Vec::new();
        for line in file.split(|byte| *byte == b'\n') {
            let line = line.split(|byte| *byte == b'#').next().unwrap_or_default();
            let Ok(line) = std::str::from_utf8(line) else {
                continue;
            };
            let mut words = line.split_ascii_whitespace();
            let Some(Ok(ip)) = words.next().map(str::parse) else {
                continue;
            };
            for name in words {
                if let (Ok(at), Ok(len)) = (u32::try_from(text.len()), u8::try_from(name.len())) {
                    text.push_str(&name.to_ascii_lowercase());
                    index.push(HostsEntry { at, len, ip });
                }
            }
        }
        let name = |entry: &HostsEntry| entry_name(&text, entry);
        index.sort_by(|a, b| name(a).cmp(name(b)));
        Self {
            text: text.into_boxed_str(),
            index: index.into_boxed_slice(),
        }
    }

    /// Returns the addresses of a name in lower case, in the order of the file.
    pub(super) fn find_addresses(&self, name: &str) -> Vec<SocketAddr> {
        let from = self
            .index
            .partition_point(|e| entry_name(&self.text, e) < name);
        let mut found: Vec<SocketAddr> = Vec::new();
        for entry in self.index.iter().skip(from) {
            if entry_name(&self.text, entry) != name || found.len() >= EACH {
                break;
            }
            let addr = SocketAddr::new(entry.ip, 0);
            if !found.contains(&addr) {
                found.push(addr);
            }
        }
        found
    }
}

fn entry_name<'a>(text: &'a str, entry: &HostsEntry) -> &'a str {
    let at = entry.at as usize;
    let name = text.get(at..at + usize::from(entry.len));
    debug_assert!(name.is_some(), "the entry must belong to this text");
    name.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_everywhere() {
        let file = b"127.0.0.1\tlocalhost Here # a comment\n\
            # 10.0.0.1 no\n::1 localhost\n10.0.0.2 two\nnonsense two\n10.0.0.3 two\n\xff\xfe x\n";
        let hosts = HostsFile::parse(file);
        let found = |name: &str| -> Vec<String> {
            let found = hosts.find_addresses(name);
            found.iter().map(|addr| addr.ip().to_string()).collect()
        };
        assert_eq!(found("localhost"), ["127.0.0.1", "::1"]);
        assert_eq!(found("here"), ["127.0.0.1"]);
        assert_eq!(found("two"), ["10.0.0.2", "10.0.0.3"]);
        assert!(found("no").is_empty() && found("").is_empty() && found("zzz").is_empty());
    }
}
