//! Table of keywords, each with its effect on [`CollectedSettings`].

use super::algorithms::AlgorithmList;
use super::collected::{Agent, CollectedSettings, Proxy};
use super::forward::SshForward;
use super::jump::SshJump;
use super::pattern;
use super::settings::{
    AddressFamily, CheckHostKey, RekeyLimit, RequestTty, SshLogLevel, UpdateHostKeys,
};
use super::value;

/// Maximum number of values that a keyword may accumulate.
const MOST: usize = 1000;

type Outcome = Result<(), String>;

/// A keyword. `set` takes the arguments and, for commands, the raw rest of the line.
pub(super) struct Keyword {
    pub(super) name: &'static str,
    pub(super) set: fn(&mut CollectedSettings, &[String], &str) -> Outcome,
}

/// Returns the keyword with this name, ignoring case.
pub(super) fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS
        .iter()
        .find(|keyword| keyword.name.eq_ignore_ascii_case(name))
}

/// Returns true if OpenSSH has the keyword, but it has no effect in adit.
pub(super) fn is_elsewhere(name: &str) -> bool {
    ELSEWHERE.iter().any(|one| one.eq_ignore_ascii_case(name))
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
    "AddressFamily" => |d, w, _| first(&mut d.address_family, value::one_of(FAMILIES, one(w)?)?),
    "BatchMode" => |d, w, _| switch(&mut d.batch_mode, w),
    "BindAddress" => |d, w, _| first(&mut d.bind_address, one(w)?.to_owned()),
    "CertificateFile" => |d, w, _| more(&mut d.certificate_files, one(w)?.to_owned()),
    "ChallengeResponseAuthentication" => |d, w, _| switch(&mut d.keyboard_interactive, w),
    "Ciphers" => |d, w, _| algorithms(&mut d.ciphers, w),
    // Unlike other switches, it does not accept `true`.
    "Compression" => |d, w, _| {
        first(&mut d.compression, value::one_of(&[("yes", true), ("no", false)], one(w)?)?)
    },
    "ConnectTimeout" => |d, w, _| {
        let text = one(w)?;
        let time = (text != "none").then(|| value::time(text)).transpose()?;
        // OpenSSH also treats 0 as no timeout.
        first(&mut d.connect_timeout, time.filter(|time| !time.is_zero()))
    },
    "DynamicForward" => |d, w, _| more(&mut d.dynamic_forwards, SshForward::dynamic(w)?),
    "EscapeChar" => |d, w, _| first(&mut d.escape_char, escape(one(w)?)?),
    "ExitOnForwardFailure" => |d, w, _| switch(&mut d.exit_on_forward_failure, w),
    "ForwardAgent" => |d, w, _| {
        let text = one(w)?;
        let agent = match value::switch(text) {
            Ok(true) => Agent::Usual,
            Ok(false) => Agent::No,
            Err(_) => agent(text),
        };
        first(&mut d.forward_agent, agent)
    },
    "GatewayPorts" => |d, w, _| switch(&mut d.gateway_ports, w),
    "GlobalKnownHostsFile" => |d, w, _| first(&mut d.global_known_hosts, some(w)?),
    "HashKnownHosts" => |d, w, _| switch(&mut d.hash_known_hosts, w),
    "HostKeyAlgorithms" => |d, w, _| algorithms(&mut d.host_key_algorithms, w),
    "HostName" => |d, w, _| {
        let text = one(w)?;
        if text.starts_with('-') || text.contains(char::is_whitespace) {
            return Err("expected a name or an address".to_owned());
        }
        first(&mut d.host_name, text.to_owned())
    },
    "IdentitiesOnly" => |d, w, _| switch(&mut d.identities_only, w),
    "IdentityAgent" => |d, w, _| {
        let agent = match one(w)? {
            "SSH_AUTH_SOCK" => Agent::Usual,
            text if text.eq_ignore_ascii_case("none") => Agent::No,
            text => agent(text),
        };
        first(&mut d.identity_agent, agent)
    },
    "IdentityFile" => |d, w, _| more(&mut d.identity_files, one(w)?.to_owned()),
    "IgnoreUnknown" => |d, w, _| first(&mut d.ignore_unknown, one(w)?.to_owned()),
    "KbdInteractiveAuthentication" => |d, w, _| switch(&mut d.keyboard_interactive, w),
    "KexAlgorithms" => |d, w, _| algorithms(&mut d.kex, w),
    "LocalForward" => |d, w, _| more(&mut d.local_forwards, SshForward::local(w)?),
    "LogLevel" => |d, w, _| first(&mut d.log_level, value::one_of(LEVELS, one(w)?)?),
    "MACs" => |d, w, _| algorithms(&mut d.macs, w),
    "NumberOfPasswordPrompts" => |d, w, _| first(&mut d.password_prompts, value::count(one(w)?)?),
    "PasswordAuthentication" => |d, w, _| switch(&mut d.password_authentication, w),
    "Port" => |d, w, _| first(&mut d.port, value::port(one(w)?)?),
    "PreferredAuthentications" => |d, w, _| {
        let names: Vec<String> = one(w)?.split(',').map(str::to_owned).collect();
        if names.iter().any(String::is_empty) || names.len() > MOST {
            return Err("expected names separated by commas".to_owned());
        }
        first(&mut d.preferred_authentications, names)
    },
    "ProxyCommand" => |d, _, rest| first(&mut d.proxy, Proxy::Command(command(rest)?)),
    "ProxyJump" => |d, w, _| first(&mut d.proxy, Proxy::Jump(SshJump::list(one(w)?)?)),
    "PubkeyAuthentication" => |d, w, _| {
        let yes = match one(w)? {
            "unbound" | "host-bound" => true,
            text => value::switch(text)?,
        };
        first(&mut d.pubkey_authentication, yes)
    },
    "RekeyLimit" => |d, w, _| first(&mut d.rekey_limit, rekey(w)?),
    "RemoteCommand" => |d, _, rest| first(&mut d.remote_command, command(rest)?),
    "RemoteForward" => |d, w, _| more(&mut d.remote_forwards, SshForward::remote(w)?),
    "RequestTTY" => |d, w, _| first(&mut d.request_tty, value::one_of(TTYS, one(w)?)?),
    "SendEnv" => |d, w, _| send_env(&mut d.send_env, w),
    "ServerAliveCountMax" => |d, w, _| first(&mut d.server_alive_count, value::count(one(w)?)?),
    "ServerAliveInterval" => |d, w, _| first(&mut d.server_alive_interval, value::time(one(w)?)?),
    "SetEnv" => |d, w, _| first(&mut d.set_env, set_env(w)?),
    "StrictHostKeyChecking" => |d, w, _| {
        first(&mut d.check_host_key, value::one_of(CHECKS, one(w)?)?)
    },
    "TCPKeepAlive" => |d, w, _| switch(&mut d.tcp_keep_alive, w),
    "UpdateHostKeys" => |d, w, _| {
        first(&mut d.update_host_keys, value::one_of(UPDATES, one(w)?)?)
    },
    "User" => |d, w, _| first(&mut d.user, one(w)?.to_owned()),
    "UserKnownHostsFile" => |d, w, _| first(&mut d.user_known_hosts, some(w)?),
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
const ELSEWHERE: &[&str] = &[
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

fn first<T>(slot: &mut Option<T>, value: T) -> Outcome {
    slot.get_or_insert(value);
    Ok(())
}

fn switch(slot: &mut Option<bool>, words: &[String]) -> Outcome {
    first(slot, value::switch(one(words)?)?)
}

/// Appends a value, unless it is already present.
fn more<T: PartialEq>(list: &mut Vec<T>, value: T) -> Outcome {
    if list.contains(&value) {
        return Ok(());
    }
    if list.len() >= MOST {
        return Err(format!("more than {MOST} values"));
    }
    list.push(value);
    Ok(())
}

fn one(words: &[String]) -> Result<&str, String> {
    match words {
        [word] if !word.is_empty() => Ok(word),
        [] | [_] => Err("the value is missing".to_owned()),
        _ => Err("expected one value; quote it if it contains spaces".to_owned()),
    }
}

fn some(words: &[String]) -> Result<Vec<String>, String> {
    if words.is_empty() || words.len() > MOST || words.iter().any(String::is_empty) {
        return Err("expected one or more files".to_owned());
    }
    Ok(words.to_vec())
}

fn algorithms(slot: &mut Option<AlgorithmList>, words: &[String]) -> Outcome {
    first(slot, AlgorithmList::read(one(words)?)?)
}

fn agent(text: &str) -> Agent {
    match text.strip_prefix('$') {
        Some(name) if !name.starts_with('{') => Agent::Variable(name.to_owned()),
        _ => Agent::Socket(text.to_owned()),
    }
}

/// Returns a command, which is the rest of the line including quotes; `none` is no command.
fn command(rest: &str) -> Result<Option<String>, String> {
    if rest.is_empty() {
        return Err("the command is missing".to_owned());
    }
    Ok((!rest.eq_ignore_ascii_case("none")).then(|| rest.to_owned()))
}

fn escape(text: &str) -> Result<Option<char>, String> {
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

fn rekey(words: &[String]) -> Result<RekeyLimit, String> {
    let (bytes, time) = match words {
        [bytes] => (bytes, None),
        [bytes, time] => (bytes, Some(time)),
        _ => return Err("expected a number of bytes and optionally a time".to_owned()),
    };
    let bytes = match &**bytes {
        "default" => None,
        text => match value::size(text)? {
            0 => None,
            // As in OpenSSH: a lower limit would exchange keys all the time.
            1..16 => return Err("expected at least 16 bytes".to_owned()),
            bytes => Some(bytes),
        },
    };
    let time = match time.map(|time| &**time) {
        None | Some("none") => None,
        Some(text) => Some(value::time(text)?).filter(|time| !time.is_zero()),
    };
    Ok(RekeyLimit { bytes, time })
}

/// Adds patterns; a pattern with a leading `-` removes those that it matches.
fn send_env(list: &mut Vec<String>, words: &[String]) -> Outcome {
    if words.is_empty() {
        return Err("expected names of variables".to_owned());
    }
    for word in words {
        if word.is_empty() || word.contains('=') {
            return Err("expected names of variables".to_owned());
        }
        match word.strip_prefix('-') {
            Some(gone) => list.retain(|one| !pattern::matches(gone, one)),
            None => more(list, word.clone())?,
        }
    }
    Ok(())
}

fn set_env(words: &[String]) -> Result<Vec<(String, String)>, String> {
    if words.is_empty() || words.len() > MOST {
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
