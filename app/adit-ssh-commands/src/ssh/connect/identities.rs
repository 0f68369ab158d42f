//! The user's keys: in an agent or in files, with or without certificates.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::ssh_config::{IdentityAgent, SshSettings};
use adit_cli::{Failure, FailureCode};
use adit_crypto::Secret;
use adit_ssh::BoxFuture;
use adit_ssh::client::{Agent, AgentKey, Identity, LocalKey, Login, SessionBinding};
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::auth::AuthMethod;
use adit_ssh_proto::key::{AnyKey, Certificate, KeyError, MAX_KEY_FILE, PrivateKey, PublicKey};
use adit_wire::u64_from;
use tracing::debug;

use super::connect_request::{is_quiet, nonempty_variable};
use super::host_key::KeyTrustCell;
use super::key_file::EncryptedKey;
use super::prompter::TerminalPrompter;
use crate::ssh::{platform, terminal};

/// Key files in `~/.ssh` that are used if none is configured, in OpenSSH's order.
const DEFAULT_KEY_NAMES: [&str; 3] = ["id_rsa", "id_ecdsa", "id_ed25519"];

/// Returns the login: user name, methods and identities.
pub(super) async fn build_login(
    settings: &SshSettings,
    taken: &KeyTrustCell,
) -> Result<Login, Failure> {
    let mut login = Login::new(settings.user.clone());
    login.methods = auth_methods(settings)?;
    login.prompts = settings.password_prompts;
    login.prompter = Some(Arc::new(TerminalPrompter::new(settings, taken)));
    if login.methods.contains(&AuthMethod::PublicKey) {
        login.identities = collect_identities(settings).await;
        for identity in &login.identities {
            let key = identity.key();
            debug!(
                "will try the key {} {}",
                key.key().type_name(),
                key.key().fingerprint()
            );
        }
    }
    Ok(login)
}

/// Returns the enabled authentication methods, in order of preference.
fn auth_methods(settings: &SshSettings) -> Result<Vec<AuthMethod>, Failure> {
    let wanted = match &settings.preferred_authentications {
        None => Login::new("").methods,
        Some(names) => names
            .iter()
            .filter_map(|name| AuthMethod::by_name(name))
            .collect(),
    };
    let allowed = |method: &AuthMethod| match method {
        AuthMethod::PublicKey => settings.pubkey_authentication,
        AuthMethod::Password => settings.password_authentication && !settings.batch_mode,
        AuthMethod::KeyboardInteractive => settings.keyboard_interactive && !settings.batch_mode,
    };
    let methods: Vec<AuthMethod> = wanted.into_iter().filter(allowed).collect();
    if methods.is_empty() {
        return Err(Failure::new(FailureCode::Config, "no authentication method is left")
            .with_hint("check PreferredAuthentications, BatchMode and the options that disable single methods"));
    }
    Ok(methods)
}

/// Returns the path of the agent's socket, if there is one.
pub(crate) fn agent_path(settings: &SshSettings) -> Option<PathBuf> {
    match &settings.identity_agent {
        IdentityAgent::None => None,
        IdentityAgent::Default => nonempty_variable("SSH_AUTH_SOCK")
            .map(PathBuf::from)
            .or_else(|| adit_config::DEFAULT_SSH_AGENT.map(PathBuf::from)),
        IdentityAgent::Variable(name) => nonempty_variable(name).map(PathBuf::from),
        IdentityAgent::Socket(path) => Some(path.clone()),
    }
}

/// Returns all keys in the order in which they are tried: configured keys that the agent has, the other keys
/// of the agent, then keys in files.
async fn collect_identities(settings: &SshSettings) -> Vec<Arc<dyn Identity>> {
    let mut agent = list_agent_keys(settings).await;
    let (files, named) = match &settings.identity_files {
        Some(files) => (files.clone(), true),
        None => (default_key_files(), false),
    };
    let mut certificates: Vec<Certificate> = settings
        .certificate_files
        .iter()
        .filter_map(|file| read_certificate(file, true))
        .collect();
    let mut held: Vec<Arc<dyn Identity>> = Vec::new();
    let mut from_files = Vec::new();
    for file in &files {
        if let Some(beside) = read_certificate(&with_suffix(file, "-cert.pub"), false)
            && !certificates.contains(&beside)
        {
            certificates.push(beside);
        }
        let public = read_public_key(file);
        let at = |agent: &[AgentKey], wanted: &PublicKey| {
            agent
                .iter()
                .position(|key| matches!(key.key(), AnyKey::Plain(key) if key == *wanted))
        };
        if let Some(at) = public.as_ref().and_then(|public| at(&agent, public)) {
            held.extend(with_certificates(Arc::new(agent.remove(at)), &certificates));
            continue;
        }
        match load_private_key(file, public, settings) {
            Ok(key) => from_files.extend(with_certificates(key, &certificates)),
            Err(why) if named || !is_missing(&why) => {
                if !is_quiet(settings) {
                    terminal::print_message(&format!(
                        "warning: skipping the key {}: {why}",
                        file.display()
                    ));
                }
            }
            Err(_) => {}
        }
    }
    if !settings.identities_only {
        held.extend(
            agent
                .into_iter()
                .flat_map(|key| with_certificates(Arc::new(key), &certificates)),
        );
    }
    held.extend(from_files);
    held
}

/// Returns true if the error is a missing file.
fn is_missing(why: &anyhow::Error) -> bool {
    let io = why.downcast_ref::<io::Error>();
    io.is_some_and(|why| why.kind() == io::ErrorKind::NotFound)
}

/// Returns the keys of the agent; none if it cannot be reached.
async fn list_agent_keys(settings: &SshSettings) -> Vec<AgentKey> {
    let Some(path) = agent_path(settings) else {
        return Vec::new();
    };
    let keys = async { Agent::connect(&path).await?.keys().await };
    keys.await.unwrap_or_else(|why| {
        debug!("{}: {why}", path.display());
        Vec::new()
    })
}

/// Returns the paths of the default key files.
fn default_key_files() -> Vec<PathBuf> {
    let folder = super::connect_request::home_folder().join(".ssh");
    DEFAULT_KEY_NAMES
        .iter()
        .map(|name| folder.join(name))
        .collect()
}

/// Appends a suffix to the name of a file.
fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Reads a key file of bounded length.
fn read_key_file(file: &Path) -> io::Result<Secret<String>> {
    let metadata = fs::metadata(file)?;
    let limit = u64_from(MAX_KEY_FILE);
    if !metadata.is_file() || metadata.len() > limit {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a key file"));
    }
    fs::read_to_string(file).map(Secret::new)
}

/// Reads a certificate. `told` is true if the file is configured, so that it is an error if it is missing.
fn read_certificate(file: &Path, told: bool) -> Option<Certificate> {
    let text = match read_key_file(file) {
        Ok(text) => text,
        Err(why) => {
            if told {
                terminal::print_message(&format!(
                    "warning: cannot use the certificate {}: {why}",
                    file.display()
                ));
            }
            return None;
        }
    };
    match Certificate::from_line(text.expose().trim()) {
        Ok((certificate, _)) => Some(certificate),
        Err(why) => {
            terminal::print_message(&format!(
                "warning: cannot use the certificate {}: {why}",
                file.display()
            ));
            None
        }
    }
}

/// Returns the public key of a key file, from the file itself or from the `.pub` file beside it.
fn read_public_key(file: &Path) -> Option<PublicKey> {
    let own = read_key_file(file).ok();
    if let Some(own) = &own {
        if let Ok(key) = PrivateKey::public_from_text(own.expose()) {
            return Some(key);
        }
        if let Ok((key, _)) = PublicKey::from_line(own.expose().trim()) {
            return Some(key);
        }
    }
    let beside = read_key_file(&with_suffix(file, ".pub")).ok()?;
    let (key, _) = PublicKey::from_line(beside.expose().trim()).ok()?;
    Some(key)
}

/// Loads the private key in a file, which no other user may be able to read.
fn load_private_key(
    file: &Path,
    public: Option<PublicKey>,
    settings: &SshSettings,
) -> anyhow::Result<Arc<dyn Identity>> {
    let text = read_key_file(file)?;
    let metadata = fs::metadata(file)?;
    platform::check_key_file(file, &metadata)?;
    match PrivateKey::from_text(text.expose(), None) {
        Ok(key) => Ok(Arc::new(LocalKey::new(key))),
        Err(KeyError::Encrypted) => {
            let Some(public) = public else {
                anyhow::bail!(
                    "it is encrypted, and its public key is missing; create it: ssh-keygen -y -f \
                     '{0}' > '{0}.pub'",
                    file.display()
                );
            };
            let (tries, batch) = (settings.password_prompts, settings.batch_mode);
            Ok(Arc::new(EncryptedKey::new(
                file, text, public, tries, batch,
            )))
        }
        Err(why) => Err(why.into()),
    }
}

/// An identity with a certificate; `inner` has the private key.
struct CertifiedIdentity {
    certificate: Certificate,
    inner: Arc<dyn Identity>,
}

impl Identity for CertifiedIdentity {
    fn key(&self) -> AnyKey {
        AnyKey::Certificate(Box::new(self.certificate.clone()))
    }

    fn needs_query(&self) -> bool {
        self.inner.needs_query()
    }

    fn bind_session<'a>(&'a self, session: &'a SessionBinding) -> BoxFuture<'a, ()> {
        self.inner.bind_session(session)
    }

    fn sign_data<'a>(
        &'a self,
        algorithm: KeyAlgorithm,
        data: &'a [u8],
    ) -> BoxFuture<'a, Option<Vec<u8>>> {
        // The signature is made by the plain key.
        self.inner.sign_data(algorithm.without_certificate(), data)
    }
}

/// Returns the key with each of its certificates, followed by the plain key.
fn with_certificates(key: Arc<dyn Identity>, all: &[Certificate]) -> Vec<Arc<dyn Identity>> {
    let public = key.key();
    let own = all.iter().filter(|one| one.key() == public.key());
    let mut found: Vec<Arc<dyn Identity>> = own
        .map(|certificate| {
            Arc::new(CertifiedIdentity {
                certificate: certificate.clone(),
                inner: Arc::clone(&key),
            }) as Arc<dyn Identity>
        })
        .collect();
    found.push(key);
    found
}
