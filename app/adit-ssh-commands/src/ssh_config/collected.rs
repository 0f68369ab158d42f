//! Settings collected so far; for each keyword, the first value counts.

use core::time::Duration;
use std::path::{Path, PathBuf};

use super::algorithms::AlgorithmList;
use super::expand::{ExpansionContext, replace_percent};
use super::forward::{SshBind, SshDestination, SshForward};
use super::jump::SshJump;
use super::settings::{
    AddressFamily, CheckHostKey, ForwardAgent, IdentityAgent, RekeyLimit, RequestTty, SshLogLevel,
    SshSettings, UpdateHostKeys,
};
use super::{SshConfigQuery, SshConfigSources};
use adit_config::text::Warning;

/// The proxy of a connection; `none` counts as a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProxySetting {
    Jump(Vec<SshJump>),
    Command(Option<String>),
}

/// Location of an agent, before paths are expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AgentSetting {
    No,
    Default,
    Variable(String),
    Socket(String),
}

#[derive(Debug, Clone, Default)]
pub(super) struct CollectedSettings {
    pub(super) host_name: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) user: Option<String>,
    pub(super) address_family: Option<AddressFamily>,
    pub(super) bind_address: Option<String>,
    pub(super) connect_timeout: Option<Option<Duration>>,
    pub(super) tcp_keep_alive: Option<bool>,
    pub(super) proxy: Option<ProxySetting>,
    pub(super) identity_files: Vec<String>,
    pub(super) certificate_files: Vec<String>,
    pub(super) identities_only: Option<bool>,
    pub(super) identity_agent: Option<AgentSetting>,
    pub(super) forward_agent: Option<AgentSetting>,
    pub(super) preferred_authentications: Option<Vec<String>>,
    pub(super) password_authentication: Option<bool>,
    pub(super) pubkey_authentication: Option<bool>,
    pub(super) keyboard_interactive: Option<bool>,
    pub(super) batch_mode: Option<bool>,
    pub(super) password_prompts: Option<u32>,
    pub(super) user_known_hosts: Option<Vec<String>>,
    pub(super) global_known_hosts: Option<Vec<String>>,
    pub(super) check_host_key: Option<CheckHostKey>,
    pub(super) hash_known_hosts: Option<bool>,
    pub(super) update_host_keys: Option<UpdateHostKeys>,
    pub(super) ciphers: Option<AlgorithmList>,
    pub(super) macs: Option<AlgorithmList>,
    pub(super) kex: Option<AlgorithmList>,
    pub(super) host_key_algorithms: Option<AlgorithmList>,
    pub(super) compression: Option<bool>,
    pub(super) rekey_limit: Option<RekeyLimit>,
    pub(super) server_alive_interval: Option<Duration>,
    pub(super) server_alive_count: Option<u32>,
    pub(super) local_forwards: Vec<SshForward>,
    pub(super) remote_forwards: Vec<SshForward>,
    pub(super) dynamic_forwards: Vec<SshForward>,
    pub(super) gateway_ports: Option<bool>,
    pub(super) exit_on_forward_failure: Option<bool>,
    pub(super) request_tty: Option<RequestTty>,
    pub(super) remote_command: Option<Option<String>>,
    pub(super) send_env: Vec<String>,
    pub(super) set_env: Option<Vec<(String, String)>>,
    pub(super) escape_char: Option<Option<char>>,
    pub(super) log_level: Option<SshLogLevel>,
    pub(super) ignore_unknown: Option<String>,
}

impl CollectedSettings {
    /// Returns the host to connect to, as far as it has been read.
    pub(super) fn current_host_name(&self, original: &str) -> Result<String, String> {
        match &self.host_name {
            None => Ok(original.to_owned()),
            Some(name) => {
                replace_percent(name, |token| (token == 'h').then(|| original.to_owned()))
            }
        }
    }

    /// Fills in defaults, replaces tokens and returns the settings.
    pub(super) fn into_settings(
        self,
        ask: &SshConfigQuery,
        sources: &dyn SshConfigSources,
        warnings: Vec<Warning>,
    ) -> Result<SshSettings, String> {
        let host_name = self
            .current_host_name(&ask.host)
            .map_err(|why| value_error("HostName", self.host_name.as_deref(), &why))?;
        let user = self.user.clone().unwrap_or_else(|| ask.local_user.clone());
        let tokens = ExpansionContext {
            host_name: &host_name,
            original_host: &ask.host,
            port: self.port.unwrap_or(22),
            remote_user: &user,
            local_user: &ask.local_user,
            local_host: &ask.local_host,
            home: &ask.home,
            sources,
        };
        let paths = PathExpander(&tokens);
        let named = !self.identity_files.is_empty();
        let identity_files = paths.expand_paths("IdentityFile", &self.identity_files)?;
        let usual = |names: [&str; 2], folder: &Path| names.map(|name| folder.join(name)).to_vec();
        let remote_command = match self.remote_command.flatten() {
            None => None,
            Some(command) => Some(
                tokens
                    .expand_percent(&command)
                    .map_err(|why| value_error("RemoteCommand", Some(&command), &why))?,
            ),
        };
        let (proxy_jump, proxy_command) = match self.proxy {
            Some(ProxySetting::Jump(jumps)) => (jumps, None),
            Some(ProxySetting::Command(command)) => (Vec::new(), command),
            None => (Vec::new(), None),
        };
        Ok(SshSettings {
            port: tokens.port,
            address_family: self.address_family.unwrap_or_default(),
            bind_address: self.bind_address,
            connect_timeout: self.connect_timeout.flatten(),
            tcp_keep_alive: self.tcp_keep_alive.unwrap_or(true),
            proxy_jump,
            proxy_command,
            identity_files: named.then_some(identity_files),
            certificate_files: paths.expand_paths("CertificateFile", &self.certificate_files)?,
            identities_only: self.identities_only.unwrap_or(false),
            identity_agent: match self.identity_agent {
                None | Some(AgentSetting::Default) => IdentityAgent::Default,
                Some(AgentSetting::No) => IdentityAgent::None,
                Some(AgentSetting::Variable(name)) => IdentityAgent::Variable(name),
                Some(AgentSetting::Socket(path)) => {
                    IdentityAgent::Socket(paths.expand_path("IdentityAgent", &path)?)
                }
            },
            forward_agent: match self.forward_agent {
                None | Some(AgentSetting::No) => ForwardAgent::No,
                Some(AgentSetting::Default) => ForwardAgent::Yes,
                Some(AgentSetting::Variable(name)) => ForwardAgent::Variable(name),
                Some(AgentSetting::Socket(path)) => {
                    ForwardAgent::Socket(paths.expand_path("ForwardAgent", &path)?)
                }
            },
            preferred_authentications: self.preferred_authentications,
            password_authentication: self.password_authentication.unwrap_or(true),
            pubkey_authentication: self.pubkey_authentication.unwrap_or(true),
            keyboard_interactive: self.keyboard_interactive.unwrap_or(true),
            batch_mode: self.batch_mode.unwrap_or(false),
            password_prompts: self.password_prompts.unwrap_or(3),
            user_known_hosts: match &self.user_known_hosts {
                Some(files) => paths.expand_paths("UserKnownHostsFile", files)?,
                None => usual(["known_hosts", "known_hosts2"], &ask.home.join(".ssh")),
            },
            global_known_hosts: match &self.global_known_hosts {
                Some(files) => paths.expand_paths("GlobalKnownHostsFile", files)?,
                None => usual(
                    ["ssh_known_hosts", "ssh_known_hosts2"],
                    &super::reader::system_folder(),
                ),
            },
            check_host_key: self.check_host_key.unwrap_or_default(),
            hash_known_hosts: self.hash_known_hosts.unwrap_or(false),
            update_host_keys: match (self.update_host_keys, &self.user_known_hosts) {
                // As in OpenSSH: a configured command must not wait for a question.
                (Some(UpdateHostKeys::Ask), _) if remote_command.is_some() => UpdateHostKeys::No,
                (Some(said), _) => said,
                // Files that others may maintain are not written without being asked.
                (None, Some(_)) => UpdateHostKeys::No,
                (None, None) => UpdateHostKeys::Yes,
            },
            ciphers: self.ciphers,
            macs: self.macs,
            kex: self.kex,
            host_key_algorithms: self.host_key_algorithms,
            compression: self.compression.unwrap_or(false),
            rekey_limit: self.rekey_limit.unwrap_or_default(),
            server_alive_interval: self.server_alive_interval.unwrap_or_default(),
            server_alive_count: self.server_alive_count.unwrap_or(3),
            local_forwards: paths.expand_forwards("LocalForward", self.local_forwards)?,
            remote_forwards: paths.expand_forwards("RemoteForward", self.remote_forwards)?,
            dynamic_forwards: self.dynamic_forwards,
            gateway_ports: self.gateway_ports.unwrap_or(false),
            exit_on_forward_failure: self.exit_on_forward_failure.unwrap_or(false),
            request_tty: self.request_tty.unwrap_or_default(),
            remote_command,
            send_env: self.send_env,
            set_env: self.set_env.unwrap_or_default(),
            escape_char: self.escape_char.unwrap_or(Some('~')),
            log_level: self.log_level.unwrap_or_default(),
            warnings,
            original_host: ask.host.clone(),
            host_name: host_name.clone(),
            user: user.clone(),
        })
    }
}

/// Path expansion whose errors name the keyword.
struct PathExpander<'a>(&'a ExpansionContext<'a>);

impl PathExpander<'_> {
    fn expand_path(&self, keyword: &str, text: &str) -> Result<PathBuf, String> {
        let expanded = self.0.expand_path(text);
        expanded.map_err(|why| value_error(keyword, Some(text), &why))
    }

    /// Expands all paths but `none`, which only means that the default files are not used.
    fn expand_paths(&self, keyword: &str, texts: &[String]) -> Result<Vec<PathBuf>, String> {
        let some = texts
            .iter()
            .filter(|text| !text.eq_ignore_ascii_case("none"));
        some.map(|text| self.expand_path(keyword, text)).collect()
    }

    fn expand_forwards(
        &self,
        keyword: &str,
        mut forwards: Vec<SshForward>,
    ) -> Result<Vec<SshForward>, String> {
        for forward in &mut forwards {
            for path in [
                match &mut forward.listen {
                    SshBind::Socket(path) => Some(path),
                    SshBind::Port { .. } => None,
                },
                match &mut forward.to {
                    SshDestination::Socket(path) => Some(path),
                    _ => None,
                },
            ]
            .into_iter()
            .flatten()
            {
                *path = self
                    .expand_path(keyword, path)?
                    .to_string_lossy()
                    .into_owned();
            }
        }
        Ok(forwards)
    }
}

fn value_error(keyword: &str, value: Option<&str>, why: &str) -> String {
    let value = value.unwrap_or_default();
    format!("{keyword} `{value}`: {why}")
}
