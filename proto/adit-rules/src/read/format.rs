//! The formats by name, and their detection.

use core::fmt;
use core::net::IpAddr;

use super::clash::{ClashBehavior, read_clash};
use super::limits::{Limits, Loaded, ReadError};
use super::mmdb::is_mmdb;
use super::text::lines;
use super::{
    read_adblock, read_geoip, read_geosite, read_hosts, read_mmdb, read_sing_box_json, read_srs,
};
use crate::network_table::parse_network;

/// Lines of a text that are looked at to find its format.
const LINES: usize = 200;

/// A format of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// sing-box, source (JSON).
    SingBox,
    /// sing-box, binary (`.srs`).
    Srs,
    /// mihomo and Clash: names.
    ClashDomain,
    /// mihomo and Clash: networks.
    ClashIpCidr,
    /// mihomo and Clash: rules.
    ClashClassical,
    /// v2ray, names by category.
    Geosite,
    /// v2ray, networks by category.
    Geoip,
    /// MaxMind, networks by country.
    Mmdb,
    /// A hosts file.
    Hosts,
    /// Adblock filters for names.
    Adblock,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 10] = [
        Self::SingBox,
        Self::Srs,
        Self::ClashDomain,
        Self::ClashIpCidr,
        Self::ClashClassical,
        Self::Geosite,
        Self::Geoip,
        Self::Mmdb,
        Self::Hosts,
        Self::Adblock,
    ];

    /// Returns the name of the format, as configurations write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SingBox => "sing-box",
            Self::Srs => "srs",
            Self::ClashDomain => "clash-domain",
            Self::ClashIpCidr => "clash-ipcidr",
            Self::ClashClassical => "clash-classical",
            Self::Geosite => "geosite",
            Self::Geoip => "geoip",
            Self::Mmdb => "mmdb",
            Self::Hosts => "hosts",
            Self::Adblock => "adblock",
        }
    }

    /// Returns the format with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// True if documents of the format have several lists, of which a category selects one.
    #[must_use]
    pub const fn has_categories(self) -> bool {
        matches!(self, Self::Geosite | Self::Geoip | Self::Mmdb)
    }

    /// Detects the format of a document by its content, and where that is not distinctive by the name of its
    /// file: the `.dat` files of v2ray have the same form. Returns `None` for a document of another format.
    #[must_use]
    pub fn detect(file_name: &str, document: &[u8]) -> Option<Self> {
        let name = file_name.to_ascii_lowercase();
        if document.starts_with(b"SRS") {
            return Some(Self::Srs);
        }
        if is_mmdb(document) {
            return Some(Self::Mmdb);
        }
        if name.ends_with(".dat") || name.ends_with(".db") {
            // Names are the more frequent ones.
            let is_networks = name.contains("ip") && !name.contains("site");
            return Some(if is_networks {
                Self::Geoip
            } else {
                Self::Geosite
            });
        }
        let text = document.iter().find(|byte| !byte.is_ascii_whitespace());
        if text == Some(&b'{') {
            return Some(Self::SingBox);
        }
        if document.iter().take(1024).any(|byte| *byte == 0) {
            return None;
        }
        detect_text(document)
    }

    /// Reads a document. `category` selects a list where the format [has several](Self::has_categories).
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the document exceeds a limit, is damaged or does not have the category.
    pub fn read(
        self,
        document: &[u8],
        category: &str,
        limits: &Limits,
    ) -> Result<Loaded, ReadError> {
        match self {
            Self::SingBox => read_sing_box_json(document, limits),
            Self::Srs => read_srs(document, limits),
            Self::ClashDomain => read_clash(document, ClashBehavior::Domain, limits),
            Self::ClashIpCidr => read_clash(document, ClashBehavior::IpCidr, limits),
            Self::ClashClassical => read_clash(document, ClashBehavior::Classical, limits),
            Self::Geosite => read_geosite(document, category, limits),
            Self::Geoip => read_geoip(document, category, limits),
            Self::Mmdb => read_mmdb(document, category, limits),
            Self::Hosts => read_hosts(document, limits),
            Self::Adblock => read_adblock(document, limits),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Decides by the first line that only one format has. Lines with a name alone are names of Clash.
fn detect_text(document: &[u8]) -> Option<Format> {
    let mut plain = None;
    for (_, line) in lines(document).take(LINES) {
        let line = line?.trim();
        if line.starts_with('!') || line.starts_with("[Adblock") || line.starts_with("||") {
            return Some(Format::Adblock);
        }
        if line.starts_with("@@") || (line.starts_with('|') && line.ends_with('^')) {
            return Some(Format::Adblock);
        }
        if line.is_empty() || line.starts_with(['#', '/']) || line == "---" {
            continue;
        }
        let entry = line.strip_prefix("- ").unwrap_or(line).trim();
        let entry = entry.trim_matches(['\'', '"']);
        if entry == "payload:" {
            continue;
        }
        let mut words = entry.split_whitespace();
        let first = words.next().unwrap_or_default();
        if first.parse::<IpAddr>().is_ok() && words.next().is_some_and(|word| word != "#") {
            return Some(Format::Hosts);
        }
        if let Some((kind, _)) = entry.split_once(',')
            && !kind.is_empty()
            && kind
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b == b'-' || b.is_ascii_digit())
        {
            return Some(Format::ClashClassical);
        }
        let net = entry.split_once(',').map_or(entry, |(net, _)| net);
        if parse_network(net.trim()).is_some() {
            plain = plain.or(Some(Format::ClashIpCidr));
        } else {
            plain = plain.or(Some(Format::ClashDomain));
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_names() {
        for format in Format::ALL {
            assert_eq!(Format::from_name(&format.to_string()), Some(format));
        }
        assert_eq!(Format::from_name("mrs"), None);
    }

    #[test]
    fn formats_are_detected() {
        for (name, document, format) in [
            ("x.srs", &b"SRS\x01"[..], Some(Format::Srs)),
            ("x", b"SRS\x03", Some(Format::Srs)),
            ("rules.json", b"\n {\"version\":1}", Some(Format::SingBox)),
            (
                "Country.mmdb",
                b"\0\0\xab\xcd\xefMaxMind.com\0",
                Some(Format::Mmdb),
            ),
            ("geosite.dat", b"\n\x05", Some(Format::Geosite)),
            ("GeoIP.dat", b"\n\x05", Some(Format::Geoip)),
            ("dlc.dat", b"\n\x05", Some(Format::Geosite)),
            (
                "a.txt",
                b"# x\n127.0.0.1 localhost\n0.0.0.0 ads.example\n",
                Some(Format::Hosts),
            ),
            (
                "a.txt",
                b"! Title: x\n||ads.example^\n",
                Some(Format::Adblock),
            ),
            ("a.txt", b"@@||good.example^\n", Some(Format::Adblock)),
            (
                "a.yaml",
                b"payload:\n  - '+.ads.example'\n",
                Some(Format::ClashDomain),
            ),
            (
                "a.yaml",
                b"payload:\n  - DOMAIN-SUFFIX,ads.example\n",
                Some(Format::ClashClassical),
            ),
            (
                "a.list",
                b"IP-CIDR,10.0.0.0/8,no-resolve\n",
                Some(Format::ClashClassical),
            ),
            (
                "a.yaml",
                b"---\npayload:\n- \"10.0.0.0/8\"\n",
                Some(Format::ClashIpCidr),
            ),
            (
                "a.txt",
                b"192.0.2.1\n2001:db8::/32\n",
                Some(Format::ClashIpCidr),
            ),
            ("a.txt", b"ads.example\n", Some(Format::ClashDomain)),
            ("a.mrs", b"(\xb5/\xfd\0\0", None),
            ("a.txt", b"# nothing\n\n", None),
            ("a.txt", b"", None),
            ("a.txt", b"\xff\xfe\n", None),
        ] {
            assert_eq!(
                Format::detect(name, document),
                format,
                "{name} {document:?}"
            );
        }
    }

    #[test]
    fn a_document_is_read_by_its_format() {
        let limits = Limits::default();
        let read = Format::Hosts
            .read(b"0.0.0.0 ads.example\n", "", &limits)
            .unwrap();
        assert_eq!(read.accepted, 1);
        assert!(Format::Geosite.has_categories() && !Format::Srs.has_categories());
        let why = Format::Geosite.read(b"", "cn", &limits).unwrap_err();
        assert_eq!(why, ReadError::Category("cn".to_owned()));
    }
}
