//! A destination and the options given with it.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::ssh_config::{SshConfigFiles, SshConfigQuery, SshJump, SshLogLevel, SshSettings};
use adit_cli::{Failure, FailureCode};
use adit_config::SystemSources;
use tracing::debug;

use crate::args::HostArgs;
use crate::ssh::platform;

pub(super) use platform::home_folder;

/// A destination and the options given with it.
#[derive(Debug, Clone)]
pub(crate) struct ConnectRequest {
    /// The host, or its alias in the configuration.
    pub(crate) host: String,
    /// The user given on the command line.
    pub(crate) user: Option<String>,
    /// The port given on the command line.
    pub(crate) port: Option<u16>,
    /// Options of ssh_config(5), which precede those of files; for each keyword, the first counts.
    options: Vec<String>,
    files: SshConfigFiles,
}

impl ConnectRequest {
    /// Creates a request for `[user@]host` or `ssh://[user@]host[:port]`.
    ///
    /// # Errors
    /// The destination is invalid, or the value of an option has more than one line.
    pub(crate) fn new(destination: &str, way: &HostArgs) -> Result<Self, Failure> {
        let place = parse_destination(destination).ok_or_else(|| {
            Failure::new(
                FailureCode::Usage,
                format!("`{destination}` is not a valid destination"),
            )
            .with_hint("expected [user@]host or ssh://[user@]host[:port]")
        })?;
        let mut options = Vec::new();
        for file in &way.identity {
            options.push(option_line("IdentityFile", &[file])?);
        }
        for (keyword, value) in [("ProxyJump", &way.jump), ("Ciphers", &way.cipher)] {
            if let Some(value) = value {
                options.push(option_line(keyword, &[value])?);
            }
        }
        for (keyword, value, wanted) in [
            ("Compression", "yes", way.compress),
            ("AddressFamily", "inet", way.v4),
            ("AddressFamily", "inet6", way.v6),
            ("LogLevel", "QUIET", way.quiet),
        ] {
            if wanted {
                options.push(option_line(keyword, &[value])?);
            }
        }
        options.extend(way.option.iter().cloned());
        Ok(Self {
            host: place.host,
            user: place.user,
            port: place.port,
            options,
            files: match way.config.as_deref() {
                None => SshConfigFiles::Default,
                Some("none") => SshConfigFiles::None,
                Some(file) => SshConfigFiles::Only(PathBuf::from(file)),
            },
        })
    }

    /// Returns the request for a jump host: it uses the same files, but not the options of the command line,
    /// which are for the destination.
    pub(super) fn for_jump_host(&self, jump: &SshJump) -> Self {
        Self {
            host: jump.host.clone(),
            user: jump.user.clone(),
            port: jump.port,
            options: Vec::new(),
            files: self.files.clone(),
        }
    }

    /// Inserts options before those given with `-o`.
    pub(crate) fn prepend_options(&mut self, mut options: Vec<String>) {
        options.append(&mut self.options);
        self.options = options;
    }

    /// Reads the configuration and returns the settings for the host.
    ///
    /// # Errors
    /// The problems in the configuration or the options.
    pub(crate) fn resolve_settings(&self) -> Result<SshSettings, Failure> {
        let question = SshConfigQuery {
            host: self.host.clone(),
            user: self.user.clone(),
            port: self.port,
            options: self.options.clone(),
            files: self.files.clone(),
            home: home_folder(),
            local_user: platform::user_name(),
            local_host: platform::host_name(),
        };
        let settings = SshSettings::resolve(&question, &SystemSources)?;
        for warning in &settings.warnings {
            // Files written for OpenSSH often contain keywords without effect here.
            debug!("{warning}");
        }
        Ok(settings)
    }
}

/// Returns true if only errors are to be printed.
pub(crate) fn is_quiet(settings: &SshSettings) -> bool {
    settings.log_level < SshLogLevel::Info
}

/// Returns a line of configuration with these quoted words.
///
/// # Errors
/// A word contains a line end or a NUL.
pub(crate) fn option_line(keyword: &str, words: &[&str]) -> Result<String, Failure> {
    let mut line = keyword.to_owned();
    for word in words {
        if word.contains(['\n', '\r', '\0']) {
            let what = format!("{keyword} `{}` must be a single line", word.escape_debug());
            return Err(Failure::new(FailureCode::Usage, what));
        }
        line.push_str(" \"");
        for c in word.chars() {
            if matches!(c, '"' | '\\') {
                line.push('\\');
            }
            line.push(c);
        }
        line.push('"');
    }
    Ok(line)
}

/// Parses `[user@]host` or `ssh://[user@]host[:port]`.
fn parse_destination(text: &str) -> Option<SshJump> {
    let uri = text.strip_prefix("ssh://");
    let text = uri.map_or(text, |uri| uri.strip_suffix('/').unwrap_or(uri));
    // A user name may contain an `@`, like a mail address.
    let (user, place) = match text.rsplit_once('@') {
        Some((user, place)) => (Some(user.to_owned()), place),
        None => (None, text),
    };
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, tail) = rest.split_once(']')?;
            (host, tail.strip_prefix(':').filter(|_| uri.is_some()))
        }
        None => match place.rsplit_once(':').filter(|_| uri.is_some()) {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '/';
    // A program started with this host could take a leading `-` for an option.
    let wrong = host.is_empty() || host.starts_with('-') || host.contains(odd);
    if wrong
        || user
            .as_deref()
            .is_some_and(|user| user.is_empty() || user.starts_with('-'))
    {
        return None;
    }
    Some(SshJump {
        user,
        host: host.to_owned(),
        port: match port {
            Some(port) => Some(port.parse().ok().filter(|port| *port > 0)?),
            None => None,
        },
    })
}

/// Returns the value of an environment variable, unless it is empty.
pub(crate) fn nonempty_variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_in_all_forms() {
        let read =
            |text: &str| parse_destination(text).map(|jump| (jump.user, jump.host, jump.port));
        let some = |user: Option<&str>, host: &str, port| {
            Some((user.map(str::to_owned), host.to_owned(), port))
        };
        for (text, wanted) in [
            ("h", some(None, "h", None)),
            ("a@b@h", some(Some("a@b"), "h", None)),
            ("::1", some(None, "::1", None)),
            ("u@[::1]", some(Some("u"), "::1", None)),
            ("ssh://u@h:22", some(Some("u"), "h", Some(22))),
            ("ssh://[::1]:22/", some(None, "::1", Some(22))),
            ("ssh://h", some(None, "h", None)),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
        for text in [
            "",
            "@h",
            "-oX",
            "u@-h",
            "-u@h",
            "a b",
            "ssh://h:0",
            "ssh://h:x",
            "ssh://a/b",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn values_are_quoted() {
        let text = option_line("IdentityFile", &[r#"a "b" \c"#]).unwrap();
        assert_eq!(text, r#"IdentityFile "a \"b\" \\c""#);
        option_line("User", &["a\nPort 1"]).unwrap_err();
    }
}
