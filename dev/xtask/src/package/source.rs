//! Everything that packages are made from.

use std::path::PathBuf;

use anyhow::Result;

use super::archives::{ReleaseArchives, UnpackedTarget};
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

    /// Builds one package for each Linux target whose processor has a name in the format, and returns what was built.
    pub(super) fn build_each(
        &self,
        name_of: fn(&str) -> Option<&'static str>,
        build_one: impl Fn(&UnpackedTarget, &str) -> Result<String>,
    ) -> Result<String> {
        let mut built = Vec::new();
        for unpacked in self.archives.require_linux()? {
            if let Some(architecture) = name_of(unpacked.processor()) {
                built.push(build_one(unpacked, architecture)?);
            }
        }
        Ok(built.join(", "))
    }
}
