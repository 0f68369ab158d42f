//! Settings in the form of `ssh -G`.

use std::fmt::Display;
use std::path::PathBuf;

use adit_ssh_commands::ssh_config::{
    AddressFamily, AlgorithmList, CheckHostKey, ForwardAgent, IdentityAgent, RequestTty, SshBind,
    SshDestination, SshForward, SshSettings, UpdateHostKeys,
};

use super::Told;

fn yes(flag: bool) -> String {
    if flag { "yes" } else { "no" }.to_owned()
}

fn place(host: &str, port: u16) -> String {
    format!("[{host}]:{port}")
}

fn forward(one: &SshForward) -> String {
    let listen = match &one.listen {
        SshBind::Port {
            address: None,
            port,
        } => port.to_string(),
        SshBind::Port {
            address: Some(address),
            port,
        } if address.is_empty() => place("*", *port),
        SshBind::Port {
            address: Some(address),
            port,
        } => place(address, *port),
        SshBind::Socket(path) => path.clone(),
    };
    match &one.to {
        SshDestination::Port { host, port } => format!("{listen} {}", place(host, *port)),
        SshDestination::Socket(path) => format!("{listen} {path}"),
        SshDestination::Socks => listen,
    }
}

fn seconds(time: Option<std::time::Duration>) -> u64 {
    time.map_or(0, |time| time.as_secs())
}

/// Returns the settings of adit in the form of `ssh -G`. A setting that `ssh -G` omits is an empty list.
pub(super) fn ours(found: &SshSettings, defaults: &Told) -> Vec<(&'static str, Vec<String>)> {
    let one = |value: &dyn Display| vec![value.to_string()];
    let list = |key: &str, list: &Option<AlgorithmList>| {
        let defaults: Vec<&str> = defaults[key][0].split(',').collect();
        vec![match list {
            None => defaults.join(","),
            Some(list) => list.apply_to(&defaults).join(","),
        }]
    };
    let paths = |paths: &[PathBuf]| {
        let paths: Vec<&str> = paths.iter().filter_map(|path| path.to_str()).collect();
        vec![paths.join(" ")]
    };
    let jumps = found.proxy_jump.iter().map(|jump| {
        let user = jump
            .user
            .as_ref()
            .map_or(String::new(), |user| format!("{user}@"));
        let port = jump.port.map_or(String::new(), |port| format!(":{port}"));
        let host = match jump.host.contains(':') {
            true => format!("[{}]", jump.host),
            false => jump.host.clone(),
        };
        format!("{user}{host}{port}")
    });
    let jumps = jumps.collect::<Vec<_>>().join(",");
    vec![
        ("hostname", one(&found.host_name)),
        ("port", one(&found.port)),
        ("user", one(&found.user)),
        (
            "addressfamily",
            one(&match found.address_family {
                AddressFamily::Any => "any",
                AddressFamily::Inet => "inet",
                AddressFamily::Inet6 => "inet6",
            }),
        ),
        ("bindaddress", found.bind_address.iter().cloned().collect()),
        ("batchmode", one(&yes(found.batch_mode))),
        ("compression", one(&yes(found.compression))),
        ("tcpkeepalive", one(&yes(found.tcp_keep_alive))),
        (
            "connecttimeout",
            match found.connect_timeout {
                None => one(&"none"),
                some => one(&seconds(some)),
            },
        ),
        ("identitiesonly", one(&yes(found.identities_only))),
        (
            "passwordauthentication",
            one(&yes(found.password_authentication)),
        ),
        (
            "kbdinteractiveauthentication",
            one(&yes(found.keyboard_interactive)),
        ),
        ("pubkeyauthentication", one(&found.pubkey_authentication)),
        ("numberofpasswordprompts", one(&found.password_prompts)),
        (
            "preferredauthentications",
            found
                .preferred_authentications
                .iter()
                .map(|names| names.join(","))
                .collect(),
        ),
        (
            "stricthostkeychecking",
            one(&match found.check_host_key {
                CheckHostKey::Strict => "true",
                CheckHostKey::Ask => "ask",
                CheckHostKey::AcceptNew => "accept-new",
                CheckHostKey::Off => "false",
            }),
        ),
        ("hashknownhosts", one(&yes(found.hash_known_hosts))),
        (
            "updatehostkeys",
            one(&match found.update_host_keys {
                UpdateHostKeys::No => "false",
                UpdateHostKeys::Yes => "true",
                UpdateHostKeys::Ask => "ask",
            }),
        ),
        ("userknownhostsfile", paths(&found.user_known_hosts)),
        ("globalknownhostsfile", paths(&found.global_known_hosts)),
        ("ciphers", list("ciphers", &found.ciphers)),
        ("macs", list("macs", &found.macs)),
        ("kexalgorithms", list("kexalgorithms", &found.kex)),
        (
            "hostkeyalgorithms",
            list("hostkeyalgorithms", &found.host_key_algorithms),
        ),
        (
            "rekeylimit",
            one(&format!(
                "{} {}",
                found.rekey_limit.bytes.unwrap_or(0),
                seconds(found.rekey_limit.time)
            )),
        ),
        (
            "serveraliveinterval",
            one(&found.server_alive_interval.as_secs()),
        ),
        ("serveralivecountmax", one(&found.server_alive_count)),
        (
            "localforward",
            found.local_forwards.iter().map(forward).collect(),
        ),
        (
            "remoteforward",
            found
                .remote_forwards
                .iter()
                .map(|one| match &one.to {
                    SshDestination::Socks => format!("{} [socks]:0", forward(one)),
                    _ => forward(one),
                })
                .collect(),
        ),
        (
            "dynamicforward",
            found.dynamic_forwards.iter().map(forward).collect(),
        ),
        ("gatewayports", one(&yes(found.gateway_ports))),
        (
            "exitonforwardfailure",
            one(&yes(found.exit_on_forward_failure)),
        ),
        (
            "requesttty",
            one(&match found.request_tty {
                RequestTty::Auto => "auto",
                RequestTty::Yes => "true",
                RequestTty::No => "false",
                RequestTty::Force => "force",
            }),
        ),
        (
            "remotecommand",
            found.remote_command.iter().cloned().collect(),
        ),
        ("sendenv", found.send_env.clone()),
        (
            "setenv",
            found
                .set_env
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
        ),
        (
            "loglevel",
            one(&format!("{:?}", found.log_level)
                .to_uppercase()
                .replace("DEBUG1", "DEBUG")
                .replace("QUIET", "SILENT")),
        ),
        (
            "proxyjump",
            match jumps.is_empty() {
                true => vec![],
                false => vec![jumps],
            },
        ),
        (
            "identityagent",
            match &found.identity_agent {
                IdentityAgent::Default => vec![],
                IdentityAgent::None => one(&"none"),
                IdentityAgent::Variable(name) => one(&format!("${name}")),
                IdentityAgent::Socket(path) => one(&path.display()),
            },
        ),
        (
            "forwardagent",
            one(&match &found.forward_agent {
                ForwardAgent::No => "no".to_owned(),
                ForwardAgent::Yes => "yes".to_owned(),
                ForwardAgent::Variable(name) => format!("${name}"),
                ForwardAgent::Socket(path) => path.display().to_string(),
            }),
        ),
    ]
}
