//! The configuration of OpenSSH's client: any text is settings or problems, and reading it ends.

#![no_main]

use std::io;
use std::path::Path;

use adit_config::{FileText, Sources};
use adit_fuzz::ActionScript;
use adit_ssh_commands::ssh_config::{
    SshConfigFiles, SshConfigQuery, SshConfigSources, SshSettings,
};
use libfuzzer_sys::fuzz_target;
use zeroize::Zeroizing;

/// A file that may include itself under every name.
struct SelfIncludingFile<'a>(&'a str);

impl Sources for SelfIncludingFile<'_> {
    fn read_file(&self, path: &Path) -> io::Result<FileText> {
        if path.starts_with("/etc") {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(FileText {
            text: self.0.to_owned().into(),
            readable_by_others: false,
        })
    }

    fn read_variable(&self, name: &str) -> Option<Zeroizing<String>> {
        (name == "SET").then(|| "value%h${SET}".to_owned().into())
    }
}

impl SshConfigSources for SelfIncludingFile<'_> {
    fn file_names(&self, _: &Path) -> io::Result<Vec<String>> {
        Ok(["a", "b.conf", ".c"].map(str::to_owned).to_vec())
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let flags = script.read_u8();
    let option = script.read_bytes();
    let (Ok(option), Ok(text)) = (
        std::str::from_utf8(option),
        std::str::from_utf8(script.take_rest()),
    ) else {
        return;
    };
    let question = SshConfigQuery {
        host: ["h", "web.example.com", ""][usize::from(flags) % 3].to_owned(),
        user: (flags & 8 != 0).then(|| "typed".to_owned()),
        port: None,
        options: match flags & 16 {
            0 => vec![],
            _ => vec![option.to_owned()],
        },
        files: match flags & 32 {
            0 => SshConfigFiles::Default,
            _ => SshConfigFiles::Only("/f".into()),
        },
        local_user: "me".to_owned(),
        home: "/home/me".into(),
        local_host: "desk".to_owned(),
    };
    let sources = SelfIncludingFile(text);
    let told = match SshSettings::resolve(&question, &sources) {
        Ok(found) => {
            assert!(found.port > 0 && found.warnings.len() <= 100);
            assert!(found.proxy_jump.is_empty() || found.proxy_command.is_none());
            for list in [&found.ciphers, &found.macs, &found.kex]
                .into_iter()
                .flatten()
            {
                let names = list.apply_to(&["a", "b"]);
                assert!(names.iter().all(|name| !name.is_empty()));
            }
            assert_eq!(
                SshSettings::resolve(&question, &sources).as_ref(),
                Ok(&found)
            );
            found
                .warnings
                .into_iter()
                .map(|warning| warning.about)
                .collect()
        }
        Err(problems) => {
            assert!(!problems.is_empty() && problems.len() <= 100);
            problems
        }
    };
    for problem in told {
        let shown = problem.to_string();
        assert!(!shown.is_empty() && !shown.contains('\u{1b}'));
        if let Some(place) = &problem.place {
            assert!(place.line <= text.lines().count().max(1), "{shown}");
        }
    }
});
