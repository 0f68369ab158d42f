//! Lookup of schemes, carriers and keys by name, and the errors for unknown ones.

use crate::grammar::{Endpoint, Pair};
use crate::schema::{EndpointRole, Param};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::table::{CARRIERS, all_params, schemes};
use crate::scheme::{Scheme, Written};
use crate::text::{Diagnostics, Excerpt, Flaw, Lookup, WarningKind, nearest, one_slip};

/// Finds the scheme, and checks the role and the keys against its tables.
pub(super) fn builder<'d, 'e>(
    diagnostics: &'d mut Diagnostics,
    lookup: Lookup<'e>,
    endpoint: &'e Endpoint,
    excerpt: Excerpt<'e>,
    role: EndpointRole,
) -> Option<EndpointBuilder<'d, 'e>> {
    let found = written(endpoint).and_then(|written| match written.roles().has(role) {
        true => Ok(written),
        false => Err(wrong_role(endpoint, written, role)),
    });
    let written = found
        .map_err(|flaw| diagnostics.flaw(&excerpt, flaw))
        .ok()?;
    let mut builder = EndpointBuilder::new(diagnostics, lookup, endpoint, excerpt, written, role);
    for pair in &endpoint.params {
        check_key(&mut builder, pair);
    }
    Some(builder)
}

/// Returns the error of a scheme that does not have this role.
fn wrong_role(endpoint: &Endpoint, written: Written, role: EndpointRole) -> Flaw {
    let (title, help) = match role {
        EndpointRole::Listener => (
            format!("`{written}://` cannot be a listener"),
            "the first endpoint listens, the others are the chain, left to right".to_owned(),
        ),
        EndpointRole::Hop => {
            let hops = schemes().iter().filter(|scheme| scheme.roles.has(role));
            let mut names: Vec<_> = hops.map(|scheme| format!("`{scheme}`")).collect();
            let last = names.pop().unwrap_or_default();
            (
                format!("`{written}://` is a listener and cannot be a hop"),
                format!("hops are {} and {last}", names.join(", ")),
            )
        }
    };
    Flaw::new(endpoint.scheme.span, title).help(help)
}

/// Reports a key that is unknown, is of the other role, or is written twice.
fn check_key(builder: &mut EndpointBuilder<'_, '_>, pair: &Pair) {
    let (written, key) = (builder.written(), pair.key.value.as_str());
    let known = written.params().find(|param| param.setting.is_named(key));
    match known {
        Some(param) if param.roles.has(builder.role()) => {
            if let Some(flaw) = twice(builder.endpoint(), param, pair) {
                builder.problem(flaw);
            }
        }
        Some(param) => {
            let title = format!("`{key}` is a key of the {} role", param.roles);
            if written.scheme.is_shared {
                // The same URL works at both ends.
                let about = Flaw::new(pair.key.span, title).label("ignored here");
                builder.warn(WarningKind::IgnoredKey, about);
            } else {
                builder.problem(Flaw::new(pair.key.span, title));
            }
        }
        None => match unknown_key(written, pair) {
            Ok(flaw) => builder.problem(flaw),
            Err(ignored) => builder.warn(WarningKind::IgnoredKey, ignored),
        },
    }
}

/// Returns an error if a key is written in both of its spellings and `pair` is the later one.
pub(crate) fn twice(endpoint: &Endpoint, param: &Param, pair: &Pair) -> Option<Flaw> {
    let (name, alias) = (param.setting.name(), param.setting.alias()?);
    let written = |key| endpoint.param(key).map(|pair| pair.key.span.start);
    let earlier = written(name)?.min(written(alias)?);
    if pair.key.span.start <= earlier {
        return None;
    }
    let flaw = Flaw::new(pair.key.span, format!("`{name}` is written twice"))
        .label(format!("`{name}` and `{alias}` are the same key"))
        .help("remove one of them");
    Some(flaw)
}

/// Returns the scheme of an endpoint with its carrier.
pub(crate) fn written(endpoint: &Endpoint) -> Result<Written, Flaw> {
    let written = &endpoint.scheme;
    written.value.parse::<Written>().map_err(|why| {
        let flaw = Flaw::new(written.span, why.to_string());
        if let Some((dialect, name)) = why.name.rsplit_once('+')
            && let Ok(scheme) = Scheme::find(dialect)
        {
            let mut all = CARRIERS.into_iter();
            return match all.find(|carrier| carrier.name == name) {
                Some(carrier) => {
                    let carried = carrier.schemes().map(|s| format!("`{s}+{name}`"));
                    let carried = carried.collect::<Vec<_>>().join(", ");
                    flaw.label(format!("`{name}` does not carry `{scheme}`"))
                        .help(format!("it carries {carried}"))
                }
                None => flaw.label(format!("there is no carrier `{name}`")).help(
                    "carriers: `kcp` for every dialect, `fec` for `udp`; for plugins write `?plugin=`",
                ),
            };
        }
        let flaw = match why.nearest {
            Some(meant) => flaw.label(format!("did you mean `{meant}`?")),
            None => flaw,
        };
        let all: Vec<_> = schemes().iter().map(|scheme| scheme.name).collect();
        flaw.help(format!("schemes: {}", all.join(", ")))
    })
}

/// Keys of other programs' links that affect secrecy or the transport. If adit ignored them, the traffic
/// would be sent in a different form than the user expects.
const DECIDING: &[&str] = &[
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
const NOTHING: &[&str] = &["", "0", "false", "none", "tcp"];

/// Returns the error of an unknown key: `Ok` if it is wrong, `Err` if it can be ignored. Links of other
/// programs contain their own keys, so with `ss` and `ssr` only those are wrong that would change the
/// transport, and those that look like typing errors.
pub(crate) fn unknown_key(written: Written, pair: &Pair) -> Result<Flaw, Flaw> {
    let (key, value) = (pair.key.value.as_str(), pair.value.value.as_str());
    let names = || {
        let spelled = |param: &Param| [Some(param.setting.name()), param.setting.alias()];
        written.params().flat_map(spelled).flatten()
    };
    let flaw = Flaw::new(pair.key.span, format!("unknown key `{key}`"));
    if written.scheme.is_shared {
        let is_ours = all_params().any(|param| param.setting.is_named(key));
        if is_ours || (DECIDING.contains(&key) && !NOTHING.contains(&value)) {
            let over_tcp = "`udp=over-tcp` sends datagrams in a connection";
            let flaw = flaw.label(format!("`{written}://` does not support this"));
            let flaw = if key == "uot" {
                flaw.help(over_tcp)
            } else {
                flaw
            };
            return Ok(flaw
                .help("without it the traffic would be sent in a different form than the link says")
                .help(format!("`adit help {written}` lists the keys")));
        }
        if one_slip(key, names()).is_none() {
            return Err(flaw.label("ignored"));
        }
    }
    let flaw = match nearest(key, names()) {
        Some(meant) => flaw.label(format!("did you mean `{meant}`?")),
        None => flaw,
    };
    if names().next().is_none() {
        return Ok(flaw.help(format!("`{written}://` has no keys")));
    }
    Ok(flaw.help(format!("`adit help {written}` lists the keys")))
}
