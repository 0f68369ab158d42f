//! Method and keys of `ss` URLs, for hops and listeners.

use std::path::PathBuf;

use adit_shadowsocks::{Edition, Method};

use crate::scheme::builder::{EndpointBuilder, KeyTable, TableOf};
use crate::scheme::keyring::check::{self, Holders};
use crate::scheme::keyring::{self, AtMost, Entry, MAX_USERS_FILE};
use crate::scheme::keys;
use crate::scheme::typed::{RelayNext, SsRole, SsUser};
use crate::text::{Flaw, Secret, Span, nearest};

/// Reads the method of a hop and its keys, unchanged.
pub(super) fn hop(builder: &mut EndpointBuilder<'_, '_>) -> Option<(Method, Secret)> {
    let (method, secret) = method_and_secret(builder)?;
    let secret = secret.unwrap_or_default();
    accept(
        builder,
        check::joined_keys(method, secret.expose(), secret_span(builder)),
    )?;
    Some((method, secret))
}

/// Reads the method and the role of a listener.
pub(super) fn role(builder: &mut EndpointBuilder<'_, '_>) -> Option<(Method, SsRole)> {
    // The keys first, so that errors in them and in the secret are reported together.
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

/// The source of keys of a listener.
enum Held {
    /// Keys of users.
    Users(Source<Entry>),
    /// Keys of next servers.
    Relay(Source<keyring::Next>),
}

/// A place that contains keys.
enum Source<T> {
    /// `@path` of the URL.
    File(String),
    /// A table of the configuration file.
    Table(Vec<T>),
}

/// Returns the only source of keys: `None` if there are several, `Some(None)` if there is none.
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
        let flaw = Flaw::new(at, "the URL of the listener also names a file of keys");
        builder.problem_in_document(flaw.help("keep either the file or the table"));
        return None;
    }
    Some(Some(match holders {
        TableOf::Users(entries) => Held::Users(Source::Table(entries)),
        TableOf::Relay(next) => Held::Relay(Source::Table(next)),
    }))
}

/// Reads and checks the users, and returns them with the path of their file.
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

/// Reads and checks the next servers of a relay.
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

/// Reports errors in a table of the configuration file. Returns `None` if there are any.
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

/// Returns the server's own key, if users are identified by identity headers: `None` if it is wrong.
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
        Flaw::new(span, format!("`{method}` cannot distinguish users"))
            .label("decryption with a wrong password does not fail")
    } else if secret.is_some() {
        Flaw::new(span, "a server with users has no password of its own").help(format!(
            "write `ss://{method}@HOST:PORT`, and put every password into the file of users"
        ))
    } else {
        return Some(None);
    };
    builder.problem(flaw);
    None
}

/// Returns the own key of a listener with identity headers, or reports why there is none.
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
                format!("{who} needs a key of its own, which is missing"),
            )
            .help(format!("write `ss://{method}:KEY@HOST:PORT`"))
            .help(check::keygen(method))),
        }
    };
    accept(builder, checked)?;
    secret
}

/// Checks the key of a listener: only one, while a hop can have several.
fn own_key(builder: &EndpointBuilder<'_, '_>, method: Method, secret: &Secret) -> Result<(), Flaw> {
    let span = secret_span(builder);
    if method.edition() == Edition::Aead2022 && secret.expose().contains(':') {
        return Err(
            Flaw::new(span, "a listener has one key, not several joined by `:`")
                .help("keep the first, the server's own; put users into a file: `?users=@FILE`"),
        );
    }
    check::one_key(method, secret.expose(), span)
}

/// Reports the error of a check.
fn accept(builder: &mut EndpointBuilder<'_, '_>, checked: Result<(), Flaw>) -> Option<()> {
    checked.map_err(|flaw| builder.problem(flaw)).ok()
}

/// Returns the position of the secret, or of the user if there is none.
fn secret_span(builder: &EndpointBuilder<'_, '_>) -> Span {
    let secret = builder.endpoint().secret.as_ref();
    secret.map_or_else(|| builder.user_span(), |secret| secret.span)
}

/// Reads the method, and the secret if it is not empty.
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

/// Returns the error of an unknown method.
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
