//! From arguments to settings.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::ssh_config::AlgorithmList;
use adit_cli::{Failure, FailureCode, state_folder};
use adit_ssh::server::ServerConfig;
use adit_ssh::{Keepalive, preferred_algorithms};
use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};
use adit_ssh_proto::key::{AddressRange, KeyGrant, KeySet};
use adit_stream::RelayTimeouts;
use adit_wire::{Host, Target};
use anyhow::Context;

use super::account::Account;
use super::admission::{AdmissionControl, StartupLimits};
use super::authorized_keys::AuthorizedKeysFiles;
use super::login_log::LogRateLimit;
use super::{environment, host_key};
use crate::args::SshdArgs;

/// Command name of the internal SFTP server, as in OpenSSH.
pub(super) const INTERNAL_SFTP: &str = "internal-sftp";
/// Time that one end of a forwarded connection may be silent after the other has ended.
const HALF_CLOSE_IDLE: Duration = Duration::from_secs(3600);

/// Settings shared by all connections.
pub(super) struct ServerSettings {
    pub(super) account: Arc<Account>,
    pub(super) keys: Arc<AuthorizedKeysFiles>,
    pub(super) admission: Arc<AdmissionControl>,
    /// Rate limit for log lines of failed logins.
    pub(super) failure_log: LogRateLimit,
    pub(super) server: ServerConfig,
    pub(super) command: Option<String>,
    pub(super) pty: bool,
    pub(super) forwarding: bool,
    pub(super) gateway_ports: bool,
    pub(super) accept_env: Vec<String>,
    /// Patterns of variables that `environment=` may set.
    pub(super) user_environment: Vec<String>,
    /// Files that clients with SFTP only cannot access: authorized keys and host keys.
    pub(super) protected: Vec<PathBuf>,
    pub(super) limits: RelayTimeouts,
}

/// Returns the settings, and the lines that describe the host keys.
pub(super) fn read_settings(typed: &SshdArgs) -> Result<(ServerSettings, Vec<String>), Failure> {
    let account = Arc::new(Account::current());
    let files = match &*typed.authorized_keys {
        [] => vec![PathBuf::from("~/.ssh/authorized_keys")],
        files => files.to_vec(),
    };
    let files: Vec<_> = files.iter().map(|file| account.expand_home(file)).collect();
    let protected = protected_paths(typed, &files)?;
    let startups = StartupLimits::parse(&typed.max_startups).ok_or_else(|| {
        invalid_value("--max-startups", &typed.max_startups)
            .with_hint("expected three numbers, such as `10:30:100`")
    })?;
    let exempt = typed.penalty_exempt.iter();
    let exempt = exempt
        .map(|net| AddressRange::parse(net).ok_or_else(|| invalid_value("--penalty-exempt", net)))
        .collect::<Result<_, _>>()?;
    let (host_keys, told) = load_host_keys(typed)?;
    let mut server = ServerConfig::new(Arc::new(host_keys));
    let usual = preferred_algorithms().for_server();
    let offered = &mut server.transport.preferred;
    let (ciphers, macs, kex) = (&typed.ciphers, &typed.macs, &typed.kex);
    offered.cipher = select_algorithms(
        "-c",
        ciphers,
        usual.cipher,
        (Cipher::ALL, Cipher::name, Cipher::by_name),
    )?;
    offered.mac = select_algorithms("-m", macs, usual.mac, (Mac::ALL, Mac::name, Mac::by_name))?;
    offered.kex = select_algorithms("--kex", kex, usual.kex, (Kex::ALL, Kex::name, Kex::by_name))?;
    server.auth.tries = typed.max_auth_tries;
    server.login_grace = typed.login_grace.max(Duration::from_secs(1));
    server.keepalive = (!typed.alive_interval.is_zero()).then_some(Keepalive {
        interval: typed.alive_interval,
        max_missed: typed.alive_count,
    });
    let settings = ServerSettings {
        keys: Arc::new(AuthorizedKeysFiles::new(Arc::clone(&account), files)),
        account,
        admission: AdmissionControl::new(startups, exempt),
        failure_log: LogRateLimit::default(),
        server,
        command: typed.command.clone(),
        pty: !typed.no_pty,
        forwarding: !typed.no_forwarding,
        gateway_ports: typed.gateway_ports,
        accept_env: typed.accept_env.clone(),
        user_environment: typed.permit_user_environment.clone(),
        protected,
        limits: RelayTimeouts::NEVER
            .with_idle(typed.idle)
            .with_half_close_idle(HALF_CLOSE_IDLE),
    };
    Ok((settings, told))
}

impl ServerSettings {
    /// Restricts the permissions of a key to those of the server.
    pub(super) fn restrict_grant(&self, mut grant: KeyGrant) -> KeyGrant {
        grant.pty &= self.pty;
        grant.port_forwarding &= self.forwarding;
        grant.agent_forwarding &= self.forwarding;
        if self.command.is_some() {
            grant.command.clone_from(&self.command);
        }
        let named =
            |pattern: &String, name: &str| environment::matches_variable(pattern, OsStr::new(name));
        grant.environment.retain(|(name, _)| {
            let permitted = &self.user_environment;
            permitted.iter().any(|one| named(one, name))
                && !environment::affects_program_start(name)
        });
        // With the internal SFTP server, nothing but files is allowed.
        if grant.command.as_deref().is_some_and(is_internal_sftp) {
            grant.pty = false;
            grant.port_forwarding = false;
            grant.agent_forwarding = false;
            grant.environment.clear();
        }
        grant
    }
}

/// Returns true if a forced command is the internal SFTP server.
pub(super) fn is_internal_sftp(command: &str) -> bool {
    command.split_whitespace().next() == Some(INTERNAL_SFTP)
}

/// Returns the absolute paths of the files that decide who may log in, and of the host keys.
fn protected_paths(typed: &SshdArgs, authorized: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = authorized.to_vec();
    for key in &typed.host_key {
        all.push(key.clone());
        all.extend([".pub", "-cert.pub"].map(|end| host_key::append_suffix(key, end)));
    }
    // Without a home there is no state folder.
    all.extend(state_folder(None).ok());
    // Programs of clients start in another folder.
    let all: std::io::Result<_> = all.iter().map(std::path::absolute).collect();
    Ok(all.context("cannot read the working directory")?)
}

/// Parses the address of `--listen`.
pub(super) fn parse_listen_address(text: &str) -> Result<SocketAddr, Failure> {
    let failure = |why: &dyn std::fmt::Display| {
        Failure::new(FailureCode::Usage, format!("--listen {text}: {why}"))
            .with_hint("--listen 2222 and '[::]:2222' accept IPv4 and IPv6 on port 2222")
    };
    let address = text.strip_prefix("ssh://").unwrap_or(text);
    let address = address.strip_suffix('/').unwrap_or(address);
    let port = address.strip_prefix(':').unwrap_or(address);
    if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) {
        let port = port.parse::<u16>().map_err(|why| failure(&why))?;
        return Ok((std::net::Ipv6Addr::UNSPECIFIED, port).into());
    }
    let target = address.parse::<Target>().map_err(|why| failure(&why))?;
    match target.host {
        Host::Ip(ip) => Ok((ip, target.port).into()),
        Host::Name(name) if name.as_str() == "localhost" => {
            Ok((std::net::Ipv4Addr::LOCALHOST, target.port).into())
        }
        Host::Name(_) => {
            Err(invalid_value("--listen", text).with_hint("use an IP address, not a name"))
        }
    }
}

/// Returns the failure for an invalid value.
fn invalid_value(option: &str, text: &str) -> Failure {
    Failure::new(
        FailureCode::Usage,
        format!("{option}: `{text}` is not valid"),
    )
}

/// Loads or creates the host keys.
fn load_host_keys(typed: &SshdArgs) -> Result<(KeySet, Vec<String>), Failure> {
    let files = match &*typed.host_key {
        [] => vec![state_folder(None)?.join("ssh_host_ed25519_key")],
        files => files.to_vec(),
    };
    let (mut keys, mut told) = (Vec::new(), Vec::new());
    for file in files {
        let loaded = host_key::load_or_create(&file)?;
        let public = loaded.key.key().public_key();
        told.push(format!(
            "host key {} {} ({} {})",
            public.fingerprint(),
            public.type_name(),
            if loaded.is_new {
                "created in"
            } else {
                "loaded from"
            },
            file.display(),
        ));
        keys.push(loaded.key);
    }
    Ok((KeySet::new(keys), told))
}

/// All algorithms of a kind, and the conversions from and to names.
type KnownAlgorithms<'a, T> = (&'a [T], fn(T) -> &'static str, fn(&str) -> Option<T>);

/// Applies an option to the usual algorithms. An unknown name is an error.
fn select_algorithms<T: Copy>(
    option: &str,
    list: &Option<String>,
    usual: Vec<T>,
    (all, name, by_name): KnownAlgorithms<'_, T>,
) -> Result<Vec<T>, Failure> {
    let Some(text) = list else { return Ok(usual) };
    let names_of = |some: &[T]| some.iter().copied().map(name).collect::<Vec<_>>();
    let names = names_of(&usual);
    let known = format!("supported are {}", names_of(all).join(","));
    let list = AlgorithmList::parse(text)
        .map_err(|why| Failure::new(FailureCode::Usage, format!("{option} {text}: {why}")))?;
    let mut all = Vec::new();
    for one in list.apply_to(&names) {
        all.push(
            by_name(&one).ok_or_else(|| invalid_value(option, &one).with_hint(known.clone()))?,
        );
    }
    match all.is_empty() {
        true => Err(Failure::new(
            FailureCode::Usage,
            format!("{option} {text}: no algorithm is left"),
        )
        .with_hint(known)),
        false => Ok(all),
    }
}
