//! `adit user import`: users of another program, with their secrets and limits.

use std::io::{self, Read};
use std::path::Path;

use adit_admin::api::{
    ApiClient, ApiRequestError, GivenSecrets, ImportOutcome, ImportRequest, ImportResult,
    ImportedAccount, LimitsPatch, MAX_IMPORT,
};
use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::text::{decode_utf8, read_file, sanitize_for_terminal};
use adit_convert::users::{
    ExportedUser, MAX_EXPORT_LEN, SkippedUser, UserExport, read_user_export,
};
use adit_wire::u64_from;
use serde::Serialize;
use zeroize::Zeroizing;

use super::output;
use crate::args::user::UserImportArgs;
use crate::json;

/// Bytes of a request at most: the API accepts 64 KiB.
const MAX_REQUEST: usize = 48 << 10;
/// The reason why users who may not connect are skipped.
const DISABLED: &str = "it is disabled, and a running process has no disabled users";

/// The outcomes, in the order of the summary, with their names before and after.
const OUTCOMES: [(ImportOutcome, &str, &str); 4] = [
    (ImportOutcome::Added, "added", "would add"),
    (ImportOutcome::Changed, "changed", "would change"),
    (ImportOutcome::Unchanged, "unchanged", "unchanged"),
    (ImportOutcome::Refused, "refused", "refused"),
];

/// The result as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ImportJson<'a> {
    format: &'static str,
    dry_run: bool,
    users: &'a [ImportResult],
    skipped: Vec<SkippedJson<'a>>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct SkippedJson<'a> {
    name: &'a str,
    why: &'a str,
}

/// Runs the command on a running process.
pub(super) fn run_import(typed: &UserImportArgs) -> CommandResult {
    let export = read_export(typed)?;
    let (accounts, skipped) = to_accounts(&export);
    let results = import(typed, accounts)?;
    report(typed, &export, &results, &skipped)
}

/// Runs the command on the realm of a membership.
#[cfg(feature = "fleet")]
pub(super) fn run_realm_import(typed: &UserImportArgs, membership: &Path) -> CommandResult {
    let export = read_export(typed)?;
    let results = super::realm_import::import_into_realm(typed, membership, &export)?;
    report(typed, &export, &results, &export.skipped)
}

/// Prints the results.
fn report(
    typed: &UserImportArgs,
    export: &UserExport,
    results: &[ImportResult],
    skipped: &[SkippedUser],
) -> CommandResult {
    let refused = results
        .iter()
        .filter(|result| result.outcome == ImportOutcome::Refused)
        .count();
    if typed.api.json.json {
        let skipped = skipped.iter().map(|user| SkippedJson {
            name: &user.name,
            why: &user.why,
        });
        let result = ImportJson {
            format: export.format.name(),
            dry_run: typed.dry_run,
            users: results,
            skipped: skipped.collect(),
            notes: export.notes.iter().map(ToString::to_string).collect(),
        };
        json::print_result("user import", &result);
    } else {
        print_results(export, results, skipped, typed.dry_run);
    }
    if refused > 0 {
        let what = format!("{refused} of {} users cannot be imported", results.len());
        return Err(Failure::new(FailureCode::Failure, what).with_hint(
            "the import can be repeated: users who are right already stay as they are",
        ));
    }
    Ok(())
}

fn read_export(typed: &UserImportArgs) -> Result<UserExport, Failure> {
    let path = typed.file.as_path();
    let (name, text) = match path == Path::new("-") {
        true => ("standard input".to_owned(), read_standard_input()),
        false => {
            let read = read_file(path, u64_from(MAX_EXPORT_LEN));
            (path.display().to_string(), read.map(|file| file.text))
        }
    };
    let text = text.map_err(|why| {
        Failure::new(FailureCode::Config, format!("cannot read `{name}`: {why}"))
            .with_hint("an export is text in UTF-8, of at most 64 MiB: is it the right file?")
    })?;
    Ok(read_user_export(&text, &name, typed.from.0).map_err(|problem| vec![*problem])?)
}

fn read_standard_input() -> io::Result<Zeroizing<String>> {
    let mut bytes = Vec::new();
    let mut input = adit_cli::out::stdin().take(u64_from(MAX_EXPORT_LEN) + 1);
    input.read_to_end(&mut bytes)?;
    decode_utf8(bytes)
}

/// Returns the users to import, and those who are skipped.
fn to_accounts(export: &UserExport) -> (Vec<ImportedAccount>, Vec<SkippedUser>) {
    let mut skipped = export.skipped.clone();
    let (disabled, enabled): (Vec<_>, Vec<_>) =
        export.users.iter().partition(|user| user.is_disabled);
    skipped.extend(disabled.into_iter().map(|user| SkippedUser {
        name: user.name.clone(),
        why: DISABLED.to_owned(),
    }));
    (enabled.into_iter().map(to_account).collect(), skipped)
}

fn to_account(user: &ExportedUser) -> ImportedAccount {
    let limits = &user.limits;
    let patch = LimitsPatch {
        quota: limits.quota.map(Some),
        period: limits.period,
        expires: limits.expires.map(Some),
        rate: limits.rate.map(Some),
        sessions: limits.sessions.map(Some),
        devices: limits.devices.map(Some),
    };
    let text = |secret: &Option<adit_config::Secret>| {
        let secret = secret.as_ref();
        secret.map(|secret| secret.expose().to_owned())
    };
    ImportedAccount {
        name: user.name.clone(),
        secrets: GivenSecrets {
            password: text(&user.password),
            psk: text(&user.psk),
            login: text(&user.login),
        },
        limits: (!patch.is_empty()).then(|| patch.to_json()),
        expires_after: limits.expires_after,
        used: user.used,
    }
}

/// Sends the users in as many requests as they need.
fn import(
    typed: &UserImportArgs,
    accounts: Vec<ImportedAccount>,
) -> Result<Vec<ImportResult>, Failure> {
    let total = accounts.len();
    let mut results = Vec::with_capacity(total);
    let done = &mut results;
    let sent = super::send(&typed.api, false, async |api| {
        let mut accounts = accounts.into_iter().peekable();
        while accounts.peek().is_some() {
            let (mut users, mut len) = (Vec::new(), 0);
            while let Some(next) = accounts.peek() {
                len += serde_json::to_string(next).map_or(0, |text| Zeroizing::new(text).len());
                if !users.is_empty() && (len > MAX_REQUEST || users.len() >= MAX_IMPORT) {
                    break;
                }
                users.extend(accounts.next());
            }
            done.extend(import_some(typed, &api, users).await?);
        }
        Ok(())
    });
    match sent {
        Ok(()) => Ok(results),
        Err(why) if results.is_empty() => Err(why),
        Err(why) => {
            eprintln!(
                "{} of {total} users were imported before this:",
                results.len()
            );
            Err(why)
        }
    }
}

async fn import_some(
    typed: &UserImportArgs,
    api: &ApiClient,
    users: Vec<ImportedAccount>,
) -> Result<Vec<ImportResult>, ApiRequestError> {
    let request = ImportRequest {
        users,
        listeners: typed.listener.clone(),
        dry_run: typed.dry_run,
        replace_keys: typed.replace_keys,
    };
    Ok(api.import_accounts(&request).await?.users)
}

fn print_results(
    export: &UserExport,
    results: &[ImportResult],
    skipped: &[SkippedUser],
    dry_run: bool,
) {
    for note in &export.notes {
        eprintln!("{note}");
    }
    let name_of = |outcome: ImportOutcome| {
        let found = OUTCOMES.iter().find(|(known, ..)| *known == outcome);
        found.map_or("", |(_, done, would)| if dry_run { *would } else { *done })
    };
    for result in results {
        let details: Vec<String> = result
            .details
            .iter()
            .map(|detail| sanitize_for_terminal(detail).to_string())
            .collect();
        println!(
            "{}",
            line(
                name_of(result.outcome),
                &output::shown(&result.name),
                &details.join("; ")
            )
        );
    }
    for user in skipped {
        println!("{}", line("skipped", &user.name, &user.why));
    }
    let mut counts: Vec<String> = OUTCOMES
        .iter()
        .filter_map(|(outcome, ..)| {
            let same = results.iter().filter(|result| result.outcome == *outcome);
            let count = same.count();
            (count > 0).then(|| format!("{} {count}", name_of(*outcome)))
        })
        .collect();
    if !skipped.is_empty() {
        counts.push(format!("skipped {}", skipped.len()));
    }
    if counts.is_empty() {
        counts.push("no users".to_owned());
    }
    println!("{}: {}", export.format, counts.join(", "));
}

fn line(outcome: &str, name: &str, details: &str) -> String {
    format!("{outcome:<13} {name:<20}  {details}")
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disabled_users_are_skipped_and_limits_become_a_patch() {
        let text = r#"{"users":[
            {"username":"anna","proxies":{"shadowsocks":{"password":"p"}},"expire":5,"data_limit":7,"used_traffic":3},
            {"username":"bob","status":"disabled","proxies":{"shadowsocks":{"password":"q"}}}]}"#;
        let export = read_user_export(text, "a", None).unwrap();
        let (accounts, skipped) = to_accounts(&export);
        assert_eq!(skipped[0].why, DISABLED);
        let [anna] = accounts.as_slice() else {
            panic!("{accounts:?}");
        };
        let limits = serde_json::json!({"quota": 7, "period": "total", "expires": 5});
        assert_eq!((anna.limits.as_ref(), anna.used), (Some(&limits), Some(3)));
        assert_eq!(anna.secrets.password.as_deref(), Some("p"));
        assert_eq!(anna.secrets.login, None);
    }
}
