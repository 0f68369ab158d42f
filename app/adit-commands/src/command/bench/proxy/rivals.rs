//! Other programs with the same protocols, if they are installed.

use adit_shadowsocks::Method;
use serde_json::json;

use super::subject::{Entry, METHODS, ProcessCommand, Subject, random_key, random_password};

/// Returns the subjects of the programs in `PATH`, and the names of those that are missing.
pub(super) fn installed() -> (Vec<Subject>, Vec<&'static str>) {
    let (mut subjects, mut missing) = (Vec::new(), Vec::new());
    for (name, programs, subjects_of) in RIVALS {
        if programs.iter().all(|program| is_installed(program)) {
            subjects.extend(subjects_of());
        } else {
            missing.push(*name);
        }
    }
    (subjects, missing)
}

/// The name of a rival, its programs, and the protocols that are measured.
type Rival = (&'static str, &'static [&'static str], fn() -> Vec<Subject>);

const RIVALS: &[Rival] = &[
    ("sing-box", &["sing-box"], of_sing_box),
    (
        "shadowsocks-rust",
        &["sslocal", "ssserver"],
        of_shadowsocks_rust,
    ),
    ("shadowsocks-libev", &["ss-local", "ss-server"], of_libev),
    ("microsocks", &["microsocks"], of_microsocks),
];

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| {
        folder.join(program).is_file() || folder.join(format!("{program}.exe")).is_file()
    })
}

fn is_2022(method: Method) -> bool {
    method.to_string().starts_with("2022-")
}

fn subject(name: String, client: ProcessCommand, server: Option<ProcessCommand>) -> Subject {
    Subject {
        name,
        entry: Entry::Socks5,
        client,
        server,
    }
}

fn of_sing_box() -> Vec<Subject> {
    let command = |file: serde_json::Value| {
        ProcessCommand::new("sing-box", &["run", "-c", "{file}", "--disable-color"])
            .with_file(file.to_string())
    };
    let log = json!({ "level": "error" });
    let socks = json!([{ "type": "socks", "listen": "127.0.0.1", "listen_port": "{listen}" }]);
    let direct = json!([{ "type": "direct" }]);
    let mut subjects = vec![subject(
        "sing-box: socks5".to_owned(),
        command(json!({ "log": log, "inbounds": socks, "outbounds": direct })),
        None,
    )];
    for method in METHODS {
        let (key, name) = (random_key(method), method.to_string());
        let outbound = json!([{ "type": "shadowsocks", "server": "127.0.0.1", "server_port": "{server}", "method": name,
                                "password": key }]);
        let inbound = json!([{ "type": "shadowsocks", "listen": "127.0.0.1", "listen_port": "{listen}", "method": name,
                               "password": key }]);
        subjects.push(subject(
            format!("sing-box: ss, {method}"),
            command(json!({ "log": log, "inbounds": socks, "outbounds": outbound })),
            Some(command(
                json!({ "log": log, "inbounds": inbound, "outbounds": direct }),
            )),
        ));
    }
    subjects
}

fn of_shadowsocks_rust() -> Vec<Subject> {
    let of = |method: Method| {
        let (key, name) = (random_key(method), method.to_string());
        let client = [
            "-b",
            "127.0.0.1:{listen}",
            "-s",
            "127.0.0.1:{server}",
            "-m",
            &name,
            "-k",
            &key,
        ];
        let server = ["-s", "127.0.0.1:{listen}", "-m", &name, "-k", &key];
        subject(
            format!("shadowsocks-rust: ss, {method}"),
            ProcessCommand::new("sslocal", &client),
            Some(ProcessCommand::new("ssserver", &server)),
        )
    };
    METHODS.map(of).into()
}

fn of_libev() -> Vec<Subject> {
    let of = |method: Method| {
        let (password, name) = (random_password(), method.to_string());
        let ends = ["-m", &name, "-k", &password];
        let client = [
            "-s",
            "127.0.0.1",
            "-p",
            "{server}",
            "-b",
            "127.0.0.1",
            "-l",
            "{listen}",
        ];
        let server = ["-s", "127.0.0.1", "-p", "{listen}"];
        subject(
            format!("shadowsocks-libev: ss, {method}"),
            ProcessCommand::new("ss-local", &[&client[..], &ends].concat()),
            Some(ProcessCommand::new(
                "ss-server",
                &[&server[..], &ends].concat(),
            )),
        )
    };
    METHODS
        .into_iter()
        .filter(|method| !is_2022(*method))
        .map(of)
        .collect()
}

fn of_microsocks() -> Vec<Subject> {
    let args = ["-i", "127.0.0.1", "-p", "{listen}"];
    vec![subject(
        "microsocks: socks5".to_owned(),
        ProcessCommand::new("microsocks", &args),
        None,
    )]
}
