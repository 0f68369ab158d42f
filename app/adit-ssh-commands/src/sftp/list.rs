//! `ls`: files there, as people like them.

use std::cmp::Reverse;
use std::io::{self, IsTerminal};

use adit_ssh_proto::sftp::{FileAttrs, FileType};

use super::command::Command;
use super::interpreter::Interpreter;
use crate::copy::{Entry, Fault, expand, join, shown};

/// Columns of a terminal that does not tell.
const USUAL_WIDTH: usize = 80;

impl Interpreter {
    pub(super) async fn list(&mut self, command: &Command<'_>) -> Result<(), Fault> {
        if command.operands.is_empty() {
            let folder = self.folder.clone();
            let entries = self.host.remote.read_dir(&folder).await?;
            show(entries, command);
            return Ok(());
        }
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        for word in command.operands {
            let pattern = self.pattern(word).await?;
            for path in expand(&pattern, &mut self.host.remote).await? {
                let found = self.host.remote.lstat(&path).await;
                let attrs = match found {
                    // A link that was named means what it leads to.
                    Ok(attrs) if attrs.file_kind() == Some(FileType::Symlink) => {
                        self.host.remote.stat(&path).await.or(Ok(attrs))
                    }
                    found => found,
                };
                match attrs {
                    Err(fault) => self.how.skip(&shown(&path), fault)?,
                    Ok(attrs) if attrs.file_kind() == Some(FileType::Folder) => folders.push(path),
                    Ok(attrs) => files.push(Entry {
                        name: self.near(path),
                        line: Vec::new(),
                        attrs,
                    }),
                }
            }
        }
        let named = !files.is_empty() || folders.len() > 1;
        show(files, command);
        for folder in folders {
            let mut entries = self.host.remote.read_dir(&folder).await?;
            let name = self.near(folder);
            if named {
                println!("\n{}:", shown(&name));
            } else {
                // As OpenSSH does it: what is in the one folder has its name before.
                for entry in &mut entries {
                    entry.line.clear();
                    entry.name = join(&name, &entry.name);
                }
            }
            show(entries, command);
        }
        Ok(())
    }

    /// A path as it is seen from where we are.
    fn near(&self, path: Vec<u8>) -> Vec<u8> {
        let rest = path.strip_prefix(self.folder.as_slice());
        match rest.and_then(|rest| rest.strip_prefix(b"/")) {
            Some(rest) if !rest.is_empty() => rest.to_vec(),
            _ => path,
        }
    }
}

fn show(mut entries: Vec<Entry>, command: &Command<'_>) {
    if !command.has(b'a') {
        entries.retain(|entry| !crate::copy::base(&entry.name).starts_with(b"."));
    }
    match (command.has(b'S'), command.has(b't')) {
        (true, _) => entries.sort_by_key(|entry| Reverse(entry.attrs.size)),
        (_, true) => entries.sort_by_key(|entry| Reverse(entry.attrs.times.map(|times| times.1))),
        _ => entries.sort_by(|one, other| one.name.cmp(&other.name)),
    }
    if command.has(b'r') {
        entries.reverse();
    }
    if command.has(b'l') || command.has(b'n') || command.has(b'h') {
        for entry in &entries {
            let own = entry.line.is_empty() || command.has(b'n') || command.has(b'h');
            let line = match own {
                true => long_of(&entry.attrs, &entry.name, command.has(b'h')),
                false => shown(&entry.line),
            };
            println!("{line}");
        }
        return;
    }
    let names: Vec<String> = entries.iter().map(|entry| shown(&entry.name)).collect();
    let columns = match io::stdout().is_terminal() && !command.has(b'1') {
        true => rustix::termios::tcgetwinsize(io::stdout())
            .map_or(USUAL_WIDTH, |size| usize::from(size.ws_col).max(1)),
        false => 1,
    };
    for line in in_columns(&names, columns) {
        println!("{line}");
    }
}

/// Names beside each other, downwards first, in so many columns of characters.
fn in_columns(names: &[String], width: usize) -> Vec<String> {
    let longest = names.iter().map(|name| name.chars().count()).max();
    let cell = longest.unwrap_or(0) + 2;
    let across = (width / cell).max(1);
    let rows = names.len().div_ceil(across);
    let line = |row: usize| {
        let cells = names.iter().skip(row).step_by(rows.max(1));
        let text: String = cells.map(|name| format!("{name:<cell$}")).collect();
        text.trim_end().to_owned()
    };
    (0..rows).map(line).collect()
}

/// A line as `ls -l` has it, with numbers of people and a time in UTC.
pub(super) fn long(attrs: &FileAttrs, name: &[u8]) -> String {
    long_of(attrs, name, false)
}

fn long_of(attrs: &FileAttrs, name: &[u8], human: bool) -> String {
    let mode = attrs.permissions.unwrap_or(0);
    let kind = match attrs.file_kind() {
        Some(FileType::Folder) => 'd',
        Some(FileType::Symlink) => 'l',
        Some(FileType::Special) => 's',
        _ => '-',
    };
    let bits: String = (0..9)
        .rev()
        .zip("rwxrwxrwx".chars())
        .map(|(bit, letter)| if mode >> bit & 1 == 1 { letter } else { '-' })
        .collect();
    let (user, group) = attrs.owner.unwrap_or_default();
    let size = attrs.size.unwrap_or(0);
    let size = if human {
        amount(size)
    } else {
        size.to_string()
    };
    let time = attrs.times.map_or_else(String::new, |times| utc(times.1));
    let name = shown(name);
    format!("{kind}{bits} {user:>6} {group:>6} {size:>10} {time} {name}")
}

/// Seconds since 1970 as date and time of day.
fn utc(seconds: u32) -> String {
    let (day, of_day) = (i64::from(seconds / 86_400), seconds % 86_400);
    let (year, month, day) = adit_sftp::listing::date(day);
    let (hour, minute) = (of_day / 3600, of_day % 3600 / 60);
    format!("{month} {day:>2} {year} {hour:02}:{minute:02}")
}

/// Octets with a unit.
pub(super) fn amount(octets: u64) -> String {
    let (mut value, mut units) = (octets as f64, "BKMGTPE".chars());
    let mut unit = units.next().unwrap_or('B');
    while value >= 1000.0
        && let Some(next) = units.next()
    {
        value /= 1024.0;
        unit = next;
    }
    let digits = usize::from(unit != 'B' && value < 100.0);
    format!("{value:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_columns() {
        let names = ["a", "bb", "c", "d", "e"].map(str::to_owned);
        assert_eq!(in_columns(&names, 9), ["a   d", "bb  e", "c"]);
        assert_eq!(in_columns(&names, 1).len(), 5);
        assert!(in_columns(&[], 80).is_empty());
    }

    #[test]
    fn a_line_for_people() {
        let attrs = FileAttrs {
            size: Some(1536),
            owner: Some((0, 7)),
            permissions: Some(0o040_754),
            times: Some((0, 951_827_640)),
        };
        assert_eq!(
            long_of(&attrs, b"x\n", true),
            "drwxr-xr--      0      7       1.5K Feb 29 2000 12:34 x\\n"
        );
        assert_eq!(amount(u64::MAX), "16.0E");
    }
}
