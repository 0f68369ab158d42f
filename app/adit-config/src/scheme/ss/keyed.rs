//! Method and keys of `ss` URLs, for hops and listeners.

use std::path::PathBuf;

use adit_shadowsocks::{Edition, Method, UnknownMethod};

use crate::family::{Family, LeftOut};
use crate::schema::UserSource;
use crate::scheme::builder::{EndpointBuilder, KeyTable, KeyTableEntries};
use crate::scheme::endpoint_types::{RelayTarget, SsRole, SsUser};
use crate::scheme::key_files::check::{self, KeyListKind};
use crate::scheme::key_files::{self, KeyEntry, MAX_USERS_FILE, TruncatedList};
use crate::scheme::shared_keys;
use crate::text::{ConfigError, Secret, Span};

/// Reads the method of a hop and its keys, unchanged.
pub(super) fn read_hop_keys(builder: &mut EndpointBuilder<'_, '_>) -> Option<(Method, Secret)> {
    let (method, secret) = method_and_secret(builder)?;
    let secret = secret.unwrap_or_default();
    report_error(
        builder,
        check::check_joined_keys(method, secret.expose(), secret_span(builder)),
    )?;
    Some((method, secret))
}

/// Reads the method and the role of a listener.
pub(super) fn read_listener_role(
    builder: &mut EndpointBuilder<'_, '_>,
) -> Option<(Method, SsRole)> {
    // The keys first, so that errors in them and in the secret are reported together.
    let holders = key_source(builder);
    let (method, secret) = method_and_secret(builder)?;
    let role = match holders? {
        None => {
            let secret = secret.unwrap_or_default();
            report_error(builder, check_listener_key(builder, method, &secret))?;
            SsRole::Single(secret)
        }
        Some(KeySource::Users(source)) => {
            let identity = users_identity(builder, method, secret)?;
            let (users, file) = load_users(builder, method, identity.as_ref(), source)?;
            SsRole::Users {
                identity,
                users,
                file,
            }
        }
        Some(KeySource::Fleet) => {
            check_fleet_method(builder, method, secret.is_some())?;
            let identity = builder.get(&shared_keys::IDENTITY);
            return Some((method, SsRole::Fleet { identity }));
        }
        Some(KeySource::Relay(source)) => {
            let identity = listener_identity(builder, method, secret, "a relay")?;
            let next = load_relay(builder, method, &identity, source)?;
            SsRole::Relay { identity, next }
        }
    };
    check_no_identity_choice(builder)?;
    Some((method, role))
}

/// Reports `identity` of a listener without users of the fleet.
fn check_no_identity_choice(builder: &mut EndpointBuilder<'_, '_>) -> Option<()> {
    if builder.param(&shared_keys::IDENTITY).is_none() {
        return Some(());
    }
    let span = builder.key_span(&shared_keys::IDENTITY);
    let flaw = ConfigError::new(span, "`identity` without `users=fleet`")
        .with_help("the key in the URL is the server's own key");
    builder.report_error(flaw);
    None
}

/// Checks that a method can have users of the fleet, whose keys the URL does not contain.
fn check_fleet_method(
    builder: &mut EndpointBuilder<'_, '_>,
    method: Method,
    has_secret: bool,
) -> Option<()> {
    let span = secret_span(builder);
    let flaw = if has_secret {
        ConfigError::new(span, "a listener with `users=fleet` has no key in its URL")
            .with_label("its key is derived from that of the fleet")
            .with_help(format!("write `ss://{method}@HOST:PORT?users=fleet`"))
    } else if !method.has_identities() && method.edition() != Edition::Aead {
        ConfigError::new(
            builder.user_span(),
            format!("`{method}` cannot distinguish users"),
        )
        .with_help("use `2022-blake3-aes-128-gcm`, `2022-blake3-aes-256-gcm` or a method of the AEAD edition")
    } else if !method.has_identities() && builder.param(&shared_keys::IDENTITY).is_some() {
        ConfigError::new(
            builder.key_span(&shared_keys::IDENTITY),
            format!("`identity` is for methods with identity headers, not for `{method}`"),
        )
    } else {
        return Some(());
    };
    builder.report_error(flaw);
    None
}

/// The source of keys of a listener.
enum KeySource {
    /// Keys of users.
    Users(FileOrTable<KeyEntry>),
    /// Keys of users of the fleet.
    Fleet,
    /// Keys of next servers.
    Relay(FileOrTable<key_files::NextServer>),
}

/// A place that contains keys.
enum FileOrTable<T> {
    /// `@path` of the URL.
    File(String),
    /// A table of the configuration file.
    Table(Vec<T>),
}

/// Returns the only source of keys: `None` if there are several, `Some(None)` if there is none.
fn key_source(builder: &mut EndpointBuilder<'_, '_>) -> Option<Option<KeySource>> {
    let users = builder.get(&shared_keys::SS_USERS);
    let relay = builder.get(&shared_keys::RELAY);
    let table = builder.take_table();
    if users.is_some() && relay.is_some() {
        let flaw = ConfigError::new(
            builder.key_span(&shared_keys::RELAY),
            "a listener has users or relays, not both",
        );
        builder.report_error(flaw);
        return None;
    }
    let written = users
        .map(|source| match source {
            UserSource::File(path) => KeySource::Users(FileOrTable::File(path)),
            UserSource::Fleet => KeySource::Fleet,
        })
        .or_else(|| relay.map(|path| KeySource::Relay(FileOrTable::File(path.0))));
    let Some(KeyTable {
        entries: holders,
        at,
    }) = table
    else {
        return Some(written);
    };
    if written.is_some() {
        let flaw = ConfigError::new(at, "the URL of the listener also names a source of keys");
        builder.report_document_error(flaw.with_help("keep either the parameter or the table"));
        return None;
    }
    Some(Some(match holders {
        KeyTableEntries::Users(entries) => KeySource::Users(FileOrTable::Table(entries)),
        KeyTableEntries::Relay(next) => KeySource::Relay(FileOrTable::Table(next)),
    }))
}

/// Reads and checks the users, and returns them with the path of their file.
fn load_users(
    builder: &mut EndpointBuilder<'_, '_>,
    method: Method,
    identity: Option<&Secret>,
    source: FileOrTable<KeyEntry>,
) -> Option<(Vec<SsUser>, Option<PathBuf>)> {
    match source {
        FileOrTable::File(path) => {
            let span = builder.value_span(&shared_keys::SS_USERS);
            let file = builder.read_long_file(&path, span, MAX_USERS_FILE)?;
            match key_files::parse_users_file(method, identity, &path, &file.text) {
                Ok(users) => Some((users, Some(builder.resolve_path(&path)))),
                Err(problems) => {
                    builder.report_problems(problems);
                    None
                }
            }
        }
        FileOrTable::Table(entries) => {
            let flaws = check::check_entries(KeyListKind::Users, method, identity, &entries);
            report_table_errors(builder, flaws)?;
            let users = entries.into_iter().map(KeyEntry::into_user).collect();
            Some((users, None))
        }
    }
}

/// Reads and checks the next servers of a relay.
fn load_relay(
    builder: &mut EndpointBuilder<'_, '_>,
    method: Method,
    identity: &Secret,
    source: FileOrTable<key_files::NextServer>,
) -> Option<Vec<RelayTarget>> {
    match source {
        FileOrTable::File(path) => {
            let span = builder.value_span(&shared_keys::RELAY);
            let file = builder.read_long_file(&path, span, MAX_USERS_FILE)?;
            match key_files::parse_relay_file(method, identity, &path, &file.text) {
                Ok(next) => Some(next),
                Err(problems) => {
                    builder.report_problems(problems);
                    None
                }
            }
        }
        FileOrTable::Table(next) => {
            let (flaws, next) = key_files::check_relay(method, identity, next);
            report_table_errors(builder, flaws)?;
            Some(next)
        }
    }
}

/// Reports errors in a table of the configuration file. Returns `None` if there are any.
fn report_table_errors(
    builder: &mut EndpointBuilder<'_, '_>,
    flaws: TruncatedList<ConfigError>,
) -> Option<()> {
    let (flaws, more) = flaws.into_parts();
    let last = flaws.len();
    for (i, flaw) in flaws.into_iter().enumerate() {
        let flaw = if more > 0 && i + 1 == last {
            flaw.with_help(format!("{more} more like these"))
        } else {
            flaw
        };
        builder.report_document_error(flaw);
    }
    (last == 0).then_some(())
}

/// Returns the server's own key, if users are identified by identity headers: `None` if it is wrong.
fn users_identity(
    builder: &mut EndpointBuilder<'_, '_>,
    method: Method,
    secret: Option<Secret>,
) -> Option<Option<Secret>> {
    if method.edition() == Edition::Aead2022 {
        return listener_identity(builder, method, secret, "a server with users").map(Some);
    }
    let span = secret_span(builder);
    let flaw = if method.edition() == Edition::None {
        ConfigError::new(
            span,
            format!("method `{method}` has no keys, and so no users"),
        )
    } else if method.is_legacy() {
        ConfigError::new(span, format!("`{method}` cannot distinguish users"))
            .with_label("decryption with a wrong password does not fail")
    } else if secret.is_some() {
        ConfigError::new(span, "a server with users has no password of its own").with_help(format!(
            "write `ss://{method}@HOST:PORT`, and put every password into the file of users"
        ))
    } else {
        return Some(None);
    };
    builder.report_error(flaw);
    None
}

/// Returns the own key of a listener with identity headers, or reports why there is none.
fn listener_identity(
    builder: &mut EndpointBuilder<'_, '_>,
    method: Method,
    secret: Option<Secret>,
    who: &str,
) -> Option<Secret> {
    let span = secret_span(builder);
    let checked = if !check::has_identity_headers(method) {
        Err(check::no_identity_headers_error(
            method,
            builder.user_span(),
        ))
    } else {
        match &secret {
            Some(secret) => check_listener_key(builder, method, secret),
            None => Err(ConfigError::new(
                span,
                format!("{who} needs a key of its own, which is missing"),
            )
            .with_help(format!("write `ss://{method}:KEY@HOST:PORT`"))
            .with_help(check::keygen_hint(method))),
        }
    };
    report_error(builder, checked)?;
    secret
}

/// Checks the key of a listener: only one, while a hop can have several.
fn check_listener_key(
    builder: &EndpointBuilder<'_, '_>,
    method: Method,
    secret: &Secret,
) -> Result<(), ConfigError> {
    let span = secret_span(builder);
    if method.edition() == Edition::Aead2022 && secret.expose().contains(':') {
        check::check_no_method(secret.expose(), span)?;
        return Err(
            ConfigError::new(span, "a listener has one key, not several joined by `:`").with_help(
                "keep the first, the server's own; put users into a file: `?users=@FILE`",
            ),
        );
    }
    check::check_key(method, secret.expose(), span)
}

/// Reports the error of a check.
fn report_error(
    builder: &mut EndpointBuilder<'_, '_>,
    checked: Result<(), ConfigError>,
) -> Option<()> {
    checked.map_err(|flaw| builder.report_error(flaw)).ok()
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
        let flaw = ConfigError::new(endpoint.address, "method and key are missing")
            .with_help("write `ss://METHOD:KEY@HOST:PORT`")
            .with_help("`adit keygen METHOD` makes a key");
        builder.report_error(flaw);
        return None;
    };
    let method = match name.value.parse::<Method>() {
        Ok(method) => Some(method),
        Err(why) => {
            builder.report_error(unknown_method_error(&why, name.span));
            None
        }
    };
    let secret = match &endpoint.secret {
        Some(written) => Some(builder.read_secret(&written.value, written.span)?),
        None => None,
    };
    Some((method?, secret.filter(|secret| !secret.expose().is_empty())))
}

/// Returns the error of an unknown method.
fn unknown_method_error(why: &UnknownMethod, span: Span) -> ConfigError {
    let names = || Method::ALL.into_iter().map(Method::name);
    if why.is_left_out() {
        return LeftOut(Family::LegacyCiphers).error_at(span);
    }
    let flaw = ConfigError::new(span, why.to_string());
    let flaw = flaw.with_nearest(&why.0, names());
    let (methods, legacy) = super::method_names();
    let flaw = flaw.with_help(format!("methods: {methods}"));
    match Family::LegacyCiphers.is_built() {
        true => flaw.with_help(format!("legacy: {legacy}")),
        false => flaw,
    }
}
