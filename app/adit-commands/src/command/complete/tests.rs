//! Tests of the candidates for words of command lines.

use std::fs;
use std::path::PathBuf;

use clap::{Arg, Command};
use clap_complete::engine::ArgValueCompleter;

use super::*;

/// The values that are offered for the last word.
fn offered(words: &[&str]) -> Vec<String> {
    let typed = words.iter().map(OsString::from).collect();
    let found = find_candidates(typed, words.len() - 1).unwrap();
    let values = found.iter().map(|one| one.get_value().to_str().unwrap());
    values.map(str::to_owned).collect()
}

#[track_caller]
fn check(words: &[&str], some: &[&str], others: &[&str]) {
    let found = offered(words);
    for one in some {
        assert!(found.iter().any(|value| value == one), "{one}: {found:?}");
    }
    for one in others {
        assert!(!found.iter().any(|value| value == one), "{one}: {found:?}");
    }
    let typed = words.last().unwrap();
    assert!(
        found.iter().all(|value| value.starts_with(typed)),
        "{found:?}"
    );
}

#[test]
fn commands_and_options() {
    check(&["adit", "se"], &["server"], &["client", "sftp-server"]);
    check(&["adit", "server", "--sh"], &["--show-url"], &["--no-qr"]);
    // Neither the scripts' own command nor options for programs are offered.
    let all = offered(&["adit", ""]);
    assert!(!all.contains(&"complete".to_owned()), "{all:?}");
    assert!(!all.contains(&"--in-background".to_owned()), "{all:?}");
    check(
        &["adit", "help", "s"],
        &["server", "socks5", "ss"],
        &["users"],
    );
    check(&["adit", "man", "adit"], &["adit.toml", "adit-urls"], &[]);
}

#[test]
fn methods_wherever_one_is_named() {
    let aes = ["2022-blake3-aes-128-gcm", "2022-blake3-aes-256-gcm"];
    for words in [
        &["adit", "keygen", "2022-blake3-a"][..],
        &["adit", "server", "--method", "2022-blake3-a"],
        &["adit", "ss-local", "-m", "2022-blake3-a"],
    ] {
        assert_eq!(offered(words), aes, "{words:?}");
    }
    assert_eq!(
        offered(&["adit", "server", "--method=chacha20-i"]),
        ["--method=chacha20-ietf-poly1305", "--method=chacha20-ietf"]
    );
}

#[test]
fn modes_and_other_words() {
    let fast = ["fast", "fast2", "fast3"];
    assert_eq!(offered(&["adit", "kcp", "client", "--mode", "f"]), fast);
    assert_eq!(offered(&["adit", "kcp", "server", "--cc", "b"]), ["bbr"]);
    check(
        &["adit", "kcp", "client", "--crypt", "aes-1"],
        &["aes-128"],
        &[],
    );
    assert_eq!(offered(&["adit", "manager", "--mode", "udp"]), ["udp_only"]);
    check(
        &["adit", "ssr-local", "-O", "auth_s"],
        &["auth_sha1_v4"],
        &[],
    );
    check(
        &["adit", "ssr-local", "-o", "tls"],
        &["tls1.2_ticket_auth"],
        &[],
    );
}

#[test]
fn urls_in_their_parts() {
    for words in [&["adit", "run", "s"][..], &["adit", "client", "s"]] {
        check(words, &["ss://", "socks5://"], &["ss+kcp://"]);
    }
    check(&["adit", "run", "-L", "m"], &["mixed://"], &["ss://"]);
    check(&["adit", "run", "ss+"], &["ss+kcp://"], &["ss://"]);
    check(
        &["adit", "client", "ss://2022-blake3-aes-1"],
        &["ss://2022-blake3-aes-128-gcm:"],
        &[],
    );
    check(
        &["adit", "client", "ss+kcp://k@h:1?a=b&mo"],
        &["ss+kcp://k@h:1?a=b&mode="],
        &[],
    );
    check(
        &["adit", "client", "ss+kcp://k@h:1?mode=f"],
        &["ss+kcp://k@h:1?mode=fast3"],
        &[],
    );
    for word in [
        "ss://2022-blake3-aes-128-gcm:k",
        "nothing://",
        "ss://k@h:1",
        "mixed://",
    ] {
        assert_eq!(offered(&["adit", "client", word]), [""; 0], "{word}");
    }
}

#[cfg(unix)]
#[test]
fn algorithms_of_ssh() {
    check(
        &["adit", "ssh", "-c", "aes128-"],
        &["aes128-ctr", "aes128-gcm@openssh.com"],
        &[],
    );
    check(&["adit", "ssh", "-caes128-c"], &["-caes128-ctr"], &[]);
    check(
        &["adit", "ssh", "-c", "+aes128-ctr,aes"],
        &["+aes128-ctr,aes256-ctr"],
        &["+aes128-ctr,aes128-ctr"],
    );
    check(
        &["adit", "ssh", "-m", "umac-64"],
        &["umac-64@openssh.com", "umac-64-etm@openssh.com"],
        &[],
    );
    check(
        &["adit", "scp", "-c", "chacha"],
        &["chacha20-poly1305@openssh.com"],
        &[],
    );
    check(
        &["adit", "ssh", "-o", "Ke"],
        &["KexAlgorithms="],
        &["MACs="],
    );
    check(
        &["adit", "ssh", "-o", "KexAlgorithms=curve25519-sha256,ml"],
        &["KexAlgorithms=curve25519-sha256,mlkem768x25519-sha256"],
        &[],
    );
    check(
        &["adit", "sftp", "-o", "StrictHostKeyChecking="],
        &["StrictHostKeyChecking=accept-new"],
        &[],
    );
}

/// The options that are offered are keywords, and their words are values.
#[cfg(unix)]
#[test]
fn options_of_ssh_are_real() {
    use adit_config::text::MemorySources;
    use adit_ssh_commands::ssh_config::{SshConfigFiles, SshConfigQuery, SshSettings};

    for key in offered(&["adit", "ssh", "-o", ""]) {
        let values = match &offered(&["adit", "ssh", "-o", &key])[..] {
            [] => vec![format!("{key}1")],
            some => some.to_vec(),
        };
        for value in values {
            let question = SshConfigQuery {
                host: "h".to_owned(),
                user: None,
                port: None,
                options: vec![value.clone()],
                files: SshConfigFiles::None,
                local_user: "u".to_owned(),
                home: PathBuf::from("/home/u"),
                local_host: "here".to_owned(),
            };
            let resolved = SshSettings::resolve(&question, &MemorySources::default());
            let warnings = resolved
                .unwrap_or_else(|why| panic!("{value}: {why:?}"))
                .warnings;
            assert!(warnings.is_empty(), "{value}: {warnings:?}");
        }
    }
}

/// A folder that goes away with the test.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let name = format!("adit-complete-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join(".ssh/config.d")).unwrap();
        fs::create_dir_all(path.join("etc")).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn hosts(&self) -> Vec<String> {
        hosts::hosts_of_files(Some(&self.0), &self.0.join("etc"))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn hosts_of_the_configuration_and_of_known_keys() {
    let home = Home::new("hosts");
    assert_eq!(home.hosts(), [""; 0]);
    home.write(
        ".ssh/config",
        "# Host commented\nHost web db *.example !not \"quoted\" # later\n  User host\n\
         host=equal\nMatch host matched\nInclude config.d/*.conf ~/more\nInclude config\n",
    );
    home.write(".ssh/config.d/a.conf", "Host included\n");
    home.write(".ssh/config.d/b.txt", "Host other\n");
    home.write("more", "HOST tilde\n");
    home.write(
        ".ssh/known_hosts",
        "# c\n|1|salt=|hash= ssh-ed25519 AAAA\nkey.example,10.0.0.1 ssh-ed25519 AAAA\n\
         [port.example]:2222 ssh-ed25519 AAAA\n@revoked bad ssh-ed25519 AAAA\n*.wild ssh-rsa A\n",
    );
    home.write("etc/ssh_config", "Host system\n");
    home.write("etc/ssh_known_hosts", "web ssh-ed25519 AAAA\n");
    assert_eq!(
        home.hosts(),
        [
            "10.0.0.1",
            "db",
            "equal",
            "included",
            "key.example",
            "port.example",
            "quoted",
            "system",
            "tilde",
            "web"
        ]
    );
}

#[test]
fn a_configuration_cannot_make_completion_endless() {
    let home = Home::new("endless");
    let many: String = (0..5000).map(|at| format!("Host h{at}\n")).collect();
    home.write(
        ".ssh/config",
        &format!("{many}Include config config config\n"),
    );
    assert!(home.hosts().len() <= 2000);
    home.write(".ssh/config", &"x".repeat(3 << 20));
    assert_eq!(home.hosts(), [""; 0]);
}

#[test]
fn lines_are_what_each_shell_reads() {
    let of = |value: &str, shell, raw| {
        let candidate = CompletionCandidate::new(value).help(Some("Two\nlines".into()));
        format_line(&candidate, shell, raw)
    };
    for (value, shell, raw, wanted) in [
        ("a b", ScriptedShell::Bash, false, "a\\ b "),
        ("a b", ScriptedShell::Bash, true, "a b"),
        ("ss://", ScriptedShell::Bash, false, "ss://"),
        ("a", ScriptedShell::Zsh, false, "a\tTwo"),
        ("ss://", ScriptedShell::Fish, false, "ss://\tTwo"),
    ] {
        assert_eq!(of(value, shell, raw).as_deref(), Some(wanted));
    }
    for value in ["", "a\nb", "a\tb", "a\u{1b}[1m"] {
        assert_eq!(of(value, ScriptedShell::Bash, false), None, "{value:?}");
    }
}

#[test]
fn an_index_beyond_the_words_is_no_completion() {
    let words: Vec<OsString> = vec!["adit".into()];
    assert_eq!(find_candidates(words, 7).unwrap(), []);
    assert_eq!(find_candidates(Vec::new(), 0).unwrap(), []);
}

/// Values that only the user knows.
const UNKNOWN: &[&str] = &[
    "0|1",
    "[HOST:]PORT",
    "ADDR:PORT",
    "ADDRESS",
    "BYTES",
    "CHAR",
    "CIDR,…",
    "CIDR,…|all",
    "COMMAND",
    "FILTER",
    "HOST",
    "HOST:PORT",
    "HOST[:PORT]",
    "HOST:PORT|PATH",
    "ID",
    "KBIT",
    "KEY",
    "LISTENER",
    "MS",
    "N",
    "N,…",
    "N:PERCENT:N",
    "NAME",
    "NAME,…",
    "NODE",
    "OPTIONS",
    "PASSWORD",
    "PATH|HOST:PORT",
    "PORT",
    "RATE",
    "S",
    "SECONDS",
    "SIZE[/PERIOD]",
    "TEXT",
    "TIME",
    "TOKEN",
    "TIME|DATE",
    "USER",
    "WEIGHT",
    "WORDS",
    "[BIND:]PORT",
    "[BIND:]PORT:HOST:HOSTPORT",
    "[BIND:]PORT[:HOST:HOSTPORT]",
];

/// A new argument names a value that has completions, or is listed here.
#[test]
fn every_value_is_known_or_the_users() {
    fn below(command: &Command, unknown: &mut Vec<String>) {
        let takes = |arg: &&Arg| arg.get_action().takes_values() && !arg.is_hide_set();
        for arg in command.get_arguments().filter(takes) {
            let known = arg.get::<ArgValueCompleter>().is_some()
                || !arg.get_possible_values().is_empty()
                || arg.get_value_hint() != clap::ValueHint::Unknown;
            let name = completers::value_name(arg);
            if !known && !UNKNOWN.contains(&name.as_str()) {
                unknown.push(format!("{}: {name} ({})", command.get_name(), arg.get_id()));
            }
        }
        for command in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            below(command, unknown);
        }
    }
    let mut unknown = Vec::new();
    let command = completers::with_completers(Args::command());
    below(&command, &mut unknown);
    assert_eq!(unknown, [""; 0]);
}
