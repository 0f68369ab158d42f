//! `ls`: lists remote files.

use std::cmp::Reverse;
use std::io::{self, IsTerminal};

use adit_ssh_proto::sftp::{FileAttrs, FileType};

use super::command::Command;
use super::interpreter::Interpreter;
use crate::copy::{CopyError, Entry, display_path, expand_pattern, join_path};

/// Width of a terminal that does not report it, in columns.
const DEFAULT_WIDTH: usize = 80;

impl Interpreter {
    /// Runs `ls`.
    pub(super) async fn run_ls(&mut self, command: &Command<'_>) -> Result<(), CopyError> {
        if command.operands.is_empty() {
            let folder = self.folder.clone();
            let entries = self.host.remote.read_dir(&folder).await?;
            print_entries(entries, command);
            return Ok(());
        }
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        for word in command.operands {
            let pattern = self.resolve_pattern(word).await?;
            for path in expand_pattern(&pattern, &mut self.host.remote).await? {
                let found = self.host.remote.lstat(&path).await;
                let attrs = match found {
                    // For a link that was named, its target is listed.
                    Ok(attrs) if attrs.file_kind() == Some(FileType::Symlink) => {
                        self.host.remote.stat(&path).await.or(Ok(attrs))
                    }
                    found => found,
                };
                match attrs {
                    Err(fault) => self
                        .copy_options
                        .report_and_skip(&display_path(&path), fault)?,
                    Ok(attrs) if attrs.file_kind() == Some(FileType::Folder) => folders.push(path),
                    Ok(attrs) => files.push(Entry {
                        name: self.relative_name(path),
                        line: Vec::new(),
                        attrs,
                    }),
                }
            }
        }
        let named = !files.is_empty() || folders.len() > 1;
        print_entries(files, command);
        for folder in folders {
            let mut entries = self.host.remote.read_dir(&folder).await?;
            let name = self.relative_name(folder);
            if named {
                println!("\n{}:", display_path(&name));
            } else {
                // As in OpenSSH: entries of a single folder have its name in front.
                for entry in &mut entries {
                    entry.line.clear();
                    entry.name = join_path(&name, &entry.name);
                }
            }
            print_entries(entries, command);
        }
        Ok(())
    }

    /// Returns a path relative to the working directory, if it is below it.
    fn relative_name(&self, path: Vec<u8>) -> Vec<u8> {
        let rest = path.strip_prefix(self.folder.as_slice());
        match rest.and_then(|rest| rest.strip_prefix(b"/")) {
            Some(rest) if !rest.is_empty() => rest.to_vec(),
            _ => path,
        }
    }
}

/// Sorts and prints entries according to the options.
fn print_entries(mut entries: Vec<Entry>, command: &Command<'_>) {
    if !command.has_option(b'a') {
        entries.retain(|entry| !crate::copy::base_name(&entry.name).starts_with(b"."));
    }
    match (command.has_option(b'S'), command.has_option(b't')) {
        (true, _) => entries.sort_by_key(|entry| Reverse(entry.attrs.size)),
        (_, true) => entries.sort_by_key(|entry| Reverse(entry.attrs.times.map(|times| times.1))),
        _ => entries.sort_by(|one, other| one.name.cmp(&other.name)),
    }
    if command.has_option(b'r') {
        entries.reverse();
    }
    if command.has_option(b'l') || command.has_option(b'n') || command.has_option(b'h') {
        for entry in &entries {
            let own = entry.line.is_empty() || command.has_option(b'n') || command.has_option(b'h');
            let line = match own {
                true => format_long_entry(&entry.attrs, &entry.name, command.has_option(b'h')),
                false => display_path(&entry.line),
            };
            println!("{line}");
        }
        return;
    }
    let names: Vec<String> = entries
        .iter()
        .map(|entry| display_path(&entry.name))
        .collect();
    let columns = match io::stdout().is_terminal() && !command.has_option(b'1') {
        true => rustix::termios::tcgetwinsize(io::stdout())
            .map_or(DEFAULT_WIDTH, |size| usize::from(size.ws_col).max(1)),
        false => 1,
    };
    for line in format_columns(&names, columns) {
        println!("{line}");
    }
}

/// Formats names in columns, filled from top to bottom, for a width in characters.
fn format_columns(names: &[String], width: usize) -> Vec<String> {
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

/// Formats a line like `ls -l`, with numeric owner and group and a time in UTC.
pub(super) fn format_long(attrs: &FileAttrs, name: &[u8]) -> String {
    format_long_entry(attrs, name, false)
}

/// Formats a line like `ls -l`; if `human` is true, sizes have a unit.
fn format_long_entry(attrs: &FileAttrs, name: &[u8], human: bool) -> String {
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
        format_size(size)
    } else {
        size.to_string()
    };
    let time = attrs
        .times
        .map_or_else(String::new, |times| format_utc(times.1));
    let name = display_path(name);
    format!("{kind}{bits} {user:>6} {group:>6} {size:>10} {time} {name}")
}

/// Formats seconds since 1970 as date and time of day.
fn format_utc(seconds: u32) -> String {
    let (day, of_day) = (i64::from(seconds / 86_400), seconds % 86_400);
    let (year, month, day) = adit_sftp::listing::date(day);
    let (hour, minute) = (of_day / 3600, of_day % 3600 / 60);
    format!("{month} {day:>2} {year} {hour:02}:{minute:02}")
}

/// Formats a number of bytes with a unit.
pub(super) fn format_size(octets: u64) -> String {
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
        assert_eq!(format_columns(&names, 9), ["a   d", "bb  e", "c"]);
        assert_eq!(format_columns(&names, 1).len(), 5);
        assert!(format_columns(&[], 80).is_empty());
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
            format_long_entry(&attrs, b"x\n", true),
            "drwxr-xr--      0      7       1.5K Feb 29 2000 12:34 x\\n"
        );
        assert_eq!(format_size(u64::MAX), "16.0E");
    }
}
