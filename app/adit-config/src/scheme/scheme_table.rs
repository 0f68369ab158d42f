//! All schemes, and lookups in the tables by name.

use core::fmt;
use core::str::FromStr;

use crate::family::{Family, LeftOut};
use crate::grammar::{Endpoint, SchemeLookups, UrlSyntax};
use crate::schema::SchemeParam;
use crate::scheme::carrier_table::{CARRIERS, LEFT_OUT_CARRIERS};
use crate::scheme::{
    Carrier, Scheme, SchemeWithCarrier, chain_ends, dns, forward, http, kcptun, mixed_proxy,
    socks5, ss, ssh, ssr, transparent,
};
use crate::text::{ConfigError, Span, nearest_word};

/// A scheme, and the family that it belongs to, if a build can leave it out.
type SchemeRow = (&'static Scheme, Option<Family>);

/// The schemes of all builds, in the order of the reference. Only constants refer to it, so that the code of a scheme
/// that is left out is not part of the program.
const SCHEME_ROWS: [SchemeRow; 16] = [
    (&mixed_proxy::SCHEME, None),
    (&socks5::SCHEME, None),
    (&socks5::SCHEME_4A, None),
    (&http::SCHEME, None),
    (&ss::SCHEME, None),
    (&ssr::SCHEME, Some(Family::Ssr)),
    (&ssh::SCHEME, Some(Family::Ssh)),
    (&forward::SCHEME_TCP, None),
    (&forward::SCHEME_UDP, None),
    (&forward::SCHEME, None),
    (&kcptun::SCHEME, Some(Family::Kcp)),
    (&transparent::SCHEME_REDIR, None),
    (&transparent::SCHEME_TPROXY, None),
    (&dns::SCHEME, None),
    (&chain_ends::SCHEME_DIRECT, None),
    (&chain_ends::SCHEME_REJECT, None),
];

/// All schemes of this build, in the order of the reference.
static SCHEMES: [&Scheme; count_schemes(true)] = {
    let mut schemes = [SCHEME_ROWS[0].0; count_schemes(true)];
    let (mut row, mut at) = (0, 0);
    while row < SCHEME_ROWS.len() {
        if is_scheme_built(row) {
            schemes[at] = SCHEME_ROWS[row].0;
            at += 1;
        }
        row += 1;
    }
    schemes
};

/// The names of the schemes that this build leaves out, and their families.
static LEFT_OUT_SCHEMES: [(&str, Option<Family>); count_schemes(false)] = {
    let mut names = [("", None); count_schemes(false)];
    let (mut row, mut at) = (0, 0);
    while row < SCHEME_ROWS.len() {
        if !is_scheme_built(row) {
            let (scheme, family) = SCHEME_ROWS[row];
            names[at] = (scheme.name, family);
            at += 1;
        }
        row += 1;
    }
    names
};

const fn is_scheme_built(row: usize) -> bool {
    match SCHEME_ROWS[row].1 {
        Some(family) => family.is_built(),
        None => true,
    }
}

/// Returns the number of schemes that this build has, or leaves out.
const fn count_schemes(built: bool) -> usize {
    let (mut row, mut count) = (0, 0);
    while row < SCHEME_ROWS.len() {
        if is_scheme_built(row) == built {
            count += 1;
        }
        row += 1;
    }
    count
}

/// Returns all schemes of this build. With [`Scheme::params`], that is all that a completion needs.
#[must_use]
pub fn schemes() -> &'static [&'static Scheme] {
    &SCHEMES
}

/// The error of a text that is not a scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownScheme {
    /// The text.
    pub name: String,
    /// The scheme that was probably meant.
    pub nearest: Option<&'static str>,
    /// The reason, if the scheme or its carrier is known.
    pub left_out: Option<LeftOut>,
}

impl UnknownScheme {
    fn new(name: &str) -> Self {
        let (scheme, carrier) = match name.split_once('+') {
            Some((scheme, carrier)) => (scheme, Some(carrier)),
            None => (name, None),
        };
        let mut schemes = LEFT_OUT_SCHEMES.iter();
        let family = schemes.find_map(|(known, family)| {
            let is_meant = known.eq_ignore_ascii_case(scheme);
            family.filter(|_| is_meant)
        });
        let mut carriers = LEFT_OUT_CARRIERS.iter();
        let mut is_left_out =
            |carrier: &str| carriers.any(|known| known.eq_ignore_ascii_case(carrier));
        let of_carrier = || carrier.filter(|it| is_left_out(it)).map(|_| Family::Kcp);
        let family = family.or_else(of_carrier);
        Self {
            name: name.to_owned(),
            nearest: nearest_word(name, SCHEMES.into_iter().map(|scheme| scheme.name)),
            left_out: family.map(LeftOut),
        }
    }
}

impl fmt::Display for UnknownScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.left_out {
            Some(why) => why.fmt(f),
            None => write!(f, "unknown scheme `{}`", self.name),
        }
    }
}

impl core::error::Error for UnknownScheme {}

impl Scheme {
    /// Returns the scheme with this name, compared without regard to ASCII case.
    pub fn find_by_name(name: &str) -> Result<&'static Self, UnknownScheme> {
        let mut all = SCHEMES.into_iter();
        all.find(|scheme| scheme.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownScheme::new(name))
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
    schemes.chain(CARRIERS.iter().flat_map(|carrier| carrier.params))
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

/// Returns the error of a URL whose scheme is left out, since its syntax is unknown.
fn left_out_error(text: &str) -> Option<ConfigError> {
    let (scheme, _) = text.split_once("://")?;
    let why = scheme.parse::<SchemeWithCarrier>().err()?.left_out?;
    Some(why.error_at(Span::new(0, scheme.len())))
}

impl Endpoint {
    /// Parses a URL into its parts.
    ///
    /// # Errors
    ///
    /// The text is not a URL in the syntax of its scheme.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(text, SCHEME_LOOKUPS).map_err(|why| left_out_error(text).unwrap_or(why))
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
                assert_eq!(read.is_ok(), scheme.carriers.contains(carrier), "{text}");
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
        let carried = find_dialect("SS+KCP");
        assert_eq!(carried, Family::Kcp.is_built().then_some(&ss::SCHEME));
        assert_eq!(find_dialect("tcp+udp"), Some(&forward::SCHEME));
    }

    #[test]
    fn schemes_that_are_left_out_name_their_feature() {
        let parse = |text: &str| text.parse::<SchemeWithCarrier>();
        for (text, family) in [
            ("ssr", Family::Ssr),
            ("SSH", Family::Ssh),
            ("kcptun", Family::Kcp),
            ("ss+kcp", Family::Kcp),
            ("udp+fec", Family::Kcp),
        ] {
            match parse(text) {
                Ok(_) => assert!(family.is_built(), "{text}"),
                Err(why) => {
                    assert_eq!(why.left_out, Some(LeftOut(family)), "{text}");
                    let feature = format!("`{}`", family.feature());
                    assert!(why.to_string().contains(&feature), "{why}");
                }
            }
        }
        for text in ["tcp+udp+x", "ss+tls", "sock5", ""] {
            assert_eq!(parse(text).unwrap_err().left_out, None, "{text}");
        }
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
