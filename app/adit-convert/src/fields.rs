//! The fields of an object: read by name, with a path for messages; what no one asked for is
//! noted.

use adit_config::MAX_URL_LEN;
use adit_config::text::Problem;

use crate::conversion_context::ConversionContext;
use crate::json::Json;

/// An object, the path to it, and which of its fields were asked for.
pub(super) struct ObjectFields<'j> {
    path: String,
    entries: &'j [(String, Json)],
    was_read: Vec<bool>,
}

/// Fields without an equivalent, and why.
pub(super) type OmitReasons = &'static [(&'static [&'static str], &'static str)];

impl<'j> ObjectFields<'j> {
    /// The fields of `value` at `path`; a problem if it is no object.
    pub(super) fn of_object(
        value: &'j Json,
        path: String,
        clerk: &mut ConversionContext<'_>,
    ) -> Option<Self> {
        match value {
            Json::Object(entries) => Some(Self {
                path,
                entries,
                was_read: vec![false; entries.len()],
            }),
            other => {
                clerk.report_wrong_type(&path, "an object", other);
                None
            }
        }
    }

    /// The path of a field.
    pub(super) fn field_path(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// The path of the object itself.
    pub(super) fn object_path(&self) -> &str {
        &self.path
    }

    /// True if the field is there and not null.
    pub(super) fn has_field(&self, name: &str) -> bool {
        self.entries
            .iter()
            .any(|(key, value)| key == name && *value != Json::Null)
    }

    /// The field, if it is there and not null. Of several with one name the last counts, as in
    /// the programs that read these files.
    pub(super) fn get(&mut self, name: &str) -> Option<&'j Json> {
        let mut found = None;
        for ((key, value), asked) in self.entries.iter().zip(&mut self.was_read) {
            if key == name {
                *asked = true;
                found = Some(value).filter(|value| **value != Json::Null);
            }
        }
        found
    }

    /// The first of these names that is there: a field and its aliases.
    pub(super) fn first_of(&mut self, names: &[&'static str]) -> Option<(&'static str, &'j Json)> {
        let mut found = None;
        for name in names {
            let value = self.get(name);
            found = found.or_else(|| Some((*name, value?)));
        }
        found
    }

    /// A text that fits into a URL; empty counts as absent.
    pub(super) fn string_field(
        &mut self,
        name: &str,
        clerk: &mut ConversionContext<'_>,
    ) -> Option<&'j str> {
        let value = self.get(name)?;
        match value.as_str() {
            Some(text) if text.len() <= MAX_URL_LEN => Some(text).filter(|text| !text.is_empty()),
            Some(_) => {
                let title = format!(
                    "`{}` has more than {MAX_URL_LEN} bytes",
                    self.field_path(name)
                );
                clerk.add_problem(Problem::without_place(title, "no URL could hold it"));
                None
            }
            None => {
                clerk.report_wrong_type(&self.field_path(name), "a text", value);
                None
            }
        }
    }

    /// True or false.
    pub(super) fn bool_field(
        &mut self,
        name: &str,
        clerk: &mut ConversionContext<'_>,
    ) -> Option<bool> {
        match self.get(name)? {
            Json::Bool(value) => Some(*value),
            other => {
                clerk.report_wrong_type(&self.field_path(name), "true or false", other);
                None
            }
        }
    }

    /// A whole number.
    pub(super) fn whole_number(
        &mut self,
        name: &str,
        clerk: &mut ConversionContext<'_>,
    ) -> Option<u64> {
        let value = self.get(name)?;
        let number = value.as_u64();
        if number.is_none() {
            clerk.report_wrong_type(&self.field_path(name), "a whole number", value);
        }
        number
    }

    /// A port from 1 to 65535.
    pub(super) fn port_field(
        &mut self,
        name: &str,
        clerk: &mut ConversionContext<'_>,
    ) -> Option<u16> {
        self.port_at_least(1, name, clerk)
    }

    /// A port to listen on, 0 for any that is free.
    pub(super) fn listen_port_field(
        &mut self,
        name: &str,
        clerk: &mut ConversionContext<'_>,
    ) -> Option<u16> {
        self.port_at_least(0, name, clerk)
    }

    fn port_at_least(
        &mut self,
        least: u16,
        name: &str,
        clerk: &mut ConversionContext<'_>,
    ) -> Option<u16> {
        let value = self.get(name)?;
        match value.as_u64().and_then(|number| u16::try_from(number).ok()) {
            Some(port) if port >= least => Some(port),
            _ => {
                clerk.report_wrong_type(&self.field_path(name), "a port from 1 to 65535", value);
                None
            }
        }
    }

    /// The items of a list; nothing if it is not there.
    pub(super) fn list_field(
        &mut self,
        name: &str,
        clerk: &mut ConversionContext<'_>,
    ) -> &'j [Json] {
        match self.get(name) {
            None => &[],
            Some(Json::List(items)) => items,
            Some(other) => {
                clerk.report_wrong_type(&self.field_path(name), "a list", other);
                &[]
            }
        }
    }

    /// The texts of a list, or of a text alone.
    pub(super) fn strings_field(
        &mut self,
        name: &str,
        clerk: &mut ConversionContext<'_>,
    ) -> Vec<&'j str> {
        let Some(value) = self.get(name) else {
            return Vec::new();
        };
        let items = match value {
            Json::List(items) => items.as_slice(),
            other => core::slice::from_ref(other),
        };
        let mut texts = Vec::new();
        for item in items {
            match item.as_str() {
                Some(text) if !text.is_empty() => texts.push(text),
                Some(_) => {}
                None => clerk.report_wrong_type(
                    &self.field_path(name),
                    "a text or a list of texts",
                    item,
                ),
            }
        }
        texts
    }

    /// An object in a field.
    pub(super) fn object_field(
        &mut self,
        name: &str,
        clerk: &mut ConversionContext<'_>,
    ) -> Option<Self> {
        let value = self.get(name)?;
        Self::of_object(value, self.field_path(name), clerk)
    }

    /// Every entry, all counted as asked for: an object whose keys are names.
    pub(super) fn take_all(&mut self) -> &'j [(String, Json)] {
        self.was_read.fill(true);
        self.entries
    }

    /// The names of what no one asked for and would make a difference; all count as asked for.
    pub(super) fn take_unread(&mut self) -> Vec<&'j str> {
        let entries = self.entries.iter().zip(&mut self.was_read);
        entries
            .filter_map(|((name, value), asked)| {
                let was = core::mem::replace(asked, true);
                (!was && !value.is_empty()).then_some(name.as_str())
            })
            .collect()
    }

    /// Notes what no one asked for, with the reason if one is known. A field that says the same
    /// as its absence is not worth a note.
    pub(super) fn note_unread(self, reasons: OmitReasons, clerk: &mut ConversionContext<'_>) {
        for ((name, value), asked) in self.entries.iter().zip(&self.was_read) {
            // Some write their comments as fields.
            if *asked || name.starts_with('_') {
                continue;
            }
            let reason = reasons
                .iter()
                .find(|(names, _)| names.contains(&name.as_str()));
            match reason {
                Some(_) if value.is_empty() => {}
                Some((_, why)) => clerk.add_note(self.field_path(name), *why),
                None => clerk.add_note(self.field_path(name), "unknown field, left out"),
            }
        }
    }
}

impl ConversionContext<'_> {
    /// A value of the wrong type. It is not shown: it could be a secret.
    pub(super) fn report_wrong_type(&mut self, path: &str, expected: &str, found: &Json) {
        let title = if path.is_empty() {
            format!("the document is not {expected}")
        } else {
            format!("`{path}` is not {expected}")
        };
        let help = match found {
            Json::Null => format!("write {expected} there"),
            other => format!("it is {}; write {expected} there", other.kind_name()),
        };
        self.add_problem(Problem::without_place(title, help));
    }
}
