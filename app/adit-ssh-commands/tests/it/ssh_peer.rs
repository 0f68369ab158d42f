//! Compares how OpenSSH (`ssh -G`) and adit read the same configuration.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod told;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, process};

use adit_config::SystemSources;
use adit_ssh_commands::ssh_config::{SshConfigFiles, SshConfigQuery, SshSettings};

use told::ours;

type Told = BTreeMap<String, Vec<String>>;

/// Returns the output of `ssh -G`. Requires OpenSSH's client: `apt-get install openssh-client`.
fn peer(args: &[&str]) -> Result<Told, String> {
    let output = Command::new("ssh").arg("-G").args(args).output();
    let output = output.expect("openssh-client is installed");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut told = Told::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        told.entry(key.to_owned())
            .or_default()
            .push(value.to_owned());
    }
    Ok(told)
}

struct PeerSetup {
    folder: PathBuf,
    defaults: Told,
    home: PathBuf,
    user: String,
}

impl PeerSetup {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("adit-ssh-config-{name}-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let defaults = peer(&["-F", "none", "h"]).unwrap();
        // ssh uses the user database, not the environment.
        let known = defaults["userknownhostsfile"][0].split(' ').next().unwrap();
        let home = known.strip_suffix("/.ssh/known_hosts").unwrap().into();
        let user = defaults["user"][0].clone();
        Self {
            folder,
            defaults,
            home,
            user,
        }
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn ours(&self, file: &str, host: &str, options: &[&str]) -> Result<SshSettings, String> {
        let question = SshConfigQuery {
            host: host.to_owned(),
            user: None,
            port: None,
            options: options.iter().map(|&option| option.to_owned()).collect(),
            files: SshConfigFiles::Only(file.into()),
            local_user: self.user.clone(),
            home: self.home.clone(),
            local_host: "desk".to_owned(),
        };
        SshSettings::resolve(&question, &SystemSources).map_err(|why| why[0].to_string())
    }

    /// Asserts that both read the same settings from the file.
    fn same(&self, text: &str, host: &str, options: &[&str]) {
        let file = self.write("config", text);
        let mut args = vec!["-F", &file];
        for option in options {
            args.extend(["-o", option]);
        }
        args.push(host);
        let theirs = peer(&args).unwrap_or_else(|why| panic!("{text}\n{why}"));
        let found = self
            .ours(&file, host, options)
            .unwrap_or_else(|why| panic!("{why}"));
        for (key, value) in ours(&found, &self.defaults) {
            let theirs = theirs.get(key).cloned().unwrap_or_default();
            assert_eq!(value, theirs, "`{key}` of {host} in\n{text}");
        }
        let files: Vec<PathBuf> = found.identity_files.unwrap_or_default();
        if !files.is_empty() {
            let home = self.home.to_str().unwrap();
            let expand = |text: &String| {
                PathBuf::from(text.replace('~', home).replace("%h", &found.host_name))
            };
            let theirs: Vec<PathBuf> = theirs["identityfile"].iter().map(expand).collect();
            assert_eq!(files, theirs, "{text}");
        }
    }
}

impl Drop for PeerSetup {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

const BIG: &str = "
# Everything at once
Host web
  HostName %h.example.com
  Port 2200
  User joe
  LocalForward 8080 web:80
  LocalForward *:8081 [::1]:80
  LocalForward 8080 web:80
  LocalForward localhost:8082 a.b:1
  RemoteForward 1080
  RemoteForward 0 a:1
  DynamicForward 127.0.0.1:1080
  DynamicForward 1081
  IdentityFile ~/.ssh/%h_key
  IdentityFile \"/k/two words\"
  ServerAliveInterval 1m30s
  ServerAliveCountMax=7
  RekeyLimit 1G 1h
  ConnectTimeout 1m
  ProxyJump a@b:22,c
  SendEnv LANG LC_* X
  SendEnv -X
  SetEnv A=b \"C=d e\"
  SetEnv Z=never
  RequestTTY force
  StrictHostKeyChecking accept-new
  Ciphers -aes*
  MACs ^umac-64@openssh.com
  KexAlgorithms +diffie-hellman-group14-sha1
  HostKeyAlgorithms ssh-ed25519,rsa-sha2-512
  UserKnownHostsFile ~/a /b
  GlobalKnownHostsFile /dev/null
  RemoteCommand echo \"hi\" %h
  LogLevel debug3
  PubkeyAuthentication no
  PasswordAuthentication no
  KbdInteractiveAuthentication no
  Compression yes
  IdentityAgent ~/sock
  IdentitiesOnly yes
  PreferredAuthentications publickey,password
  NumberOfPasswordPrompts 1
  AddressFamily inet6
  BindAddress 127.0.0.2
  TCPKeepAlive no
  GatewayPorts yes
  ExitOnForwardFailure yes
  HashKnownHosts yes
  UpdateHostKeys ask
  BatchMode yes
  ForwardAgent yes
Host *
  User late
  Port 1
  Compression no
  IdentityAgent none
  UserKnownHostsFile /c
  RekeyLimit default none
  ConnectTimeout none
";

// Debian's ssh has a different default of ServerAliveInterval with BatchMode.
const BLOCKS: &str = "
Host \"*.example.com\" !secret.example.com
  Port 1
Host secret.* ????
  Port 2
Match host target
  User matched
Host alias
  HostName target
Match originalhost alias
  Compression yes
Match host target,x !user other,root2
  BatchMode yes
Match !host *.com originalhost *
  GatewayPorts yes
Match final host target
  ForwardAgent yes
  AddressFamily=inet
Match user joe
  LogLevel quiet
Match localuser other
  LogLevel fatal
Match all
  User\tjoe
  Port 7
  ServerAliveInterval 5
";

#[test]
fn the_peer_reads_the_same() {
    let setup = PeerSetup::new("same");
    for host in ["web", "other"] {
        setup.same(BIG, host, &[]);
        setup.same(BIG, host, &["User=opt", "port 99", "Ciphers=+aes128-cbc"]);
    }
    for host in [
        "www.example.com",
        "secret.example.com",
        "four",
        "alias",
        "target",
        "x",
        "y.com",
    ] {
        setup.same(BLOCKS, host, &[]);
    }
    for value in ["yes", "no", "ask"] {
        let text = format!("UserKnownHostsFile /a\nUpdateHostKeys {value}\n");
        setup.same(&text, "h", &[]);
    }
    setup.same("UpdateHostKeys ask\n", "h", &["RemoteCommand=x"]);
    setup.same("UserKnownHostsFile /a\n", "h", &[]);
}

#[test]
fn the_peer_includes_the_same() {
    let setup = PeerSetup::new("include");
    let folder = setup.folder.display();
    setup.write("1.inc", "Host unmatched\n Port 9\nHost h\n Port 1\n");
    setup.write("2.inc", "Port 2\nUser two\n");
    setup.write(".3.inc", "BatchMode yes\n");
    setup.write("inner", "Compression yes\nHost x\n LogLevel quiet\n");
    let text = format!(
        "Include {folder}/*.inc {folder}/absent\nHost h x\n Include {folder}/inner\n GatewayPorts yes\nHost z\n Include {folder}/inner\n"
    );
    for host in ["h", "x", "unmatched", "z"] {
        setup.same(&text, host, &[]);
    }
}

#[test]
fn what_the_peer_refuses_is_refused() {
    let setup = PeerSetup::new("refused");
    for (text, fine) in [
        ("Port 0", false),
        ("Port 65536", false),
        ("Port 22 23", false),
        ("Port", false),
        ("Port \"22\"", true),
        ("Port=22", true),
        ("Port 22 # why", true),
        ("Host", false),
        ("Host other\n Port x", false),
        ("Match", false),
        ("Match all user x", false),
        ("Match host", false),
        ("Match colour blue", false),
        ("BatchMode maybe", false),
        ("BatchMode true", true),
        ("Compression true", false),
        ("User \"a", false),
        ("SetEnv A", false),
        ("SendEnv A=b", false),
        ("RekeyLimit 5", false),
        ("RekeyLimit 16", true),
        ("RekeyLimit none", false),
        ("LocalForward 80", false),
        ("LocalForward 1 a:2 x", false),
        ("DynamicForward a:b", false),
        ("RemoteForward", false),
        ("ServerAliveInterval 1x", false),
        ("ServerAliveInterval 1w2d", true),
        ("ConnectTimeout 0", true),
        ("AddressFamily ipv4", false),
        ("LogLevel loud", false),
        ("LogLevel VERBOSE", true),
        ("RequestTTY often", false),
        ("StrictHostKeyChecking perhaps", false),
        ("ProxyJump none", true),
        ("ProxyJump a:0", false),
        ("EscapeChar none", true),
        ("EscapeChar ^]", true),
        ("EscapeChar xy", false),
        ("Include", false),
        ("IgnoreUnknown Foo*\nFooBar 1", true),
    ] {
        let file = setup.write("config", &format!("{text}\n"));
        let (theirs, ours) = (peer(&["-F", &file, "h"]), setup.ours(&file, "h", &[]));
        assert_eq!(theirs.is_ok(), fine, "{text}: {theirs:?}");
        assert_eq!(ours.is_ok(), fine, "{text}: {ours:?}");
    }
}
