//! Lookup of schemes, carriers and keys by name, and the errors for unknown ones.

use crate::grammar::{Endpoint, QueryPair};
use crate::schema::{EndpointRole, SchemeParam};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::carrier_table::CARRIERS;
use crate::scheme::scheme_table::{all_params, schemes};
use crate::scheme::{Scheme, SchemeWithCarrier};
use crate::text::{ConfigError, Diagnostics, SecretLookup, UrlSnippet, WarningKind, find_one_typo};

/// Finds the scheme, and checks the role and the keys against its tables.
pub(super) fn checked_builder<'d, 'e>(
    diagnostics: &'d mut Diagnostics,
    lookup: SecretLookup<'e>,
    endpoint: &'e Endpoint,
    excerpt: UrlSnippet<'e>,
    role: EndpointRole,
) -> Option<EndpointBuilder<'d, 'e>> {
    let found =
        parse_scheme(endpoint).and_then(|written| match written.roles().includes_role(role) {
            true => Ok(written),
            false => Err(wrong_role_error(endpoint, written, role)),
        });
    let written = found
        .map_err(|flaw| diagnostics.add_url_error(&excerpt, flaw))
        .ok()?;
    let mut builder = EndpointBuilder::new(diagnostics, lookup, endpoint, excerpt, written, role);
    for pair in &endpoint.params {
        check_key(&mut builder, pair);
    }
    Some(builder)
}

/// Returns the error of a scheme that does not have this role.
fn wrong_role_error(
    endpoint: &Endpoint,
    written: SchemeWithCarrier,
    role: EndpointRole,
) -> ConfigError {
    let (title, help) = match role {
        EndpointRole::Listener => (
            format!("`{written}://` cannot be a listener"),
            "the first endpoint listens, the others are the chain, left to right".to_owned(),
        ),
        EndpointRole::Hop => {
            let hops = schemes()
                .iter()
                .filter(|scheme| scheme.roles.includes_role(role));
            let mut names: Vec<_> = hops.map(|scheme| format!("`{scheme}`")).collect();
            let last = names.pop().unwrap_or_default();
            (
                format!("`{written}://` is a listener and cannot be a hop"),
                format!("hops are {} and {last}", names.join(", ")),
            )
        }
    };
    ConfigError::new(endpoint.scheme.span, title).with_help(help)
}

/// Reports a key that is unknown, is of the other role, or is written twice.
fn check_key(builder: &mut EndpointBuilder<'_, '_>, pair: &QueryPair) {
    let (written, key) = (builder.written(), pair.key.value.as_str());
    let known = written.params().find(|param| param.setting.is_named(key));
    match known {
        Some(param) if param.roles.includes_role(builder.role()) => {
            if let Some(flaw) = duplicate_key(builder.endpoint(), param, pair) {
                builder.report_error(flaw);
            }
        }
        Some(param) => {
            let title = format!("`{key}` is a key of the {} role", param.roles);
            if written.scheme.is_shared {
                // The same URL works at both ends.
                let about = ConfigError::new(pair.key.span, title).with_label("ignored here");
                builder.add_warning(WarningKind::IgnoredKey, about);
            } else {
                builder.report_error(ConfigError::new(pair.key.span, title));
            }
        }
        None => match unknown_key_error(written, pair) {
            Ok(flaw) => builder.report_error(flaw),
            Err(ignored) => builder.add_warning(WarningKind::IgnoredKey, ignored),
        },
    }
}

/// Returns an error if a key is written in both of its spellings and `pair` is the later one.
pub(crate) fn duplicate_key(
    endpoint: &Endpoint,
    param: &SchemeParam,
    pair: &QueryPair,
) -> Option<ConfigError> {
    let (name, alias) = (param.setting.name(), param.setting.alias()?);
    let written = |key| endpoint.param(key).map(|pair| pair.key.span.start);
    let earlier = written(name)?.min(written(alias)?);
    if pair.key.span.start <= earlier {
        return None;
    }
    let flaw = ConfigError::new(pair.key.span, format!("`{name}` is written twice"))
        .with_label(format!("`{name}` and `{alias}` are the same key"))
        .with_help("remove one of them");
    Some(flaw)
}

/// Returns the scheme of an endpoint with its carrier.
pub(crate) fn parse_scheme(endpoint: &Endpoint) -> Result<SchemeWithCarrier, ConfigError> {
    let written = &endpoint.scheme;
    written.value.parse::<SchemeWithCarrier>().map_err(|why| {
        if let Some(why) = why.left_out {
            return why.error_at(written.span);
        }
        let flaw = ConfigError::new(written.span, why.to_string());
        if let Some((dialect, name)) = why.name.rsplit_once('+')
            && let Ok(scheme) = Scheme::find_by_name(dialect)
        {
            let mut all = CARRIERS.iter();
            return match all.find(|carrier| carrier.name == name) {
                Some(carrier) => {
                    let carried = carrier.carried_schemes().map(|s| format!("`{s}+{name}`"));
                    let carried = carried.collect::<Vec<_>>().join(", ");
                    flaw.with_label(format!("`{name}` does not carry `{scheme}`"))
                        .with_help(format!("it carries {carried}"))
                }
                None => flaw.with_label(format!("there is no carrier `{name}`")).with_help(
                    "carriers: `kcp` for every dialect, `fec` for `udp`; for plugins write `?plugin=`",
                ),
            };
        }
        let flaw = match why.nearest {
            Some(meant) => flaw.with_label(format!("did you mean `{meant}`?")),
            None => flaw,
        };
        let all: Vec<_> = schemes().iter().map(|scheme| scheme.name).collect();
        flaw.with_help(format!("schemes: {}", all.join(", ")))
    })
}

/// Keys of other programs' links that affect secrecy or the transport. If adit ignored them, the traffic
/// would be sent in a different form than the user expects.
const SECURITY_KEYS: &[&str] = &[
    "encryption",
    "headerType",
    "mux",
    "net",
    "network",
    "obfs-host",
    "peer",
    "security",
    "shadow-tls",
    "sni",
    "tls",
    "type",
    "uot",
    "v2ray-plugin",
];
/// Values with which these keys have no effect.
const NO_EFFECT_VALUES: &[&str] = &["", "0", "false", "none", "tcp"];

/// Returns the error of an unknown key: `Ok` if it is wrong, `Err` if it can be ignored. Links of other
/// programs contain their own keys, so with `ss` and `ssr` only those are wrong that would change the
/// transport, and those that look like typing errors.
pub(crate) fn unknown_key_error(
    written: SchemeWithCarrier,
    pair: &QueryPair,
) -> Result<ConfigError, ConfigError> {
    let (key, value) = (pair.key.value.as_str(), pair.value.value.as_str());
    let names = || {
        let spelled = |param: &SchemeParam| [Some(param.setting.name()), param.setting.alias()];
        written.params().flat_map(spelled).flatten()
    };
    let flaw = ConfigError::unknown_key(pair.key.span, key);
    if written.scheme.is_shared {
        let is_ours = all_params().any(|param| param.setting.is_named(key));
        if is_ours || (SECURITY_KEYS.contains(&key) && !NO_EFFECT_VALUES.contains(&value)) {
            let over_tcp = "`udp=over-tcp` sends datagrams in a connection";
            let flaw = flaw.with_label(format!("`{written}://` does not support this"));
            let flaw = if key == "uot" {
                flaw.with_help(over_tcp)
            } else {
                flaw
            };
            return Ok(flaw
                .with_help(
                    "without it the traffic would be sent in a different form than the link says",
                )
                .with_help(format!("`adit help {written}` lists the keys")));
        }
        if find_one_typo(key, names()).is_none() {
            return Err(flaw.with_label("ignored"));
        }
    }
    let flaw = flaw.with_nearest(key, names());
    if names().next().is_none() {
        return Ok(flaw.with_help(format!("`{written}://` has no keys")));
    }
    Ok(flaw.with_help(format!("`adit help {written}` lists the keys")))
}
