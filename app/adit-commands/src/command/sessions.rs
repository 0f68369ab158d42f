//! `adit sessions`: the open sessions of a running process.

use adit_admin::api::{ApiClient, ApiRequestError};
use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::text::format_size;
use serde_json::{Value, json};

use super::age::format_age;
use super::process_documents::{Session, SessionList};
use super::running_process::{self, to_figures_failure};
use crate::args;
use crate::json;

/// Lists the sessions, or ends one.
pub(super) fn run_sessions(typed: &args::SessionsArgs) -> CommandResult {
    let client = running_process::client_of(&typed.process)?;
    adit_cli::block_on(|mut signals| async move {
        let work = async {
            match typed.kill {
                Some(id) => end_session(&client, id, typed.json.json).await,
                None => list_sessions(&client, typed).await,
            }
        };
        signals.run_until_ended(work).await
    })
}

async fn end_session(client: &ApiClient, id: u64, is_json: bool) -> CommandResult {
    let ended = client.delete(&format!("/sessions/{id}")).await;
    ended.map_err(|why| match why {
        ApiRequestError::Refused { status: 404, .. } => {
            Failure::new(FailureCode::Failure, format!("no session has the ID {id}"))
                .with_hint("it may have ended; `adit sessions` lists those that are open")
        }
        why => running_process::to_failure(why),
    })?;
    match is_json {
        true => json::print_result("sessions", &json!({ "ended": id })),
        false => println!("ended session {id}"),
    }
    Ok(())
}

async fn list_sessions(client: &ApiClient, typed: &args::SessionsArgs) -> CommandResult {
    // The list is filtered here, so that it has to be complete.
    let limit = match typed.user {
        Some(_) => args::MAX_SESSIONS,
        None => typed.limit.into(),
    };
    let document: Value = client
        .get(&format!("/sessions?limit={limit}"))
        .await
        .map_err(to_figures_failure)?;
    let most = usize::try_from(typed.limit).unwrap_or(usize::MAX);
    let document = match &typed.user {
        Some(user) => of_user(document, user, most),
        None => document,
    };
    if typed.json.json {
        json::print_result("sessions", &document);
        return Ok(());
    }
    let list: SessionList = serde_json::from_value(document).map_err(|why| {
        let what = format!("the sessions of the process have another form: {why}");
        Failure::new(FailureCode::Failure, what)
    })?;
    print_table(&list);
    Ok(())
}

/// Keeps the newest sessions of a user.
fn of_user(mut document: Value, user: &str, most: usize) -> Value {
    let Some(sessions) = document.get_mut("sessions").and_then(Value::as_array_mut) else {
        return document;
    };
    sessions.retain(|session| session.get("user").and_then(Value::as_str) == Some(user));
    let total = sessions.len();
    sessions.truncate(most);
    if let Some(document) = document.as_object_mut() {
        document.insert("total".to_owned(), json!(total));
    }
    document
}

fn print_table(list: &SessionList) {
    let row = |session: &Session| {
        [
            session.id.to_string(),
            session.kind.to_string(),
            session.user.to_string(),
            session.route.to_string(),
            session.listen.to_string(),
            session.target.to_string(),
            format_age(session.age),
            format_size(session.up),
            format_size(session.down),
        ]
    };
    let heads = [
        "ID", "KIND", "USER", "ROUTE", "LISTENER", "TARGET", "AGE", "UP", "DOWN",
    ];
    let rows = list.sessions.iter().map(row).collect();
    print_columns(heads, rows);
    let shown = list.sessions.len();
    let total = usize::try_from(list.total).unwrap_or(usize::MAX);
    match shown < total {
        true => println!("{shown} of {total} open sessions; --limit N lists more"),
        false => println!("{shown} open session{}", if shown == 1 { "" } else { "s" }),
    }
}

/// Prints rows below their heads. Columns are as wide as their longest cell.
pub(super) fn print_columns<const N: usize>(heads: [&str; N], rows: Vec<[String; N]>) {
    let mut widths = heads.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let print_row = |cells: &[String; N]| {
        let cells = cells.iter().zip(widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        println!("{}", line.join("  ").trim_end());
    };
    print_row(&heads.map(str::to_owned));
    rows.iter().for_each(print_row);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_a_user_are_kept() {
        let session = |id: u64, user: &str| json!({ "id": id, "user": user });
        let list = [session(4, "anna"), session(3, "bert"), session(2, "anna")];
        let document = json!({ "total": 3, "sessions": list });
        let kept = of_user(document.clone(), "anna", 1000);
        assert_eq!(
            kept,
            json!({ "total": 2, "sessions": [session(4, "anna"), session(2, "anna")] })
        );
        let kept = of_user(document, "anna", 1);
        assert_eq!(
            kept,
            json!({ "total": 2, "sessions": [session(4, "anna")] })
        );
    }
}
