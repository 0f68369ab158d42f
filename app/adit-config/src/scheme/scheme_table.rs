//! All schemes and carriers, and lookups in their tables by name.

use core::str::FromStr;

use crate::grammar::{Endpoint, SchemeLookups, UrlSyntax};
use crate::schema::SchemeParam;
use crate::scheme::{
    Carrier, Scheme, SchemeWithCarrier, chain_ends, dns, fec_carrier, forward, http, kcp, kcptun,
    mixed_proxy, socks5, ss, ssh, ssr, transparent,
};
use crate::text::{ConfigError, nearest_word};

/// All schemes, in the order of the reference.
static SCHEMES: [&Scheme; 16] = [
    &mixed_proxy::SCHEME,
    &socks5::SCHEME,
    &socks5::SCHEME_4A,
    &http::SCHEME,
    &ss::SCHEME,
    &ssr::SCHEME,
    &ssh::SCHEME,
    &forward::SCHEME_TCP,
    &forward::SCHEME_UDP,
    &forward::SCHEME,
    &kcptun::SCHEME,
    &transparent::SCHEME_REDIR,
    &transparent::SCHEME_TPROXY,
    &dns::SCHEME,
    &chain_ends::SCHEME_DIRECT,
    &chain_ends::SCHEME_REJECT,
];

/// All carriers, in the order of the reference.
pub(crate) static CARRIERS: [&Carrier; 2] = [&kcp::CARRIER, &fec_carrier::CARRIER];

/// Returns all schemes. With [`Scheme::params`], that is all that a completion needs.
#[must_use]
pub fn schemes() -> &'static [&'static Scheme] {
    &SCHEMES
}

/// The error of a text that is not a scheme.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown scheme `{name}`")]
pub struct UnknownScheme {
    /// The text.
    pub name: String,
    /// The scheme that was probably meant.
    pub nearest: Option<&'static str>,
}

impl Scheme {
    /// Returns the scheme with this name, compared without regard to ASCII case.
    pub fn find_by_name(name: &str) -> Result<&'static Self, UnknownScheme> {
        let mut all = SCHEMES.into_iter();
        all.find(|scheme| scheme.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownScheme {
                name: name.to_owned(),
                nearest: nearest_word(name, SCHEMES.into_iter().map(|scheme| scheme.name)),
            })
    }
}

impl Carrier {
    /// Returns the schemes that it can carry, in the order of the reference.
    pub(crate) fn carried_schemes(&'static self) -> impl Iterator<Item = &'static Scheme> {
        let mut all = SCHEMES.into_iter();
        core::iter::from_fn(move || all.find(|scheme| scheme.carriers.contains(&self)))
    }
}

impl FromStr for SchemeWithCarrier {
    type Err = UnknownScheme;

    fn from_str(text: &str) -> Result<Self, UnknownScheme> {
        let unknown = match Scheme::find_by_name(text) {
            Ok(scheme) => {
                return Ok(Self {
                    scheme,
                    carrier: None,
                });
            }
            Err(unknown) => unknown,
        };
        text.rsplit_once('+')
            .and_then(|(scheme, name)| {
                let scheme = Scheme::find_by_name(scheme).ok()?;
                let mut all = scheme.carriers.iter();
                let carrier = all.find(|carrier| carrier.name.eq_ignore_ascii_case(name))?;
                Some(Self {
                    scheme,
                    carrier: Some(carrier),
                })
            })
            .ok_or(unknown)
    }
}

/// Returns the scheme of a text, with or without a carrier.
pub(crate) fn find_dialect(text: &str) -> Option<&'static Scheme> {
    text.parse::<SchemeWithCarrier>()
        .ok()
        .map(|written| written.scheme)
}

/// Returns the rows of all tables.
pub(super) fn all_params() -> impl Iterator<Item = &'static SchemeParam> {
    let schemes = SCHEMES.into_iter().flat_map(|scheme| scheme.params);
    schemes.chain(CARRIERS.into_iter().flat_map(|carrier| carrier.params))
}

/// True if values of this key may be shown: a table contains it, and it cannot hold a secret.
pub(super) fn is_public_key(key: &str) -> bool {
    let mut rows = all_params().map(|param| param.setting);
    rows.any(|setting| setting.is_named(key) && !setting.may_hold_secret())
}

/// True if an `@` after this text begins the path of a file: the text ends with `?users=` or a similar
/// key, even if misspelled. Any other `@` in a query could be the end of a secret with a raw `?`, and
/// base64 ends with `=`.
pub(super) fn begins_file_path(before: &str) -> bool {
    let Some(query) = before.strip_suffix('=') else {
        return false;
    };
    let Some((_, key)) = query.rsplit_once(['?', '&']) else {
        return false;
    };
    let rows = all_params().map(|param| param.setting);
    let files = rows.filter(|setting| setting.may_name_file());
    let names = files.flat_map(|setting| [Some(setting.name()), setting.alias()]);
    nearest_word(key, names.flatten()).is_some()
}

/// The lookups that the grammar needs.
const SCHEME_LOOKUPS: SchemeLookups = SchemeLookups {
    syntax: |scheme| find_dialect(scheme).map_or(&UrlSyntax::PLAIN, |scheme| &scheme.syntax),
    opens_file: begins_file_path,
};

impl Endpoint {
    /// Parses a URL into its parts.
    ///
    /// # Errors
    ///
    /// The text is not a URL in the syntax of its scheme.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(text, SCHEME_LOOKUPS)
    }

    /// Returns the URL of these parts; `ss` is written as SIP002. Parsing it returns the same parts.
    #[must_use]
    pub fn to_url(&self) -> String {
        self.to_url_with(SCHEME_LOOKUPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::EndpointRole;

    #[test]
    fn names_are_read_back() {
        for scheme in SCHEMES {
            assert_eq!(Scheme::find_by_name(scheme.name), Ok(scheme));
            assert!(scheme.form.starts_with(scheme.name));
            for carrier in CARRIERS {
                let text = format!("{scheme}+{}", carrier.name);
                let read = text.parse::<SchemeWithCarrier>();
                assert_eq!(read.is_ok(), scheme.carriers.contains(&carrier), "{text}");
                if let Ok(read) = read {
                    assert_eq!(read.to_string(), text);
                }
            }
        }
        let why = Scheme::find_by_name("sock5").unwrap_err();
        assert_eq!(why.nearest, Some("socks5"));
        assert!(
            "ss+".parse::<SchemeWithCarrier>().is_err()
                && "+kcp".parse::<SchemeWithCarrier>().is_err()
        );
        assert_eq!(find_dialect("SS+KCP"), Some(&ss::SCHEME));
        assert_eq!(find_dialect("tcp+udp"), Some(&forward::SCHEME));
    }

    #[test]
    fn tables_are_sound() {
        for scheme in SCHEMES {
            for param in scheme.params {
                let name = param.setting.name();
                let doc = param.setting.doc();
                assert!(doc.ends_with('.'), "{name}");
                for role in [EndpointRole::Listener, EndpointRole::Hop] {
                    assert!(
                        scheme.roles.includes_role(role) || !param.roles.includes_role(role),
                        "{scheme}: {name} is for a role the scheme does not have"
                    );
                }
            }
            let carriers = scheme.carriers.iter().map(|carrier| Some(*carrier));
            for carrier in carriers.chain([None]) {
                let written = SchemeWithCarrier { scheme, carrier };
                let mut seen = Vec::new();
                let spelled = written
                    .params()
                    .flat_map(|param| [Some(param.setting.name()), param.setting.alias()]);
                for name in spelled.flatten() {
                    assert!(!seen.contains(&name), "{written}: {name} twice");
                    seen.push(name);
                }
            }
        }
    }

    #[test]
    fn written_defaults_are_canonical() {
        for param in all_params() {
            let text = param.setting.default_text();
            if let Ok(canonical) = param.setting.canonicalize(&text) {
                assert_eq!(canonical, text, "{param:?}");
            }
        }
    }
}
