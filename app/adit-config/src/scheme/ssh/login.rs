//! Who logs in, and by what.

use std::path::PathBuf;

use adit_ssh_proto::key::{AuthorizedKeys, KeyError, PrivateKey};

use super::{AGENT, KEY, PASSPHRASE};
use crate::schema::{FilePath, Key, Tristate};
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::keys;
use crate::scheme::typed::{Login, SshKey};
use crate::text::{Flaw, Secret, Span};

/// Files that are looked for, as OpenSSH does.
const USUAL: [&str; 3] = ["~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"];

/// By what a client can log in; there is something.
pub(super) struct Means {
    pub(super) password: Option<Secret>,
    pub(super) keys: Vec<SshKey>,
    pub(super) agent: Option<PathBuf>,
}

/// The user of a hop: as written, else who runs this.
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

/// Password, keys and agent of a hop.
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
            let flaw = Flaw::new(builder.value_span(&AGENT), "there is no agent to ask")
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
        let mut flaw = Flaw::new(builder.user_span(), "nothing to log in with");
        if let Some(path) = encrypted {
            flaw = flaw.label(format!("`{path}` cannot be read without its passphrase"));
        }
        builder.problem(
            flaw.help("`?key=@FILE` names a private key, `?passphrase=@FILE` what encrypts it")
                .help("an agent is asked if SSH_AUTH_SOCK is set; a password is `USER:@FILE@HOST`"),
        );
        return None;
    }
    Some(Means {
        password,
        keys,
        agent,
    })
}

#[expect(clippy::option_option, reason = "wrong, or none wanted")]
fn passphrase(builder: &mut EndpointBuilder<'_, '_>) -> Option<Option<Secret>> {
    match builder.get(&PASSPHRASE) {
        None => Some(None),
        Some(written) => {
            let span = builder.value_span(&PASSPHRASE);
            builder.written_secret(&written, span).map(Some)
        }
    }
}

/// A key that is known to be readable.
fn read(
    builder: &EndpointBuilder<'_, '_>,
    path: &str,
    text: Secret,
    passphrase: Option<Secret>,
) -> Result<SshKey, KeyError> {
    let phrase = passphrase.as_ref().map(|one| one.expose().as_bytes());
    // One without encryption is read with any passphrase.
    PrivateKey::read(text.expose(), phrase)?;
    let certificate = builder.optional_file(&format!("{path}-cert.pub"));
    Ok(SshKey {
        file: path.to_owned(),
        text,
        passphrase,
        certificate: certificate.map(|text| text.expose().to_owned()),
    })
}

fn unreadable(path: &str, span: Span, why: &KeyError) -> Flaw {
    let flaw = Flaw::new(span, format!("`{path}` is no private key that can be used"))
        .label(why.to_string());
    match why {
        KeyError::Encrypted => flaw.help("`?passphrase=@FILE` or `?passphrase=$NAME` opens it"),
        _ => flaw,
    }
}

/// The one name that keys let in, and who gets in by password.
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
                let title = format!("user `{}` is there twice", login.user);
                builder.problem(Flaw::new(span, title));
                return None;
            }
            users.push(login);
        }
    }
    if users.is_empty() && !by_key {
        let flaw = Flaw::new(endpoint.address, "nobody could log in")
            .help("`?authorized_keys=@FILE` lets keys in, `USER:PASSWORD@` before the host a user");
        builder.problem(flaw);
        return None;
    }
    Some((user, users))
}

/// Where the keys stand that let in; all of its lines can be read.
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
            let flaw = Flaw::new(span, format!("`{path}` cannot be used")).label(why.to_string());
            builder.problem(flaw);
            return None;
        }
    };
    if let Some(first) = problems.first() {
        let flaw = Flaw::new(span, format!("a line of `{path}` lets nobody in"))
            .label(format!("{}: {}", first.place, first.why));
        builder.problem(flaw);
        return None;
    }
    Some(builder.resolve(path))
}
