//! The settings of macOS: those of each network service, through `networksetup`.

use adit_cli::{CommandResult, Failure, FailureCode};

use super::proxy_address::ProxyAddress;
use super::{Setting, output_of};

/// The kinds of proxies, as the names of `networksetup` contain them.
const SOCKS: &str = "socksfirewallproxy";
const HTTP: &str = "webproxy";
const HTTPS: &str = "securewebproxy";

pub(super) fn settings_for(proxy: &ProxyAddress) -> Result<Vec<Setting>, Failure> {
    let services = networksetup(&["-listallnetworkservices"])?;
    let mut settings = Vec::new();
    for service in enabled_services(&services) {
        for (kind, used) in [
            (SOCKS, proxy.socks),
            (HTTP, proxy.http),
            (HTTPS, proxy.http),
        ] {
            let state = if used { "on" } else { "off" };
            let value = format!("{state} {} {}", proxy.host, proxy.port);
            settings.push(Setting::new(&[service, kind], value));
        }
    }
    Ok(settings)
}

/// Returns the services of a list, without its first line, which is an explanation, and those that are disabled.
fn enabled_services(list: &str) -> impl Iterator<Item = &str> {
    let names = list.lines().skip(1).map(str::trim);
    names.filter(|name| !name.is_empty() && !name.starts_with('*'))
}

/// Returns `on` or `off`, the host, which may be empty, and the port.
pub(super) fn read(key: &[&str]) -> Result<String, Failure> {
    let (service, kind) = parts(key)?;
    let text = networksetup(&[&format!("-get{kind}"), service])?;
    Ok(parse_proxy(&text))
}

fn parse_proxy(text: &str) -> String {
    let value = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        found.map_or("", str::trim)
    };
    let state = if value("Enabled:") == "Yes" {
        "on"
    } else {
        "off"
    };
    let (host, port) = (value("Server:"), value("Port:"));
    format!("{state} {host} {port}")
}

pub(super) fn write(key: &[&str], value: Option<&str>) -> CommandResult {
    let (service, kind) = parts(key)?;
    let mut words = value.unwrap_or_default().split(' ');
    let mut next = || words.next().unwrap_or_default();
    let (state, host, port) = (next(), next(), next());
    // An empty argument removes the server.
    let host = if host.is_empty() { "" } else { host };
    let port = if port.is_empty() { "0" } else { port };
    networksetup(&[&format!("-set{kind}"), service, host, port])?;
    // The command before has switched it on.
    let state = if state == "on" { "on" } else { "off" };
    networksetup(&[&format!("-set{kind}state"), service, state])?;
    Ok(())
}

fn parts<'a>(key: &[&'a str]) -> Result<(&'a str, &'a str), Failure> {
    match key {
        [service, kind @ (SOCKS | HTTP | HTTPS)] => Ok((service, kind)),
        _ => Err(Failure::new(
            FailureCode::Failure,
            format!("`{}` is not a setting of macOS", key.join(" ")),
        )),
    }
}

fn networksetup(words: &[&str]) -> Result<String, Failure> {
    output_of("networksetup", words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_the_program_is_read() {
        let list = "An asterisk (*) denotes that a network service is disabled.\nWi-Fi\n*Bridge\nUSB 10/100 LAN\n";
        let names: Vec<_> = enabled_services(list).collect();
        assert_eq!(names, ["Wi-Fi", "USB 10/100 LAN"]);
        let text = "Enabled: Yes\nServer: 127.0.0.1\nPort: 1080\nAuthenticated Proxy Enabled: 0\n";
        assert_eq!(parse_proxy(text), "on 127.0.0.1 1080");
        let text = "Enabled: No\nServer: \nPort: 0\nAuthenticated Proxy Enabled: 0\n";
        assert_eq!(parse_proxy(text), "off  0");
    }
}
