//! Who may use a local proxy. Never carried over as less than it was.

use adit_config::text::{Problem, Secret, SecretText};
use adit_wire::Host;

use crate::clerk::Clerk;
use crate::fields::Fields;
use crate::json::{self, Json};
use crate::server;
use crate::shape::Url;

/// Puts users on a proxy's URL. One stands in the URL; several need a file, which is the user's
/// to write: until then the plan is refused.
pub(super) fn with_users(
    url: Url,
    users: &[(&str, &str)],
    path: &str,
    clerk: &mut Clerk<'_>,
) -> Url {
    match users {
        [] => {
            clerk.problem(Problem::without_place(
                format!("`{path}` asks for users and has none"),
                "add a user with a password, or leave the field away",
            ));
            url
        }
        [(user, password)] => url.user(user, SecretText::Literal(Secret::from(*password))),
        many => {
            let mut url = url;
            let file = format!("users-{}.txt", url.port);
            clerk.note(
                path,
                format!(
                    "{} users: write them into `{file}` beside the configuration, one \
                     `user:password` a line",
                    many.len()
                ),
            );
            url.set("users", format!("@{file}"));
            url
        }
    }
}

/// Users as shadowsocks-go has them: `username` and `password`.
pub(super) fn pairs<'j>(
    list: &mut [Fields<'j>],
    user: &'static str,
    clerk: &mut Clerk<'_>,
) -> Vec<(&'j str, &'j str)> {
    let mut pairs = Vec::new();
    for fields in list {
        let name = fields.text(user, clerk);
        let password = fields.text("password", clerk);
        match (name, password) {
            (Some(name), Some(password)) => pairs.push((name, password)),
            _ => {
                let title = format!("`{}` needs `{user}` and `password`", fields.whole());
                clerk.problem(Problem::without_place(title, "neither may be empty"));
            }
        }
    }
    pairs
}

/// The users of a local of shadowsocks-rust, from the file it names (`password.users` for SOCKS5,
/// `basic.users` for HTTP).
pub(super) fn from_file(
    url: Url,
    fields: &mut Fields<'_>,
    name: &'static str,
    kind: &'static str,
    clerk: &mut Clerk<'_>,
) -> Url {
    let Some(file) = fields.text(name, clerk) else {
        return url;
    };
    let path = fields.path(name);
    let Some(text) = clerk.file(&path, file) else {
        return url;
    };
    match json::lenient(&text.text, file) {
        Ok(tree) => users_of(url, &tree, &path, kind, clerk),
        Err(problem) => {
            clerk.problem(*problem);
            url
        }
    }
}

fn users_of(url: Url, tree: &Json, path: &str, kind: &str, clerk: &mut Clerk<'_>) -> Url {
    let Some(mut top) = Fields::of(tree, path.to_owned(), clerk) else {
        return url;
    };
    let Some(mut inner) = top.object(kind, clerk) else {
        return with_users(url, &[], path, clerk);
    };
    let mut list = server::objects(&mut inner, "users", clerk);
    let users = pairs(&mut list, "user_name", clerk);
    with_users(url, &users, path, clerk)
}

/// A proxy that everyone who reaches it may use stays what it was, and the user hears of it
/// (SEC-E1).
pub(super) fn open(url: &mut Url, path: &str, clerk: &mut Clerk<'_>) {
    if url.is_loopback() || url.has_user() || url.has("users") {
        return;
    }
    let host = url
        .host
        .as_ref()
        .map_or("all addresses", |host| match host {
            Host::Ip(ip) if ip.is_unspecified() => "all addresses",
            _ => "another address than this machine's own",
        });
    url.set("allow_open_proxy", "true");
    clerk.note(
        path,
        format!(
            "listens on {host} without a password: everyone who reaches it can use it, as before \
             (`allow_open_proxy=true`)"
        ),
    );
}
