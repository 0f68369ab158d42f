//! The command line: its output, its exit codes, and its error messages.

use std::net::TcpListener;
use std::process::Command;
use std::thread;
use std::time::Duration;

use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::origin::OriginServer;
use adit_interop::recording_relay::RecordingRelay;
use adit_interop::shadowsocks::{AES_256, BLAKE3_AES_128, METHODS, MethodKey};
use adit_interop::socks_client::{self, Destination};
use adit_interop::traffic;
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr};

use crate::setup::{ALLOW, bin, ended, says, server, start};

const CONFIG: Option<i32> = Some(3);

/// Runs a command that must fail with a configuration error. Returns its output.
fn config_error(args: &[&str]) -> String {
    let ToolOutput { code, output } = ended(args);
    assert_eq!(code, CONFIG, "{args:?}:\n{output}");
    assert!(!output.contains("panicked"), "{output}");
    output
}

#[test]
fn keygen_makes_a_new_key_of_the_right_length() {
    for method in METHODS {
        let make = || {
            ended(&["keygen", method.name])
                .expect_success()
                .unwrap()
                .trim()
                .to_owned()
        };
        let (one, two) = (make(), make());
        assert_ne!(one, two, "{}", method.name);
        let back = start(&[
            "run",
            &format!("ss://{}:{one}@127.0.0.1:0?{ALLOW}", method.name),
        ]);
        let origin = OriginServer::start().unwrap();
        let hop = format!("ss://{}:{one}@{}", method.name, back.addr());
        let front = start(&["run", &format!("tcp://127.0.0.1:0/{}", origin.addr()), &hop]);
        traffic::check_one_byte(traffic::connect_directly(front.addr()).unwrap()).unwrap();
        front.stop().unwrap();
        back.stop().unwrap();
        if method.name.starts_with("2022-") {
            let wanted = if method == BLAKE3_AES_128 { 24 } else { 44 };
            assert_eq!(one.len(), wanted, "{}: {one}", method.name);
        }
    }
    says(
        &config_or_usage(&["keygen", "2022-blake3-aes-128-gmc"]),
        &["2022-blake3-aes-128-gcm"],
    );
}

fn config_or_usage(args: &[&str]) -> String {
    let ToolOutput { code, output } = ended(args);
    assert!(matches!(code, Some(2 | 3)), "{args:?}: {code:?}\n{output}");
    output
}

#[test]
fn unknown_words_are_told_with_the_nearest_known_one() {
    let key = BLAKE3_AES_128.key;
    for (url, words) in [
        ("mixt://127.0.0.1:0".to_owned(), &["mixt", "mixed"][..]),
        (
            format!("ss://2022-blake3-aes-128-gmc:{key}@127.0.0.1:0"),
            &["2022-blake3-aes-128-gmc", "2022-blake3-aes-128-gcm"],
        ),
        (
            "mixed://127.0.0.1:0?alow_private=::1/128".to_owned(),
            &["alow_private", "allow_private"],
        ),
    ] {
        let output = config_error(&["run", &url]);
        says(&output, words);
        assert!(!output.contains(key), "the key is shown:\n{output}");
    }
}

#[test]
fn a_wrong_key_is_told_with_the_command_that_makes_one() {
    for key in ["hello", "AAECAwQFBgcICQoLDA0O", "%%%"] {
        let output = config_error(&[
            "run",
            &format!("ss://{}:{key}@127.0.0.1:0", BLAKE3_AES_128.name),
        ]);
        says(&output, &["keygen 2022-blake3-aes-128-gcm"]);
    }
}

#[test]
fn other_wrong_urls_are_config_errors() {
    for url in [
        "127.0.0.1",
        "127.0.0.1:99999",
        "mixed://127.0.0.1:99999",
        "mixed://127.0.0.1",
        "ss://127.0.0.1:8388",
        "tcp://127.0.0.1:0",
        "tcp://127.0.0.1:0/nowhere",
        "mixed://127.0.0.1:0?allow_private=10.0.0.0/99",
        "mixed://[::1:1080",
    ] {
        config_error(&["run", url]);
    }
    // An open proxy on all addresses must be allowed explicitly (SEC-E1).
    says(&config_error(&["run", "mixed://0.0.0.0:0"]), &["open"]);
}

#[test]
fn a_wrong_file_is_told_with_its_line() {
    let folder = TempFolder::new("cli").unwrap();
    let text = "[route.home]\nlisten = [\"mixed://127.0.0.1:0\"]\nvai = [\"direct://\"]\n";
    let file = folder.write_file("wrong.toml", text).unwrap();
    let file = file.to_str().unwrap();
    for command in ["run", "check", "explain"] {
        says(
            &config_error(&[command, "-c", file]),
            &["wrong.toml:3", "vai", "via"],
        );
    }
    let file = folder.write_file("broken.toml", "[route.home\n").unwrap();
    says(
        &config_error(&["run", "-c", file.to_str().unwrap()]),
        &["broken.toml:1"],
    );
    config_error(&[
        "run",
        "-c",
        folder.path().join("absent.toml").to_str().unwrap(),
    ]);
}

#[test]
fn a_file_says_the_same_as_the_command_line() {
    let folder = TempFolder::new("cli").unwrap();
    let (origin, port) = (OriginServer::start().unwrap(), free_port());
    let text = format!(
        "[route.server]\nlisten = [\"{}?{ALLOW}\"]\n\n[route.entry]\n\
         listen = [\"tcp://127.0.0.1:0/{}\"]\nvia = [\"{}\"]\n",
        BLAKE3_AES_128.url(loopback_addr(port)),
        origin.addr(),
        BLAKE3_AES_128.url(loopback_addr(port)),
    );
    let file = folder.write_file("adit.toml", text).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(ended(&["check", "-c", file]).code, Some(0));
    let adit = AditProcess::start_with(&bin(), &["run", "-c", file], 2).unwrap();
    let entry = adit
        .addrs()
        .iter()
        .find(|addr| addr.port() != port)
        .unwrap();
    traffic::check_one_byte(traffic::connect_directly(*entry).unwrap()).unwrap();
    adit.stop().unwrap();
}

#[test]
fn a_taken_port_is_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let ToolOutput { code, output } = ended(&["run", &format!("mixed://{addr}")]);
    assert!(matches!(code, Some(1 | 4)), "{code:?}\n{output}");
    says(&output, &[&addr, "in use"]);
}

#[test]
fn sigterm_ends_it_well_with_work_in_progress() {
    let origin = OriginServer::start().unwrap();
    let entry = start(&["run", &format!("tcp://127.0.0.1:0/{}", origin.addr())]);
    let idle = traffic::connect_directly(entry.addr()).unwrap();
    traffic::check_one_byte(traffic::connect_directly(entry.addr()).unwrap()).unwrap();
    drop(idle);
    entry.stop().unwrap();
}

#[test]
fn the_port_is_free_again_at_once() {
    let port = free_port();
    for _ in 0..3 {
        let url = format!("mixed://127.0.0.1:{port}");
        let adit = start(&["run", &url]);
        assert_eq!(adit.addr(), loopback_addr(port));
        let _used = traffic::connect_directly(adit.addr()).unwrap();
        adit.stop().unwrap();
    }
}

#[test]
fn two_listeners_share_a_process() {
    let origin = OriginServer::start().unwrap();
    let first = format!("socks5://127.0.0.1:0?{ALLOW}");
    let second = format!("tcp://127.0.0.1:0/{}", origin.addr());
    let adit = AditProcess::start_with(&bin(), &["run", "-L", &first, "-L", &second], 2).unwrap();
    assert_ne!(adit.addrs()[0], adit.addrs()[1]);
    adit.stop().unwrap();
}

#[test]
fn a_hop_counts_however_its_option_is_spelled() {
    let hop = format!("socks5://{}", loopback_addr(9));
    let begin = ["explain", "-L", "mixed://127.0.0.1:0"];
    let plan = |hop: &[&str]| ended(&[&begin[..], hop].concat()).expect_success().unwrap();
    let wanted = plan(&["-F", &hop]);
    says(&wanted, &["socks5", "127.0.0.1:9"]);
    for flag in ["-F", "-vF", "-vvF", "--forward"] {
        let signed = format!("{flag}={hop}");
        let mut spellings = vec![vec![flag, &hop], vec![&signed]];
        let glued = format!("{flag}{hop}");
        if !flag.starts_with("--") {
            spellings.push(vec![&glued]);
        }
        for typed in spellings {
            assert_eq!(plan(&typed), wanted, "{typed:?}");
        }
    }
    // The value of another option is not an option.
    let output = ended(&["explain", "-L", "mixed://127.0.0.1:0", "-F", "-F"]);
    assert_eq!(output.code, Some(2), "{}", output.output);
}

#[test]
fn nothing_goes_past_a_hop_that_was_typed_in_a_group() {
    let origin = OriginServer::start().unwrap();
    // Nothing listens there: connections that arrive bypassed the hop.
    let hop = format!("socks5://{}", loopback_addr(free_port()));
    let listen = format!("tcp://127.0.0.1:0/{}", origin.addr());
    for args in [
        ["run", "-L", &listen, "-vF", &hop],
        ["run", "-vvL", &listen, "-F", &hop],
    ] {
        let adit = start(&args);
        let carried = traffic::connect_directly(adit.addr()).and_then(traffic::check_one_byte);
        assert!(carried.is_err(), "{args:?}: it went in the clear");
        adit.stop().unwrap();
    }
}

#[test]
fn check_and_explain_show_the_chain_and_no_secret() {
    let hop = BLAKE3_AES_128.url(loopback_addr(8388));
    let args = ["mixed://127.0.0.1:1080", &hop];
    let check = [&["check"][..], &args].concat();
    assert_eq!(ended(&check).code, Some(0));
    let output = ended(&[&["explain"][..], &args].concat())
        .expect_success()
        .unwrap();
    says(
        &output,
        &["mixed", "127.0.0.1:1080", "ss", "127.0.0.1:8388"],
    );
    for secret in [BLAKE3_AES_128.key, "%2B%2Fv7"] {
        assert!(!output.contains(secret), "the key is shown:\n{output}");
    }
}

#[test]
fn url_and_qr_print_a_link_that_others_read() {
    let url = BLAKE3_AES_128.url("192.0.2.1:8388".parse().unwrap());
    let told = ended(&["url", &url]).expect_success().unwrap();
    let link = told
        .split_whitespace()
        .find(|word| word.starts_with("ss://"))
        .expect(&told);
    says(link, &["@192.0.2.1:8388"]);
    assert_eq!(
        ended(&["check", "mixed://127.0.0.1:0", link]).code,
        Some(0),
        "{link}"
    );
    let drawn = ended(&["qr", &url]).expect_success().unwrap();
    let blocks = drawn.chars().filter(|c| "█▀▄".contains(*c)).count();
    assert!(blocks > 200, "no code drawn:\n{drawn}");
}

#[test]
fn wrong_use_ends_with_2_and_help_with_0() {
    assert_eq!(ended(&["no-such-command"]).code, Some(2));
    assert_eq!(ended(&["run", "--no-such-option"]).code, Some(2));
    for args in [
        &["help"][..],
        &["--help"],
        &["run", "--help"],
        &["--version"],
    ] {
        let ToolOutput { code, output } = ended(args);
        assert_eq!(code, Some(0), "{args:?}");
        says(&output, &["adit"]);
    }
}

/// Returns the first word with this prefix.
fn word<'a>(text: &'a str, start: &str) -> &'a str {
    let found = text
        .split_whitespace()
        .map(|word| word.trim_matches(['\'', '"']));
    found
        .into_iter()
        .find(|word| word.starts_with(start))
        .unwrap_or_else(|| panic!("no `{start}` in:\n{text}"))
}

fn key_id(text: &str) -> String {
    let (_, rest) = text
        .split_once("key-id")
        .unwrap_or_else(|| panic!("no key-id in:\n{text}"));
    let word = rest.split_whitespace().next().unwrap_or_default();
    word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
        .to_owned()
}

#[test]
fn server_keeps_its_key_and_client_shows_the_same_key_id() {
    let folder = TempFolder::new("state").unwrap();
    let state = folder.path().to_str().unwrap();
    let listen = loopback_addr(free_port()).to_string();
    let origin = OriginServer::start().unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let args = [
            "server",
            "--listen",
            &listen,
            "--state",
            state,
            "--allow-private",
            "127.0.0.0/8",
            "--show-url",
        ];
        let mut server = AditProcess::start_with(&bin(), &args, 1).unwrap();
        server
            .process()
            .wait_lines("Client:", 1, TEST_TIMEOUT)
            .unwrap();
        let told = server.process().output();
        says(&told, &["adit client", "█"]);
        let (url, id) = (word(&told, "ss://").to_owned(), key_id(&told));
        assert_eq!(id.len(), 4, "{id}");

        let checked = ended(&["client", &url, "--check"])
            .expect_success()
            .unwrap();
        assert_eq!(key_id(&checked), id);
        let client = start(&["client", &url, "-l", "mixed://127.0.0.1:0"]);
        let to = Destination::Addr(origin.addr());
        traffic::check_one_byte(socks_client::connect_through(client.addr(), None, &to).unwrap())
            .unwrap();
        client.stop().unwrap();
        server.stop().unwrap();
        seen.push((url, id));
    }
    assert_eq!(seen[0], seen[1], "the key is kept");
}

/// Output that is not a terminal may be stored; systemd stores all of it.
#[test]
fn server_leaves_its_key_out_of_logs_and_url_prints_it() {
    let folder = TempFolder::new("a state").unwrap();
    let state = folder.path().to_str().unwrap();
    let none = ended(&["server", "url", "--state", state]);
    assert_eq!(none.code, CONFIG, "{}", none.output);
    let listen = ["--listen", "127.0.0.1:0", "--host", "vps.example"];
    let args = [&["server", "--state", state][..], &listen].concat();
    let mut server = AditProcess::start_with(&bin(), &args, 1).unwrap();
    let told = server
        .process()
        .wait_lines("adit server url", 1, TEST_TIMEOUT);
    let told = told.unwrap().remove(0);
    let kept = std::fs::read_to_string(folder.path().join("server.key")).unwrap();
    let (_, key) = kept.trim().split_once(' ').unwrap();
    let log = server.process().output();
    for secret in [key, key.trim_end_matches('='), "ss://", "█"] {
        assert!(!log.contains(secret), "`{secret}` is in:\n{log}");
    }
    // The command that it prints instead works unchanged.
    let (_, command) = told.split_once("adit ").unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{:?} {command}", bin())]);
    let url = external_tools::run_to_end(shell, TEST_TIMEOUT)
        .unwrap()
        .expect_success()
        .unwrap();
    let port = server.addr().port();
    assert!(url.contains(&format!("@vps.example:{port}")), "{url}");
    let checked = ended(&[
        "client",
        &url.trim().replace("vps.example", "127.0.0.1"),
        "--check",
    ]);
    let checked = checked.expect_success().unwrap();
    assert_eq!(key_id(&checked), key_id(&log));
    server.stop().unwrap();
}

/// On a terminal, the user can see the URL.
#[cfg(target_os = "linux")]
#[test]
fn server_shows_its_url_on_a_terminal() {
    let folder = TempFolder::new("state").unwrap();
    let mut typescript = Command::new("script");
    let words = format!(
        "timeout 3 {:?} server --no-qr --listen 127.0.0.1:0 --state {:?}",
        bin(),
        folder.path()
    );
    typescript.args(["-qec", &words, "/dev/null"]);
    let told = external_tools::run_to_end(typescript, TEST_TIMEOUT)
        .unwrap()
        .output;
    says(&told, &["url      ss://", "adit client - --save"]);
}

#[test]
fn a_new_server_is_closed_to_private_networks() {
    let folder = TempFolder::new("state").unwrap();
    let state = folder.path().to_str().unwrap();
    let origin = OriginServer::start().unwrap();
    let args = [
        "server",
        "--listen",
        "127.0.0.1:0",
        "--state",
        state,
        "--no-qr",
        "--show-url",
    ];
    let mut server = AditProcess::start_with(&bin(), &args, 1).unwrap();
    server
        .process()
        .wait_lines("Client:", 1, TEST_TIMEOUT)
        .unwrap();
    let told = server.process().output();
    assert!(!told.contains('█'), "no QR code was requested:\n{told}");
    let client = start(&["client", word(&told, "ss://"), "-l", "mixed://127.0.0.1:0"]);
    let to = Destination::Addr(origin.addr());
    assert!(
        socks_client::connect_through(client.addr(), None, &to)
            .and_then(traffic::check_one_byte)
            .is_err()
    );
    assert_eq!(origin.connection_count(), 0);
    client.stop().unwrap();
    server.stop().unwrap();
}

/// Exit codes for a server that does not accept the client: 4 network, 5 key, 6 clock.
#[test]
fn client_check_tells_why_a_server_does_not_take_us() {
    let back = server(BLAKE3_AES_128);
    let url = BLAKE3_AES_128.url(back.addr());
    assert_eq!(ended(&["client", &url, "--check"]).code, Some(0));
    let wrong = MethodKey {
        key: "AAECAwQFBgcICQoLDA0ODw==",
        ..BLAKE3_AES_128
    };
    assert_eq!(
        ended(&["client", &wrong.url(back.addr()), "--check"]).code,
        Some(5)
    );
    let nobody = BLAKE3_AES_128.url(loopback_addr(free_port()));
    assert_eq!(ended(&["client", &nobody, "--check"]).code, Some(4));
    let mut late = Command::new(bin());
    late.args(["client", &url, "--check"]);
    external_tools::shift_clock(&mut late, "+60s").unwrap();
    let ToolOutput { code, output } = external_tools::run_to_end(late, TEST_TIMEOUT).unwrap();
    assert_eq!(code, Some(6), "{output}");
    says(&output, &["60 s"]);
    back.stop().unwrap();
}

/// A server counts the requests that it refuses, so the probes are few and sequential. A clock that is
/// far off looks like a wrong key, so both are named; the clock only if the edition checks it.
#[test]
fn client_check_asks_a_server_that_refuses_it_few_times() {
    let back = server(BLAKE3_AES_128);
    let wrong = MethodKey {
        key: "AAECAwQFBgcICQoLDA0ODw==",
        ..BLAKE3_AES_128
    };
    let checks: Vec<_> = [
        (wrong, "+0s"),
        (BLAKE3_AES_128, "-20m"),
        (BLAKE3_AES_128, "+47m"),
        (BLAKE3_AES_128, "+20h"),
        (BLAKE3_AES_128, "-30d"),
    ]
    .map(|(method, offset)| {
        let tap = RecordingRelay::start(back.addr()).unwrap();
        thread::spawn(move || {
            let mut check = Command::new(bin());
            check.args(["client", &method.url(tap.addr()), "--check"]);
            external_tools::shift_clock(&mut check, offset).unwrap();
            let ToolOutput { code, output } =
                external_tools::run_to_end(check, TEST_TIMEOUT).unwrap();
            let asked = tap.requests().len();
            assert!((1..=4).contains(&asked), "{offset}: {asked} connections");
            assert_eq!(code, Some(5), "{offset}: {output}");
            says(&output, &["wrong key", "clock that is off", "date -u"]);
        })
    })
    .into();
    for check in checks {
        check.join().unwrap();
    }
    back.stop().unwrap();
    let back = server(AES_256);
    let wrong = MethodKey {
        key: "another",
        ..AES_256
    };
    let tap = RecordingRelay::start(back.addr()).unwrap();
    let ToolOutput { code, output } = ended(&["client", &wrong.url(tap.addr()), "--check"]);
    assert_eq!((code, tap.requests().len()), (Some(5), 1), "{output}");
    assert!(!output.contains("clock"), "{output}");
    back.stop().unwrap();
}

#[test]
fn up_carries_a_request_at_once() {
    let told = ended(&["up", "--once"]).expect_success().unwrap();
    says(&told, &["carried", "key-id"]);
    let origin = OriginServer::start().unwrap();
    let adit = AditProcess::start_with(&bin(), &["up"], 2).unwrap();
    // The second line is that of the proxy.
    let to = Destination::Addr(origin.addr());
    traffic::check_one_byte(socks_client::connect_through(adit.addrs()[1], None, &to).unwrap())
        .unwrap();
    adit.stop().unwrap();
}

#[test]
fn slower_paths_carry_the_same() {
    for (name, value) in [
        ("ADIT_CPU", "portable"),
        ("ADIT_CPU", "avx2"),
        ("ADIT_CPU", "avx2-vaes"),
        ("ADIT_IO", "portable"),
    ] {
        let mut command = Command::new(bin());
        command.args(["up", "--once"]).env(name, value);
        let ended = external_tools::run_to_end(command, Duration::from_secs(20)).unwrap();
        assert_eq!(ended.code, Some(0), "{name}={value}: {}", ended.output);
        says(&ended.output, &["every byte correct"]);
    }
    let mut command = Command::new(bin());
    command.args(["up", "--once"]).env("ADIT_CPU", "z80");
    let ended = external_tools::run_to_end(command, Duration::from_secs(20)).unwrap();
    assert_eq!(ended.code, Some(2), "{}", ended.output);
    says(&ended.output, &["z80", "portable, avx2, avx2-vaes, avx512"]);
}

/// `adit … | head -1`: a closed pipe ends the output without a message.
#[test]
fn a_reader_may_leave() {
    let url = BLAKE3_AES_128.url(loopback_addr(1));
    for args in [
        &["explain", "mixed://127.0.0.1:0", &url][..],
        &["qr", &url],
        &["help", "ss"],
        &["bench", "mac"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(bin());
        command.args(args).stdout(writer);
        let ended = command.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(0), "{args:?}:\n{said}");
        assert!(
            !said.contains("panicked") && !said.contains("error"),
            "{args:?}:\n{said}"
        );
    }
}
