//! Table of keywords, each with its effect on [`CollectedSettings`].

use super::algorithms::AlgorithmList;
use super::collected::{AgentSetting, CollectedSettings, ProxySetting};
use super::forward::SshForward;
use super::jump::SshJump;
use super::pattern;
use super::settings::{
    AddressFamily, CheckHostKey, RekeyLimit, RequestTty, SshLogLevel, UpdateHostKeys,
};
use super::value;

/// Maximum number of values that a keyword may accumulate.
const MAX_VALUES: usize = 1000;

type SetResult = Result<(), String>;

/// A keyword. `set` takes the arguments and, for commands, the raw rest of the line.
pub(super) struct Keyword {
    pub(super) name: &'static str,
    pub(super) set: fn(&mut CollectedSettings, &[String], &str) -> SetResult,
}

/// Returns the keyword with this name, ignoring case.
pub(super) fn find_keyword(name: &str) -> Option<&'static Keyword> {
    KEYWORDS
        .iter()
        .find(|keyword| keyword.name.eq_ignore_ascii_case(name))
}

/// Returns true if OpenSSH has the keyword, but it has no effect in adit.
pub(super) fn has_no_effect(name: &str) -> bool {
    KEYWORDS_WITHOUT_EFFECT
        .iter()
        .any(|one| one.eq_ignore_ascii_case(name))
}

macro_rules! keywords {
    ($($name:literal => |$collected:ident, $words:pat_param, $rest:pat_param| $set:expr,)*) => {
        /// All keywords except those that start blocks or include files.
        pub(super) const KEYWORDS: &[Keyword] = &[$(Keyword {
            name: $name,
            set: |$collected, $words, $rest| $set,
        }),*];
    };
}

keywords! {
    "AddressFamily" => |d, w, _| set_first(&mut d.address_family, value::parse_one_of(FAMILIES, single_value(w)?)?),
    "BatchMode" => |d, w, _| set_switch(&mut d.batch_mode, w),
    "BindAddress" => |d, w, _| set_first(&mut d.bind_address, single_value(w)?.to_owned()),
    "CertificateFile" => |d, w, _| push_value(&mut d.certificate_files, single_value(w)?.to_owned()),
    "ChallengeResponseAuthentication" => |d, w, _| set_switch(&mut d.keyboard_interactive, w),
    "Ciphers" => |d, w, _| set_algorithms(&mut d.ciphers, w),
    // Unlike other switches, it does not accept `true`.
    "Compression" => |d, w, _| {
        set_first(&mut d.compression, value::parse_one_of(&[("yes", true), ("no", false)], single_value(w)?)?)
    },
    "ConnectTimeout" => |d, w, _| {
        let text = single_value(w)?;
        let time = (text != "none").then(|| value::parse_time(text)).transpose()?;
        // OpenSSH also treats 0 as no timeout.
        set_first(&mut d.connect_timeout, time.filter(|time| !time.is_zero()))
    },
    "DynamicForward" => |d, w, _| push_value(&mut d.dynamic_forwards, SshForward::parse_dynamic(w)?),
    "EscapeChar" => |d, w, _| set_first(&mut d.escape_char, parse_escape(single_value(w)?)?),
    "ExitOnForwardFailure" => |d, w, _| set_switch(&mut d.exit_on_forward_failure, w),
    "ForwardAgent" => |d, w, _| {
        let text = single_value(w)?;
        let agent = match value::parse_switch(text) {
            Ok(true) => AgentSetting::Default,
            Ok(false) => AgentSetting::No,
            Err(_) => parse_agent(text),
        };
        set_first(&mut d.forward_agent, agent)
    },
    "GatewayPorts" => |d, w, _| set_switch(&mut d.gateway_ports, w),
    "GlobalKnownHostsFile" => |d, w, _| set_first(&mut d.global_known_hosts, file_list(w)?),
    "HashKnownHosts" => |d, w, _| set_switch(&mut d.hash_known_hosts, w),
    "HostKeyAlgorithms" => |d, w, _| set_algorithms(&mut d.host_key_algorithms, w),
    "HostName" => |d, w, _| {
        let text = single_value(w)?;
        if text.starts_with('-') || text.contains(char::is_whitespace) {
            return Err("expected a name or an address".to_owned());
        }
        set_first(&mut d.host_name, text.to_owned())
    },
    "IdentitiesOnly" => |d, w, _| set_switch(&mut d.identities_only, w),
    "IdentityAgent" => |d, w, _| {
        let agent = match single_value(w)? {
            "SSH_AUTH_SOCK" => AgentSetting::Default,
            text if text.eq_ignore_ascii_case("none") => AgentSetting::No,
            text => parse_agent(text),
        };
        set_first(&mut d.identity_agent, agent)
    },
    "IdentityFile" => |d, w, _| push_value(&mut d.identity_files, single_value(w)?.to_owned()),
    "IgnoreUnknown" => |d, w, _| set_first(&mut d.ignore_unknown, single_value(w)?.to_owned()),
    "KbdInteractiveAuthentication" => |d, w, _| set_switch(&mut d.keyboard_interactive, w),
    "KexAlgorithms" => |d, w, _| set_algorithms(&mut d.kex, w),
    "LocalForward" => |d, w, _| push_value(&mut d.local_forwards, SshForward::parse_local(w)?),
    "LogLevel" => |d, w, _| set_first(&mut d.log_level, value::parse_one_of(LEVELS, single_value(w)?)?),
    "MACs" => |d, w, _| set_algorithms(&mut d.macs, w),
    "NumberOfPasswordPrompts" => |d, w, _| set_first(&mut d.password_prompts, value::parse_count(single_value(w)?)?),
    "PasswordAuthentication" => |d, w, _| set_switch(&mut d.password_authentication, w),
    "Port" => |d, w, _| set_first(&mut d.port, value::parse_port(single_value(w)?)?),
    "PreferredAuthentications" => |d, w, _| {
        let names: Vec<String> = single_value(w)?.split(',').map(str::to_owned).collect();
        if names.iter().any(String::is_empty) || names.len() > MAX_VALUES {
            return Err("expected names separated by commas".to_owned());
        }
        set_first(&mut d.preferred_authentications, names)
    },
    "ProxyCommand" => |d, _, rest| set_first(&mut d.proxy, ProxySetting::Command(parse_command(rest)?)),
    "ProxyJump" => |d, w, _| set_first(&mut d.proxy, ProxySetting::Jump(SshJump::parse_list(single_value(w)?)?)),
    "PubkeyAuthentication" => |d, w, _| {
        let yes = match single_value(w)? {
            "unbound" | "host-bound" => true,
            text => value::parse_switch(text)?,
        };
        set_first(&mut d.pubkey_authentication, yes)
    },
    "RekeyLimit" => |d, w, _| set_first(&mut d.rekey_limit, parse_rekey_limit(w)?),
    "RemoteCommand" => |d, _, rest| set_first(&mut d.remote_command, parse_command(rest)?),
    "RemoteForward" => |d, w, _| push_value(&mut d.remote_forwards, SshForward::parse_remote(w)?),
    "RequestTTY" => |d, w, _| set_first(&mut d.request_tty, value::parse_one_of(TTYS, single_value(w)?)?),
    "SendEnv" => |d, w, _| update_send_env(&mut d.send_env, w),
    "ServerAliveCountMax" => |d, w, _| set_first(&mut d.server_alive_count, value::parse_count(single_value(w)?)?),
    "ServerAliveInterval" => |d, w, _| set_first(&mut d.server_alive_interval, value::parse_time(single_value(w)?)?),
    "SetEnv" => |d, w, _| set_first(&mut d.set_env, parse_set_env(w)?),
    "StrictHostKeyChecking" => |d, w, _| {
        set_first(&mut d.check_host_key, value::parse_one_of(CHECKS, single_value(w)?)?)
    },
    "TCPKeepAlive" => |d, w, _| set_switch(&mut d.tcp_keep_alive, w),
    "UpdateHostKeys" => |d, w, _| {
        set_first(&mut d.update_host_keys, value::parse_one_of(UPDATES, single_value(w)?)?)
    },
    "User" => |d, w, _| set_first(&mut d.user, single_value(w)?.to_owned()),
    "UserKnownHostsFile" => |d, w, _| set_first(&mut d.user_known_hosts, file_list(w)?),
}

const FAMILIES: &[(&str, AddressFamily)] = &[
    ("any", AddressFamily::Any),
    ("inet", AddressFamily::Inet),
    ("inet6", AddressFamily::Inet6),
];

const LEVELS: &[(&str, SshLogLevel)] = &[
    ("quiet", SshLogLevel::Quiet),
    ("fatal", SshLogLevel::Fatal),
    ("error", SshLogLevel::Error),
    ("info", SshLogLevel::Info),
    ("verbose", SshLogLevel::Verbose),
    ("debug", SshLogLevel::Debug1),
    ("debug1", SshLogLevel::Debug1),
    ("debug2", SshLogLevel::Debug2),
    ("debug3", SshLogLevel::Debug3),
];

const TTYS: &[(&str, RequestTty)] = &[
    ("auto", RequestTty::Auto),
    ("yes", RequestTty::Yes),
    ("true", RequestTty::Yes),
    ("no", RequestTty::No),
    ("false", RequestTty::No),
    ("force", RequestTty::Force),
];

const CHECKS: &[(&str, CheckHostKey)] = &[
    ("ask", CheckHostKey::Ask),
    ("yes", CheckHostKey::Strict),
    ("true", CheckHostKey::Strict),
    ("no", CheckHostKey::Off),
    ("false", CheckHostKey::Off),
    ("off", CheckHostKey::Off),
    ("accept-new", CheckHostKey::AcceptNew),
];

const UPDATES: &[(&str, UpdateHostKeys)] = &[
    ("yes", UpdateHostKeys::Yes),
    ("true", UpdateHostKeys::Yes),
    ("no", UpdateHostKeys::No),
    ("false", UpdateHostKeys::No),
    ("ask", UpdateHostKeys::Ask),
];

/// OpenSSH keywords that have no effect in adit.
const KEYWORDS_WITHOUT_EFFECT: &[&str] = &[
    "AddKeysToAgent",
    "BindInterface",
    "CanonicalDomains",
    "CanonicalizeFallbackLocal",
    "CanonicalizeHostname",
    "CanonicalizeMaxDots",
    "CanonicalizePermittedCNAMEs",
    "CASignatureAlgorithms",
    "ChannelTimeout",
    "CheckHostIP",
    "ClearAllForwardings",
    "ConnectionAttempts",
    "ControlMaster",
    "ControlPath",
    "ControlPersist",
    "EnableEscapeCommandline",
    "EnableSSHKeysign",
    "FingerprintHash",
    "ForkAfterAuthentication",
    "ForwardX11",
    "ForwardX11Timeout",
    "ForwardX11Trusted",
    "GSSAPIAuthentication",
    "GSSAPIDelegateCredentials",
    "HostbasedAcceptedAlgorithms",
    "HostbasedAuthentication",
    "HostKeyAlias",
    "IPQoS",
    "KbdInteractiveDevices",
    "KnownHostsCommand",
    "LocalCommand",
    "LogVerbose",
    "NoHostAuthenticationForLocalhost",
    "ObscureKeystrokeTiming",
    "PermitLocalCommand",
    "PermitRemoteOpen",
    "PKCS11Provider",
    "ProxyUseFdpass",
    "PubkeyAcceptedAlgorithms",
    "PubkeyAcceptedKeyTypes",
    "RequiredRSASize",
    "RevokedHostKeys",
    "SecurityKeyProvider",
    "SessionType",
    "StdinNull",
    "StreamLocalBindMask",
    "StreamLocalBindUnlink",
    "SyslogFacility",
    "Tag",
    "Tunnel",
    "TunnelDevice",
    "VerifyHostKeyDNS",
    "VisualHostKey",
    "XAuthLocation",
];

fn set_first<T>(slot: &mut Option<T>, value: T) -> SetResult {
    slot.get_or_insert(value);
    Ok(())
}

fn set_switch(slot: &mut Option<bool>, words: &[String]) -> SetResult {
    set_first(slot, value::parse_switch(single_value(words)?)?)
}

/// Appends a value, unless it is already present.
fn push_value<T: PartialEq>(list: &mut Vec<T>, value: T) -> SetResult {
    if list.contains(&value) {
        return Ok(());
    }
    if list.len() >= MAX_VALUES {
        return Err(format!("more than {MAX_VALUES} values"));
    }
    list.push(value);
    Ok(())
}

fn single_value(words: &[String]) -> Result<&str, String> {
    match words {
        [word] if !word.is_empty() => Ok(word),
        [] | [_] => Err("the value is missing".to_owned()),
        _ => Err("expected one value; quote it if it contains spaces".to_owned()),
    }
}

fn file_list(words: &[String]) -> Result<Vec<String>, String> {
    if words.is_empty() || words.len() > MAX_VALUES || words.iter().any(String::is_empty) {
        return Err("expected one or more files".to_owned());
    }
    Ok(words.to_vec())
}

fn set_algorithms(slot: &mut Option<AlgorithmList>, words: &[String]) -> SetResult {
    set_first(slot, AlgorithmList::parse(single_value(words)?)?)
}

fn parse_agent(text: &str) -> AgentSetting {
    match text.strip_prefix('$') {
        Some(name) if !name.starts_with('{') => AgentSetting::Variable(name.to_owned()),
        _ => AgentSetting::Socket(text.to_owned()),
    }
}

/// Returns a command, which is the rest of the line including quotes; `none` is no command.
fn parse_command(rest: &str) -> Result<Option<String>, String> {
    if rest.is_empty() {
        return Err("the command is missing".to_owned());
    }
    Ok((!rest.eq_ignore_ascii_case("none")).then(|| rest.to_owned()))
}

fn parse_escape(text: &str) -> Result<Option<char>, String> {
    let mut chars = text.chars();
    match (chars.next(), chars.next(), chars.next()) {
        _ if text.eq_ignore_ascii_case("none") => Ok(None),
        (Some('^'), Some(c @ '@'..='~'), None) => {
            Ok(u8::try_from(c).ok().map(|byte| char::from(byte & 31)))
        }
        (Some(c), None, None) if c.is_ascii() => Ok(Some(c)),
        _ => Err("expected a character, `^` and a letter, or `none`".to_owned()),
    }
}

fn parse_rekey_limit(words: &[String]) -> Result<RekeyLimit, String> {
    let (bytes, time) = match words {
        [bytes] => (bytes, None),
        [bytes, time] => (bytes, Some(time)),
        _ => return Err("expected a number of bytes and optionally a time".to_owned()),
    };
    let bytes = match &**bytes {
        "default" => None,
        text => match value::parse_size(text)? {
            0 => None,
            // As in OpenSSH: a lower limit would exchange keys all the time.
            1..16 => return Err("expected at least 16 bytes".to_owned()),
            bytes => Some(bytes),
        },
    };
    let time = match time.map(|time| &**time) {
        None | Some("none") => None,
        Some(text) => Some(value::parse_time(text)?).filter(|time| !time.is_zero()),
    };
    Ok(RekeyLimit { bytes, time })
}

/// Adds patterns; a pattern with a leading `-` removes those that it matches.
fn update_send_env(list: &mut Vec<String>, words: &[String]) -> SetResult {
    if words.is_empty() {
        return Err("expected names of variables".to_owned());
    }
    for word in words {
        if word.is_empty() || word.contains('=') {
            return Err("expected names of variables".to_owned());
        }
        match word.strip_prefix('-') {
            Some(gone) => list.retain(|one| !pattern::matches_pattern(gone, one)),
            None => push_value(list, word.clone())?,
        }
    }
    Ok(())
}

fn parse_set_env(words: &[String]) -> Result<Vec<(String, String)>, String> {
    if words.is_empty() || words.len() > MAX_VALUES {
        return Err("expected `NAME=value`".to_owned());
    }
    let mut all: Vec<(String, String)> = Vec::new();
    for word in words {
        let (name, value) = word
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| "expected `NAME=value`".to_owned())?;
        if !all.iter().any(|(one, _)| one == name) {
            all.push((name.to_owned(), value.to_owned()));
        }
    }
    Ok(all)
}
