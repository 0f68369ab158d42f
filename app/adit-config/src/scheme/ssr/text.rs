//! Value types of `ssr`.

use core::str::FromStr;

use adit_obfs::{ObfsKind, ObfsParam, RedirectRule, UnrecognizedPolicy};
use adit_shadowsocksr::{Protocol, ProtocolKind, UnknownProtocol};

use crate::schema::Typed;
use crate::text::nearest_word;

/// The value of `obfs`, in the spelling of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerObfs {
    /// The obfs.
    pub(crate) kind: ObfsKind,
    /// The treatment of clients without it.
    pub(crate) strangers: UnrecognizedPolicy,
}

impl ServerObfs {
    /// No obfs.
    pub(crate) const PLAIN: Self = Self {
        kind: ObfsKind::Plain,
        strangers: UnrecognizedPolicy::Refuse,
    };
}

/// The value of `protocol_param`, which can contain passwords.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProtocolParamText(pub(crate) String);

/// The value of `obfs_param`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObfsParamText(pub(crate) String);

/// The value of `redirect`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RedirectText(String);

impl ObfsParamText {
    /// Returns the parsed parameter; the text was checked before.
    pub(crate) fn parse_param(&self) -> ObfsParam {
        ObfsParam::parse(&self.0).unwrap_or_default()
    }
}

impl RedirectText {
    /// No rules.
    pub(crate) const NONE: Self = Self(String::new());

    /// Returns the parsed rules; the text was checked before.
    pub(crate) fn parse_rules(&self) -> Vec<RedirectRule> {
        parse_each_rule(&self.0).filter_map(Result::ok).collect()
    }
}

/// The suffix of names with which a server also serves clients without them.
const COMPATIBLE: &str = "_compatible";

impl Typed for Protocol {
    const NAME: &'static str = "name";

    fn read(text: &str) -> Result<Self, String> {
        Self::from_str(text).map_err(|why| match why {
            UnknownProtocol::Name => {
                let bare = text.strip_suffix(COMPATIBLE).unwrap_or(text);
                let all = ProtocolKind::ALL.map(ProtocolKind::name);
                name_suggestion(bare, &all, "`adit help ssr` lists the protocols")
            }
            UnknownProtocol::Compatible => why.to_string(),
        })
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Typed for ServerObfs {
    const NAME: &'static str = "name";

    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::PLAIN);
        }
        match ObfsKind::parse_server_name(text) {
            Ok((kind, strangers)) => Ok(Self { kind, strangers }),
            Err(_) => {
                let bare = text.strip_suffix(COMPATIBLE).unwrap_or(text);
                let all = ObfsKind::ALL.map(ObfsKind::name);
                if all.contains(&bare) {
                    return Err(format!("`{bare}` has no `{COMPATIBLE}` form"));
                }
                Err(name_suggestion(bare, &all, "`adit help ssr` lists them"))
            }
        }
    }

    fn write(&self) -> String {
        let suffix = match self.strangers {
            UnrecognizedPolicy::Refuse => "",
            UnrecognizedPolicy::PassOn => COMPATIBLE,
        };
        format!("{}{suffix}", self.kind)
    }
}

/// Returns a suggestion for an unknown name.
fn name_suggestion(text: &str, all: &[&'static str], otherwise: &str) -> String {
    match nearest_word(text, all.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("no such name; {otherwise}"),
    }
}

impl Typed for ProtocolParamText {
    const NAME: &'static str = "users";
    const HIDDEN: bool = true;

    fn read(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

impl Typed for ObfsParamText {
    const NAME: &'static str = "text";

    fn read(text: &str) -> Result<Self, String> {
        ObfsParam::parse(text).map_err(|why| why.to_string())?;
        Ok(Self(text.to_owned()))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

/// Parses the rules of a text.
fn parse_each_rule(text: &str) -> impl Iterator<Item = Result<RedirectRule, String>> {
    let each = text.split(',').filter(|rule| !rule.is_empty());
    each.map(|rule| RedirectRule::parse(rule).map_err(|why| why.to_string()))
}

impl Typed for RedirectText {
    const NAME: &'static str = "rules";

    fn read(text: &str) -> Result<Self, String> {
        parse_each_rule(text).collect::<Result<Vec<_>, _>>()?;
        Ok(Self(text.to_owned()))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for (text, written) in [
            ("auth_sha1_v4_compatible", "auth_sha1_v4_compatible"),
            ("auth_chain_a", "auth_chain_a"),
            ("", "origin"),
        ] {
            assert_eq!(Protocol::read(text).unwrap().write(), written);
        }
        for (text, written) in [
            ("go_quiet", "go_quiet"),
            ("http_simple_compatible", "http_simple_compatible"),
            ("", "plain"),
        ] {
            assert_eq!(ServerObfs::read(text).unwrap().write(), written);
        }
    }

    #[test]
    fn slips_are_understood() {
        for (text, told) in [
            ("auth_aes128_fats", "did you mean `auth_aes128_fast`?"),
            ("auth_chain_a_compatible", "no `_compatible` form"),
            ("socks", "`adit help ssr` lists"),
        ] {
            let why = Protocol::read(text).unwrap_err();
            assert!(why.contains(told), "{why}");
        }
        for (text, told) in [
            ("go_quite", "did you mean `go_quiet`?"),
            ("go_quiet_compatible", "no `_compatible` form"),
            ("tls", "`adit help ssr` lists"),
        ] {
            let why = ServerObfs::read(text).unwrap_err();
            assert!(why.contains(told), "{why}");
        }
        assert!(RedirectText::read("a.com#b.com:80,*#c.com").is_ok());
        assert!(RedirectText::read("a*#b.com").is_err());
        assert!(ObfsParamText::read("a b").is_err());
    }
}
