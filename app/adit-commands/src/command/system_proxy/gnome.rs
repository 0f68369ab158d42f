//! The settings of GNOME and of desktops that share them (GSettings).

use adit_cli::{CommandResult, Failure, FailureCode};

use super::proxy_address::ProxyAddress;
use super::{Setting, output_of};

const SCHEMA: &str = "org.gnome.system.proxy";
const SOCKS: &str = "org.gnome.system.proxy.socks";
const HTTP: &str = "org.gnome.system.proxy.http";
const HTTPS: &str = "org.gnome.system.proxy.https";

pub(super) fn settings_for(proxy: &ProxyAddress) -> Vec<Setting> {
    let mut settings = Vec::new();
    for (schema, used) in [
        (SOCKS, proxy.socks),
        (HTTP, proxy.http),
        (HTTPS, proxy.http),
    ] {
        // An empty host is none.
        let (host, port) = match used {
            true => (format!("'{}'", proxy.host), proxy.port),
            false => ("''".to_owned(), 0),
        };
        settings.push(Setting::new(&[schema, "host"], host));
        settings.push(Setting::new(&[schema, "port"], port.to_string()));
    }
    settings.push(Setting::new(&[SCHEMA, "mode"], "'manual'"));
    settings
}

pub(super) fn read(key: &[&str]) -> Result<String, Failure> {
    gsettings(&[&["get"], key].concat())
}

pub(super) fn write(key: &[&str], value: Option<&str>) -> CommandResult {
    match value {
        Some(value) => gsettings(&[&["set"], key, &[value]].concat())?,
        None => gsettings(&[&["reset"], key].concat())?,
    };
    Ok(())
}

fn gsettings(words: &[&str]) -> Result<String, Failure> {
    output_of("gsettings", words).map_err(|why| {
        Failure::new(FailureCode::Failure, why.to_log_line())
            .with_hint("the program is in the package libglib2.0-bin or glib2, its schemas in gsettings-desktop-schemas")
    })
}
