//! `adit convert`: conversion of other programs' configurations.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::text::decode_utf8;
use adit_config::{MAX_FILE_LEN, Plan, Problem, Sources, SystemSources};
use adit_convert::{AllowedPlugins, ConvertOptions, Converted, Note, Role};
use serde_json::json;
use zeroize::Zeroizing;

use crate::{args, json};

pub(super) fn run_convert(typed: &args::ConvertArgs) -> CommandResult {
    let (name, text) = read_text(&typed.file)?;
    let wish = ConvertOptions {
        role: typed.role.map(|end| match end {
            args::ConvertRole::Client => Role::Client,
            args::ConvertRole::Server => Role::Server,
        }),
        plugins: AllowedPlugins::only(typed.allow_plugin.clone()),
        select: typed.select.clone(),
    };
    let converted = adit_convert::convert(&text, &name, &wish, &SystemSources)?;
    if typed.json.json {
        if let Some(path) = &typed.output {
            write_new_file(path, &converted.toml)?;
        }
        print_json(typed, &converted);
        return Ok(());
    }
    // Printed before the text, which may scroll them away, or go to a pipe that is closed.
    for note in &converted.notes {
        eprintln!("{note}");
    }
    match &typed.output {
        Some(path) => write_new_file(path, &converted.toml),
        None => {
            let mut out = adit_cli::out::stdout();
            let done = out.write_all(converted.toml.as_bytes());
            done.and_then(|()| out.flush())
                .map_err(|why| Failure::new(FailureCode::Failure, format!("cannot write: {why}")))
        }
    }
}

/// Prints the file, unless it was written to another, and what could not be converted.
fn print_json(typed: &args::ConvertArgs, converted: &Converted) {
    let note = |note: &Note| json!({ "path": note.path, "text": note.text });
    let notes: Vec<_> = converted.notes.iter().map(note).collect();
    let result = json!({
        "toml": typed.output.is_none().then_some(&*converted.toml),
        "file": typed.output,
        "notes": notes,
    });
    json::print_result("convert", &result);
}

/// Returns the plan of a file of adit or of another program. Notes of the conversion are printed as
/// warnings.
pub(super) fn plan_from_file(path: &Path) -> Result<Plan, Failure> {
    Ok(plan_from_file_with(path, &SystemSources)?)
}

/// Like [`plan_from_file`], with other sources of the files that it refers to.
pub(super) fn plan_from_file_with(
    path: &Path,
    sources: &dyn Sources,
) -> Result<Plan, Vec<Problem>> {
    let options = ConvertOptions::default();
    let (plan, notes) = adit_convert::plan_from_file_with(path, &options, sources)?;
    print_notes(&notes);
    Ok(plan)
}

/// Prints what could not be converted.
pub(super) fn print_notes(notes: &[Note]) {
    for Note { path, text, .. } in notes {
        if path.is_empty() {
            eprintln!("warning: {text}");
        } else {
            eprintln!("warning: `{path}`: {text}");
        }
    }
}

/// Returns the text of a file and its name for messages; `-` is standard input.
fn read_text(path: &Path) -> Result<(String, Zeroizing<String>), Failure> {
    let (name, read) = if path == Path::new("-") {
        (
            "standard input".to_owned(),
            read_limited(adit_cli::out::stdin()),
        )
    } else {
        (
            path.display().to_string(),
            File::open(path).and_then(read_limited),
        )
    };
    match read {
        Ok(text) => Ok((name, text)),
        Err(why) => Err(
            Failure::new(FailureCode::Config, format!("cannot read `{name}`: {why}"))
                .with_hint("adit reads text in UTF-8: is it the right file?"),
        ),
    }
}

/// Reads one byte more than the maximum, so that the converter reports a text that is too long.
fn read_limited(from: impl Read) -> io::Result<Zeroizing<String>> {
    let mut bytes = Vec::new();
    from.take(MAX_FILE_LEN + 1).read_to_end(&mut bytes)?;
    decode_utf8(bytes)
}

/// Writes a new file that only its owner can read.
fn write_new_file(path: &Path, text: &str) -> CommandResult {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let shown = path.display();
    let done = options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    done.map_err(|why| {
        let failure = Failure::new(
            FailureCode::Failure,
            format!("cannot write `{shown}`: {why}"),
        );
        if why.kind() == io::ErrorKind::AlreadyExists {
            failure.with_hint(
                "existing files are not overwritten; name another file, or remove that one",
            )
        } else {
            failure
        }
    })
}
