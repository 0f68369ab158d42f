//! Adblock filters that are names only.

use super::limits::{Limits, Loaded, NoteKind, Place, ReadError};
use super::tally::{Tally, shorten};
use super::text::{lines, note_encoding};
use crate::bounds::AddError;
use crate::builder::RuleSetBuilder;

/// Options after `$` that do not restrict the requests of a name.
const HARMLESS: &[&str] = &["important", "all", "document", "doc"];

/// Reads filters for whole names: `||name^` is a domain with all names below, `|name^` the name alone, and
/// `@@` in front an exception. `*` stands for any characters. Comments (`!`, `#`, `[Adblock …]`) are
/// ignored; filters of paths, page elements and request types are skipped with a note.
///
/// # Errors
///
/// [`ReadError`] if the document exceeds a limit.
pub fn read_adblock(document: &[u8], limits: &Limits) -> Result<Loaded, ReadError> {
    let mut tally = Tally::new(document, limits)?;
    let mut blocked = RuleSetBuilder::new();
    let mut excepted = RuleSetBuilder::new();
    for (place, line) in lines(document) {
        let Some(line) = line else {
            tally.see()?;
            note_encoding(&mut tally, place);
            continue;
        };
        let line = line.trim_start();
        let cosmetic = ["##", "#@#", "#?#", "#$#", "#%#"];
        let comment = line.starts_with(['!', '[']) || line == "#" || line.starts_with("# ");
        if line.is_empty() || comment {
            continue;
        }
        if cosmetic.iter().any(|mark| line.contains(mark)) {
            tally.see()?;
            tally.note(place, NoteKind::Unsupported("page elements".to_owned()));
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let (filter, to) = match line.strip_prefix("@@") {
            Some(filter) => (filter, &mut excepted),
            None => (line, &mut blocked),
        };
        add_line(filter, place, to, &mut tally)?;
    }
    if excepted.is_empty() {
        return Ok(tally.finish(blocked));
    }
    let mut not = RuleSetBuilder::new();
    not.add_not(excepted.build())?;
    let mut both = RuleSetBuilder::new();
    both.add_all(vec![blocked.build(), not.build()])?;
    Ok(tally.finish(both))
}

fn add_line(
    line: &str,
    place: Place,
    to: &mut RuleSetBuilder,
    tally: &mut Tally<'_>,
) -> Result<(), ReadError> {
    let (filter, options) = line.split_once('$').unwrap_or((line, ""));
    let mut options = options.split(',').filter(|option| !option.is_empty());
    if let Some(option) = options.find(|option| !HARMLESS.contains(option)) {
        tally.see()?;
        tally.note(
            place,
            NoteKind::Unsupported(format!("${}", shorten(option))),
        );
        return Ok(());
    }
    // A filter without an end also matches the start of a longer name; lists mean the name.
    let whole = filter.starts_with('|') && filter.ends_with(['^', '|']);
    if !whole {
        tally.see()?;
        tally.note(place, NoteKind::Syntax(shorten(line)));
        return Ok(());
    }
    tally.count(place, line, add_filter(filter, to))
}

/// Adds a filter: `||` for a domain or `|` for the start of a name, the name with `*`, and `^` for its end.
/// Without these marks it is open at that side.
pub(super) fn add_filter(filter: &str, to: &mut RuleSetBuilder) -> Result<(), AddError> {
    let (domain, start, rest) = match (filter.strip_prefix("||"), filter.strip_prefix('|')) {
        (Some(rest), _) => (true, true, rest),
        (None, Some(rest)) => (false, true, rest),
        (None, None) => (false, false, filter),
    };
    let (end, name) = match rest
        .strip_suffix("^|")
        .or_else(|| rest.strip_suffix(['^', '|']))
    {
        Some(name) => (true, name),
        None => (false, rest),
    };
    if start && end && !name.contains('*') {
        return if domain {
            to.add_domain(name)
        } else {
            to.add_exact(name)
        };
    }
    if let Some(suffix) = name.strip_prefix("*.")
        && start
        && end
        && !suffix.contains('*')
    {
        return to.add_below(suffix);
    }
    if name.contains('?') {
        return Err(AddError::Glob);
    }
    let body = name.split('*').collect::<Vec<_>>().join("**");
    let tail = if end { "" } else { "**" };
    let body = format!("{body}{tail}");
    match (domain, start) {
        (true, _) => {
            to.add_glob(&body)?;
            to.add_glob(&format!("**.{body}"))
        }
        (false, true) => to.add_glob(&body),
        (false, false) => to.add_glob(&format!("**{body}")),
    }
}
