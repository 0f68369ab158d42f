//! Names, patterns and batches, and failures.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use adit_interop::free_port;
use adit_interop::openssh;

use super::copy_setup::{LIMIT, same, with_both};

#[test]
fn what_fails_is_named_and_the_rest_is_copied() {
    with_both(|setup| {
        for name in ["one", "two"] {
            fs::write(setup.here(name), name).unwrap();
            fs::write(setup.there(name), name).unwrap();
        }
        fs::create_dir(setup.there("into")).unwrap();
        fs::create_dir(setup.here("folder")).unwrap();
        let ended = setup.scp(&["one", "missing", "folder", "two", &setup.word("into")]);
        assert_eq!(ended.code, Some(1), "{}", ended.output);
        for words in ["missing: No such file", "folder: is a folder"] {
            assert!(ended.output.contains(words), "{}", ended.output);
        }
        same(&setup.here("one"), &setup.there("into/one"));
        same(&setup.here("two"), &setup.there("into/two"));

        let word = setup.word("missing");
        let ended = setup.scp(&[&word, &setup.word("one"), "folder"]);
        assert_eq!(ended.code, Some(1), "{}", ended.output);
        assert!(ended.output.contains("there/missing: No such file"));
        same(&setup.here("one"), &setup.here("folder/one"));

        for args in [
            [&setup.word("one")[..], &setup.word("two"), "no/folder"],
            ["one", "two", &setup.word("three")],
        ] {
            let ended = setup.scp(&args);
            assert_eq!(ended.code, Some(1), "{}", ended.output);
            assert!(ended.output.contains("is not a folder"), "{}", ended.output);
        }
        // A place without write permission, local and remote.
        let ended = setup.scp(&["one", &setup.word("no/folder/x")]);
        assert_eq!(ended.code, Some(1), "{}", ended.output);
        assert!(ended.output.contains("one: No such file"));
        let ended = setup.scp(&["one", "two"]);
        assert_eq!(ended.code, Some(2), "{}", ended.output);
        #[cfg(target_os = "linux")]
        {
            let ended = setup.scp(&[&setup.word("one"), "/dev/full"]);
            assert_eq!(ended.code, Some(1), "{}", ended.output);
            assert!(ended.output.contains("No space left"), "{}", ended.output);
        }
        let closed = format!("scp://127.0.0.1:{}/x", free_port());
        let ended = setup.scp(&["one", &closed]);
        assert_eq!(ended.code, Some(255), "{}", ended.output);
    });
}

#[test]
fn patterns_are_for_the_host_where_they_are() {
    with_both(|setup| {
        for name in ["a1", "a2", "b1", ".a3", "c*", "[x]"] {
            fs::write(setup.there(name), name).unwrap();
        }
        fs::create_dir(setup.there("d")).unwrap();
        fs::write(setup.there("d/a4"), "").unwrap();
        let names = |folder: &str| -> Vec<String> {
            let path = setup.here(folder);
            let entries = fs::read_dir(&path).unwrap();
            let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
            let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
            names.sort();
            fs::remove_dir_all(path).unwrap();
            names
        };
        for (pattern, wanted) in [
            ("a*", &["a1", "a2"][..]),
            ("[!a]1", &["b1"]),
            ("c\\*", &["c*"]),
            ("[x]", &["[x]"]),
            ("*/a?", &["a4"]),
        ] {
            fs::create_dir(setup.here("to")).unwrap();
            setup
                .scp(&[&setup.word(pattern), "to"])
                .expect_success()
                .unwrap();
            assert_eq!(names("to"), wanted, "{pattern}");
        }
        fs::create_dir(setup.here("to")).unwrap();
        let commands = "lcd to\nmget a* \"c*\"\nls '[x]'\n";
        let said = setup.sftp(&[], commands).expect_success().unwrap();
        assert_eq!(names("to"), ["a1", "a2", "c*"]);
        assert!(said.contains("ls '[x]'\n[x]"), "{said}");
    });
}

#[test]
fn a_batch_does_what_it_says_and_ends_at_what_fails() {
    with_both(|setup| {
        fs::write(setup.here("file"), b"content").unwrap();
        let commands = "\
    # nothing
    pwd
    mkdir -p one/two
    cd one/two
    put file 'a file'
    ls -l
    chmod 600 'a file'
    rename 'a file' b
    ln b c
    ln -s b d
    symlink b e
    get e back
    rm c
    rmdir ../two/../none
    ";
        let ended = setup.sftp(&[], commands);
        assert_eq!(ended.code, Some(1), "{}", ended.output);
        let said = ended.output;
        for words in [
            "sftp> pwd\nRemote working directory: ",
            "sftp> ls -l\n-rw-r--r--",
            "a file\n",
            "one/two/../two/../none: No such file",
        ] {
            assert!(said.contains(words), "{words} in\n{said}");
        }
        let two = setup.there("one/two");
        let about = fs::metadata(two.join("b")).unwrap();
        assert_eq!((about.mode() & 0o777, about.nlink()), (0o600, 1));
        assert_eq!(fs::read_link(two.join("d")).unwrap(), Path::new("b"));
        assert_eq!(fs::read_link(two.join("e")).unwrap(), Path::new("b"));
        same(&setup.here("file"), &setup.here("back"));

        let forgiven = setup.sftp(
            &[],
            "-rm none\n@cd one\n-nonsense\nmkdir done\nbye\nmkdir not\n",
        );
        let said = forgiven.expect_success().unwrap();
        assert!(!said.contains("sftp> @cd"), "{said}");
        assert!(setup.there("one/done").is_dir() && !setup.there("one/not").exists());

        for wrong in [
            "get",
            "ls -z",
            "cd none",
            "cd one/two/b",
            "put 'x",
            "chmod x one",
        ] {
            let ended = setup.sftp(&[], &format!("{wrong}\nmkdir never\n"));
            assert_eq!(ended.code, Some(1), "{wrong}: {}", ended.output);
            assert!(!setup.there("never").exists());
        }
        // A named file is fetched, and nothing else.
        let mut command = setup.command("sftp");
        command.arg(setup.word("one/two/b"));
        openssh::run_command(command, LIMIT)
            .unwrap()
            .expect_success()
            .unwrap();
        same(&setup.here("file"), &setup.here("b"));
    });
}
