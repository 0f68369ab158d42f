//! The names of other programs under which adit can be started.

use std::ffi::OsString;
use std::path::Path;

/// The names of these programs, which are commands too.
pub(crate) const PROGRAM_NAMES: [&str; 7] = [
    "ss-local",
    "ss-server",
    "ss-tunnel",
    "ss-redir",
    "ss-manager",
    "ssr-local",
    "ssr-server",
];

/// Returns the words of the command line, with the command inserted if the program was started under
/// the name of one.
pub(crate) fn insert_command_by_name(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let name = words.first().map(Path::new).and_then(Path::file_stem);
    let name = name.and_then(|name| PROGRAM_NAMES.into_iter().find(|known| name == *known));
    if let Some(name) = name {
        words.insert(1, name.into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_is_a_command() {
        let words = |words: &[&str]| {
            let words = insert_command_by_name(words.iter().map(OsString::from));
            words
                .iter()
                .map(|w| w.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            words(&["/usr/bin/ss-local", "-u"]),
            ["/usr/bin/ss-local", "ss-local", "-u"]
        );
        assert_eq!(words(&["ssr-server.exe"]), ["ssr-server.exe", "ssr-server"]);
        assert_eq!(words(&["adit", "ss-local"]), ["adit", "ss-local"]);
        assert!(words(&[]).is_empty());
    }
}
