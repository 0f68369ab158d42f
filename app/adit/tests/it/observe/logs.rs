//! The log: its formats, filters and places, the IDs of sessions, and what it never contains.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination, UdpAssociation};
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr, traffic};
use rustix::process::Signal;
use serde_json::Value;

use crate::admin::world::session;
use crate::setup::{ALLOW, bin, ended, says, start};

/// Waits until `look` returns something.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(20));
    }
}

/// Returns the messages of a log in JSON.
fn messages(log: &str) -> Vec<Value> {
    let lines = log.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")))
        .collect()
}

#[test]
fn a_session_has_one_id_from_its_request_to_its_end() {
    let url = format!("mixed://127.0.0.1:0?{ALLOW}");
    let mut adit = start(&["run", &url, "--log", "debug", "--log-format", "json"]);
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    for _ in 0..2 {
        drop(session(adit.addr(), &to));
    }
    adit.process()
        .wait_lines("\"message\":\"closed", 2, TEST_TIMEOUT)
        .unwrap();
    let all = messages(&adit.process().output());
    let ids = |message: &str| -> BTreeSet<u64> {
        let named = all.iter().filter(|one| {
            let text = one["message"].as_str().unwrap();
            text.starts_with(message)
        });
        named
            .map(|one| {
                assert_eq!(one["level"], "debug", "{one}");
                assert_eq!(
                    one["module"].as_str().unwrap().split("::").next(),
                    Some("adit_engine")
                );
                assert!(
                    one["client"].as_str().unwrap().starts_with("127.0.0.1:"),
                    "{one}"
                );
                assert_eq!(one["target"], origin.addr().to_string());
                one["session"].as_u64().unwrap()
            })
            .collect()
    };
    assert_eq!(ids("open").len(), 2, "{all:?}");
    assert_eq!(ids("open"), ids("closed"), "{all:?}");
    adit.stop().unwrap();
}

#[test]
fn messages_of_hops_have_the_id_of_the_session() {
    let hop = format!("socks5://127.0.0.1:{}", free_port());
    let mut adit = start(&[
        "run",
        "mixed://127.0.0.1:0",
        &hop,
        "--log-format=logfmt",
        "--log",
        "adit_engine::health=debug",
    ]);
    let to = Destination::Addr(loopback_addr(free_port()));
    socks_client::connect_through(adit.addr(), None, &to).unwrap_err();
    // That of the hop's health, although nothing else is logged below `info`.
    let lines = adit
        .process()
        .wait_lines("adit_engine::health", 1, TEST_TIMEOUT);
    let line = lines.unwrap().remove(0);
    says(
        &line,
        &[
            "time=",
            "level=",
            "msg=\"",
            " session=",
            " client=127.0.0.1:",
        ],
    );
    assert!(!adit.process().output().contains("adit_engine::serve"));
    adit.stop().unwrap();
}

#[test]
fn associations_have_ids_too() {
    let url = "udp://127.0.0.1:0/127.0.0.1:9";
    let mut adit = start(&["run", url, "--log=debug", "--log-format=json"]);
    let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    client.send_to(b"x", adit.addr()).unwrap();
    adit.process()
        .wait_lines("association starts", 1, TEST_TIMEOUT)
        .unwrap();
    let all = messages(&adit.process().output());
    let start = all
        .iter()
        .find(|one| one["message"] == "association starts");
    let start = start.unwrap();
    assert!(start["session"].as_u64() > Some(0), "{start}");
    assert_eq!(start["client"], client.local_addr().unwrap().to_string());
    adit.stop().unwrap();
}

/// Returns the ID of the session in the only message that starts with these words.
fn id_of(messages: &[Value], words: &str) -> u64 {
    let found: Vec<&Value> = messages
        .iter()
        .filter(|one| one["message"].as_str().unwrap().starts_with(words))
        .collect();
    assert_eq!(found.len(), 1, "{words}: {messages:?}");
    found[0]["session"]
        .as_u64()
        .unwrap_or_else(|| panic!("{}", found[0]))
}

#[test]
fn datagrams_in_streams_and_bind_have_ids_too() {
    let key = "ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D";
    let url = format!("{key}@127.0.0.1:0?{ALLOW}");
    let mut server = start(&["run", &url, "--log=debug", "--log-format=json"]);
    let hop = format!("{key}@{}?udp=over-tcp", server.addr());
    let client = start(&["run", "socks5://127.0.0.1:0", &hop]);
    let origin = OriginServer::start().unwrap();
    let association = UdpAssociation::open(client.addr(), None).unwrap();
    let to = Destination::Addr(origin.addr());
    association.send_to(&to, b"four").unwrap();
    assert_eq!(association.recv().unwrap().1, b"four");
    drop(association);
    client.stop().unwrap();
    let ends = "UDP over TCP ends";
    server.process().wait_lines(ends, 1, TEST_TIMEOUT).unwrap();
    let all = messages(&server.process().output());
    let id = id_of(&all, "UDP over TCP is open");
    assert_eq!((id > 0, id_of(&all, ends)), (true, id));
    server.stop().unwrap();

    let url = format!("mixed://127.0.0.1:0?{ALLOW}&bind=true");
    let mut adit = start(&["run", &url, "--log=debug", "--log-format=json"]);
    let any = Destination::Addr("0.0.0.0:0".parse().unwrap());
    let bind = socks_client::perform_request(adit.addr(), None, socks_client::BIND, &any);
    let (mut near, first) = bind.unwrap();
    let peer = traffic::connect_directly(first.bound).unwrap();
    assert_eq!(socks_client::read_reply(&mut near).unwrap().code, 0);
    drop((near, peer));
    adit.process()
        .wait_lines("\"message\":\"closed", 1, TEST_TIMEOUT)
        .unwrap();
    let all = messages(&adit.process().output());
    let id = id_of(&all, "BIND waits on");
    assert_eq!((id > 0, id_of(&all, "closed")), (true, id));
    adit.stop().unwrap();
}

#[test]
fn the_environment_has_the_options_of_every_command() {
    let mut command = Command::new(bin());
    command.args(["kcp", "server", "-l", "127.0.0.1:0", "-t", "127.0.0.1:9"]);
    command
        .env("ADIT_LOG", "trace")
        .env("ADIT_LOG_FORMAT", "json");
    let mut adit = AditProcess::start_command(command, 1).unwrap();
    let noise = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    noise.send_to(&[7; 100], adit.addr()).unwrap();
    let lines = adit.process().wait_lines("{\"time\"", 1, TEST_TIMEOUT);
    assert!(!messages(&lines.unwrap().join("\n")).is_empty());
    adit.stop().unwrap();
    // Options take precedence.
    let url = format!("mixed://127.0.0.1:0?{ALLOW}");
    let mut command = Command::new(bin());
    command.args(["run", &url, "--log", "debug", "--log-format", "logfmt"]);
    command
        .env("ADIT_LOG", "error")
        .env("ADIT_LOG_FORMAT", "json");
    let mut adit = AditProcess::start_command(command, 1).unwrap();
    let origin = OriginServer::start().unwrap();
    drop(session(adit.addr(), &Destination::Addr(origin.addr())));
    adit.process()
        .wait_lines("msg=\"closed", 1, TEST_TIMEOUT)
        .unwrap();
    adit.stop().unwrap();
    for (name, value, says_what) in [
        ("ADIT_LOG", "loud", "`loud` is not a level"),
        (
            "ADIT_LOG_FORMAT",
            "xml",
            "`xml` is not a format; formats are human, json, logfmt",
        ),
    ] {
        let mut command = Command::new(bin());
        command.arg("keygen").env(name, value);
        let done = adit_interop::external_tools::run_to_end(command, TEST_TIMEOUT).unwrap();
        assert_eq!(done.code, Some(2), "{}", done.output);
        says(&done.output, &[says_what, &format!("in {name}")]);
    }
}

#[test]
fn wrong_filters_and_formats_are_usage_errors() {
    for (option, says_what) in [
        ("--log=loud", "`loud` is not a level"),
        (
            "--log=info,adit engine=debug",
            "`adit engine` is not a module",
        ),
        ("--log-format=xml", "[possible values: human, json, logfmt]"),
    ] {
        let done = ended(&["run", "mixed://127.0.0.1:0", option]);
        assert_eq!(done.code, Some(2), "{}", done.output);
        says(&done.output, &[says_what]);
    }
    let done = ended(&["run", "-v", "mixed://127.0.0.1:0", "--log=info"]);
    assert_eq!(done.code, Some(2), "{}", done.output);
}

/// Writes a configuration with these settings of the log.
fn write_config(folder: &TempFolder, log: &str) -> String {
    let text = format!("[log]\n{log}\n\n[route.a]\nlisten = \"mixed://127.0.0.1:0?{ALLOW}\"\n");
    let file = folder.write_file("adit.toml", text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_log_file_is_private_and_opened_again_on_a_reload() {
    let folder = TempFolder::new("log-file").unwrap();
    let config = write_config(
        &folder,
        "file = \"a.log\"\nformat = \"json\"\nlevel = \"debug\"",
    );
    let (path, moved) = (folder.path().join("a.log"), folder.path().join("moved"));
    let mut adit = AditProcess::start_with(&bin(), &["run", "-c", &config], 1).unwrap();
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    drop(session(adit.addr(), &to));
    let closed = |path: &Path| read(path).contains("\"message\":\"closed").then_some(());
    wait_for("no message in the file", || closed(&path));
    assert_eq!(messages(&read(&path)).len(), read(&path).lines().count());
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!adit.process().output().contains("closed"));

    fs::rename(&path, &moved).unwrap();
    adit.process().send_signal(Signal::HUP).unwrap();
    wait_for("the file was not opened again", || {
        path.exists().then_some(())
    });
    drop(session(adit.addr(), &to));
    wait_for("no message in the new file", || closed(&path));

    // A file that cannot be opened: the log stays where it is, and says so.
    write_config(&folder, "file = \"missing/a.log\"\nlevel = \"debug\"");
    adit.process().send_signal(Signal::HUP).unwrap();
    let warned = || {
        read(&path)
            .contains("the log stays where it is")
            .then_some(())
    };
    wait_for("no warning", warned);
    adit.stop().unwrap();

    let done = ended(&["run", "-c", &config]);
    assert_eq!(done.code, Some(3), "{}", done.output);
    says(&done.output, &["cannot open the log file", "missing/a.log"]);
}

#[test]
fn a_full_log_file_is_replaced() {
    let folder = TempFolder::new("log-full").unwrap();
    let config = write_config(
        &folder,
        "file = \"a.log\"\nlevel = \"debug\"\nmax_size = 1\nkeep = 1",
    );
    let path = folder.path().join("a.log");
    // One that is nearly full.
    fs::write(&path, "x".repeat((1 << 20) - 10)).unwrap();
    let adit = AditProcess::start_with(&bin(), &["run", "-c", &config], 1).unwrap();
    let origin = OriginServer::start().unwrap();
    drop(session(adit.addr(), &Destination::Addr(origin.addr())));
    let earlier = || {
        let names = fs::read_dir(folder.path()).unwrap();
        let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.find(|name| name.starts_with("a.log.2") && name.ends_with(".1"))
    };
    wait_for("the file was not replaced", earlier);
    wait_for("no message in the new file", || {
        read(&path).contains(" DEBUG ").then_some(())
    });
    assert!(fs::metadata(&path).unwrap().len() < 1 << 20);
    adit.stop().unwrap();
}

#[test]
fn lines_for_people_have_the_local_time() {
    let folder = TempFolder::new("log-zone").unwrap();
    let config = write_config(&folder, "level = \"debug\"");
    let mut command = Command::new(bin());
    command
        .args(["run", "-c", &config])
        .env("TZ", "Asia/Kolkata");
    let mut adit = AditProcess::start_command(command, 1).unwrap();
    let origin = OriginServer::start().unwrap();
    drop(session(adit.addr(), &Destination::Addr(origin.addr())));
    let line = adit
        .process()
        .wait_lines("DEBUG open", 1, TEST_TIMEOUT)
        .unwrap()
        .remove(0);
    let (time, rest) = line.split_at(25);
    let pattern: String = time
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert_eq!(pattern, "0000-00-00 00:00:00+00:00", "{line}");
    assert!(
        time.ends_with("+05:30") && rest.starts_with(" DEBUG open session="),
        "{line}"
    );
    adit.stop().unwrap();
}

#[test]
fn the_journal_gets_fields() {
    let folder = TempFolder::new("log-journal").unwrap();
    fs::create_dir(folder.path().join("journal")).unwrap();
    let journal = UnixDatagram::bind(folder.path().join("journal/socket")).unwrap();
    journal.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    // The socket of the journal, for this process alone.
    let script = "mount -t tmpfs none /run && mkdir /run/systemd && mount --bind \"$1\" /run/systemd \
        && JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2) exec \"$2\" run \"$3\" -v";
    let url = format!("mixed://127.0.0.1:0?{ALLOW}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]);
    command.arg(folder.path()).arg(bin()).arg(&url);
    let mut adit = AditProcess::start_command(command, 1).unwrap();
    let origin = OriginServer::start().unwrap();
    drop(session(adit.addr(), &Destination::Addr(origin.addr())));
    let mut datagram = [0; 4096];
    loop {
        let len = journal.recv(&mut datagram).unwrap();
        let text = String::from_utf8_lossy(&datagram[..len]).into_owned();
        if text.contains("\nMESSAGE=open ") {
            says(
                &text,
                &[
                    "PRIORITY=7\n",
                    "SYSLOG_IDENTIFIER=adit\n",
                    "\nADIT_MODULE=adit_engine::serve\n",
                    "\nADIT_SESSION=1\n",
                    "\nADIT_CLIENT=127.0.0.1:",
                    &format!("\nADIT_TARGET={}\n", origin.addr()),
                ],
            );
            break;
        }
    }
    assert!(!adit.process().output().contains("DEBUG"));
    adit.stop().unwrap();
}

/// Secrets of servers and clients.
const SECRETS: [&str; 6] = [
    "AAECAwQFBgcICQoLDA0ODw==",
    "EBESExQVFhcYGRobHB0eHw==",
    "pass-of-socks",
    "pass-of-ssr",
    "pass-of-kcp",
    "pass-of-ssh",
];

/// Schemes of one server and of the hop to it, with `PORT` and `ALLOW`.
const DIALECTS: [(&str, &str); 7] = [
    (
        "socks5://ann:pass-of-socks@127.0.0.1:PORT?ALLOW",
        "socks5://ann:pass-of-socks@127.0.0.1:PORT",
    ),
    (
        "http://ann:pass-of-socks@127.0.0.1:PORT?ALLOW",
        "http://ann:pass-of-socks@127.0.0.1:PORT",
    ),
    (
        "ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D@127.0.0.1:PORT?ALLOW",
        "ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D@127.0.0.1:PORT",
    ),
    (
        "ss://chacha20-ietf-poly1305:EBESExQVFhcYGRobHB0eHw%3D%3D@127.0.0.1:PORT?ALLOW",
        "ss://chacha20-ietf-poly1305:EBESExQVFhcYGRobHB0eHw%3D%3D@127.0.0.1:PORT",
    ),
    (
        "ssr://aes-256-cfb:pass-of-ssr@127.0.0.1:PORT?ALLOW&protocol=auth_aes128_md5",
        "ssr://aes-256-cfb:pass-of-ssr@127.0.0.1:PORT?protocol=auth_aes128_md5",
    ),
    (
        "socks5+kcp://127.0.0.1:PORT?ALLOW&key=pass-of-kcp",
        "socks5+kcp://127.0.0.1:PORT?key=pass-of-kcp",
    ),
    (
        "ssh://ann:pass-of-ssh@127.0.0.1:PORT?ALLOW&host_key=@host",
        "ssh://ann:pass-of-ssh@127.0.0.1:PORT?strict=accept-new&known_hosts=@known",
    ),
];

/// Writes a file with a route for each of these pairs of a listener and hops.
fn write_routes<'a>(
    folder: &TempFolder,
    name: &str,
    routes: impl Iterator<Item = (String, Option<String>)> + 'a,
) -> String {
    let mut text = String::new();
    for (at, (listen, via)) in routes.enumerate() {
        text += &format!("[route.r{at}]\nlisten = \"{listen}\"\n");
        if let Some(via) = via {
            text += &format!("via = \"{via}\"\n");
        }
    }
    let file = folder.write_file(name, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn the_log_has_no_secrets_and_at_info_no_destinations() {
    let folder = TempFolder::new("log-secrets").unwrap();
    let ports = DIALECTS.map(|_| free_port());
    let with_port = |url: &str, port: u16| {
        let url = url.replace("PORT", &port.to_string());
        url.replace("ALLOW", ALLOW)
    };
    let urls = || DIALECTS.iter().zip(ports);
    let servers = urls().map(|((server, _), port)| (with_port(server, port), None));
    let servers = write_routes(&folder, "servers.toml", servers);
    let clients = urls()
        .map(|((_, hop), port)| ("mixed://127.0.0.1:0".to_owned(), Some(with_port(hop, port))));
    let clients = write_routes(&folder, "clients.toml", clients);
    let origin = OriginServer::start().unwrap();
    let secret_name = Destination::from_name("secret-name.invalid", 443);
    for format in ["human", "json", "logfmt"] {
        for level in ["info", "debug"] {
            let log = ["--log", level, "--log-format", format];
            let count = DIALECTS.len();
            let start = |file: &str| {
                let args = [&["run", "-c", file][..], &log].concat();
                AditProcess::start_with(&bin(), &args, count).unwrap()
            };
            let (mut server, mut client) = (start(&servers), start(&clients));
            for at in client.addrs().to_vec() {
                let to = Destination::Addr(origin.addr());
                let stream = socks_client::connect_through(at, None, &to).unwrap();
                traffic::check_one_byte(stream).unwrap();
                let _ = socks_client::connect_through(at, None, &secret_name);
            }
            let logs = [server.process().output(), client.process().output()];
            for log in &logs {
                for secret in SECRETS {
                    let encoded = secret.replace('=', "%3D");
                    let has = log.contains(secret) || log.contains(&encoded);
                    assert!(!has, "{level} {format}: {secret} is in the log:\n{log}");
                }
                let destinations = [origin.addr().to_string(), "secret-name".to_owned()];
                for destination in &destinations {
                    // The log of `debug` has them, so that their absence is not for want of a log.
                    assert_eq!(
                        log.contains(destination),
                        level == "debug",
                        "{level} {format}: {destination}:\n{log}"
                    );
                }
            }
            client.stop().unwrap();
            server.stop().unwrap();
        }
    }
}
