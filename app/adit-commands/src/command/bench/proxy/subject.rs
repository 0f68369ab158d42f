//! The protocols of adit that are measured, with the command lines of both ends.

use std::path::Path;

use adit_net::system::SystemRng;
use adit_shadowsocks::{Key, Method};
use adit_wire::Entropy;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::running::ScratchFolder;

/// A protocol of a program, and the processes that carry it.
#[derive(Debug)]
pub(super) struct Subject {
    /// The program and the protocol.
    pub(super) name: String,
    /// The protocol of the client's port.
    pub(super) entry: Entry,
    /// The client, or the only process.
    pub(super) client: ProcessCommand,
    pub(super) server: Option<ProcessCommand>,
}

/// The protocol in which the first process is asked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Entry {
    Socks5,
    Http,
}

/// A process of a subject. In its arguments, `{listen}` and `{server}` stand for the ports of this process and of the
/// server.
#[derive(Debug, Clone)]
pub(super) struct ProcessCommand {
    pub(super) program: String,
    pub(super) args: Vec<String>,
    /// The text of a configuration file, whose path stands for `{file}` in the arguments.
    pub(super) file: Option<String>,
}

impl ProcessCommand {
    pub(super) fn new(program: impl Into<String>, args: &[&str]) -> Self {
        Self {
            program: program.into(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            file: None,
        }
    }

    pub(super) fn with_file(mut self, text: String) -> Self {
        self.file = Some(text);
        self
    }
}

/// The methods of Shadowsocks that are measured, the recommended ones first.
pub(super) const METHODS: [Method; 5] = [
    Method::Blake3Aes128Gcm,
    Method::Blake3Aes256Gcm,
    Method::Blake3ChaCha20Poly1305,
    Method::Aes256Gcm,
    Method::ChaCha20IetfPoly1305,
];

/// The loopback network, which a server refuses unless it is named.
const ALLOW: &str = "allow_private=127.0.0.0/8";

/// Returns the protocols of this build of adit, whose program is `own`. The keys are made for this run.
pub(super) fn of_adit(own: &Path, folder: &ScratchFolder) -> Vec<Subject> {
    let own = own.to_string_lossy();
    let run = |words: &[&str]| ProcessCommand::new(own.as_ref(), &[&["run"], words].concat());
    let alone = |name: &str, entry, listen: &str| Subject {
        name: format!("adit: {name}"),
        entry,
        client: run(&[listen]),
        server: None,
    };
    let pair = |name: &str, hop: &str, query: &str| {
        let (listen, hop) = (
            hop.replace("{port}", "{listen}"),
            hop.replace("{port}", "{server}"),
        );
        let join = if listen.contains('?') { '&' } else { '?' };
        Subject {
            name: format!("adit: {name}"),
            entry: Entry::Socks5,
            client: run(&["socks5://127.0.0.1:{listen}", &format!("{hop}{query}")]),
            server: Some(run(&[&format!("{listen}{join}{ALLOW}")])),
        }
    };
    let mut subjects = vec![
        alone("socks5", Entry::Socks5, "socks5://127.0.0.1:{listen}"),
        alone("http", Entry::Http, "http://127.0.0.1:{listen}"),
    ];
    for method in METHODS {
        let url = format!("ss://{method}:{}@127.0.0.1:{{port}}", escaped_key(method));
        subjects.push(pair(&format!("ss, {method}"), &url, ""));
    }
    #[cfg(not(feature = "ssh"))]
    let _ = folder;
    #[cfg(feature = "ssr")]
    {
        let url = format!(
            "ssr://aes-256-ctr:{}@127.0.0.1:{{port}}?protocol=auth_aes128_sha1",
            random_password()
        );
        subjects.push(pair("ssr, aes-256-ctr, auth_aes128_sha1", &url, ""));
    }
    #[cfg(feature = "kcp")]
    {
        let method = Method::Blake3Aes128Gcm;
        let url = format!(
            "ss+kcp://{method}:{}@127.0.0.1:{{port}}",
            escaped_key(method)
        );
        subjects.push(pair("ss+kcp", &url, ""));
    }
    #[cfg(feature = "ssh")]
    {
        let (password, known) = (random_password(), folder.path("known_hosts"));
        let mut ssh = pair(
            "ssh",
            &format!("ssh://bench:{password}@127.0.0.1:{{port}}"),
            "",
        );
        let hop = format!(
            "?strict=accept-new&agent=false&known_hosts=@{}",
            encode(&known.to_string_lossy())
        );
        if let Some(last) = ssh.client.args.last_mut() {
            last.push_str(&hop);
        }
        let key = format!(
            "&host_key=@{}",
            encode(&folder.path("host_key").to_string_lossy())
        );
        if let Some(last) = ssh
            .server
            .as_mut()
            .and_then(|server| server.args.last_mut())
        {
            last.push_str(&key);
        }
        subjects.push(ssh);
    }
    subjects
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn escaped_key(method: Method) -> String {
    encode(&random_key(method))
}

/// Returns a key for both ends of one run.
pub(super) fn random_key(method: Method) -> String {
    let (_, secret) = Key::generate(method, &mut SystemRng);
    secret.to_string()
}

/// Returns a password for both ends of one run.
pub(super) fn random_password() -> String {
    let mut bytes = [0; 16];
    SystemRng.fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
