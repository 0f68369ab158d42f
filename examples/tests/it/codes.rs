//! UMAC and Reed–Solomon.

use crate::support::{run, run_with, write_file};

/// RFC 4418's key, `abcdefghijklmnop`, and its nonce, `bcdefghi`.
const KEY: &str = "6162636465666768696a6b6c6d6e6f70";
const NONCE: &str = "7089620625083820137";

#[tokio::test]
async fn umac_prints_and_verifies_the_tag_of_a_file() {
    assert_eq!(NONCE.parse(), Ok(u64::from_be_bytes(*b"bcdefghi")));
    let empty = write_file("umac-empty", b"");
    // The first 12 bytes are UMAC-96 of RFC 4418's appendix.
    let tag = "32fedb100c79ad58f07ff7643cc60465";
    assert_eq!(run("umac", &[KEY, NONCE, &empty]).await, format!("{tag}\n"));
    let large = write_file("umac-large", &[b'a'; 1 << 20]);
    let tag = run("umac", &[KEY, "1", &large]).await;
    let checked = run("umac", &[KEY, "1", &large, tag.trim()]).await;
    assert_eq!(checked, format!("{large}: OK\n"));
    for args in [
        [KEY, "2", &large, tag.trim()],
        [KEY, "1", &empty, tag.trim()],
    ] {
        let outcome = run_with("umac", &args, "").await;
        assert_eq!((outcome.status, &*outcome.stdout), (1, ""), "{outcome:?}");
    }
}

#[tokio::test]
async fn reed_solomon_restores_as_many_shards_as_there_are_of_parity() {
    let text = "Die Würde des Menschen ist unantastbar.";
    for lost in [&["0", "2", "5"][..], &["1"], &[], &["4", "5", "6"]] {
        let shown = run("reed-solomon", &[&["4", "3", text], lost].concat()).await;
        assert!(shown.ends_with(&format!("restored: {text}\n")), "{shown}");
        assert_eq!(shown.matches(": lost\n").count(), lost.len(), "{shown}");
    }
    let args = ["4", "3", text, "0", "1", "2", "3"];
    let outcome = run_with("reed-solomon", &args, "").await;
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(!outcome.stdout.contains("restored"), "{outcome:?}");
}
