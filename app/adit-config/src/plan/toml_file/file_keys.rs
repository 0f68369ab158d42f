//! Keys of tables in the file: the parser, its messages and the JSON Schema use the same rows.

/// A key of a table.
pub(crate) struct FileKey {
    /// The key.
    pub(crate) name: &'static str,
    /// The type of its value.
    pub(crate) value: ValueType,
    /// True if the table must have it.
    pub(crate) is_required: bool,
    /// One sentence about its effect.
    pub(crate) doc: &'static str,
}

/// The type of a value.
pub(crate) enum ValueType {
    /// True or false.
    Boolean,
    /// A text.
    Text,
    /// `@FILE`.
    FileText,
    /// `HOST:PORT`.
    Target,
    /// A whole number with a unit.
    Duration,
    /// A whole number between these, both included.
    Number(u64, u64),
    /// One of these words.
    Words(fn() -> Vec<&'static str>),
    /// A text or a list of texts, which may be empty.
    Texts,
    /// A text or a list of at least one text.
    SomeTexts,
    /// A text or a number, counted from 1.
    TextOrNumber,
    /// The URL of a listener or its short form, or a list of them.
    Listeners,
    /// The URL of a hop or the name of a group, or a list of them and of lists of URLs.
    Chain,
    /// A list of URLs of hops, or of lists of them.
    Members,
    /// A table of `NAME = "KEY"`, with at most this number of entries.
    NamedSecrets(usize),
    /// A table.
    Table(&'static [FileKey]),
    /// A table of tables, each with a name.
    NamedTables(&'static [FileKey]),
    /// A list of tables, which may be empty.
    Tables(&'static [FileKey]),
    /// A list of at least one table.
    SomeTables(&'static [FileKey]),
}

impl FileKey {
    /// Returns a row for a key that may be missing.
    pub(crate) const fn new(name: &'static str, value: ValueType, doc: &'static str) -> Self {
        Self {
            name,
            value,
            is_required: false,
            doc,
        }
    }

    /// Requires the key.
    pub(crate) const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }
}
