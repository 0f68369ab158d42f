//! The settings of KDE: the file `kioslaverc`, through the programs of its frameworks 6 or 5.

use adit_cli::{CommandResult, Failure, FailureCode};

use super::proxy_address::ProxyAddress;
use super::{Setting, output_of};

/// The value of `ProxyType` for a proxy that the file names.
const MANUAL: &str = "1";

pub(super) fn settings_for(proxy: &ProxyAddress) -> Vec<Setting> {
    // A blank is between host and port.
    let address = format!("{} {}", proxy.url_host(), proxy.port);
    let value = |used: bool, scheme: &str| match used {
        true => format!("{scheme}://{address}"),
        false => String::new(),
    };
    vec![
        Setting::new(&["socksProxy"], value(proxy.socks, "socks")),
        Setting::new(&["httpProxy"], value(proxy.http, "http")),
        Setting::new(&["httpsProxy"], value(proxy.http, "http")),
        Setting::new(&["ProxyType"], MANUAL),
    ]
}

pub(super) fn read(key: &[&str]) -> Result<Option<String>, Failure> {
    let value = run("kreadconfig", key, &[])?;
    Ok(Some(value).filter(|value| !value.is_empty()))
}

pub(super) fn write(key: &[&str], value: Option<&str>) -> CommandResult {
    match value.filter(|value| !value.is_empty()) {
        Some(value) => run("kwriteconfig", key, &[value])?,
        None => run("kwriteconfig", key, &["--delete", ""])?,
    };
    Ok(())
}

/// Informs running programs. Without a session there are none.
pub(super) fn notify() {
    let signal = [
        "--type=signal",
        "/KIO/Scheduler",
        "org.kde.KIO.Scheduler.reparseSlaveConfiguration",
        "string:",
    ];
    let _ = output_of("dbus-send", &signal);
}

fn run(name: &str, key: &[&str], rest: &[&str]) -> Result<String, Failure> {
    let words = ["--file", "kioslaverc", "--group", "Proxy Settings", "--key"];
    let words = [&words, key, rest].concat();
    let newest = output_of(&format!("{name}6"), &words);
    newest
        .or_else(|_| output_of(&format!("{name}5"), &words))
        .map_err(|why| {
            Failure::new(FailureCode::Failure, why.to_log_line()).with_hint(
                "the program is in the package libkf5config-bin, libkf6config-bin or kconfig",
            )
        })
}
