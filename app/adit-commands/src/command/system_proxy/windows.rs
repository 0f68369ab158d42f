//! The settings of Windows, in the registry of the user, through `reg.exe`. Programs read them when they start.

use adit_cli::{CommandResult, Failure};

use super::proxy_address::ProxyAddress;
use super::{Setting, output_of};

const KEY: &str = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Internet Settings";

/// A value is its type, a blank and its data.
pub(super) fn settings_for(proxy: &ProxyAddress) -> Vec<Setting> {
    let address = format!("{}:{}", proxy.url_host(), proxy.port);
    let mut kinds = Vec::new();
    if proxy.http {
        kinds.push(format!("http={address};https={address}"));
    }
    if proxy.socks {
        kinds.push(format!("socks={address}"));
    }
    let servers = format!("REG_SZ {}", kinds.join(";"));
    vec![
        Setting::new(&["ProxyServer"], servers),
        Setting::new(&["ProxyOverride"], "REG_SZ localhost;127.*;<local>"),
        Setting::new(&["ProxyEnable"], "REG_DWORD 0x1"),
    ]
}

/// Returns the value; `None` if there is none of this name.
pub(super) fn read(key: &[&str]) -> Result<Option<String>, Failure> {
    let name = key.concat();
    // The program does not tell a missing value from other failures, but the list of all values does.
    let text = output_of("reg.exe", &["query", KEY])?;
    Ok(parse_value(&text, &name))
}

fn parse_value(text: &str, name: &str) -> Option<String> {
    let rest = text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix(name)?;
        rest.starts_with(char::is_whitespace).then_some(rest)
    })?;
    let (kind, data) = rest
        .trim()
        .split_once(char::is_whitespace)
        .unwrap_or_else(|| (rest.trim(), ""));
    Some(format!("{kind} {}", data.trim()))
}

pub(super) fn write(key: &[&str], value: Option<&str>) -> CommandResult {
    let name = key.concat();
    match value.and_then(|value| value.split_once(' ')) {
        Some((kind, data)) => output_of(
            "reg.exe",
            &["add", KEY, "/v", &name, "/t", kind, "/d", data, "/f"],
        )?,
        None if read(key)?.is_some() => output_of("reg.exe", &["delete", KEY, "/v", &name, "/f"])?,
        None => String::new(),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_the_program_is_read() {
        let text = "\r\nHKEY_CURRENT_USER\\Software\r\n    ProxyEnable    REG_DWORD    0x0\r\n    \
                    ProxyServer    REG_SZ    http=a:1;socks=a:1\r\n    ProxyOverride    REG_SZ    \r\n";
        let value = |name| parse_value(text, name);
        assert_eq!(value("ProxyEnable").as_deref(), Some("REG_DWORD 0x0"));
        assert_eq!(
            value("ProxyServer").as_deref(),
            Some("REG_SZ http=a:1;socks=a:1")
        );
        assert_eq!(value("ProxyOverride").as_deref(), Some("REG_SZ "));
        assert_eq!(value("Proxy"), None);
    }
}
