//! A user in memory: the encoding that is sealed too, in one allocation that all who hold the user share. It takes a
//! third of the memory of a [`FleetUser`].

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroize;

use crate::record::{EncodeError, FleetUser, RecordLimits, UserFields};

/// A user without the number, in little memory.
#[derive(Clone, PartialEq, Eq)]
pub struct PackedUser(Arc<[u8]>);

impl Drop for PackedUser {
    fn drop(&mut self) {
        // The last holder erases the secrets.
        if let Some(bytes) = Arc::get_mut(&mut self.0) {
            bytes.zeroize();
        }
    }
}

impl fmt::Debug for PackedUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackedUser")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl PackedUser {
    /// Packs a user.
    ///
    /// # Errors
    ///
    /// See [`FleetUser::to_bytes`].
    pub fn new(user: &FleetUser) -> Result<Self, EncodeError> {
        Ok(Self(Arc::from(user.to_bytes()?.as_slice())))
    }

    /// Returns the user with this encoding; `None` if it is none.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let is_user = UserFields::decode(bytes).is_ok();
        is_user.then(|| Self(Arc::from(bytes)))
    }

    /// Returns the encoding.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        let name = UserFields::name_of(&self.0).ok();
        debug_assert!(name.is_some(), "only users are packed");
        name.unwrap_or_default()
    }

    /// Returns the limits.
    #[must_use]
    pub fn limits(&self) -> RecordLimits {
        let fields = self.fields();
        fields.map_or_else(RecordLimits::default, |fields| fields.limits)
    }

    /// Returns true if the user is refused until an operator changes that.
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        UserFields::is_disabled(&self.0)
    }

    /// Returns the user, with this number. It is never `None`: only users are packed.
    #[must_use]
    pub fn unpack(&self, id: u32) -> Option<FleetUser> {
        let user = FleetUser::from_bytes(id, &self.0);
        debug_assert!(user.is_some(), "only users are packed");
        user
    }

    fn fields(&self) -> Option<UserFields<'_>> {
        let fields = UserFields::decode(&self.0).ok();
        debug_assert!(fields.is_some(), "only users are packed");
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_user_is_the_same_and_small() {
        let mut user = FleetUser::new(7, "user-00007@example", [3; 32]);
        user.limits.quota = Some(1 << 40);
        user.limits.expires = Some(4_000_000_000);
        let packed = PackedUser::new(&user).unwrap();
        assert_eq!(packed.name(), user.name);
        assert_eq!(packed.limits(), user.limits);
        assert!(!packed.is_disabled());
        assert_eq!(packed.unpack(7).unwrap(), user);
        assert_eq!(
            PackedUser::from_bytes(packed.as_bytes()),
            Some(packed.clone())
        );
        assert_eq!(PackedUser::from_bytes(b"no user"), None);
        // Besides it are the two counts of the pointer.
        assert!(packed.as_bytes().len() <= 80, "{}", packed.as_bytes().len());
        assert!(!format!("{packed:?}").contains("secret"));
        user.disabled = true;
        assert!(PackedUser::new(&user).unwrap().is_disabled());
    }

    #[test]
    fn what_is_no_user_is_not_packed() {
        assert!(PackedUser::new(&FleetUser::new(1, "", [1; 32])).is_err());
    }
}
