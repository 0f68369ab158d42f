//! Copies are identical to the originals.

use std::fs;
use std::time::{Duration, Instant};

use super::desk::{LIMIT, noise, plant, same, tree, with_both};

#[test]
fn big_files_go_both_ways() {
    with_both(|desk| {
        let mut content = noise(24 << 20, 1);
        content.resize(40 << 20, 0);
        content.extend(noise((1 << 20) + 13, 2));
        fs::write(desk.here("big"), content).unwrap();
        let up = desk.scp(&["big", &desk.word("")]).success().unwrap();
        assert_eq!(up, "", "nothing is said where there is no terminal");
        same(&desk.here("big"), &desk.there("big"));
        desk.scp(&["-C", &desk.word("big"), "back"])
            .success()
            .unwrap();
        same(&desk.here("big"), &desk.here("back"));
        // Over an existing file, which is longer.
        fs::write(desk.here("small"), b"small").unwrap();
        desk.scp(&["small", &desk.word("big")]).success().unwrap();
        desk.scp(&[&desk.word("big"), "back"]).success().unwrap();
        assert_eq!(fs::read(desk.here("back")).unwrap(), b"small");
    });
}

#[test]
fn trees_arrive_as_they_are() {
    with_both(|desk| {
        plant(&desk.here("tree"));
        desk.scp(&["-rp", "tree", &desk.word("copy")])
            .success()
            .unwrap();
        assert!(tree(&desk.here("tree"), true) == tree(&desk.there("copy"), true));
        // In an existing folder it gets its own name.
        desk.scp(&["-rp", &desk.word("copy"), "."])
            .success()
            .unwrap();
        assert!(tree(&desk.here("tree"), true) == tree(&desk.here("copy"), true));
        // From remote to remote, and with sftp.
        desk.scp(&["-rp", "-3", &desk.word("copy"), &desk.word("second")])
            .success()
            .unwrap();
        assert!(tree(&desk.here("tree"), true) == tree(&desk.there("second"), true));
        desk.sftp(&[], "get -r second third\nput -r third\n")
            .success()
            .unwrap();
        assert!(tree(&desk.here("tree"), false) == tree(&desk.there("third"), false));
    });
}

#[test]
fn copies_that_were_cut_go_on() {
    with_both(|desk| {
        let content = noise(4 << 20, 5);
        fs::write(desk.here("file"), &content).unwrap();
        fs::write(desk.there("file"), &content).unwrap();
        // 8 Mbit/s: it would take four seconds.
        for (from, to, copy) in [
            ("file".to_owned(), desk.word("up"), desk.there("up")),
            (desk.word("file"), "down".to_owned(), desk.here("down")),
        ] {
            let mut slow = desk.command("scp");
            slow.args(["-l", "8000", &from, &to]);
            let mut slow = slow.spawn().unwrap();
            let begun = Instant::now();
            let len = || fs::metadata(&copy).map_or(0, |about| about.len());
            while len() < 300_000 {
                assert!(begun.elapsed() < LIMIT, "{} octets", len());
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
            desk.scp(&["--resume", &from, &to]).success().unwrap();
            let whole = fs::read(&copy).unwrap();
            assert_eq!(whole.len(), content.len());
            assert!(whole[1..] == content[1..] && whole[0] == marked[0]);
            // There is nothing left to do, and a longer target cannot be resumed.
            desk.scp(&["--resume", &from, &to]).success().unwrap();
            assert!(fs::read(&copy).unwrap() == whole);
            fs::write(&copy, [&whole[..], b"more"].concat()).unwrap();
            let longer = desk.scp(&["--resume", &from, &to]);
            assert_eq!(longer.code, Some(1), "{}", longer.output);
            assert!(longer.output.contains("longer"), "{}", longer.output);
        }
        for name in [desk.here("a"), desk.there("b")] {
            fs::write(name, &content[..1_234_567]).unwrap();
        }
        desk.sftp(&[], "reget file a\nreput file b\n")
            .success()
            .unwrap();
        same(&desk.here("file"), &desk.here("a"));
        same(&desk.here("file"), &desk.there("b"));
    });
}
