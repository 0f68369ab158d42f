//! `version`: the format of the file.

use toml::de::DeValue;

use super::table_reader::{TableReader, Value, span_of};
use crate::text::ConfigError;

/// The versions of the file that are supported.
pub(super) const VERSIONS: (u64, u64) = (1, 1);

impl TableReader<'_> {
    /// Checks the version of the file.
    pub(super) fn check_version(&mut self, value: &Value<'_>) {
        let span = span_of(value.span());
        let (first, last) = VERSIONS;
        let DeValue::Integer(number) = value.get_ref() else {
            self.report_wrong_type(span, "`version` must be a number", value.get_ref());
            return;
        };
        let version = u64::from_str_radix(number.as_str(), number.radix());
        if version.is_ok_and(|version| (first..=last).contains(&version)) {
            return;
        }
        let versions = if first == last {
            format!("version {first}")
        } else {
            format!("the versions {first} to {last}")
        };
        let flaw = ConfigError::new(span, format!("unknown version `{}`", number.as_str()))
            .with_label(format!("this adit reads {versions} of the file"));
        self.report_error(flaw.with_help("a newer adit may read it: `adit --version`"));
    }
}
