//! The access of a node or an operator at the store server: one user each, with the commands that the store calls and
//! the keys of the realm, and nothing else.

use adit_crypto::sha256;

use super::keys::Keys;
use crate::key_text::to_hex;

/// The commands that the calls of [`Store`](crate::Store) and their scripts use.
pub const COMMANDS: [&str; 31] = [
    "del",
    "evalsha",
    "exists",
    "expire",
    "get",
    "getdel",
    "hdel",
    "hexists",
    "hget",
    "hgetall",
    "hincrby",
    "hlen",
    "hmget",
    "hscan",
    "hset",
    "hvals",
    "incr",
    "incrby",
    "mget",
    "rename",
    "sadd",
    "script|load",
    "set",
    "time",
    "xadd",
    "xread",
    "xrevrange",
    "zadd",
    "zcard",
    "zrem",
    "zscore",
];

/// The same, for commands without which a call would work in part.
const FURTHER_COMMANDS: [&str; 3] = ["persist", "ping", "zremrangebyscore"];

/// The commands by which the client finds the master among sentinels, and the servers of a cluster.
const TOPOLOGY_COMMANDS: [&str; 2] = ["cluster|slots", "role"];

/// The commands of an operator, who also makes the users of nodes.
const OPERATOR_COMMANDS: [&str; 4] = ["acl|deluser", "acl|setuser", "acl|save", "config|rewrite"];

/// The extent of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AclRole {
    /// All calls of the store.
    Node,
    /// All calls of the store, and the administration of access: such a user can do everything at the server.
    Operator,
    /// Nothing but [`Store::take_join`](crate::Store::take_join), until the node has its own access.
    Join,
}

/// Returns the arguments of `ACL SETUSER` for a user of a realm: the name first, the digest of the password, never the
/// password itself. It replaces all that the user had.
#[must_use]
pub fn acl_rule(realm: &str, user: &str, password: &str, role: AclRole) -> Vec<String> {
    let keys = Keys::new(realm);
    let mut rule = vec![
        user.to_owned(),
        "reset".to_owned(),
        "on".to_owned(),
        format!("#{}", to_hex(&sha256(password.as_bytes()))),
        "resetchannels".to_owned(),
        "-@all".to_owned(),
    ];
    let commands: &[&[&str]] = match role {
        AclRole::Node => &[&COMMANDS, &FURTHER_COMMANDS, &TOPOLOGY_COMMANDS],
        AclRole::Operator => &[
            &COMMANDS,
            &FURTHER_COMMANDS,
            &TOPOLOGY_COMMANDS,
            &OPERATOR_COMMANDS,
        ],
        AclRole::Join => &[&["getdel"], &TOPOLOGY_COMMANDS],
    };
    rule.push(match role {
        AclRole::Join => format!("~{}", keys.part("join", "*")),
        AclRole::Node | AclRole::Operator => format!("~{}", keys.pattern()),
    });
    rule.extend(
        commands
            .iter()
            .flat_map(|list| list.iter())
            .map(|name| format!("+{name}")),
    );
    rule
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_has_no_password() {
        let rule = acl_rule("main", "adit-main-3", "hidden", AclRole::Join);
        assert_eq!(
            rule,
            [
                "adit-main-3",
                "reset",
                "on",
                "#e564b4081d7a9ea4b00dada53bdae70c99b87b6fce869f0c3dd4d2bfa1e53e1c",
                "resetchannels",
                "-@all",
                "~adit:{main}:join:*",
                "+getdel",
                "+cluster|slots",
                "+role"
            ]
        );
    }

    #[test]
    fn commands_are_sorted_and_unique() {
        assert!(COMMANDS.is_sorted_by(|a, b| a < b));
    }
}
