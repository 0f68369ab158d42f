//! Credentials of SSH hops, and users of SSH listeners.

use std::path::PathBuf;

use adit_ssh_proto::key::{AuthorizedKeys, KeyError, PrivateKey};

use super::{AGENT, KEY, PASSPHRASE};
use crate::schema::{FilePath, ParamKey, Tristate, UserSource};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::endpoint_types::{SshKey, UserPassword};
use crate::scheme::shared_keys;
use crate::text::{ConfigError, Secret, Span};

/// Files of private keys that are tried by default, as in OpenSSH.
const DEFAULT_KEY_FILES: [&str; 3] = ["~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"];
/// The path of the SSH agent without `SSH_AUTH_SOCK`: OpenSSH's service on Windows always has the same pipe.
pub const DEFAULT_SSH_AGENT: Option<&str> = match cfg!(windows) {
    true => Some(r"\\.\pipe\openssh-ssh-agent"),
    false => None,
};

/// The credentials of a client; at least one of them is present.
pub(super) struct Credentials {
    /// The password.
    pub(super) password: Option<Secret>,
    /// The private keys, in the order in which they are offered.
    pub(super) keys: Vec<SshKey>,
    /// The socket of the agent.
    pub(super) agent: Option<PathBuf>,
}

/// Returns the user of a hop: as written, otherwise the user of this process.
pub(super) fn hop_user(builder: &mut EndpointBuilder<'_, '_>) -> Option<String> {
    let written = builder
        .endpoint()
        .user
        .as_ref()
        .map(|user| user.value.clone());
    let here = || {
        let names = ["USER", "LOGNAME", "USERNAME"];
        names
            .into_iter()
            .find_map(|name| builder.environment_variable(name))
    };
    let user = written.filter(|user| !user.is_empty()).or_else(here);
    if user.is_none() {
        let flaw = ConfigError::new(builder.endpoint().address, "the user is missing")
            .with_help("write `ssh://USER@HOST`");
        builder.report_error(flaw);
    }
    user
}

/// Reads password, keys and agent of a hop.
pub(super) fn hop_credentials(builder: &mut EndpointBuilder<'_, '_>) -> Option<Credentials> {
    let endpoint = builder.endpoint();
    let password = match &endpoint.secret {
        Some(written) => Some(builder.read_secret(&written.value, written.span)?),
        None => None,
    };
    if password
        .as_ref()
        .is_some_and(|secret| secret.expose().is_empty())
    {
        builder.report_error(ConfigError::new(
            builder.user_span(),
            "the password is empty",
        ));
        return None;
    }
    let passphrase = read_passphrase(builder)?;
    let key = builder.get(&KEY);
    let named = key.is_some() || password.is_some();
    let socket = builder.environment_variable("SSH_AUTH_SOCK");
    let socket = socket.or_else(|| DEFAULT_SSH_AGENT.map(str::to_owned));
    let agent = match (builder.get(&AGENT), socket) {
        (Tristate::Off, _) => None,
        (Tristate::Auto, _) if named => None,
        (Tristate::Auto | Tristate::On, Some(socket)) => Some(PathBuf::from(socket)),
        (Tristate::Auto, None) => None,
        (Tristate::On, None) => {
            let flaw = ConfigError::new(builder.value_span(&AGENT), "no SSH agent is available")
                .with_label("SSH_AUTH_SOCK is not set");
            builder.report_error(flaw);
            return None;
        }
    };
    let mut keys = Vec::new();
    let mut encrypted = None;
    match key {
        Some(path) => {
            let span = builder.value_span(&KEY);
            let text = builder.read_secret_file(&path.0, span)?;
            match load_key(builder, &path.0, text, passphrase) {
                Ok(key) => keys.push(key),
                Err(why) => {
                    builder.report_error(unreadable_key_error(&path.0, span, &why));
                    return None;
                }
            }
        }
        None if password.is_none() => {
            for path in DEFAULT_KEY_FILES {
                let Some(text) = builder.read_optional_file(path) else {
                    continue;
                };
                let passphrase = passphrase.as_ref().map(|one| Secret::from(one.expose()));
                match load_key(builder, path, text, passphrase) {
                    Ok(key) => keys.push(key),
                    Err(_) => encrypted = encrypted.or(Some(path)),
                }
            }
        }
        None => {}
    }
    if keys.is_empty() && password.is_none() && agent.is_none() {
        let mut flaw = ConfigError::new(builder.user_span(), "no credentials to log in with");
        if let Some(path) = encrypted {
            flaw = flaw.with_label(format!("`{path}` cannot be read without its passphrase"));
        }
        builder.report_error(
            flaw.with_help("`?key=@FILE` names a private key, `?passphrase=@FILE` its passphrase")
                .with_help(
                    "set SSH_AUTH_SOCK to use an agent; write `USER:@FILE@HOST` for a password",
                ),
        );
        return None;
    }
    Some(Credentials {
        password,
        keys,
        agent,
    })
}

/// Reads the passphrase: `None` if it is wrong, `Some(None)` without one.
#[expect(clippy::option_option, reason = "wrong, or not configured")]
fn read_passphrase(builder: &mut EndpointBuilder<'_, '_>) -> Option<Option<Secret>> {
    match builder.get(&PASSPHRASE) {
        None => Some(None),
        Some(written) => {
            let span = builder.value_span(&PASSPHRASE);
            builder.read_query_secret(&written, span).map(Some)
        }
    }
}

/// Returns a private key after a check that the passphrase decrypts it.
fn load_key(
    builder: &EndpointBuilder<'_, '_>,
    path: &str,
    text: Secret,
    passphrase: Option<Secret>,
) -> Result<SshKey, KeyError> {
    let phrase = passphrase.as_ref().map(|one| one.expose().as_bytes());
    // A key without encryption can be read with any passphrase.
    PrivateKey::from_text(text.expose(), phrase)?;
    let certificate = builder.read_optional_file(&format!("{path}-cert.pub"));
    Ok(SshKey {
        file: path.to_owned(),
        text,
        passphrase,
        certificate: certificate.map(|text| text.expose().to_owned()),
    })
}

/// Returns the error of a private key that cannot be read.
fn unreadable_key_error(path: &str, span: Span, why: &KeyError) -> ConfigError {
    let flaw = ConfigError::new(span, format!("`{path}` is not a usable private key"))
        .with_label(why.to_string());
    match why {
        KeyError::Encrypted => flaw.with_help("write `?passphrase=@FILE` or `?passphrase=$NAME`"),
        _ => flaw,
    }
}

/// Returns the user name accepted with keys, the users with passwords, and true for those of the fleet too.
pub(super) fn listener_users(
    builder: &mut EndpointBuilder<'_, '_>,
    by_key: bool,
) -> Option<(Option<String>, Vec<UserPassword>, bool)> {
    let endpoint = builder.endpoint();
    let (user, mut users) = match (&endpoint.user, &endpoint.secret) {
        (Some(user), None) if by_key => (Some(user.value.clone()), Vec::new()),
        _ => {
            let login = builder.read_login()?;
            let user = login.as_ref().map(|login| login.user.clone());
            (user, login.into_iter().collect::<Vec<_>>())
        }
    };
    let source = builder.get(&shared_keys::USERS);
    let fleet = source == Some(UserSource::Fleet);
    if let Some(UserSource::File(path)) = source {
        for login in builder.read_users_file(&path)? {
            if users.iter().any(|other| other.user == login.user) {
                let span = builder.value_span(&shared_keys::USERS);
                let title = format!("user `{}` is defined twice", login.user);
                builder.report_error(ConfigError::new(span, title));
                return None;
            }
            users.push(login);
        }
    }
    if users.is_empty() && !by_key && !fleet {
        let flaw = ConfigError::new(endpoint.address, "no user could log in").with_help(
            "write `?authorized_keys=@FILE` for keys, or `USER:PASSWORD@` before the host",
        );
        builder.report_error(flaw);
        return None;
    }
    Some((user, users, fleet))
}

/// Returns the path of the authorized keys after a check that all lines are valid.
pub(super) fn check_authorized_keys(
    builder: &mut EndpointBuilder<'_, '_>,
    path: &str,
    key: &ParamKey<Option<FilePath>>,
) -> Option<PathBuf> {
    let span = builder.value_span(key);
    let text = builder.read_public_file(path, span)?;
    let mut read = AuthorizedKeys::default();
    let problems = match read.add_file(path, text.as_bytes()) {
        Ok(problems) => problems,
        Err(why) => {
            let flaw =
                ConfigError::new(span, format!("cannot use `{path}`")).with_label(why.to_string());
            builder.report_error(flaw);
            return None;
        }
    };
    if let Some(first) = problems.first() {
        let flaw = ConfigError::new(span, format!("`{path}` has a line without a valid key"))
            .with_label(format!("{}: {}", first.place, first.why));
        builder.report_error(flaw);
        return None;
    }
    Some(builder.resolve_path(path))
}
