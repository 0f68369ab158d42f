//! The logins of members at a store server: one for each, which may use nothing but the realm's keys.
//!
//! A server that does not allow their creation is used with the login that there is, which a note says.

use adit_config::text::sanitize_for_terminal;
use adit_fleet::store::valkey::{AccessAdmin, AclRole, Kept};
use adit_fleet::{Membership, NodeEntry, StoreError, StoreErrorKind, StoreLogin};
use adit_net::system::SystemRng;
use adit_wire::Entropy;
use zeroize::Zeroizing;

/// The login of a new member.
pub(super) enum Logins {
    /// One of its own.
    Created {
        user: String,
        password: Zeroizing<String>,
        note: Option<String>,
    },
    /// That of the member who has made it.
    Shared { note: String },
}

impl Logins {
    /// Sets the login of a membership, which has the other member's so far. Returns what there is to say about it.
    pub(super) fn put_into(self, membership: &mut Membership) -> Option<String> {
        match self {
            Self::Created {
                user,
                password,
                note,
            } => {
                membership.store_user = Some(user);
                membership.store_password = Some(password);
                note
            }
            Self::Shared { note } => Some(note),
        }
    }
}

/// Returns the name of the operator's login.
fn operator_name(realm: &str) -> String {
    format!("adit-{realm}-operator")
}

/// Returns the name of a node's login.
fn node_name(realm: &str, node: u32) -> String {
    format!("adit-{realm}-{node}")
}

/// Returns the name of the login that fetches a membership.
fn join_name(realm: &str, node: u32) -> String {
    format!("adit-{realm}-{node}-join")
}

/// Returns 256 random bits in hexadecimal.
fn new_password() -> Zeroizing<String> {
    let mut bits = Zeroizing::new([0u8; 32]);
    SystemRng.fill(&mut *bits);
    Zeroizing::new(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Creates the operator's login.
pub(super) async fn create_operator(admin: &StoreLogin) -> Logins {
    create(admin, operator_name(&admin.realm), AclRole::Operator).await
}

/// Creates another login for the operator, under a name that the current one does not have: only its end ends the
/// connections of those who know it.
pub(super) async fn replace_operator(current: &StoreLogin) -> Logins {
    let own = operator_name(&current.realm);
    let name = match current.user.as_deref() == Some(own.as_str()) {
        true => format!("{own}-2"),
        false => own,
    };
    create(current, name, AclRole::Operator).await
}

/// Deletes the login that [`replace_operator`] has replaced. Returns what there is to say about it.
pub(super) async fn remove_operator(operator: &StoreLogin, old: &str) -> Option<String> {
    let own = operator_name(&operator.realm);
    let is_ours = old == own || old == format!("{own}-2");
    let still = |why: &str| {
        let why = format!("the login `{old}` at the store server still works: {why}");
        Some(sanitize_for_terminal(&why))
    };
    if !is_ours {
        return still("adit has not made it");
    }
    let deleted = async { AccessAdmin::new(operator)?.delete(&[old.to_owned()]).await };
    match deleted.await {
        Ok(_) => None,
        Err(why) => still(&why.to_string()),
    }
}

/// Creates the login of a node.
pub(super) async fn create_node(operator: &StoreLogin, node: u32) -> Logins {
    create(operator, node_name(&operator.realm, node), AclRole::Node).await
}

async fn create(admin: &StoreLogin, user: String, role: AclRole) -> Logins {
    let password = new_password();
    match set(admin, &user, &password, role).await {
        Ok(kept) => Logins::Created {
            user,
            password,
            note: note_of(kept),
        },
        Err(why) => Logins::Shared {
            note: shared_note(&why),
        },
    }
}

fn note_of(kept: Kept) -> Option<String> {
    match kept {
        Kept::InAclFile | Kept::InConfigFile => None,
        Kept::InMemory => Some(
            "the store server keeps logins in memory only, and forgets them when it restarts: set `aclfile` in \
             its configuration"
                .to_owned(),
        ),
    }
}

fn shared_note(why: &StoreError) -> String {
    let why = match &why.kind {
        StoreErrorKind::Configuration => why.detail.clone(),
        _ => why.to_string(),
    };
    sanitize_for_terminal(&format!(
        "the members share one login, because the store server creates none: {why}"
    ))
}

async fn set(
    admin: &StoreLogin,
    user: &str,
    password: &str,
    role: AclRole,
) -> Result<Kept, StoreError> {
    AccessAdmin::new(admin)?.set(user, password, role).await
}

/// Creates the login that a token has, which may only fetch memberships, and returns its user and password; where it
/// cannot be created, those of the membership.
pub(super) async fn create_join(
    operator: &StoreLogin,
    membership: &Membership,
    node: u32,
) -> (Option<String>, Option<Zeroizing<String>>) {
    let user = join_name(&operator.realm, node);
    let password = new_password();
    match set(operator, &user, &password, AclRole::Join).await {
        Ok(_) => (Some(user), Some(password)),
        Err(_) => (
            membership.store_user.clone(),
            membership.store_password.clone(),
        ),
    }
}

/// Deletes the logins of the tokens of nodes that have joined. Those of others are needed still, or harmless.
pub(super) async fn forget_joined(operator: &StoreLogin, nodes: &[NodeEntry]) {
    let joined = nodes.iter().filter(|node| node.status.is_some());
    let users: Vec<String> = joined
        .map(|node| join_name(&operator.realm, node.id))
        .collect();
    if !users.is_empty()
        && let Ok(admin) = AccessAdmin::new(operator)
    {
        // They may fetch memberships alone, of which there are none without a token.
        let _ = admin.delete(&users).await;
    }
}

/// Deletes the logins of a node. Returns what there is to say about it.
pub(super) async fn remove_node(membership: &Membership, node: u32) -> Option<String> {
    let realm = &membership.realm;
    let users = [node_name(realm, node), join_name(realm, node)];
    let operator = StoreLogin::from(membership);
    let deleted = async { AccessAdmin::new(&operator)?.delete(&users).await };
    match deleted.await {
        Ok(1..) => None,
        Ok(0) => Some("it had no login of its own at the store server".to_owned()),
        Err(why) => Some(sanitize_for_terminal(&format!(
            "its login at the store server, if it has one, still works: {why}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use adit_fleet::{RealmKey, Role};

    use super::*;

    #[test]
    fn a_shared_login_stays() {
        let shared = Membership {
            version: Membership::VERSION,
            realm: "main".to_owned(),
            realm_key: RealmKey::new([7; 32]),
            role: Role::Operator,
            node_id: None,
            name: "operator".to_owned(),
            store: "valkeys://store.example:6380".to_owned(),
            store_user: Some("default".to_owned()),
            store_password: Some(Zeroizing::new("shared".to_owned())),
            ca_pem: None,
        };
        let mut membership = shared.clone();
        let note = "the members share one login".to_owned();
        let login = Logins::Shared { note: note.clone() };
        assert_eq!(login.put_into(&mut membership), Some(note));
        assert_eq!(membership, shared);
        let login = Logins::Created {
            user: "adit-main-operator".to_owned(),
            password: Zeroizing::new("own".to_owned()),
            note: None,
        };
        assert_eq!(login.put_into(&mut membership), None);
        let expected = Membership {
            store_user: Some("adit-main-operator".to_owned()),
            store_password: Some(Zeroizing::new("own".to_owned())),
            ..shared
        };
        assert_eq!(membership, expected);
    }
}
