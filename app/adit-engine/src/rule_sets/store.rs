//! Reading and compilation of lists, and the folder that keeps downloads and compiled sets.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use adit_config::{RuleSetConfig, RuleSetSource};
use adit_net::persistent_file;
use adit_rules::RuleSet;
use adit_rules::read::{Format, Limits, Loaded};
use adit_wire::u64_from;
use tracing::debug;

use super::error::{RuleSetError, RuleSetFailure};

/// The folder of rule sets in the state folder.
const FOLDER: &str = "rule-sets";
/// Lists up to this length, in bytes, are compiled at every start: that takes about a millisecond.
const MAX_COMPILED_ANEW: usize = 64 << 10;
/// The readers that a compiled set comes from: sets of other versions are compiled again.
const READERS: &str = concat!(env!("CARGO_PKG_VERSION"), "/1");

/// Compiles lists. With a folder it keeps compiled sets, which load faster, and downloads.
#[derive(Debug, Clone, Default)]
pub struct RuleSetStore {
    folder: Option<PathBuf>,
}

/// A set that is ready for use.
#[derive(Debug, Clone)]
pub struct LoadedRuleSet {
    /// Name of the set.
    pub name: String,
    /// The set.
    pub set: RuleSet,
    /// Number of entries: those that the list has, or those after compilation if the set was stored.
    pub entries: usize,
    /// The number of entries that were skipped, and the first of them with its place.
    pub skipped: Option<(usize, String)>,
    /// True if the compiled set was stored.
    pub was_stored: bool,
}

/// A download that was stored.
#[derive(Debug)]
pub struct StoredDocument {
    /// The document.
    pub bytes: Vec<u8>,
    /// The time since it was stored.
    pub age: Duration,
}

impl RuleSetStore {
    /// Creates a store in a state folder, which need not exist yet.
    #[must_use]
    pub fn in_state_folder(state: &Path) -> Self {
        Self {
            folder: Some(state.join(FOLDER)),
        }
    }

    /// Loads the set of a file, or of a stored download.
    ///
    /// # Errors
    ///
    /// [`RuleSetError`] if the list cannot be read.
    pub fn load(&self, config: &RuleSetConfig) -> Result<LoadedRuleSet, RuleSetError> {
        let document = match &config.source {
            RuleSetSource::File(path) => read_document(path),
            RuleSetSource::Url(_) => match self.stored_document(config) {
                Ok(Some(stored)) => Ok(stored.bytes),
                Ok(None) => return Err(RuleSetError::new(config, RuleSetFailure::NotDownloaded)),
                Err(why) => Err(why),
            },
        };
        let document = document.map_err(|why| RuleSetError::new(config, why))?;
        self.load_document(config, &document)
    }

    /// Compiles a document, or loads the stored set of the same document.
    ///
    /// # Errors
    ///
    /// [`RuleSetError`] if the document is not a list, or not the configured one.
    pub fn load_document(
        &self,
        config: &RuleSetConfig,
        document: &[u8],
    ) -> Result<LoadedRuleSet, RuleSetError> {
        let digest = adit_crypto::sha256(document);
        let fails = |why| RuleSetError::new(config, why);
        if config.sha256.is_some_and(|expected| expected != digest) {
            return Err(fails(RuleSetFailure::Digest(to_hex(&digest))));
        }
        let is_short = document.len() <= MAX_COMPILED_ANEW;
        let path = self.compiled_path(config, &digest).filter(|_| !is_short);
        if let Some(set) = path.as_deref().and_then(read_compiled) {
            return Ok(LoadedRuleSet {
                name: config.name.clone(),
                entries: set.len(),
                set,
                skipped: None,
                was_stored: true,
            });
        }
        let found = compile(config, document).map_err(fails)?;
        if let Some(path) = path {
            self.write_compiled(config, &path, &found.set);
        }
        let skipped = found.notes.len() + found.omitted_notes;
        let first = found.notes.first();
        Ok(LoadedRuleSet {
            name: config.name.clone(),
            set: found.set,
            entries: found.accepted,
            skipped: first.map(|note| (skipped, note.to_string())),
            was_stored: false,
        })
    }

    /// Returns the download of a set that was stored last, if there is one.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn stored_document(&self, config: &RuleSetConfig) -> io::Result<Option<StoredDocument>> {
        let Some(path) = self.document_path(config) else {
            return Ok(None);
        };
        let stored = match fs::metadata(&path).and_then(|about| about.modified()) {
            Ok(stored) => stored,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(why),
        };
        // A clock that was set back makes the document new.
        let age = SystemTime::now().duration_since(stored);
        Ok(Some(StoredDocument {
            bytes: read_document(&path)?,
            age: age.unwrap_or_default(),
        }))
    }

    /// Stores a download.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn store_document(&self, config: &RuleSetConfig, document: &[u8]) -> io::Result<()> {
        match self.document_path(config) {
            Some(path) => persistent_file::write_atomically(&path, document),
            None => Ok(()),
        }
    }

    /// Returns the file of a download. Its name is a hash, because the URL can contain a secret.
    fn document_path(&self, config: &RuleSetConfig) -> Option<PathBuf> {
        let RuleSetSource::Url(url) = &config.source else {
            return None;
        };
        let hash = to_hex(&adit_crypto::sha256(url.as_bytes()));
        let name = hash.get(..32).unwrap_or_default();
        Some(self.folder.as_ref()?.join(format!("download-{name}")))
    }

    /// Returns the file of a compiled set, whose name depends on all that the set depends on.
    fn compiled_path(&self, config: &RuleSetConfig, digest: &[u8]) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        let format = config.format.map_or("", Format::name);
        let category = config.category.as_deref().unwrap_or_default();
        // The format can depend on the name of the file.
        let file = match (&config.source, config.format) {
            (RuleSetSource::File(path), None) => path.to_string_lossy().into_owned(),
            (RuleSetSource::Url(url), None) => url.clone(),
            (_, Some(_)) => String::new(),
        };
        let mut all = digest.to_vec();
        for part in [READERS, format, category, &file] {
            all.extend_from_slice(part.as_bytes());
            all.push(0);
        }
        let hash = to_hex(&adit_crypto::sha256(&all));
        let hash = hash.get(..32).unwrap_or_default();
        Some(folder.join(format!("{}-{hash}.rules", config.name)))
    }

    /// Stores a compiled set instead of the former ones of the same name. Sets load without it, too.
    fn write_compiled(&self, config: &RuleSetConfig, path: &Path, set: &RuleSet) {
        if let Err(why) = persistent_file::write_atomically(path, &set.to_cache()) {
            debug!("cannot store the rule set `{}`: {why}", config.name);
            return;
        }
        let entries = self.folder.as_deref().map(fs::read_dir);
        for entry in entries.into_iter().flatten().flatten().flatten() {
            let name = entry.file_name();
            let is_former = name.to_str().is_some_and(|name| {
                let hash = name.strip_prefix(&config.name).and_then(|rest| {
                    let hash = rest.strip_prefix('-')?.strip_suffix(".rules")?;
                    (hash.len() == 32 && !hash.contains('-')).then_some(hash)
                });
                hash.is_some()
            });
            if is_former && entry.path() != path {
                // Another process may have removed it.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn compile(config: &RuleSetConfig, document: &[u8]) -> Result<Loaded, RuleSetFailure> {
    let name = match &config.source {
        RuleSetSource::File(path) => path.to_string_lossy().into_owned(),
        RuleSetSource::Url(url) => url.split(['?', '#']).next().unwrap_or_default().to_owned(),
    };
    // The folders do not matter.
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let format = config.format.or_else(|| Format::detect(name, document));
    let format = format.ok_or(RuleSetFailure::UnknownFormat)?;
    let category = match (&config.category, format.has_categories()) {
        (None, true) => return Err(RuleSetFailure::NoCategory(format)),
        (Some(_), false) => return Err(RuleSetFailure::Category(format)),
        (category, _) => category.as_deref().unwrap_or_default(),
    };
    let found = format.read(document, category, &Limits::default());
    let found = found.map_err(|why| RuleSetFailure::Read { format, why })?;
    if found.accepted == 0 {
        let first = found.notes.first();
        return Err(RuleSetFailure::Empty {
            format,
            first: first.map(|note| format!("; {note}")),
        });
    }
    Ok(found)
}

/// Reads a list of bounded length.
fn read_document(path: &Path) -> io::Result<Vec<u8>> {
    let limit = u64_from(Limits::default().bytes);
    let file = File::open(path)?;
    let len = file.metadata()?.len().min(limit);
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or_default());
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if u64_from(bytes.len()) > limit {
        let why = format!("longer than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Returns a stored set, unless it is missing or damaged.
fn read_compiled(path: &Path) -> Option<RuleSet> {
    let bytes = read_document(path).ok()?;
    match RuleSet::from_cache(&bytes) {
        Ok(set) => Some(set),
        Err(why) => {
            debug!("{}: {why}", path.display());
            None
        }
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
