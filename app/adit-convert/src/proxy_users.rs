//! Users of a local proxy. Never carried over as less than it was.

use adit_config::text::{Problem, Secret, SecretText};
use adit_wire::Host;

use crate::conversion_context::ConversionContext;
use crate::fields::ObjectFields;
use crate::json::{self, Json};
use crate::server_entry;
use crate::toml_output::UrlBuilder;

/// Puts users on a proxy's URL. One stands in the URL; several need a file, which is the user's
/// to write: until then the plan is refused.
pub(super) fn add_users(
    url: UrlBuilder,
    users: &[(&str, &str)],
    path: &str,
    clerk: &mut ConversionContext<'_>,
) -> UrlBuilder {
    match users {
        [] => {
            clerk.add_problem(Problem::without_place(
                format!("`{path}` asks for users and has none"),
                "add a user with a password, or leave the field away",
            ));
            url
        }
        [(user, password)] => url.with_user(user, SecretText::Literal(Secret::from(*password))),
        many => {
            let mut url = url;
            let file = format!("users-{}.txt", url.port);
            clerk.add_note(
                path,
                format!(
                    "{} users: write them into `{file}` beside the configuration, one \
                     `user:password` a line",
                    many.len()
                ),
            );
            url.set_key("users", format!("@{file}"));
            url
        }
    }
}

/// Users as shadowsocks-go has them: `username` and `password`.
pub(super) fn read_user_pairs<'j>(
    list: &mut [ObjectFields<'j>],
    user: &'static str,
    clerk: &mut ConversionContext<'_>,
) -> Vec<(&'j str, &'j str)> {
    let mut pairs = Vec::new();
    for fields in list {
        let name = fields.string_field(user, clerk);
        let password = fields.string_field("password", clerk);
        match (name, password) {
            (Some(name), Some(password)) => pairs.push((name, password)),
            _ => {
                let title = format!("`{}` needs `{user}` and `password`", fields.object_path());
                clerk.add_problem(Problem::without_place(title, "neither may be empty"));
            }
        }
    }
    pairs
}

/// The users of a local of shadowsocks-rust, from the file it names (`password.users` for SOCKS5,
/// `basic.users` for HTTP).
pub(super) fn add_users_from_file(
    url: UrlBuilder,
    fields: &mut ObjectFields<'_>,
    name: &'static str,
    kind: &'static str,
    clerk: &mut ConversionContext<'_>,
) -> UrlBuilder {
    let Some(file) = fields.string_field(name, clerk) else {
        return url;
    };
    let path = fields.field_path(name);
    let Some(text) = clerk.read_file(&path, file) else {
        return url;
    };
    match json::parse_json5(&text.text, file) {
        Ok(tree) => add_users_from_json(url, &tree, &path, kind, clerk),
        Err(problem) => {
            clerk.add_problem(*problem);
            url
        }
    }
}

fn add_users_from_json(
    url: UrlBuilder,
    tree: &Json,
    path: &str,
    kind: &str,
    clerk: &mut ConversionContext<'_>,
) -> UrlBuilder {
    let Some(mut top) = ObjectFields::of_object(tree, path.to_owned(), clerk) else {
        return url;
    };
    let Some(mut inner) = top.object_field(kind, clerk) else {
        return add_users(url, &[], path, clerk);
    };
    let mut list = server_entry::read_objects(&mut inner, "users", clerk);
    let users = read_user_pairs(&mut list, "user_name", clerk);
    add_users(url, &users, path, clerk)
}

/// A proxy that everyone who reaches it may use stays what it was, and the user hears of it
/// (SEC-E1).
pub(super) fn keep_open_proxy(url: &mut UrlBuilder, path: &str, clerk: &mut ConversionContext<'_>) {
    if url.is_loopback() || url.has_user() || url.has_key("users") {
        return;
    }
    let host = url
        .host
        .as_ref()
        .map_or("all addresses", |host| match host {
            Host::Ip(ip) if ip.is_unspecified() => "all addresses",
            _ => "another address than this machine's own",
        });
    url.set_key("allow_open_proxy", "true");
    clerk.add_note(
        path,
        format!(
            "listens on {host} without a password: everyone who reaches it can use it, as before \
             (`allow_open_proxy=true`)"
        ),
    );
}
