//! Credentials of SSH hops, and users of SSH listeners.

use std::path::PathBuf;

use adit_ssh_proto::key::{AuthorizedKeys, KeyError, PrivateKey};

use super::{AGENT, KEY, PASSPHRASE};
use crate::schema::{FilePath, Key, Tristate};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::keys;
use crate::scheme::typed::{Login, SshKey};
use crate::text::{Flaw, Secret, Span};

/// Files of private keys that are tried by default, as in OpenSSH.
const USUAL: [&str; 3] = ["~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"];

/// The credentials of a client; at least one of them is present.
pub(super) struct Means {
    /// The password.
    pub(super) password: Option<Secret>,
    /// The private keys, in the order in which they are offered.
    pub(super) keys: Vec<SshKey>,
    /// The socket of the agent.
    pub(super) agent: Option<PathBuf>,
}

/// Returns the user of a hop: as written, otherwise the user of this process.
pub(super) fn user(builder: &mut EndpointBuilder<'_, '_>) -> Option<String> {
    let written = builder
        .endpoint()
        .user
        .as_ref()
        .map(|user| user.value.clone());
    let here = || {
        let names = ["USER", "LOGNAME", "USERNAME"];
        names.into_iter().find_map(|name| builder.variable(name))
    };
    let user = written.filter(|user| !user.is_empty()).or_else(here);
    if user.is_none() {
        let flaw = Flaw::new(builder.endpoint().address, "the user is missing")
            .help("write `ssh://USER@HOST`");
        builder.problem(flaw);
    }
    user
}

/// Reads password, keys and agent of a hop.
pub(super) fn means(builder: &mut EndpointBuilder<'_, '_>) -> Option<Means> {
    let endpoint = builder.endpoint();
    let password = match &endpoint.secret {
        Some(written) => Some(builder.secret(&written.value, written.span)?),
        None => None,
    };
    if password
        .as_ref()
        .is_some_and(|secret| secret.expose().is_empty())
    {
        builder.problem(Flaw::new(builder.user_span(), "the password is empty"));
        return None;
    }
    let passphrase = passphrase(builder)?;
    let key = builder.get(&KEY);
    let named = key.is_some() || password.is_some();
    let agent = match (builder.get(&AGENT), builder.variable("SSH_AUTH_SOCK")) {
        (Tristate::Off, _) => None,
        (Tristate::Auto, _) if named => None,
        (Tristate::Auto | Tristate::On, Some(socket)) => Some(PathBuf::from(socket)),
        (Tristate::Auto, None) => None,
        (Tristate::On, None) => {
            let flaw = Flaw::new(builder.value_span(&AGENT), "no SSH agent is available")
                .label("SSH_AUTH_SOCK is not set");
            builder.problem(flaw);
            return None;
        }
    };
    let mut keys = Vec::new();
    let mut encrypted = None;
    match key {
        Some(path) => {
            let span = builder.value_span(&KEY);
            let text = builder.secret_file(&path.0, span)?;
            match read(builder, &path.0, text, passphrase) {
                Ok(key) => keys.push(key),
                Err(why) => {
                    builder.problem(unreadable(&path.0, span, &why));
                    return None;
                }
            }
        }
        None if password.is_none() => {
            for path in USUAL {
                let Some(text) = builder.optional_file(path) else {
                    continue;
                };
                let passphrase = passphrase.as_ref().map(|one| Secret::from(one.expose()));
                match read(builder, path, text, passphrase) {
                    Ok(key) => keys.push(key),
                    Err(_) => encrypted = encrypted.or(Some(path)),
                }
            }
        }
        None => {}
    }
    if keys.is_empty() && password.is_none() && agent.is_none() {
        let mut flaw = Flaw::new(builder.user_span(), "no credentials to log in with");
        if let Some(path) = encrypted {
            flaw = flaw.label(format!("`{path}` cannot be read without its passphrase"));
        }
        builder.problem(
            flaw.help("`?key=@FILE` names a private key, `?passphrase=@FILE` its passphrase")
                .help("set SSH_AUTH_SOCK to use an agent; write `USER:@FILE@HOST` for a password"),
        );
        return None;
    }
    Some(Means {
        password,
        keys,
        agent,
    })
}

/// Reads the passphrase: `None` if it is wrong, `Some(None)` without one.
#[expect(clippy::option_option, reason = "wrong, or not configured")]
fn passphrase(builder: &mut EndpointBuilder<'_, '_>) -> Option<Option<Secret>> {
    match builder.get(&PASSPHRASE) {
        None => Some(None),
        Some(written) => {
            let span = builder.value_span(&PASSPHRASE);
            builder.written_secret(&written, span).map(Some)
        }
    }
}

/// Returns a private key after a check that the passphrase decrypts it.
fn read(
    builder: &EndpointBuilder<'_, '_>,
    path: &str,
    text: Secret,
    passphrase: Option<Secret>,
) -> Result<SshKey, KeyError> {
    let phrase = passphrase.as_ref().map(|one| one.expose().as_bytes());
    // A key without encryption can be read with any passphrase.
    PrivateKey::read(text.expose(), phrase)?;
    let certificate = builder.optional_file(&format!("{path}-cert.pub"));
    Ok(SshKey {
        file: path.to_owned(),
        text,
        passphrase,
        certificate: certificate.map(|text| text.expose().to_owned()),
    })
}

/// Returns the error of a private key that cannot be read.
fn unreadable(path: &str, span: Span, why: &KeyError) -> Flaw {
    let flaw =
        Flaw::new(span, format!("`{path}` is not a usable private key")).label(why.to_string());
    match why {
        KeyError::Encrypted => flaw.help("write `?passphrase=@FILE` or `?passphrase=$NAME`"),
        _ => flaw,
    }
}

/// Returns the user name accepted with keys, and the users with passwords.
pub(super) fn users(
    builder: &mut EndpointBuilder<'_, '_>,
    by_key: bool,
) -> Option<(Option<String>, Vec<Login>)> {
    let endpoint = builder.endpoint();
    let (user, mut users) = match (&endpoint.user, &endpoint.secret) {
        (Some(user), None) if by_key => (Some(user.value.clone()), Vec::new()),
        _ => {
            let login = builder.login()?;
            let user = login.as_ref().map(|login| login.user.clone());
            (user, login.into_iter().collect::<Vec<_>>())
        }
    };
    if let Some(path) = builder.get(&keys::USERS) {
        for login in builder.users_file(&path.0)? {
            if users.iter().any(|other| other.user == login.user) {
                let span = builder.value_span(&keys::USERS);
                let title = format!("user `{}` is defined twice", login.user);
                builder.problem(Flaw::new(span, title));
                return None;
            }
            users.push(login);
        }
    }
    if users.is_empty() && !by_key {
        let flaw = Flaw::new(endpoint.address, "no user could log in")
            .help("write `?authorized_keys=@FILE` for keys, or `USER:PASSWORD@` before the host");
        builder.problem(flaw);
        return None;
    }
    Some((user, users))
}

/// Returns the path of the authorized keys after a check that all lines are valid.
pub(super) fn authorized(
    builder: &mut EndpointBuilder<'_, '_>,
    path: &str,
    key: &Key<Option<FilePath>>,
) -> Option<PathBuf> {
    let span = builder.value_span(key);
    let text = builder.public_file(path, span)?;
    let mut read = AuthorizedKeys::default();
    let problems = match read.read(path, text.as_bytes()) {
        Ok(problems) => problems,
        Err(why) => {
            let flaw = Flaw::new(span, format!("cannot use `{path}`")).label(why.to_string());
            builder.problem(flaw);
            return None;
        }
    };
    if let Some(first) = problems.first() {
        let flaw = Flaw::new(span, format!("`{path}` has a line without a valid key"))
            .label(format!("{}: {}", first.place, first.why));
        builder.problem(flaw);
        return None;
    }
    Some(builder.resolve(path))
}
