//! Environment of a user's program: variables of the server, of the user's key, and of the client.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;

use super::account::Account;

/// Maximum number of variables that a client may set.
const MAX_VARIABLES: usize = 64;
/// Maximum length of their values, in bytes.
const MAX_VALUE_LEN: usize = 4096;
/// Variables of the server's environment that programs inherit.
const INHERITED_VARIABLES: [&str; 3] = ["TZ", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// Search path of users.
const USER_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/games";
/// Search path of root.
const ROOT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The environment of one program.
#[derive(Debug, Clone, Default)]
pub(super) struct Environment {
    server_variables: BTreeMap<OsString, OsString>,
    client_variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// Returns the variables common to all programs of a connection.
    pub(super) fn new(account: &Account, from: SocketAddr, at: SocketAddr) -> Self {
        let mut own = Self::default();
        for name in INHERITED_VARIABLES {
            if let Some(value) = env::var_os(name) {
                own.set_variable(name, value);
            }
        }
        own.set_variable("USER", &account.name);
        own.set_variable("LOGNAME", &account.name);
        own.set_variable("HOME", &account.home);
        own.set_variable("SHELL", &account.shell);
        let path = if account.uid.is_root() {
            ROOT_PATH
        } else {
            USER_PATH
        };
        own.set_variable("PATH", path);
        let (ip, port) = (from.ip().to_canonical(), from.port());
        own.set_variable("SSH_CLIENT", format!("{ip} {port} {}", at.port()));
        let here = at.ip().to_canonical();
        own.set_variable(
            "SSH_CONNECTION",
            format!("{ip} {port} {here} {}", at.port()),
        );
        own
    }

    /// Sets a variable of the server, which takes precedence over the client's.
    pub(super) fn set_variable(&mut self, name: impl Into<OsString>, value: impl AsRef<OsStr>) {
        self.server_variables
            .insert(name.into(), value.as_ref().to_owned());
    }

    /// Sets a variable for the client, if it is allowed; returns true if so.
    pub(super) fn accept_client_variable(
        &mut self,
        name: &[u8],
        value: &[u8],
        accepted: &[String],
    ) -> bool {
        let fine = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let (name, value) = (OsStr::from_bytes(name), OsStr::from_bytes(value));
        let granted = !name.is_empty()
            && name.as_bytes().iter().all(fine)
            && !value.as_bytes().contains(&0)
            && value.len() <= MAX_VALUE_LEN
            && accepted
                .iter()
                .any(|pattern| matches_variable(pattern, name))
            && (self.client_variables.len() < MAX_VARIABLES
                || self.client_variables.contains_key(name));
        if granted {
            self.client_variables
                .insert(name.to_owned(), value.to_owned());
        }
        granted
    }

    /// Returns all variables; those of the server take precedence.
    pub(super) fn merged_variables(&self) -> BTreeMap<&OsStr, &OsStr> {
        let both = self.client_variables.iter().chain(&self.server_variables);
        both.map(|(name, value)| (&**name, &**value)).collect()
    }
}

/// Variables that change which code runs when a program starts, or how it interprets its input: those of
/// dynamic loaders, C libraries, shells and languages. A trailing `*` matches anything. For the C library these
/// are the ones that it ignores itself in set-user-ID programs; the others are those that sudo removes, and
/// their counterparts in newer languages.
const STARTUP_VARIABLES: &[&str] = &[
    // Loaders.
    "LD_*",
    "DYLD_*",
    "_RLD*",
    "LDR_*",
    "LIBPATH",
    "SHLIB_PATH",
    "AUDIT_*",
    // C libraries.
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLIBC_TUNABLES",
    "HOSTALIASES",
    "LOCALDOMAIN",
    "LOCPATH",
    "MALLOC_*",
    "NIS_PATH",
    "NLSPATH",
    "PATH_LOCALE",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "TZDIR",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TERMPATH",
    "TERMCAP",
    "KRB5*",
    "NSS_*",
    // Paths and users.
    "PATH",
    "HOME",
    "SHELL",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "XDG_*",
    "DBUS_*",
    "SSH_*",
    "SUDO_*",
    // Shells.
    "IFS",
    "CDPATH",
    "ENV",
    "BASH_*",
    "BASHOPTS",
    "SHELLOPTS",
    "GLOBIGNORE",
    "PS1",
    "PS4",
    "PROMPT_COMMAND",
    "FPATH",
    "NULLCMD",
    "READNULLCMD",
    "ZDOTDIR",
    "TMPPREFIX",
    "INPUTRC",
    // Languages.
    "PERL*",
    "PYTHON*",
    "RUBY*",
    "GEM_*",
    "BUNDLE_*",
    "NODE_*",
    "NPM_*",
    "LUA_*",
    "R_*",
    "PHP*",
    "TCLLIBPATH",
    "JAVA_*",
    "JDK_*",
    "_JAVA_*",
    "CLASSPATH",
    "DOTNET_*",
    "COR_*",
    "CORECLR_*",
    "GOFLAGS",
    "CARGO_*",
    "RUSTC_*",
    "GUILE_*",
    "OCAML*",
    "GHC*",
    // Programs that run others, or load configured code.
    "EDITOR",
    "VISUAL",
    "PAGER",
    "LESS*",
    "BROWSER",
    "GIT_*",
    "OPENSSL_*",
];

/// Returns true if keys can never set this variable.
pub(super) fn affects_program_start(name: &str) -> bool {
    let name = OsStr::new(name);
    STARTUP_VARIABLES
        .iter()
        .any(|pattern| matches_variable(pattern, name))
}

/// Returns true if a pattern with an optional trailing `*` matches `name`.
pub(super) fn matches_variable(pattern: &str, name: &OsStr) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.as_bytes().starts_with(start.as_bytes()),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_the_start_of_programs_is_known() {
        for name in [
            "LD_PRELOAD",
            "LD_AUDIT",
            "DYLD_INSERT_LIBRARIES",
            "BASH_ENV",
            "BASH_FUNC_ls",
            "ENV",
            "GCONV_PATH",
            "LOCPATH",
            "PYTHONPATH",
            "PERL5OPT",
            "NODE_OPTIONS",
            "PATH",
            "HOME",
            "GLIBC_TUNABLES",
            "GIT_SSH_COMMAND",
            "JAVA_TOOL_OPTIONS",
        ] {
            assert!(affects_program_start(name), "{name}");
        }
        for name in ["LANG", "LC_ALL", "TZ", "MARK", "EDITION", "PATHS"] {
            assert!(!affects_program_start(name), "{name}");
        }
    }

    #[test]
    fn clients_set_what_they_may() {
        let accepted = ["LANG".to_owned(), "LC_*".to_owned(), "HOME".to_owned()];
        let mut all = Environment::new(
            &Account::current(),
            "[::ffff:192.0.2.1]:5".parse().unwrap(),
            "[::1]:22".parse().unwrap(),
        );
        for (name, value, granted) in [
            ("LANG", "C.UTF-8", true),
            ("LC_ALL", "de_DE", true),
            ("LC_", "", true),
            ("LANGUAGE", "de", false),
            ("LD_PRELOAD", "evil.so", false),
            ("LC_A=B", "x", false),
            ("", "x", false),
            ("LC_NUL", "a\0b", false),
            ("HOME", "/elsewhere", true),
        ] {
            let got = all.accept_client_variable(name.as_bytes(), value.as_bytes(), &accepted);
            assert_eq!(got, granted, "{name}");
        }
        let long = vec![b'x'; MAX_VALUE_LEN + 1];
        assert!(!all.accept_client_variable(b"LC_LONG", &long, &accepted));
        for n in 0..2 * MAX_VARIABLES {
            all.accept_client_variable(format!("LC_{n}").as_bytes(), b"", &accepted);
        }
        assert_eq!(all.client_variables.len(), MAX_VARIABLES);
        let map = all.merged_variables();
        let get = |name: &str| map.get(OsStr::new(name)).map(|v| v.to_string_lossy());
        assert_eq!(get("SSH_CLIENT").unwrap(), "192.0.2.1 5 22");
        assert_eq!(get("SSH_CONNECTION").unwrap(), "192.0.2.1 5 ::1 22");
        assert_eq!(get("LANG").unwrap(), "C.UTF-8");
        assert_ne!(get("HOME").unwrap(), "/elsewhere");
    }
}
