//! The features of this build, and the commands that it leaves out.

use std::ffi::OsString;
use std::sync::LazyLock;

use adit_cli::{Failure, FailureCode};

/// All features, and true for those of this build.
const FEATURES: [(&str, bool); 13] = [
    ("admin", cfg!(feature = "admin")),
    ("bench", cfg!(feature = "bench")),
    ("classic", cfg!(feature = "classic")),
    ("convert", cfg!(feature = "convert")),
    ("encrypted-dns", cfg!(feature = "encrypted-dns")),
    ("fleet", cfg!(feature = "fleet")),
    ("kcp", cfg!(feature = "kcp")),
    ("legacy-ciphers", cfg!(feature = "legacy-ciphers")),
    ("manual", cfg!(feature = "manual")),
    ("otlp", cfg!(feature = "otlp")),
    ("ssh", cfg!(feature = "ssh")),
    ("ssr", cfg!(feature = "ssr")),
    ("top", cfg!(feature = "top")),
];

/// The commands that need a feature.
const COMMANDS: [(&str, &str); 26] = [
    ("bench", "bench"),
    ("complete", "manual"),
    ("completion", "manual"),
    ("convert", "convert"),
    ("fleet", "fleet"),
    ("install-aliases", "classic"),
    ("kcp", "kcp"),
    ("man", "manual"),
    ("manager", "admin"),
    ("routes", "admin"),
    ("scp", "ssh"),
    ("sessions", "admin"),
    ("sftp", "ssh"),
    ("sftp-server", "ssh"),
    ("ss-local", "classic"),
    ("ss-manager", "classic"),
    ("ss-redir", "classic"),
    ("ss-server", "classic"),
    ("ss-tunnel", "classic"),
    ("ssh", "ssh"),
    ("sshd", "ssh"),
    ("ssr-local", "classic"),
    ("ssr-server", "classic"),
    ("status", "admin"),
    ("top", "top"),
    ("user", "admin"),
];

/// The version with the features, as `adit --version` prints it.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let of = |built: bool| {
        let some = FEATURES.iter().filter(|(_, is_built)| *is_built == built);
        some.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    };
    let mut text = env!("CARGO_PKG_VERSION").to_owned();
    for (title, list) in [("features", of(true)), ("left out", of(false))] {
        if !list.is_empty() {
            text += &format!("\n{title}: {list}");
        }
    }
    text
});

/// Returns the version and the features.
pub(crate) fn long_version() -> &'static str {
    LONG_VERSION.as_str()
}

fn is_built(feature: &str) -> bool {
    FEATURES
        .iter()
        .any(|(name, is_built)| *name == feature && *is_built)
}

/// Returns the failure of a command that this build leaves out, if the words of the command line name one.
pub(crate) fn check_command(words: &[OsString]) -> Result<(), Failure> {
    // Options before a command have no value.
    let mut words = words.iter().skip(1).filter_map(|word| word.to_str());
    let command = words.find(|word| !word.starts_with('-'));
    command.map_or(Ok(()), check_name)
}

/// Returns the failure of a name that is a command which this build leaves out.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    let found = COMMANDS.iter().find(|(command, _)| *command == name);
    match found {
        Some((command, feature)) if !is_built(feature) => {
            let what = format!(
                "this build of adit has no `{command}`: it was built without the feature `{feature}`"
            );
            Err(Failure::new(FailureCode::Usage, what).with_hint(
                "use a build with all features; `adit --version` lists those of this one",
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Args;

    #[test]
    fn commands_are_built_or_left_out() {
        let mut command = Args::command();
        command.build();
        for (name, feature) in COMMANDS {
            let is_unix_only = feature == "ssh" && name != "ssh" && cfg!(not(unix));
            let is_known = command.find_subcommand(name).is_some();
            if !is_unix_only {
                assert_eq!(is_known, is_built(feature), "{name}");
            }
            let words = ["adit", "-v", name, "--help"].map(OsString::from);
            assert_eq!(check_command(&words).is_ok(), is_built(feature), "{name}");
        }
        check_command(&["adit", "-V"].map(OsString::from)).unwrap();
        check_command(&["adit", "run", "ssh"].map(OsString::from)).unwrap();
    }

    /// Documentation of arguments that several commands flatten would replace that of the commands.
    #[test]
    fn each_command_has_a_description_of_its_own() {
        fn visit(command: &clap::Command, known: &mut std::collections::BTreeMap<String, String>) {
            let about = command.get_about().map(ToString::to_string);
            let about = about.unwrap_or_default();
            let name = command.get_name().to_owned();
            assert!(!about.is_empty(), "{name} has no description");
            if let Some(other) = known.insert(about.clone(), name.clone()) {
                assert!(name == "help" || other == name, "{other}, {name}: {about}");
            }
            for inner in command.get_subcommands() {
                visit(inner, known);
            }
        }
        let mut command = Args::command();
        command.build();
        visit(&command, &mut std::collections::BTreeMap::new());
    }

    #[test]
    fn the_version_lists_each_feature_once() {
        for (name, _) in FEATURES {
            let words = long_version().split([' ', ',', '\n']);
            assert_eq!(words.filter(|word| *word == name).count(), 1, "{name}");
        }
    }
}
