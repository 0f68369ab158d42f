//! Releases of small repositories, and a dry run in a clone of this one.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A repository in a temporary folder.
struct TestRepository {
    folder: PathBuf,
    tree: ReleaseTree,
}

impl TestRepository {
    fn folder() -> PathBuf {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("adit-release-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn at(folder: PathBuf) -> Self {
        let tree = ReleaseTree {
            root: folder.join("tree"),
            target: folder.join("target"),
        };
        Self { folder, tree }
    }

    /// Creates a repository with one crate that is ready for the release of 0.1.0.
    fn new() -> Self {
        let repository = Self::at(Self::folder());
        repository.write(
            "Cargo.toml",
            "[workspace]\n[workspace.package]\nversion = \"0.1.0\"\nrepository = \"https://code.test/adit\"\n\
             [workspace.metadata.api]\nreleased = \"\"\n[workspace.dependencies]\n\
             adit-wire = { path = \"wire\", version = \"0.1.0\" }\n",
        );
        repository.write(
            "Cargo.lock",
            "version = 4\n\n[[package]]\nname = \"adit-wire\"\nversion = \"0.1.0\"\n",
        );
        repository.write(
            "CHANGELOG.md",
            "# Changelog\n\n## 0.1.0 (unreleased)\n\n* First.\n",
        );
        repository.write(
            "api/adit-wire.txt",
            "# adit-wire 0.1.0\npub fn adit_wire::f()\n",
        );
        repository.git(&["init", "--quiet"]);
        repository.git(&["config", "user.name", "test"]);
        repository.git(&["config", "user.email", "test@adit.example"]);
        repository.commit();
        repository
    }

    fn git(&self, args: &[&str]) -> String {
        self.tree.git(args).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.tree.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        self.tree.read(path).unwrap()
    }

    /// Commits everything, with passed tests.
    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "change"]);
        test_mark::record(&self.tree.root, &self.tree.target).unwrap();
    }

    fn replace(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "{path}: {from}");
        self.write(path, &text.replace(from, to));
    }

    fn release(&self, words: &[&str]) -> bool {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let options = ReleaseOptions::from_args(&words).unwrap();
        self.tree
            .release(&mut StepRunner::default(), &options)
            .unwrap()
    }
}

impl Drop for TestRepository {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_release_is_committed_and_tagged() {
    let repository = TestRepository::new();
    let head = || repository.git(&["rev-parse", "HEAD"]);
    let before = head();
    assert!(repository.release(&["0.1.0", "--dry-run"]));
    assert_eq!(head(), before);
    assert!(!repository.release(&["0.1.0", "--tagged"]));

    assert!(repository.release(&["0.1.0"]));
    assert_ne!(head(), before);
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
    assert_eq!(
        repository.git(&["tag", "--points-at", "HEAD"]).trim(),
        "v0.1.0"
    );
    assert!(
        repository
            .read("Cargo.toml")
            .contains("released = \"0.1.0\"")
    );
    assert!(!repository.read("CHANGELOG.md").contains("unreleased"));
    assert!(repository.release(&["0.1.0", "--tagged"]));
    // Not twice, and not without anything new.
    assert!(!repository.release(&["0.1.0"]));
    assert!(!repository.release(&["0.1.1"]));

    repository.replace(
        "CHANGELOG.md",
        "\n## 0.1.0",
        "\n## 0.2.0 (unreleased)\n\n* Second.\n\n## 0.1.0",
    );
    repository.commit();
    assert!(!repository.release(&["0.1.1", "--dry-run"]));
    assert!(repository.release(&["0.2.0"]));
    for path in ["Cargo.toml", "Cargo.lock", "api/adit-wire.txt"] {
        let text = repository.read(path);
        assert!(
            text.contains("0.2.0") && !text.contains("0.1.0"),
            "{path}: {text}"
        );
    }
    let section = repository
        .tree
        .changelog()
        .unwrap()
        .section("0.2.0")
        .unwrap();
    assert_eq!(section, "* Second.\n");
}

#[test]
fn reasons_against_a_release() {
    let repository = TestRepository::new();
    repository.write("new.txt", "");
    assert!(!repository.release(&["0.1.0", "--dry-run"]));
    repository.commit();
    assert!(repository.release(&["0.1.0", "--dry-run"]));
    assert!(!repository.release(&["0.0.9", "--dry-run"]));

    // A dry run reports these, and goes on.
    repository.replace("Cargo.toml", "code.test", "adit.example");
    repository.commit();
    assert!(repository.release(&["0.1.0", "--dry-run"]));
    assert!(!repository.release(&["0.1.0"]));
    repository.replace("Cargo.toml", "adit.example", "code.test");
    repository.commit();
    fs::remove_dir_all(&repository.tree.target).unwrap();
    assert!(repository.release(&["0.1.0", "--dry-run"]));
    assert!(!repository.release(&["0.1.0"]));
    assert_eq!(repository.git(&["tag"]), "");
}

#[test]
fn a_compatible_release_removes_nothing_from_the_api() {
    let repository = TestRepository::new();
    assert!(repository.release(&["0.1.0"]));
    let section = |version: &str| format!("\n## {version} (unreleased)\n\n* New.\n\n## 0.1.0 ");
    repository.replace("CHANGELOG.md", "\n## 0.1.0 ", &section("0.1.1"));
    repository.replace("api/adit-wire.txt", "f()", "f(u8)");
    repository.commit();
    assert!(!repository.release(&["0.1.1", "--dry-run"]));
    repository.replace("CHANGELOG.md", "0.1.1", "0.2.0");
    repository.commit();
    assert!(repository.release(&["0.2.0", "--dry-run"]));
}

#[test]
fn arguments_name_one_version() {
    let parse = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        ReleaseOptions::from_args(&words)
    };
    for words in [
        &[][..],
        &["--dry-run"],
        &["1.0"],
        &["v1.0.0"],
        &["1.0.0-rc.1"],
        &["1.0.0", "2.0.0"],
        &["1.0.0", "--dry"],
        &["1.0.0", "--dry-run", "--notes"],
    ] {
        assert!(parse(words).is_err(), "{words:?}");
    }
    assert_eq!(
        parse(&["--dry-run", "1.0.0"]).unwrap().mode,
        ReleaseMode::DryRun
    );
}

/// This tree can be released, up to what its own tests and its address say.
#[test]
fn a_clone_of_this_tree_can_be_released() {
    let folder = TestRepository::folder();
    let clone = folder.join("tree").to_string_lossy().into_owned();
    let origin = root().to_string_lossy().into_owned();
    run_git(&folder, &["clone", "--quiet", "--shared", &origin, &clone]).unwrap();
    let repository = TestRepository::at(folder);
    let changelog = repository.tree.changelog().unwrap();
    let (version, _) = changelog.newest().unwrap();
    assert!(repository.release(&[version, "--dry-run"]));
    let change = repository.tree.version_change(version).unwrap();
    let released = change.files.iter().find(|(path, _)| path == "CHANGELOG.md");
    assert!(released.is_some(), "{:?}", change.files.len());
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
}
