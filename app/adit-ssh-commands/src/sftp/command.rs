//! Parser for commands, with options and operands.

/// A parsed command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command<'a> {
    pub(super) kind: CommandKind,
    /// Option letters.
    pub(super) options: Vec<u8>,
    /// Operands.
    pub(super) operands: &'a [Vec<u8>],
}

/// The kinds of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandKind {
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
const COMMANDS: [(&str, CommandKind, &str, usize, usize); 35] = [
    ("bye", CommandKind::Bye, "", 0, 0),
    ("cd", CommandKind::Cd, "", 0, 1),
    ("chgrp", CommandKind::Chgrp, "h", 2, usize::MAX),
    ("chmod", CommandKind::Chmod, "", 2, usize::MAX),
    ("chown", CommandKind::Chown, "h", 2, usize::MAX),
    ("df", CommandKind::Df, "hi", 0, 1),
    ("dir", CommandKind::Ls, LS_OPTIONS, 0, usize::MAX),
    ("exit", CommandKind::Bye, "", 0, 0),
    ("get", CommandKind::Get, "apPrR", 1, 2),
    ("help", CommandKind::Help, "", 0, 1),
    ("?", CommandKind::Help, "", 0, 1),
    ("lcd", CommandKind::Lcd, "", 0, 1),
    ("link", CommandKind::HardLink, "s", 2, 2),
    ("lls", CommandKind::Lls, "", 0, 1),
    ("lmkdir", CommandKind::Lmkdir, "", 1, 1),
    ("ln", CommandKind::HardLink, "s", 2, 2),
    ("lpwd", CommandKind::Lpwd, "", 0, 0),
    ("ls", CommandKind::Ls, LS_OPTIONS, 0, usize::MAX),
    ("mget", CommandKind::Mget, "apPrR", 1, usize::MAX),
    ("mkdir", CommandKind::Mkdir, "p", 1, usize::MAX),
    ("mput", CommandKind::Mput, "apPrR", 1, usize::MAX),
    ("mv", CommandKind::Rename, "", 2, 2),
    ("progress", CommandKind::Progress, "", 0, 0),
    ("put", CommandKind::Put, "apPrR", 1, 2),
    ("pwd", CommandKind::Pwd, "", 0, 0),
    ("quit", CommandKind::Bye, "", 0, 0),
    ("reget", CommandKind::Get, "apPrR", 1, 2),
    ("rename", CommandKind::Rename, "", 2, 2),
    ("reput", CommandKind::Put, "apPrR", 1, 2),
    ("delete", CommandKind::Rm, "", 1, usize::MAX),
    ("rm", CommandKind::Rm, "", 1, usize::MAX),
    ("rmdir", CommandKind::Rmdir, "", 1, usize::MAX),
    ("stat", CommandKind::Stat, "", 1, usize::MAX),
    ("symlink", CommandKind::Symlink, "", 2, 2),
    ("version", CommandKind::Version, "", 0, 0),
];

/// Options of `ls`.
const LS_OPTIONS: &str = "1ahlnrSt";

impl<'a> Command<'a> {
    /// Parses the words of a line.
    ///
    /// # Errors
    /// A message for the user: unknown command, unknown option, or wrong number of operands.
    pub(super) fn parse(words: &'a [Vec<u8>]) -> Result<Self, String> {
        let (name, mut operands) = words.split_first().ok_or("no command")?;
        let lower = name.to_ascii_lowercase();
        let Some((name, what, may, least, most)) = COMMANDS
            .iter()
            .copied()
            .find(|(name, ..)| name.as_bytes() == lower)
        else {
            let name = crate::copy::display_path(name);
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
        if name.starts_with("re") && matches!(what, CommandKind::Get | CommandKind::Put) {
            options.push(b'a');
        }
        let what = match what {
            CommandKind::HardLink if options.contains(&b's') => CommandKind::Symlink,
            what => what,
        };
        Ok(Self {
            kind: what,
            options,
            operands,
        })
    }

    /// Returns true if an option was given.
    pub(super) fn has_option(&self, option: u8) -> bool {
        self.options.contains(&option)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(CommandKind, Vec<u8>, usize), String> {
        let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.into()).collect();
        Command::parse(&words).map(|read| (read.kind, read.options, read.operands.len()))
    }

    #[test]
    fn commands_are_read() {
        assert_eq!(read("LS -la x"), Ok((CommandKind::Ls, b"la".to_vec(), 1)));
        assert_eq!(
            read("get -r -- -x y"),
            Ok((CommandKind::Get, b"r".to_vec(), 2))
        );
        assert_eq!(read("reget x"), Ok((CommandKind::Get, b"a".to_vec(), 1)));
        assert_eq!(
            read("ln -s a b"),
            Ok((CommandKind::Symlink, b"s".to_vec(), 2))
        );
        assert_eq!(read("put -"), Ok((CommandKind::Put, vec![], 1)));
        for wrong in ["", "l", "ls -z", "get", "get a b c", "pwd x"] {
            read(wrong).unwrap_err();
        }
    }
}
