//! The rule sets of a file.

use core::time::Duration;

use adit_rules::read::Format;
use toml::Spanned;
use toml::de::DeString;

use super::file_keys::{FileKey, ValueType};
use super::table_reader::{TableReader, Value, entries_in_order, span_of};
use crate::family::{Family, LeftOut};
use crate::plan::rule_set::{DEFAULT_REFRESH, RuleSetConfig, RuleSetSource};
use crate::plan::unchecked_route::is_route_name;
use crate::scheme::builder::secret_files::resolve_path;
use crate::text::{ConfigError, Span, parse_duration};

/// Keys of a rule set.
pub(super) static SET_KEYS: [FileKey; 6] = [
    FileKey::new("file", ValueType::Text, "The file of the list."),
    FileKey::new("url", ValueType::Text, "Where the list is downloaded."),
    FileKey::new(
        "format",
        ValueType::Words(|| Format::ALL.map(Format::name).to_vec()),
        "The format of the list; without it, it is detected.",
    ),
    FileKey::new(
        "category",
        ValueType::Text,
        "The category, for `geosite`, `geoip` and `mmdb`.",
    ),
    FileKey::new("refresh", ValueType::Duration, "The interval of downloads."),
    FileKey::new(
        "sha256",
        ValueType::Text,
        "The digest that the list must have, in hexadecimal.",
    ),
];
/// Maximum length of a URL, in bytes.
const MAX_URL: usize = 8 << 10;

impl TableReader<'_> {
    /// Reads the tables `[set.NAME]` of a file, so that rules can refer to them from anywhere.
    pub(super) fn read_rule_sets(
        &mut self,
        key: &Spanned<DeString<'_>>,
        value: &Value<'_>,
    ) -> Vec<RuleSetConfig> {
        let mut sets = Vec::new();
        let Some(table) = self.expect_table(key, value) else {
            return sets;
        };
        for (name, value) in entries_in_order(table) {
            if !self.define_once("set", name.get_ref(), span_of(name.span())) {
                continue;
            }
            self.set_names.push(name.get_ref().clone().into_owned());
            sets.extend(self.read_rule_set(name, value));
        }
        sets
    }

    fn read_rule_set(
        &mut self,
        name: &Spanned<DeString<'_>>,
        value: &Value<'_>,
    ) -> Option<RuleSetConfig> {
        let span = span_of(name.span());
        let text = name.get_ref().as_ref();
        if !is_route_name(text) {
            self.report_error(
                ConfigError::new(span, "not a valid name for a rule set")
                    .with_label("1 to 64 letters, digits, `-`, `_` and `.`"),
            );
        }
        let table = self.expect_table(name, value)?;
        let mut found = FoundKeys::default();
        let (mut has_file, mut has_url) = (false, false);
        for (key, value) in self.known_entries(table, &SET_KEYS, "a rule set") {
            let key = key.get_ref().as_ref();
            has_file |= key == "file";
            has_url |= key == "url";
            let Some(text) = self.read_text(key, value) else {
                continue;
            };
            let span = span_of(value.span());
            match key {
                "file" => found.file = Some((text.to_owned(), span)),
                "url" => found.url = self.read_list_url(text, span).map(|url| (url, span)),
                "format" => found.format = self.read_format(text, span).map(|one| (one, span)),
                "category" => found.category = Some((text.to_owned(), span)),
                "refresh" => found.refresh = self.read_refresh(text, span).map(|one| (one, span)),
                _ => found.sha256 = self.read_digest(text, span),
            }
        }
        if has_file == has_url {
            let title = if has_url {
                format!("rule set `{text}` has both `file` and `url`")
            } else {
                format!("rule set `{text}` has no list")
            };
            let help = "write `file = \"ads.txt\"` or `url = \"https://lists.example/ads.txt\"`";
            self.report_error(ConfigError::new(span, title).with_help(help));
            return None;
        }
        if let (Some((_, span)), false) = (&found.url, Family::Admin.is_built()) {
            self.report_error(LeftOut(Family::Admin).error_at(*span));
        }
        self.check_keys(&found, has_url);
        let (source, span) = match (found.file, found.url) {
            (Some((path, span)), _) => {
                let path = resolve_path(self.lookup, &path);
                (RuleSetSource::File(path), span)
            }
            (None, Some((url, span))) => (RuleSetSource::Url(url), span),
            // Reported above.
            (None, None) => return None,
        };
        Some(RuleSetConfig {
            name: text.to_owned(),
            source,
            format: found.format.map(|(format, _)| format),
            category: found.category.map(|(category, _)| category),
            refresh: found
                .refresh
                .map_or(DEFAULT_REFRESH, |(refresh, _)| refresh),
            sha256: found.sha256,
            place: self.document.place_of(span),
        })
    }

    /// Reports keys that do not fit each other.
    fn check_keys(&mut self, found: &FoundKeys, has_url: bool) {
        if let (Some((_, span)), false) = (found.refresh, has_url) {
            let title = "`refresh` applies to lists with a `url`";
            self.report_error(ConfigError::new(span, title));
        }
        let Some((format, span)) = found.format else {
            return;
        };
        match &found.category {
            Some((_, span)) if !format.has_categories() => {
                let title = format!("lists of the format `{format}` have no categories");
                self.report_error(ConfigError::new(*span, title));
            }
            None if format.has_categories() => {
                let title = format!("a list of the format `{format}` needs a `category`");
                let flaw = ConfigError::new(span, title).with_help("such as `category = \"cn\"`");
                self.report_error(flaw);
            }
            _ => {}
        }
    }

    fn read_text<'v>(&mut self, key: &str, value: &'v Value<'_>) -> Option<&'v str> {
        match value.get_ref().as_str() {
            Some("") => {
                let title = format!("`{key}` is empty");
                self.report_error(ConfigError::new(span_of(value.span()), title));
                None
            }
            Some(text) => Some(text),
            None => {
                let is = format!("`{key}` must be a string");
                self.report_wrong_type(span_of(value.span()), &is, value.get_ref());
                None
            }
        }
    }

    fn read_list_url(&mut self, text: &str, span: Span) -> Option<String> {
        let good = |byte: u8| byte.is_ascii_graphic();
        let is_local = |rest: &str| {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let authority = rest.get(..end).unwrap_or_default();
            let host = match authority.strip_prefix('[') {
                Some(v6) => v6.split(']').next(),
                None => authority.split(':').next(),
            };
            let host = host.unwrap_or_default();
            let ip = host.parse::<core::net::IpAddr>();
            host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
        };
        let reachable =
            text.starts_with("https://") || text.strip_prefix("http://").is_some_and(is_local);
        if reachable && text.len() <= MAX_URL && text.bytes().all(good) {
            return Some(text.to_owned());
        }
        let flaw = ConfigError::new(span, "not the URL of a list")
            .with_help("`https://HOST[:PORT]/PATH`, or `http://` on this machine");
        self.report_error(flaw);
        None
    }

    fn read_format(&mut self, text: &str, span: Span) -> Option<Format> {
        if let Some(format) = Format::from_name(text) {
            return Some(format);
        }
        let names = Format::ALL.map(Format::name);
        let flaw = ConfigError::new(span, format!("unknown format `{text}`"));
        let flaw = flaw.with_nearest(text, names);
        self.report_error(flaw.with_help(format!("formats: {}", names.join(", "))));
        None
    }

    fn read_refresh(&mut self, text: &str, span: Span) -> Option<Duration> {
        let refresh = parse_duration(text).filter(|refresh| *refresh >= Duration::from_secs(1));
        if refresh.is_none() {
            let title = "`refresh` must be a duration of at least 1s, such as `1d` or `12h`";
            self.report_error(ConfigError::new(span, title));
        }
        refresh
    }

    fn read_digest(&mut self, text: &str, span: Span) -> Option<[u8; 32]> {
        let digest = parse_digest(text);
        if digest.is_none() {
            let title = "`sha256` must have 64 hexadecimal digits";
            self.report_error(ConfigError::new(span, title));
        }
        digest
    }
}

/// The values of a rule set with their places.
#[derive(Default)]
struct FoundKeys {
    file: Option<(String, Span)>,
    url: Option<(String, Span)>,
    format: Option<(Format, Span)>,
    category: Option<(String, Span)>,
    refresh: Option<(Duration, Span)>,
    sha256: Option<[u8; 32]>,
}

fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (to, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        *to = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(digest)
}
