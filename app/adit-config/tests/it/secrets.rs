//! Secrets: their sources, and that no message shows them.

use adit_config::{ListenerKind, Plan, SsRole, WarningKind};
use proptest::prelude::*;

use crate::shortcuts::{shown, words, words_with};
use adit_config::text::MemorySources;

const SECRET: &str = "hunter2hunter2";

#[test]
fn files_and_variables_are_read() {
    let cabinet = MemorySources::default()
        .with_file("/etc/key", "pw\r\n")
        .with_variable("KEY", "other")
        .with_variable("HOME", "/home/me")
        .with_file("/home/me/key", " third ");
    for (secret, value) in [
        ("@/etc/key", "pw"),
        ("$KEY", "other"),
        ("@~/key", " third "),
    ] {
        let url = format!("ss://aes-128-gcm:{secret}@127.0.0.1:0");
        let plan = words_with(&[&url], &cabinet).unwrap();
        assert_eq!(plan.warnings, []);
        let ListenerKind::Shadowsocks(server) = &plan.routes[0].listen[0].kind else {
            panic!("{plan:?}");
        };
        assert_eq!(server.role, SsRole::Single(value.into()));
    }
}

#[test]
fn paths_in_a_file_begin_at_its_folder() {
    let cabinet = MemorySources::default().with_file("/etc/adit/key", "pw");
    let text = "[route.a]\nlisten = \"ss://aes-128-gcm:@key@127.0.0.1:0\"\n";
    assert!(Plan::from_toml_with(text, "/etc/adit/adit.toml", &cabinet).is_ok());
    assert!(Plan::from_toml_with(text, "/etc/adit.toml", &cabinet).is_err());
}

#[test]
fn users_come_from_a_file_too() {
    let cabinet = MemorySources::default().with_file("/u", "# staff\nanna:a:b\n\nbert:c\r\n");
    let plan = words_with(&["mixed://me:x@:1?users=@/u"], &cabinet).unwrap();
    let ListenerKind::Proxy(proxy) = &plan.routes[0].listen[0].kind else {
        panic!("{plan:?}");
    };
    let users: Vec<_> = proxy
        .users
        .iter()
        .map(|login| (login.user.as_str(), login.password.expose()))
        .collect();
    assert_eq!(users, [("me", "x"), ("anna", "a:b"), ("bert", "c")]);

    for (text, title) in [
        ("me:y\n", "user `me` is defined twice"),
        ("anna\n", "line 1 of `/u` is not `user:password`"),
        (":x\n", "line 1 of `/u` is not `user:password`"),
        ("# empty\n", "no user in `/u`"),
    ] {
        let cabinet = MemorySources::default().with_file("/u", text);
        let problems = words_with(&["mixed://me:x@:1?users=@/u"], &cabinet).unwrap_err();
        assert_eq!(problems[0].title, title);
    }
}

#[test]
fn what_is_missing_is_said() {
    assert_eq!(
        shown(words(&["ss://aes-128-gcm:@/no@:1", "socks5://u:$NO@h:1"])),
        "\
error: cannot read `/no`
 --> command line, column 18
  | ss://aes-128-gcm:***@:1
  |                  ^^^ no such file
  = help: if the secret begins with `@`, write `%40`
error: the environment variable `NO` is not set
 --> command line, column 12
  | socks5://u:***@h:1
  |            ^^^
  = help: if the secret begins with `$`, write `%24`"
    );
}

#[test]
fn secrets_in_the_open_are_warned_about() {
    let cabinet = MemorySources::default().with_open_file("/k", "pw");
    let plan = words_with(&["ss://aes-128-gcm:@/k@127.0.0.1:0"], &cabinet).unwrap();
    assert_eq!(plan.warnings[0].kind, WarningKind::ReadableSecret);
    let plan = words(&["socks5://u:hunter2@127.0.0.1:1"]).unwrap();
    assert_eq!(plan.warnings[0].kind, WarningKind::LiteralSecret);
    assert_eq!(
        plan.warnings[0].to_string(),
        "\
warning: a secret on the command line
 --> command line, column 12
  | socks5://u:***@127.0.0.1:1
  |            ^^^ every user of this machine can read it
  = help: write `@FILE` or `$NAME` instead (quote the `$` for the shell)"
    );
    // A file may contain secrets.
    let text = "[route.a]\nlisten = \"socks5://u:hunter2@127.0.0.1:1\"\n";
    assert_eq!(crate::shortcuts::toml(text).unwrap().warnings, []);
}

#[cfg(unix)]
#[test]
fn a_configuration_others_can_read_is_warned_about() {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("adit-config-{}.toml", std::process::id()));
    let kinds = |text: &str, mode: u32| {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let plan = Plan::from_file(&path).unwrap();
        plan.warnings
            .iter()
            .map(|warning| warning.kind)
            .collect::<Vec<_>>()
    };
    let with = "[route.a]\nlisten = \"socks5://u:hunter2@127.0.0.1:1\"\n";
    let without = "[route.a]\nlisten = \"socks5://127.0.0.1:1\"\n";
    let found = [
        kinds(with, 0o644),
        kinds(with, 0o600),
        kinds(without, 0o644),
    ];
    std::fs::remove_file(&path).unwrap();
    assert_eq!(found, [vec![WarningKind::ReadableSecret], vec![], vec![]]);
    let problems = Plan::from_file(&path).unwrap_err();
    assert!(problems[0].title.starts_with("cannot read `"));
}

/// URLs with a secret in every position, each malformed in a different way.
const BROKEN: [&str; 25] = [
    "socks5://u:SECRET@h:1080x",
    "sokcs5://u:SECRET@h:1080",
    "socks5://u:SECRET",
    "ss://aes-128-gcm:SECRET",
    "ss://aes-128-gcm:SECRET#name",
    "ss://2022-blake3-aes-128-gcm:SECRET@h:1",
    "ss://2022-blake3-aes-128-gcm:a:SECRET@h:1",
    "ss://aes-128-gcm:SECRET?x@h:1",
    "ss://aes-128-gcm:SECRET#x@h:1",
    "ss://aes-128-gcm:x?SECRET@h:1",
    "ss://aes-128-gcm:1?SECRET@h:1",
    "ss://aes-128-gcm:1#SECRET@h:1",
    "socks5://u:x SECRET@h:1",
    "socks5://u:?SECRET=@h:1x",
    "ss://aes-128-gcm:1?SECRET==@h:1",
    "http://:8080?users=anna:SECRET",
    "http://:8080?password=SECRET",
    "socks4a://u:SECRET@h:1",
    "ss://2022-blake3-aes-128-gcm:SECRET:SECRET@h:1",
    "ss://2022-blake3-aes-128-gcm%3ASECRET%3ASECRET@h:1",
    "ss://2022-blake3-aes-128-gcm:SECRET@h:1?users=@f&relay=@f",
    "ss://aes-256-gcm:SECRET@h:1?users=@f&udp=no",
    "ss://aes-256-gcm@h:1x?users=SECRET&relay=SECRET",
    "ss://aes-256-gcm:x@h:1x?plugin=p%3Bkey%3DSECRET",
    "ss://aes-256-gcm:x@h:1?plugin=p%3Bkey%3DSECRET&plugin_mode=udp",
];

#[test]
fn no_message_shows_a_secret() {
    for broken in BROKEN {
        let url = broken.replace("SECRET", SECRET);
        for words_ in [vec![url.as_str()], vec!["mixed://127.0.0.1:0", &url]] {
            let text = shown(words(&words_));
            assert!(!text.contains("hunter2"), "{text}");
        }
        let file =
            format!("[route.a]\nlisten = [\"{url}\", '{url}']\nvia = [[\"{url}\"], \"{url}\"]");
        let text = shown(crate::shortcuts::toml(&file));
        assert!(!text.contains("hunter2"), "{text}");
    }
    for file in [
        format!("[route.a]\npassword = \"{SECRET}\""),
        format!("[route.a]\nlisten = \"socks5://u:{SECRET}@h:1"),
        format!("[route.a]\nlisten = socks5://u:{SECRET}@h:1"),
        format!("[route.a]\nlisten = \"socks5://u:a'{SECRET}@h:1x\""),
        format!("[route.a]\nlisten = \"socks5://u:a\\\"{SECRET}@h:1x\""),
        format!("[route.a]\nlisten = \"socks5://u:a\"{SECRET}@h:1x\""),
    ] {
        let text = shown(crate::shortcuts::toml(&file));
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn a_plan_prints_no_secret() {
    let url = format!("ss://aes-128-gcm:{SECRET}@127.0.0.1:0");
    let plan = words(&[&url, &format!("socks5://u:{SECRET}@h:1")]).unwrap();
    assert!(!format!("{plan:?}").contains("hunter2"));
    assert!(!adit_config::explain_plan(&plan).contains("hunter2"));
    assert!(!format!("{:?}", adit_config::Endpoint::parse(&url)).contains("hunter2"));
}

proptest! {
    #[test]
    fn no_noise_around_a_secret_shows_it(
        scheme in prop::sample::select(vec!["ss", "SS", "socks5", "http", "mixed", "sss", "tcp"]),
        user in "[a-z]{1,6}",
        // `$NAME` names a variable, and messages contain the name too.
        a in "([!-#%-?A-~][!-?A-~]{0,5})?",
        b in "[!-?A-~]{0,6}",
        tail in prop::sample::select(vec!["@h:1x", "@h:1", "@h", "@h:1?udp=x", "@h:1#n", "@:1?a=b"]),
    ) {
        let secret = format!("{a}{SECRET}{b}");
        prop_assume!(!secret.contains("://"));
        let url = format!("{scheme}://{user}:{secret}{tail}");
        let files = [
            format!("[route.a]\nlisten = \"{url}\"\nvia = ['{url}', \"{url}\"]\nx = 1"),
            format!("[route.a]\nlisten = [\n  '{url}',\n]\nx = 1"),
        ];
        let mut texts = vec![
            every_text(words(&["mixed://127.0.0.1:0", &url])),
            every_text(words(&[&url, &url])),
        ];
        // A quotation mark can end the value, and the rest can be a comment.
        if !url.contains(['"', '\'']) {
            texts.extend(files.iter().map(|file| every_text(crate::shortcuts::toml(file))));
        }
        for text in texts {
            prop_assert!(!text.contains("hunter2"), "{}", text);
        }
    }
}

/// Returns the problems, or the warnings and the drawing.
fn every_text(result: Result<Plan, Vec<adit_config::Problem>>) -> String {
    match result {
        Err(problems) => shown(Err(problems)),
        Ok(plan) => {
            let warnings: Vec<_> = plan.warnings.iter().map(ToString::to_string).collect();
            format!(
                "{}\n{}",
                warnings.join("\n"),
                adit_config::explain_plan(&plan)
            )
        }
    }
}
