//! Copies are identical to the originals.

use std::fs;
use std::time::{Duration, Instant};

use super::copy_setup::{LIMIT, noise, plant, same, tree, with_both};

#[test]
fn big_files_go_both_ways() {
    with_both(|setup| {
        let mut content = noise(24 << 20, 1);
        content.resize(40 << 20, 0);
        content.extend(noise((1 << 20) + 13, 2));
        fs::write(setup.here("big"), content).unwrap();
        let up = setup
            .scp(&["big", &setup.word("")])
            .expect_success()
            .unwrap();
        assert_eq!(up, "", "nothing is said where there is no terminal");
        same(&setup.here("big"), &setup.there("big"));
        setup
            .scp(&["-C", &setup.word("big"), "back"])
            .expect_success()
            .unwrap();
        same(&setup.here("big"), &setup.here("back"));
        // Over an existing file, which is longer.
        fs::write(setup.here("small"), b"small").unwrap();
        setup
            .scp(&["small", &setup.word("big")])
            .expect_success()
            .unwrap();
        setup
            .scp(&[&setup.word("big"), "back"])
            .expect_success()
            .unwrap();
        assert_eq!(fs::read(setup.here("back")).unwrap(), b"small");
    });
}

#[test]
fn trees_arrive_as_they_are() {
    with_both(|setup| {
        plant(&setup.here("tree"));
        setup
            .scp(&["-rp", "tree", &setup.word("copy")])
            .expect_success()
            .unwrap();
        assert!(tree(&setup.here("tree"), true) == tree(&setup.there("copy"), true));
        // In an existing folder it gets its own name.
        setup
            .scp(&["-rp", &setup.word("copy"), "."])
            .expect_success()
            .unwrap();
        assert!(tree(&setup.here("tree"), true) == tree(&setup.here("copy"), true));
        // From remote to remote, and with sftp.
        setup
            .scp(&["-rp", "-3", &setup.word("copy"), &setup.word("second")])
            .expect_success()
            .unwrap();
        assert!(tree(&setup.here("tree"), true) == tree(&setup.there("second"), true));
        setup
            .sftp(&[], "get -r second third\nput -r third\n")
            .expect_success()
            .unwrap();
        assert!(tree(&setup.here("tree"), false) == tree(&setup.there("third"), false));
    });
}

#[test]
fn copies_that_were_cut_go_on() {
    with_both(|setup| {
        let content = noise(4 << 20, 5);
        fs::write(setup.here("file"), &content).unwrap();
        fs::write(setup.there("file"), &content).unwrap();
        // 8 Mbit/s: it would take four seconds.
        for (from, to, copy) in [
            ("file".to_owned(), setup.word("up"), setup.there("up")),
            (setup.word("file"), "down".to_owned(), setup.here("down")),
        ] {
            let mut slow = setup.command("scp");
            slow.args(["-l", "8000", &from, &to]);
            let mut slow = slow.spawn().unwrap();
            let begun = Instant::now();
            let len = || fs::metadata(&copy).map_or(0, |about| about.len());
            while len() < 300_000 {
                assert!(begun.elapsed() < LIMIT, "{} bytes", len());
                std::thread::sleep(Duration::from_millis(20));
            }
            slow.kill().unwrap();
            slow.wait().unwrap();
            // Data in flight still arrives.
            std::thread::sleep(Duration::from_millis(300));
            let part = fs::read(&copy).unwrap();
            assert!(part.len() < content.len(), "it was cut");
            // The existing part is not sent again: a mark in it is kept.
            let mut marked = part;
            marked[0] ^= 0xff;
            fs::write(&copy, &marked).unwrap();
            setup
                .scp(&["--resume", &from, &to])
                .expect_success()
                .unwrap();
            let whole = fs::read(&copy).unwrap();
            assert_eq!(whole.len(), content.len());
            assert!(whole[1..] == content[1..] && whole[0] == marked[0]);
            // There is nothing left to do, and a longer target cannot be resumed.
            setup
                .scp(&["--resume", &from, &to])
                .expect_success()
                .unwrap();
            assert!(fs::read(&copy).unwrap() == whole);
            fs::write(&copy, [&whole[..], b"more"].concat()).unwrap();
            let longer = setup.scp(&["--resume", &from, &to]);
            assert_eq!(longer.code, Some(1), "{}", longer.output);
            assert!(longer.output.contains("longer"), "{}", longer.output);
        }
        for name in [setup.here("a"), setup.there("b")] {
            fs::write(name, &content[..1_234_567]).unwrap();
        }
        setup
            .sftp(&[], "reget file a\nreput file b\n")
            .expect_success()
            .unwrap();
        same(&setup.here("file"), &setup.here("a"));
        same(&setup.here("file"), &setup.there("b"));
    });
}
