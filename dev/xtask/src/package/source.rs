//! Everything that packages are made from.

use std::path::PathBuf;

use super::archives::ReleaseArchives;
use super::release::ReleaseInfo;
use super::template::Values;

/// A release, its archives and its key.
pub(super) struct PackageSource {
    pub(super) release: ReleaseInfo,
    pub(super) archives: ReleaseArchives,
    /// The public key with which the release is signed.
    pub(super) release_key: Option<PathBuf>,
}

impl PackageSource {
    /// Returns the values that every template may use.
    pub(super) fn values(&self) -> Values {
        self.release.values()
    }
}
