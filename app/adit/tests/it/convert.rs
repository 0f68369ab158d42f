//! Other programs' files: converted, checked, and run unchanged.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use adit_interop::http_server::HttpServer;
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{AES_256, BLAKE3_AES_128, MethodKey, ShadowsocksPeer};
use adit_interop::socks_client::{self, Destination, UdpAssociation, UdpFlow};
use adit_interop::ssr::SsrSetup;
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, external_tools, free_port, traffic};

use crate::setup::{bin, ended, server, start};
use crate::ssr;

/// Returns the exit code, the output and the notes of `convert`.
fn stdout(args: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut child = Command::new(bin())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

const CLIENT: &str = r#"{
  // A comment, as JSON5 allows.
  "server": "192.0.2.1", "server_port": 8388, "local_port": 1080,
  "method": "aes-256-gcm", "password": "hunter2", "mtu": 1400,
}"#;

#[test]
fn the_result_goes_out_and_the_notes_beside() {
    let (code, toml, notes) = stdout(&["convert", "-"], CLIENT);
    assert_eq!(code, Some(0), "{notes}");
    assert!(toml.contains("[route.main]") && toml.contains("ss://aes-256-gcm:hunter2@192.0.2.1"));
    assert!(
        notes.contains("note: `mtu`") && !notes.contains("hunter2"),
        "{notes}"
    );
    let (code, toml, _) = stdout(&["convert", "-", "--role", "server"], CLIENT);
    assert_eq!(code, Some(0));
    assert!(toml.contains("[route.server]"), "{toml}");
    let (code, toml, problems) = stdout(&["convert", "-"], "{\"server\": hunter2}");
    assert_eq!((code, toml.as_str()), (Some(3), ""), "{problems}");
    assert!(
        problems.contains("standard input:1:12") && !problems.contains("hunter2"),
        "{problems}"
    );
}

#[test]
fn a_file_is_written_once_and_for_its_owner_alone() {
    let folder = TempFolder::new("convert").unwrap();
    let from = folder.write_file("config.json", CLIENT).unwrap();
    let to = folder.path().join("adit.toml");
    let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
    ended(&["convert", from, "-o", to])
        .expect_success()
        .unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(to).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    ended(&["check", "-c", to]).expect_success().unwrap();
    ended(&["check", to]).expect_success().unwrap();
    let text = std::fs::read_to_string(to).unwrap();
    let again = ended(&["convert", from, "-o", to]);
    assert_eq!(again.code, Some(1), "{}", again.output);
    assert!(
        again.output.contains("are not overwritten"),
        "{}",
        again.output
    );
    assert_eq!(std::fs::read_to_string(to).unwrap(), text);
    let absent = ended(&["convert", "absent.json"]);
    assert_eq!(absent.code, Some(3));
    assert!(
        absent.output.contains("cannot read `absent.json`"),
        "{}",
        absent.output
    );
}

#[test]
fn a_plugin_from_elsewhere_has_to_be_allowed() {
    let link = "ss://aes-128-gcm:p@192.0.2.1:8388/?plugin=obfs-local%3Bobfs%3Dhttp";
    let (code, _, problems) = stdout(&["convert", "-"], link);
    assert_eq!(code, Some(3));
    assert!(
        problems.contains("`obfs-local`") && problems.contains("--allow-plugin"),
        "{problems}"
    );
    let (code, toml, _) = stdout(&["convert", "-", "--allow-plugin", "obfs-local"], link);
    assert_eq!(code, Some(0));
    assert!(toml.contains("plugin=obfs-local%3Bobfs%3Dhttp"), "{toml}");
}

#[test]
fn a_file_of_another_program_runs_as_it_is() {
    let folder = TempFolder::new("convert").unwrap();
    let origin = OriginServer::start().unwrap();
    let back = server(BLAKE3_AES_128);
    let text = format!(
        r#"{{"servers": [{{"server": "127.0.0.1", "server_port": {}, "method": "{}", "password": "{}",}}],
            "locals": [{{"protocol": "tunnel", "local_address": "127.0.0.1", "local_port": {},
                         "forward_address": "127.0.0.1", "forward_port": {}}}], "no_delay": true}}"#,
        back.addr().port(),
        BLAKE3_AES_128.name,
        BLAKE3_AES_128.key,
        free_port(),
        origin.addr().port(),
    );
    // The content decides, not the name.
    let file = folder.write_file("config", text).unwrap();
    let file = file.to_str().unwrap();
    let checked = ended(&["check", file]);
    assert_eq!(checked.code, Some(0), "{}", checked.output);
    assert!(
        checked.output.contains("ok: 1 route, 1 listener"),
        "{}",
        checked.output
    );
    assert!(
        checked.output.contains("warning: `no_delay`"),
        "{}",
        checked.output
    );
    let front = AditProcess::start_with(&bin(), &["run", "-c", file], 1).unwrap();
    traffic::check_one_byte(traffic::connect_directly(front.addr()).unwrap()).unwrap();
    front.stop().unwrap();
    back.stop().unwrap();
    let broken = folder.write_file("broken.json", "[").unwrap();
    let said = ended(&["run", "-c", broken.to_str().unwrap()]);
    assert_eq!(said.code, Some(3));
    assert!(said.output.contains("broken.json:1"), "{}", said.output);
}

/// shadowsocks-libev's own file, with curl at its SOCKS port, with a peer's server and adit's.
/// The file of ShadowsocksR's Windows program, which has another key for its local port.
#[test]
fn the_window_programs_file_is_a_clients() {
    let folder = TempFolder::new("convert").unwrap();
    let setup = SsrSetup::new("aes-256-ctr", "auth_aes128_md5", "plain");
    let theirs = ssr::server(&setup, "");
    let (at, local) = (theirs.addr(), free_port());
    let text = format!(
        r#"{{"configs": [{{"remarks": "one", "id": "A1", "server": "{}", "server_port": {},
            "server_udp_port": 0, "password": "{}", "method": "{}", "protocol": "{}",
            "protocolparam": "", "obfs": "{}", "obfsparam": "", "remarks_base64": "b25l",
            "group": "g", "enable": true, "udp_over_tcp": false}}], "index": 0, "random": false,
            "sysProxyMode": 1, "shareOverLan": false, "localPort": {local}, "TTL": 0}}"#,
        at.ip(),
        at.port(),
        setup.password,
        setup.method,
        setup.protocol,
        setup.obfs,
    );
    let file = folder.write_file("gui-config.json", text).unwrap();
    let (code, toml, notes) = stdout(&["convert", file.to_str().unwrap()], "");
    assert_eq!(code, Some(0), "{notes}");
    assert!(
        toml.contains(&format!("127.0.0.1:{local}")),
        "{toml}{notes}"
    );
    let client = start(&["run", file.to_str().unwrap()]);
    let origin = OriginServer::start().unwrap();
    let stream =
        socks_client::connect_through(client.addr(), None, &Destination::Addr(origin.addr()));
    traffic::check_one_byte(stream.unwrap()).unwrap();
    client.stop().unwrap();
    theirs.stop().unwrap();
}

#[test]
fn curl_by_the_file_of_shadowsocks_libev() {
    let web = HttpServer::start(&[("/page", "text/plain", b"hello by libev.json")]).unwrap();
    let theirs = ShadowsocksPeer::Libev.start_server(AES_256).unwrap();
    let ours = server(AES_256);
    for at in [theirs.addr(), ours.addr()] {
        let folder = TempFolder::new("convert").unwrap();
        let MethodKey { name, key } = AES_256;
        let text = format!(
            r#"{{
    "server": ["127.0.0.1"], "server_port": {}, "mode": "tcp_and_udp",
    "local_address": "127.0.0.1", "local_port": {},
    "password": "{key}", "method": "{name}", "timeout": 60, "fast_open": false
}}"#,
            at.port(),
            free_port(),
        );
        let file = folder.write_file("libev.json", text).unwrap();
        let front =
            AditProcess::start_with(&bin(), &["run", "-c", file.to_str().unwrap()], 1).unwrap();
        let proxy = format!("socks5h://{}", front.addr());
        let page = format!("http://localhost:{}/page", web.port());
        let mut curl = Command::new("curl");
        curl.args([
            "-q",
            "-sS",
            "--max-time",
            "30",
            "--noproxy",
            "",
            "-x",
            &proxy,
            &page,
        ]);
        let told = external_tools::run_to_end(curl, TEST_TIMEOUT)
            .unwrap()
            .expect_success()
            .unwrap();
        assert_eq!(told, "hello by libev.json");
        let origin = OriginServer::start().unwrap();
        let association = UdpAssociation::open(front.addr(), None).unwrap();
        let flow = UdpFlow::new(&association, origin.addr().into(), origin.addr());
        traffic::check_datagrams(&flow).unwrap();
        front.stop().unwrap();
    }
    ours.stop().unwrap();
}

#[test]
fn help_and_completion_know_it() {
    let help = ended(&["help", "convert"]).expect_success().unwrap();
    for word in ["--role", "--output", "SIP008", "shadowsocks-rust"] {
        assert!(help.contains(word), "{word}\n{help}");
    }
    let typed = ["complete", "--shell", "fish", "--index", "2", "--"];
    let typed = [&typed[..], &["adit", "convert", "--allow-pl"]].concat();
    let completion = ended(&typed).expect_success().unwrap();
    assert!(completion.starts_with("--allow-plugin\t"), "{completion}");
}

/// Runs a program that must accept a document.
fn accepts(program: &str, args: &[&str]) -> String {
    let mut command = Command::new(external_tools::peer_path(program));
    command.args(args);
    let done = external_tools::run_to_end(command, TEST_TIMEOUT).unwrap();
    done.expect_success().expect(program)
}

/// The subscriptions that the conversion is tested with are valid for the programs whose formats they have.
#[test]
fn subscriptions_of_other_programs_are_valid_there_and_here() {
    let folder = TempFolder::new("subscriptions").unwrap();
    let read = |name: &str| {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../adit-convert/tests/data");
        std::fs::read_to_string(data.join(name)).unwrap()
    };
    let convert = |document: &str| {
        let (code, converted, notes) = stdout(&["convert", "-"], document);
        assert_eq!(code, Some(0), "{notes}");
        assert!(converted.contains("[group."), "{converted}");
    };

    // Mihomo has removed groups of the type `relay`, which older programs and documents have.
    let clash = read("clash.yaml");
    let newer: String = clash
        .split_inclusive('\n')
        .filter(|line| !line.contains("type: relay"))
        .collect();
    assert!(newer.len() < clash.len());
    let file = folder.write_file("clash.yaml", &newer).unwrap();
    let home = folder.path().to_str().unwrap();
    accepts("mihomo", &["-t", "-d", home, "-f", file.to_str().unwrap()]);
    convert(&newer);

    let file = folder.write_file("xray.json", read("xray.json")).unwrap();
    accepts("xray", &["run", "-test", "-c", file.to_str().unwrap()]);
    convert(&read("xray.json"));

    let key = folder.path().join("key");
    let mut keygen = Command::new("ssh-keygen");
    keygen
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key);
    let made = external_tools::run_to_end(keygen, TEST_TIMEOUT).unwrap();
    made.expect_success().unwrap();
    let text = read("sing-box.json").replace("/home/me/.ssh/id_rsa", key.to_str().unwrap());
    let file = folder.write_file("sing-box.json", &text).unwrap();
    let path = file.to_str().unwrap();
    accepts("sing-box", &["check", "-c", path]);
    // Written by sing-box itself.
    convert(&accepts("sing-box", &["format", "-c", path]));
}
