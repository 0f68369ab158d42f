//! Parser for commands, with options and operands.

/// A parsed command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command<'a> {
    pub(super) what: What,
    /// Option letters.
    pub(super) options: Vec<u8>,
    /// Operands.
    pub(super) operands: &'a [Vec<u8>],
}

/// The kinds of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Bye,
    Cd,
    Chgrp,
    Chmod,
    Chown,
    Df,
    Get,
    Help,
    HardLink,
    Lcd,
    Lls,
    Lmkdir,
    Lpwd,
    Ls,
    Mget,
    Mkdir,
    Mput,
    Progress,
    Put,
    Pwd,
    Rename,
    Rm,
    Rmdir,
    Stat,
    Symlink,
    Version,
}

/// Names, permitted options, and minimum and maximum number of operands.
#[rustfmt::skip]
const ALL: [(&str, What, &str, usize, usize); 35] = [
    ("bye", What::Bye, "", 0, 0),
    ("cd", What::Cd, "", 0, 1),
    ("chgrp", What::Chgrp, "h", 2, usize::MAX),
    ("chmod", What::Chmod, "", 2, usize::MAX),
    ("chown", What::Chown, "h", 2, usize::MAX),
    ("df", What::Df, "hi", 0, 1),
    ("dir", What::Ls, LS, 0, usize::MAX),
    ("exit", What::Bye, "", 0, 0),
    ("get", What::Get, "apPrR", 1, 2),
    ("help", What::Help, "", 0, 1),
    ("?", What::Help, "", 0, 1),
    ("lcd", What::Lcd, "", 0, 1),
    ("link", What::HardLink, "s", 2, 2),
    ("lls", What::Lls, "", 0, 1),
    ("lmkdir", What::Lmkdir, "", 1, 1),
    ("ln", What::HardLink, "s", 2, 2),
    ("lpwd", What::Lpwd, "", 0, 0),
    ("ls", What::Ls, LS, 0, usize::MAX),
    ("mget", What::Mget, "apPrR", 1, usize::MAX),
    ("mkdir", What::Mkdir, "p", 1, usize::MAX),
    ("mput", What::Mput, "apPrR", 1, usize::MAX),
    ("mv", What::Rename, "", 2, 2),
    ("progress", What::Progress, "", 0, 0),
    ("put", What::Put, "apPrR", 1, 2),
    ("pwd", What::Pwd, "", 0, 0),
    ("quit", What::Bye, "", 0, 0),
    ("reget", What::Get, "apPrR", 1, 2),
    ("rename", What::Rename, "", 2, 2),
    ("reput", What::Put, "apPrR", 1, 2),
    ("delete", What::Rm, "", 1, usize::MAX),
    ("rm", What::Rm, "", 1, usize::MAX),
    ("rmdir", What::Rmdir, "", 1, usize::MAX),
    ("stat", What::Stat, "", 1, usize::MAX),
    ("symlink", What::Symlink, "", 2, 2),
    ("version", What::Version, "", 0, 0),
];

/// Options of `ls`.
const LS: &str = "1ahlnrSt";

impl<'a> Command<'a> {
    /// Parses the words of a line.
    ///
    /// # Errors
    /// A message for the user: unknown command, unknown option, or wrong number of operands.
    pub(super) fn read(words: &'a [Vec<u8>]) -> Result<Self, String> {
        let (name, mut operands) = words.split_first().ok_or("no command")?;
        let lower = name.to_ascii_lowercase();
        let Some((name, what, may, least, most)) = ALL
            .iter()
            .copied()
            .find(|(name, ..)| name.as_bytes() == lower)
        else {
            let name = crate::copy::shown(name);
            return Err(format!(
                "`{name}` is not a command; `help` lists the commands"
            ));
        };
        let mut options = Vec::new();
        while let Some((word, rest)) = operands.split_first()
            && let Some(letters) = word.strip_prefix(b"-").filter(|rest| !rest.is_empty())
        {
            operands = rest;
            if letters == b"-" {
                break;
            }
            if let Some(wrong) = letters.iter().find(|byte| !may.as_bytes().contains(byte)) {
                return Err(format!("{name} has no option -{}", wrong.escape_ascii()));
            }
            options.extend_from_slice(letters);
        }
        if !(least..=most).contains(&operands.len()) {
            let wanted = match (least, most) {
                (least, most) if least == most => least.to_string(),
                (least, usize::MAX) => format!("{least} or more"),
                (least, most) => format!("{least} to {most}"),
            };
            return Err(format!(
                "{name} takes {wanted} operands, but {} were given",
                operands.len()
            ));
        }
        if name.starts_with("re") && matches!(what, What::Get | What::Put) {
            options.push(b'a');
        }
        let what = match what {
            What::HardLink if options.contains(&b's') => What::Symlink,
            what => what,
        };
        Ok(Self {
            what,
            options,
            operands,
        })
    }

    /// Returns true if an option was given.
    pub(super) fn has(&self, option: u8) -> bool {
        self.options.contains(&option)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(What, Vec<u8>, usize), String> {
        let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.into()).collect();
        Command::read(&words).map(|read| (read.what, read.options, read.operands.len()))
    }

    #[test]
    fn commands_are_read() {
        assert_eq!(read("LS -la x"), Ok((What::Ls, b"la".to_vec(), 1)));
        assert_eq!(read("get -r -- -x y"), Ok((What::Get, b"r".to_vec(), 2)));
        assert_eq!(read("reget x"), Ok((What::Get, b"a".to_vec(), 1)));
        assert_eq!(read("ln -s a b"), Ok((What::Symlink, b"s".to_vec(), 2)));
        assert_eq!(read("put -"), Ok((What::Put, vec![], 1)));
        for wrong in ["", "l", "ls -z", "get", "get a b c", "pwd x"] {
            read(wrong).unwrap_err();
        }
    }
}
