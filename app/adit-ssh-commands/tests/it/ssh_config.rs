//! The configuration of OpenSSH's client: values that count, and reports.

use std::path::PathBuf;
use std::time::Duration;

use adit_config::{Problem, WarningKind};
use adit_ssh_commands::ssh_config::{
    AlgorithmList, CheckHostKey, ForwardAgent, IdentityAgent, SshBind, SshConfigFiles,
    SshConfigQuery, SshDestination, SshJump, SshSettings,
};

use adit_config::text::MemorySources;

fn ask(host: &str) -> SshConfigQuery {
    SshConfigQuery {
        host: host.to_owned(),
        user: None,
        port: None,
        options: Vec::new(),
        files: SshConfigFiles::Default,
        local_user: "me".to_owned(),
        home: PathBuf::from("/home/me"),
        local_host: "desk.example.net".to_owned(),
    }
}

fn of_text(host: &str, text: &str) -> SshSettings {
    let sources = MemorySources::default().with_file("/home/me/.ssh/config", text);
    SshSettings::resolve(&ask(host), &sources).unwrap_or_else(|why| panic!("{why:?}"))
}

fn problems(text: &str) -> Vec<Problem> {
    let sources = MemorySources::default().with_file("/home/me/.ssh/config", text);
    SshSettings::resolve(&ask("h"), &sources).expect_err(text)
}

#[test]
fn the_first_value_counts_and_the_options_come_before_the_files() {
    let sources = MemorySources::default()
        .with_file(
            "/home/me/.ssh/config",
            "Port 1\nPort 2\nHost h\n User file\n Compression yes\n",
        )
        .with_file(
            "/etc/ssh/ssh_config",
            "Port 3\nUser system\nBatchMode yes\n",
        );
    let mut question = ask("h");
    question.options = vec!["user=option".to_owned(), "BatchMode no".to_owned()];
    let found = SshSettings::resolve(&question, &sources).unwrap();
    assert_eq!((found.port, found.user.as_str()), (1, "option"));
    assert!(found.compression && !found.batch_mode);
    question.user = Some("typed".to_owned());
    question.port = Some(9);
    let found = SshSettings::resolve(&question, &sources).unwrap();
    assert_eq!((found.port, found.user.as_str()), (9, "typed"));
}

#[test]
fn without_a_word_the_defaults_are_those_of_the_manual() {
    let found = SshSettings::resolve(&ask("h"), &MemorySources::default()).unwrap();
    assert_eq!(
        (found.port, found.user.as_str(), found.host_name.as_str()),
        (22, "me", "h")
    );
    assert_eq!(found.check_host_key, CheckHostKey::Ask);
    assert_eq!(found.identity_files, None);
    assert_eq!(found.identity_agent, IdentityAgent::Default);
    assert_eq!(found.forward_agent, ForwardAgent::No);
    assert_eq!(
        found.user_known_hosts[0],
        PathBuf::from("/home/me/.ssh/known_hosts")
    );
    assert_eq!(
        found.global_known_hosts[0],
        PathBuf::from("/etc/ssh/ssh_known_hosts")
    );
    assert_eq!((found.server_alive_count, found.password_prompts), (3, 3));
    assert_eq!(found.escape_char, Some('~'));
    assert!(found.tcp_keep_alive && found.warnings.is_empty());
}

#[test]
fn blocks_are_meant_by_patterns_and_conditions() {
    let text = "
Host *.example.com !secret.example.com
  Port 1
Host secret.*
  Port 2
Match host target
  User matched
Host alias
  HostName target
Match originalhost alias user me
  Compression yes
Match host target !user root
  BatchMode yes
Match all
  Port 7
";
    let port = |host| of_text(host, text).port;
    assert_eq!(port("www.example.com"), 1);
    assert_eq!(port("secret.example.com"), 2);
    assert_eq!(port("other"), 7);
    let alias = of_text("alias", text);
    assert_eq!(alias.host_name, "target");
    assert_eq!(
        alias.user, "me",
        "the name was not known yet when it was asked for"
    );
    assert!(alias.compression && alias.batch_mode);
}

#[test]
fn a_final_condition_reads_the_files_twice() {
    let text =
        "Match final host target\n User late\nHost alias\n HostName target\n IdentityFile ~/k\n";
    let found = of_text("alias", text);
    assert_eq!(found.user, "late");
    assert_eq!(
        found.identity_files,
        Some(vec![PathBuf::from("/home/me/k")])
    );
    assert_eq!(
        of_text("target", "Match !final all\n User early\n").user,
        "early"
    );
}

#[test]
fn files_are_included_in_place_and_within_their_block() {
    let sources = MemorySources::default()
        .with_file(
            "/home/me/.ssh/config",
            "Include conf.d/*.conf\nHost h\n Include only-h missing\n BatchMode yes\nHost other\n Include bad\n",
        )
        .with_file("/home/me/.ssh/conf.d/2.conf", "Port 2\nCompression yes\n")
        .with_file("/home/me/.ssh/conf.d/1.conf", "Host unmatched\n Port 9\nHost h\n Port 1\n")
        .with_file("/home/me/.ssh/conf.d/.hidden.conf", "Port 8\n")
        .with_file("/home/me/.ssh/conf.d/3.txt", "Port 8\n")
        .with_file("/home/me/.ssh/only-h", "Host x\n User x\nHost h\n User h\n")
        .with_file("/home/me/.ssh/bad", "Port nothing\n");
    let found = SshSettings::resolve(&ask("h"), &sources).unwrap();
    assert_eq!((found.port, found.user.as_str()), (1, "h"));
    assert!(
        found.compression && found.batch_mode,
        "the block goes on behind the include"
    );
    assert_eq!(SshSettings::resolve(&ask("x"), &sources).unwrap().port, 2);

    let circle = MemorySources::default()
        .with_file("/home/me/.ssh/config", "Include a\n")
        .with_file("/home/me/.ssh/a", "Include a a a\nPort 5\n");
    let why = SshSettings::resolve(&ask("h"), &circle).unwrap_err();
    assert!(
        why[0].label.contains("16 levels deep") || why[0].label.contains("512"),
        "{}",
        why[0]
    );
    assert!(why.len() <= 100);
}

#[test]
fn values_are_typed() {
    let text = "
Host h
  HostName %h.example.com
  ProxyJump a@b:2222,c
  LocalForward 8080 web:80
  RemoteForward 1080
  DynamicForward 127.0.0.1:1080
  IdentityFile ~/.ssh/%r@%h-%p
  IdentityFile \"%d/two words\"
  IdentityFile none
  Port 2200
  User joe
  ServerAliveInterval 1m30s
  RekeyLimit 1G 1h
  SendEnv LANG LC_* -LA*
  SetEnv A=b \"C=d e\"
  SetEnv A=later
  MACs ^umac-128@openssh.com
  IdentityAgent ${AGENT}/sock
  ForwardAgent $OTHER
  StrictHostKeyChecking accept-new
  EscapeChar none
  RemoteCommand echo \"hi\" %n %% # not a comment
";
    let sources = MemorySources::default()
        .with_file("/home/me/.ssh/config", text)
        .with_variable("AGENT", "/run/me");
    let found = SshSettings::resolve(&ask("h"), &sources).unwrap();
    assert_eq!(found.host_name, "h.example.com");
    let jump = |user: Option<&str>, host: &str, port| SshJump {
        user: user.map(str::to_owned),
        host: host.to_owned(),
        port,
    };
    assert_eq!(
        found.proxy_jump,
        [jump(Some("a"), "b", Some(2222)), jump(None, "c", None)]
    );
    assert_eq!(
        found.local_forwards[0].to,
        SshDestination::Port {
            host: "web".into(),
            port: 80
        }
    );
    assert_eq!(found.remote_forwards[0].to, SshDestination::Socks);
    let bind = SshBind::Port {
        address: Some("127.0.0.1".into()),
        port: 1080,
    };
    assert_eq!(found.dynamic_forwards[0].listen, bind);
    let files = ["/home/me/.ssh/joe@h.example.com-2200", "/home/me/two words"];
    assert_eq!(
        found.identity_files,
        Some(files.map(PathBuf::from).to_vec())
    );
    assert_eq!(found.server_alive_interval, Duration::from_secs(90));
    assert_eq!(found.rekey_limit.bytes, Some(1 << 30));
    assert_eq!(found.rekey_limit.time, Some(Duration::from_secs(3600)));
    assert_eq!(found.send_env, ["LC_*"]);
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(found.set_env, [pair("A", "b"), pair("C", "d e")]);
    assert_eq!(
        found.macs,
        Some(AlgorithmList::Prefer(vec!["umac-128@openssh.com".into()]))
    );
    assert_eq!(
        found.identity_agent,
        IdentityAgent::Socket("/run/me/sock".into())
    );
    assert_eq!(found.forward_agent, ForwardAgent::Variable("OTHER".into()));
    assert_eq!(found.check_host_key, CheckHostKey::AcceptNew);
    assert_eq!(found.escape_char, None);
    assert_eq!(
        found.remote_command.as_deref(),
        Some("echo \"hi\" h % # not a comment")
    );
}

#[test]
fn a_command_for_the_connection_is_never_left_out_in_silence() {
    let found = of_text("h", "ProxyCommand nc \"%h\" %p\nProxyJump b\n");
    assert_eq!(found.proxy_command.as_deref(), Some("nc \"%h\" %p"));
    assert!(found.proxy_jump.is_empty(), "the first of the two counts");
    let found = of_text("h", "ProxyJump b\nProxyCommand nc\n");
    assert_eq!((found.proxy_command, found.proxy_jump.len()), (None, 1));
    let found = of_text("h", "ProxyCommand none\nProxyJump b\n");
    assert_eq!((found.proxy_command, found.proxy_jump.len()), (None, 0));
}

#[test]
fn what_is_not_known_is_told_with_its_place() {
    let text = "Host h\n  IgnoreUnknown Use*\n  UseKeychain yes\n  Compresion yes\n  ControlMaster auto\nMatch exec \"rm -rf x\"\n Port 5\n";
    let found = of_text("h", text);
    assert_eq!(found.port, 22, "nothing is executed, and nothing counts");
    let told: Vec<String> = found.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    for (warning, words) in told.iter().zip([
        &[
            "config:4:3",
            "unknown keyword `Compresion`",
            "did you mean `Compression`?",
        ][..],
        &["config:5:3", "`ControlMaster` has no effect here"],
        &["config:6:1", "`exec`", "never matches"],
    ]) {
        for word in words {
            assert!(warning.contains(word), "`{word}` is not in:\n{warning}");
        }
    }
    assert_eq!(found.warnings[0].kind, WarningKind::UnknownKeyword);
}

#[test]
fn bad_values_are_errors_with_their_place() {
    for (text, words) in [
        (
            "Port x",
            &["config:1:6", "bad value of `Port`", "1 to 65535"][..],
        ),
        ("Host\n", &["config:1:1", "bad value of `Host`"]),
        (
            "# c\nHost other\n Compression maybe",
            &["config:3:14", "`yes`, `no`"],
        ),
        ("Match", &["bad value of `Match`"]),
        ("Match host", &["no value"]),
        ("Match all user x", &["`all` must be the only condition"]),
        ("Match colour blue", &["`colour` is not a condition"]),
        ("IdentityFile \"a", &["a quote is not closed"]),
        ("IdentityFile %Q", &["`%Q` is not a supported token"]),
        ("IdentityFile ${UNSET}/x", &["`UNSET` is not set"]),
        ("ProxyJump -oProxyCommand=x", &["bad value"]),
        ("HostName -oProxyCommand=x", &["bad value"]),
        ("RekeyLimit 5", &["at least 16"]),
        ("LocalForward 80", &["bad value"]),
        ("Ciphers a,,b", &["bad value"]),
        ("User a b", &["expected one value"]),
    ] {
        let why = problems(text);
        let told = why[0].to_string();
        for word in words {
            assert!(told.contains(word), "{text}: `{word}` is not in:\n{told}");
        }
    }
    let told = problems("SetEnv hunter2")[0].to_string();
    assert!(!told.contains("hunter2"), "{told}");
    let mut question = ask("h");
    for (option, word) in [
        ("Compresion=yes", "did you mean `Compression`?"),
        ("Port=0", "command line, column"),
        ("Match all", "not allowed as an option"),
    ] {
        question.options = vec![option.to_owned()];
        let why = SshSettings::resolve(&question, &MemorySources::default()).unwrap_err();
        assert!(why[0].to_string().contains(word), "{}", why[0]);
    }
}

#[test]
fn a_file_that_was_named_has_to_be_there() {
    let mut question = ask("h");
    question.files = SshConfigFiles::Only("/absent".into());
    let why = SshSettings::resolve(&question, &MemorySources::default()).unwrap_err();
    assert!(why[0].to_string().contains("cannot read `/absent`"));
    question.files = SshConfigFiles::None;
    assert!(SshSettings::resolve(&question, &MemorySources::default()).is_ok());
}
