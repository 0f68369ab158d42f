//! Method and keys of a URL: what a hop shows, and whom a listener serves.

use std::path::PathBuf;

use adit_shadowsocks::{Edition, Method};

use crate::scheme::builder::{EndpointBuilder, KeyTable, TableOf};
use crate::scheme::keyring::check::{self, Holders};
use crate::scheme::keyring::{self, AtMost, Entry, MAX_USERS_FILE};
use crate::scheme::keys;
use crate::scheme::typed::{RelayNext, SsRole, SsUser};
use crate::text::{Flaw, Secret, Span, nearest};

/// The method of a hop, and its keys as they are written.
pub(super) fn hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<(Method, Secret)> {
    let (method, secret) = method_and_secret(builder)?;
    let secret = secret.unwrap_or_default();
    accept(
        builder,
        check::joined_keys(method, secret.expose(), secret_span(builder)),
    )?;
    Some((method, secret))
}

/// The method of a listener, and whom it serves.
pub(super) fn role(builder: &mut EndpointBuilder<'_, '_>) -> Option<(Method, SsRole)> {
    // The keys first: what is wrong with them and with the secret is then told at once.
    let holders = holders(builder);
    let (method, secret) = method_and_secret(builder)?;
    let role = match holders? {
        None => {
            let secret = secret.unwrap_or_default();
            accept(builder, own_key(builder, method, &secret))?;
            SsRole::Single(secret)
        }
        Some(Held::Users(source)) => {
            let identity = identity_of_users(builder, method, secret)?;
            let (users, file) = users(builder, method, identity.as_ref(), source)?;
            SsRole::Users {
                identity,
                users,
                file,
            }
        }
        Some(Held::Relay(source)) => {
            let identity = identity(builder, method, secret, "a relay")?;
            let next = relay(builder, method, &identity, source)?;
            SsRole::Relay { identity, next }
        }
    };
    Some((method, role))
}

/// Where the keys of users or next servers stand.
enum Held {
    Users(Source<Entry>),
    Relay(Source<keyring::Next>),
}

enum Source<T> {
    /// `@path` of the URL.
    File(String),
    /// A table of the configuration file.
    Table(Vec<T>),
}

/// The one source of keys there is, if any.
fn holders(builder: &mut EndpointBuilder<'_, '_>) -> Option<Option<Held>> {
    let users = builder.get(&keys::SS_USERS);
    let relay = builder.get(&keys::RELAY);
    let table = builder.take_table();
    if users.is_some() && relay.is_some() {
        let flaw = Flaw::new(
            builder.key_span(&keys::RELAY),
            "a listener has users or relays, not both",
        );
        builder.problem(flaw);
        return None;
    }
    let written = users
        .map(|path| Held::Users(Source::File(path.0)))
        .or_else(|| relay.map(|path| Held::Relay(Source::File(path.0))));
    let Some(KeyTable { holders, at }) = table else {
        return Some(written);
    };
    if written.is_some() {
        let flaw = Flaw::new(at, "the URL of the listener names a file of keys too");
        builder.problem_in_document(flaw.help("keep the file or the table"));
        return None;
    }
    Some(Some(match holders {
        TableOf::Users(entries) => Held::Users(Source::Table(entries)),
        TableOf::Relay(next) => Held::Relay(Source::Table(next)),
    }))
}

fn users(
    builder: &mut EndpointBuilder<'_, '_>,
    method: Method,
    identity: Option<&Secret>,
    source: Source<Entry>,
) -> Option<(Vec<SsUser>, Option<PathBuf>)> {
    match source {
        Source::File(path) => {
            let span = builder.value_span(&keys::SS_USERS);
            let file = builder.long_file(&path, span, MAX_USERS_FILE)?;
            match keyring::users_file(method, identity, &path, &file.text) {
                Ok(users) => Some((users, Some(builder.resolve(&path)))),
                Err(problems) => {
                    builder.problems(problems);
                    None
                }
            }
        }
        Source::Table(entries) => {
            let flaws = check::all(Holders::Users, method, identity, &entries);
            in_table(builder, flaws)?;
            let users = entries.into_iter().map(Entry::into_user).collect();
            Some((users, None))
        }
    }
}

fn relay(
    builder: &mut EndpointBuilder<'_, '_>,
    method: Method,
    identity: &Secret,
    source: Source<keyring::Next>,
) -> Option<Vec<RelayNext>> {
    match source {
        Source::File(path) => {
            let span = builder.value_span(&keys::RELAY);
            let file = builder.long_file(&path, span, MAX_USERS_FILE)?;
            match keyring::relay_file(method, identity, &path, &file.text) {
                Ok(next) => Some(next),
                Err(problems) => {
                    builder.problems(problems);
                    None
                }
            }
        }
        Source::Table(next) => {
            let (flaws, next) = keyring::relay(method, identity, next);
            in_table(builder, flaws)?;
            Some(next)
        }
    }
}

/// Notes flaws of a table of the configuration file; `None` if there are any.
fn in_table(builder: &mut EndpointBuilder<'_, '_>, flaws: AtMost<Flaw>) -> Option<()> {
    let (flaws, more) = flaws.into_parts();
    let last = flaws.len();
    for (i, flaw) in flaws.into_iter().enumerate() {
        let flaw = if more > 0 && i + 1 == last {
            flaw.help(format!("{more} more like these"))
        } else {
            flaw
        };
        builder.problem_in_document(flaw);
    }
    (last == 0).then_some(())
}

/// The server's own key, where users are told apart by identity headers.
fn identity_of_users(
    builder: &mut EndpointBuilder<'_, '_>,
    method: Method,
    secret: Option<Secret>,
) -> Option<Option<Secret>> {
    if method.edition() == Edition::Aead2022 {
        return identity(builder, method, secret, "a server with users").map(Some);
    }
    let span = secret_span(builder);
    let flaw = if method.edition() == Edition::None {
        Flaw::new(
            span,
            format!("method `{method}` has no keys, and so no users"),
        )
    } else if method.is_legacy() {
        Flaw::new(span, format!("`{method}` cannot tell users apart"))
            .label("every password decrypts to something")
    } else if secret.is_some() {
        Flaw::new(span, "a server with users has no password of its own").help(format!(
            "write `ss://{method}@HOST:PORT`, and every password in the file of users"
        ))
    } else {
        return Some(None);
    };
    builder.problem(flaw);
    None
}

/// The own key of a listener that tells others' keys apart by identity headers.
fn identity(
    builder: &mut EndpointBuilder<'_, '_>,
    method: Method,
    secret: Option<Secret>,
    who: &str,
) -> Option<Secret> {
    let span = secret_span(builder);
    let checked = if !check::has_identity_headers(method) {
        Err(check::no_identity_headers(method, builder.user_span()))
    } else {
        match &secret {
            Some(secret) => own_key(builder, method, secret),
            None => Err(Flaw::new(
                span,
                format!("{who} has a key of its own, and it is missing"),
            )
            .help(format!("write `ss://{method}:KEY@HOST:PORT`"))
            .help(check::keygen(method))),
        }
    };
    accept(builder, checked)?;
    secret
}

/// Checks the key of a listener: one, where a hop can have several.
fn own_key(builder: &EndpointBuilder<'_, '_>, method: Method, secret: &Secret) -> Result<(), Flaw> {
    let span = secret_span(builder);
    if method.edition() == Edition::Aead2022 && secret.expose().contains(':') {
        return Err(Flaw::new(
            span,
            "a listener has one key, this is several joined by `:`",
        )
        .help("the first is the server's own; users stand in a file: `?users=@FILE`"));
    }
    check::one_key(method, secret.expose(), span)
}

fn accept(builder: &mut EndpointBuilder<'_, '_>, checked: Result<(), Flaw>) -> Option<()> {
    checked.map_err(|flaw| builder.problem(flaw)).ok()
}

/// Where the secret stands; the user if there is none.
fn secret_span(builder: &EndpointBuilder<'_, '_>) -> Span {
    let secret = builder.endpoint().secret.as_ref();
    secret.map_or_else(|| builder.user_span(), |secret| secret.span)
}

/// The method, and the secret if there is one that is not empty.
fn method_and_secret(builder: &mut EndpointBuilder<'_, '_>) -> Option<(Method, Option<Secret>)> {
    let endpoint = builder.endpoint();
    let Some(name) = &endpoint.user else {
        let flaw = Flaw::new(endpoint.address, "method and key are missing")
            .help("write `ss://METHOD:KEY@HOST:PORT`")
            .help("`adit keygen METHOD` makes a key");
        builder.problem(flaw);
        return None;
    };
    let method = match name.value.parse::<Method>() {
        Ok(method) => Some(method),
        Err(_) => {
            builder.problem(unknown_method(&name.value, name.span));
            None
        }
    };
    let secret = match &endpoint.secret {
        Some(written) => Some(builder.secret(&written.value, written.span)?),
        None => None,
    };
    Some((method?, secret.filter(|secret| !secret.expose().is_empty())))
}

fn unknown_method(name: &str, span: Span) -> Flaw {
    let names = || Method::ALL.into_iter().map(Method::name);
    let flaw = Flaw::new(span, format!("unknown method `{name}`"));
    let flaw = match nearest(name, names()) {
        Some(meant) => flaw.label(format!("did you mean `{meant}`?")),
        None => flaw,
    };
    let (methods, legacy) = super::method_names();
    flaw.help(format!("methods: {methods}"))
        .help(format!("legacy: {legacy}"))
}
