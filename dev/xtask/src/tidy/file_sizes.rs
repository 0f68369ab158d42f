//! File lengths: a long file hides a second purpose.

use std::fmt;

use crate::source_files::SourceFile;

/// Lines of a Rust file above which a fault is reported.
const TOO_LONG: usize = 800;
/// Lines above which a file is listed as a candidate for splitting.
const LONG: usize = 500;

/// The lengths of all Rust files, in lines, the shortest first.
#[derive(Debug)]
pub(super) struct FileSizes {
    files: Vec<(usize, String)>,
}

impl FileSizes {
    pub(super) fn measure(sources: &[SourceFile]) -> Self {
        let mut files: Vec<(usize, String)> = sources
            .iter()
            .filter(|source| source.path.ends_with(".rs"))
            .map(|source| (source.text.lines().count(), source.path.clone()))
            .collect();
        files.sort();
        Self { files }
    }

    pub(super) fn find_faults(&self) -> Vec<String> {
        let long = self.files.iter().filter(|(lines, _)| *lines > TOO_LONG);
        long.map(|(lines, path)| format!("{path}: {lines} lines, more than {TOO_LONG}"))
            .collect()
    }

    /// Returns the length that `percent` of the files do not exceed.
    fn quantile(&self, percent: usize) -> usize {
        let last = self.files.len().saturating_sub(1);
        self.files
            .get(last * percent / 100)
            .map_or(0, |(lines, _)| *lines)
    }
}

impl fmt::Display for FileSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (median, p90) = (self.quantile(50), self.quantile(90));
        write!(
            f,
            "{} files, median {median} lines, p90 {p90}",
            self.files.len()
        )?;
        for (lines, path) in self.files.iter().filter(|(lines, _)| *lines > LONG) {
            write!(f, "; {path} {lines}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(lengths: &[usize]) -> FileSizes {
        let source = |(n, len): (usize, &usize)| SourceFile {
            path: format!("f{n}.rs"),
            text: "x\n".repeat(*len),
        };
        FileSizes::measure(&lengths.iter().enumerate().map(source).collect::<Vec<_>>())
    }

    #[test]
    fn too_long_is_a_fault_and_long_is_listed() {
        let sizes = sizes(&[10, 20, 30, 501, 801]);
        assert_eq!(sizes.find_faults(), ["f4.rs: 801 lines, more than 800"]);
        let told = sizes.to_string();
        assert_eq!(
            told,
            "5 files, median 30 lines, p90 501; f3.rs 501; f4.rs 801"
        );
    }

    #[test]
    fn docs_are_not_measured() {
        let doc = SourceFile {
            path: "a.md".to_owned(),
            text: "x\n".repeat(2000),
        };
        assert!(FileSizes::measure(&[doc]).find_faults().is_empty());
    }
}
