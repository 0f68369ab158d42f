//! `adit system-proxy`: the proxy settings of desktops.
//!
//! Each desktop has a module that reads and writes single [`Setting`]s with the desktop's own program. `on` stores the
//! previous values of all settings that it changes in the state folder, and `off` restores them.

mod gnome;
mod kde;
mod macos;
mod proxy_address;
mod windows;

use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_net::persistent_file;
use anyhow::Context;
use serde::{Deserialize, Serialize};

use self::proxy_address::ProxyAddress;
use crate::args::service::{DesktopKind, SystemProxyCommand};
use crate::json;

/// The file of the previous settings, in the state folder.
const FILE: &str = "system-proxy.json";
/// Maximum size of the file, in bytes.
const MAX_FILE: usize = 1 << 20;

pub(super) fn run_system_proxy(typed: &SystemProxyCommand) -> CommandResult {
    match typed {
        SystemProxyCommand::On(typed) => {
            let proxy = ProxyAddress::parse(&typed.url)?;
            switch_on(chosen_desktop(typed.desktop.desktop)?, &proxy)
        }
        SystemProxyCommand::Off(typed) => switch_off(typed.desktop),
        SystemProxyCommand::Status(typed) => {
            print_status(chosen_desktop(typed.desktop.desktop)?, typed.json.json)
        }
    }
}

/// A setting of a desktop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    /// Its name, in the parts that the desktop's program takes.
    key: Vec<String>,
    /// The value as the desktop's program prints and takes it; `None` if the setting is not in its file.
    value: Option<String>,
}

impl Setting {
    fn new(key: &[&str], value: impl Into<String>) -> Self {
        Self {
            key: key.iter().map(|&part| part.to_owned()).collect(),
            value: Some(value.into()),
        }
    }

    fn key_parts(&self) -> Vec<&str> {
        self.key.iter().map(String::as_str).collect()
    }
}

/// The file of the previous settings.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PreviousSettings {
    desktop: DesktopKind,
    settings: Vec<Setting>,
}

impl DesktopKind {
    /// Returns the settings that make programs use the proxy, in the order in which they are written.
    fn settings_for(self, proxy: &ProxyAddress) -> Result<Vec<Setting>, Failure> {
        match self {
            Self::Gnome => Ok(gnome::settings_for(proxy)),
            Self::Kde => Ok(kde::settings_for(proxy)),
            Self::Macos => macos::settings_for(proxy),
            Self::Windows => Ok(windows::settings_for(proxy)),
        }
    }

    /// Returns the current value of a setting.
    fn read(self, key: &[&str]) -> Result<Option<String>, Failure> {
        match self {
            Self::Gnome => gnome::read(key).map(Some),
            Self::Kde => kde::read(key),
            Self::Macos => macos::read(key).map(Some),
            Self::Windows => windows::read(key),
        }
    }

    fn write(self, setting: &Setting) -> CommandResult {
        let (key, value) = (setting.key_parts(), setting.value.as_deref());
        match self {
            Self::Gnome => gnome::write(&key, value),
            Self::Kde => kde::write(&key, value),
            Self::Macos => macos::write(&key, value),
            Self::Windows => windows::write(&key, value),
        }
    }

    /// Writes the settings, and informs programs that run.
    fn write_all(self, settings: &[Setting]) -> CommandResult {
        settings
            .iter()
            .try_for_each(|setting| self.write(setting))?;
        if self == Self::Kde {
            kde::notify();
        }
        Ok(())
    }
}

fn switch_on(desktop: DesktopKind, proxy: &ProxyAddress) -> CommandResult {
    let settings = desktop.settings_for(proxy)?;
    let path = file_path()?;
    // Switched on twice, the settings before the first time are the previous ones.
    let known = match read_previous(&path)? {
        Some(previous) if previous.desktop != desktop => {
            let what = "the settings of another desktop are stored";
            return Err(Failure::new(FailureCode::Usage, what)
                .with_hint("restore them first: adit system-proxy off"));
        }
        Some(previous) => previous.settings,
        None => Vec::new(),
    };
    let mut previous = known;
    for setting in &settings {
        if previous.iter().all(|known| known.key != setting.key) {
            previous.push(Setting {
                key: setting.key.clone(),
                value: desktop.read(&setting.key_parts())?,
            });
        }
    }
    let text = serde_json::to_vec(&PreviousSettings {
        desktop,
        settings: previous,
    })
    .context("the previous settings")?;
    persistent_file::write_atomically(&path, &text)
        .with_context(|| format!("writing {}", path.display()))?;
    desktop.write_all(&settings)?;
    println!("programs of this desktop use {proxy}; `adit system-proxy off` restores the settings");
    if TcpStream::connect((proxy.host.as_str(), proxy.port)).is_err() {
        eprintln!(
            "warning: no program listens on {}:{} yet",
            proxy.host, proxy.port
        );
    }
    Ok(())
}

fn switch_off(typed: Option<DesktopKind>) -> CommandResult {
    let path = file_path()?;
    let Some(previous) = read_previous(&path)? else {
        let what = "no previous settings are stored";
        return Err(Failure::new(FailureCode::Failure, what)
            .with_hint("`adit system-proxy on` stores them; `adit system-proxy status` prints the current ones"));
    };
    if typed.is_some_and(|typed| typed != previous.desktop) {
        let what = "the stored settings are those of another desktop";
        return Err(Failure::new(FailureCode::Usage, what).with_hint("omit --desktop"));
    }
    // In reverse: the switch that makes programs use a proxy, which is written last, is restored first.
    let settings: Vec<Setting> = previous.settings.into_iter().rev().collect();
    previous.desktop.write_all(&settings)?;
    std::fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
    println!("restored the previous settings");
    Ok(())
}

/// The output of `adit system-proxy status`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProxyStatus {
    desktop: DesktopKind,
    /// True if the settings are those of adit, which `off` replaces by the previous ones.
    is_on: bool,
    settings: Vec<Setting>,
}

fn print_status(desktop: DesktopKind, is_json: bool) -> CommandResult {
    // The address does not matter: the names of the settings are those of any.
    let mut settings = desktop.settings_for(&ProxyAddress::parse("mixed://127.0.0.1:1080")?)?;
    for setting in &mut settings {
        let value = desktop.read(&setting.key_parts())?;
        setting.value = value;
    }
    let is_on = read_previous(&file_path()?)?.is_some();
    if is_json {
        let status = ProxyStatus {
            desktop,
            is_on,
            settings,
        };
        json::print_result("system-proxy status", &status);
        return Ok(());
    }
    for setting in settings {
        println!(
            "{} = {}",
            setting.key.join(" "),
            setting.value.as_deref().unwrap_or("(not set)")
        );
    }
    if is_on {
        println!("switched on by adit: `adit system-proxy off` restores the previous settings");
    } else {
        println!("not switched on by adit");
    }
    Ok(())
}

fn file_path() -> Result<PathBuf, Failure> {
    Ok(adit_cli::state_folder(None)?.join(FILE))
}

fn read_previous(path: &Path) -> Result<Option<PreviousSettings>, Failure> {
    let text = match persistent_file::read_bounded(path, MAX_FILE) {
        Ok(text) => text,
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
        Err(why) => {
            let what = format!("reading {}: {why}", path.display());
            return Err(Failure::new(FailureCode::Failure, what));
        }
    };
    let parsed = serde_json::from_slice(&text).map_err(|why| {
        let what = format!(
            "{} is not a file of `adit system-proxy`: {why}",
            path.display()
        );
        Failure::new(FailureCode::Failure, what)
            .with_hint("check the settings of the desktop, then remove the file")
    })?;
    Ok(Some(parsed))
}

/// Returns the desktop of the arguments, or that of this session.
fn chosen_desktop(typed: Option<DesktopKind>) -> Result<DesktopKind, Failure> {
    if let Some(typed) = typed {
        return Ok(typed);
    }
    if cfg!(target_os = "macos") {
        return Ok(DesktopKind::Macos);
    }
    if cfg!(windows) {
        return Ok(DesktopKind::Windows);
    }
    let session = std::env::var("XDG_CURRENT_DESKTOP").unwrap_or_default();
    desktop_of_session(&session).ok_or_else(|| {
        let what = match session.is_empty() {
            true => "this is not a session of a desktop: XDG_CURRENT_DESKTOP is not set".to_owned(),
            false => format!("the desktop `{session}` is not supported"),
        };
        Failure::new(FailureCode::Failure, what).with_hint(
            "--desktop gnome or kde names one; others have no settings that programs read",
        )
    })
}

/// Returns the desktop of `XDG_CURRENT_DESKTOP`: names with colons between them.
fn desktop_of_session(names: &str) -> Option<DesktopKind> {
    let is_one = |known: &[&str]| {
        names
            .split(':')
            .any(|name| known.iter().any(|known| name.eq_ignore_ascii_case(known)))
    };
    if is_one(&["KDE"]) {
        return Some(DesktopKind::Kde);
    }
    // They share the settings of GNOME.
    let gnome = [
        "GNOME",
        "Unity",
        "X-Cinnamon",
        "Cinnamon",
        "Budgie",
        "Pantheon",
        "MATE",
    ];
    is_one(&gnome).then_some(DesktopKind::Gnome)
}

/// Runs a desktop's program and returns its output.
fn output_of(program: &str, words: &[&str]) -> Result<String, Failure> {
    let run = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .output();
    let failed = |why: String| {
        let what = format!("`{program} {}`: {why}", words.join(" "));
        Failure::new(FailureCode::Failure, what)
    };
    let run = run.map_err(|why| failed(why.to_string()))?;
    if !run.status.success() {
        return Err(failed(
            String::from_utf8_lossy(&run.stderr).trim().to_owned(),
        ));
    }
    Ok(String::from_utf8_lossy(&run.stdout).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_have_desktops() {
        assert_eq!(desktop_of_session("ubuntu:GNOME"), Some(DesktopKind::Gnome));
        assert_eq!(desktop_of_session("KDE"), Some(DesktopKind::Kde));
        assert_eq!(desktop_of_session("X-Cinnamon"), Some(DesktopKind::Gnome));
        assert_eq!(desktop_of_session("sway"), None);
        assert_eq!(desktop_of_session(""), None);
    }
}
