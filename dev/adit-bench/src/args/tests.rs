//! What may be typed, and what may not.

use super::*;

fn settings(words: &[&str]) -> Result<Settings> {
    let words = ["bench"].iter().chain(words);
    Settings::from_args(Args::try_parse_from(words)?)
}

#[test]
fn bytes_have_units() {
    assert_eq!(parse_bytes("100"), Ok(100));
    assert_eq!(parse_bytes("3MiB"), Ok(3 << 20));
    assert_eq!(parse_bytes("2GiB"), Ok(2 << 30));
    for bad in ["", "MiB", "1MB", "-1", "99999999999GiB"] {
        assert!(parse_bytes(bad).is_err(), "{bad}");
    }
}

#[test]
fn lists_are_separated_by_commas() {
    let settings = settings(&[
        "--suite",
        "ss-tcp,idle",
        "--streams",
        "1,4",
        "--method",
        "aes-256-gcm",
    ])
    .unwrap();
    assert_eq!(settings.suites, [Suite::SsTcp, Suite::Idle]);
    assert_eq!(settings.streams, [1, 4]);
    assert_eq!(settings.methods.len(), 1);
    assert_eq!(settings.rounds, 5);
}

#[test]
fn smoke_is_small_and_what_is_typed_wins() {
    let small = settings(&["--smoke"]).unwrap();
    assert_eq!((&small.held[..], &small.workers[..]), (&[50][..], &[1][..]));
    assert_eq!((small.rounds, small.amounts.bytes), (1, 8 << 20));
    assert_eq!(small.suites, Suite::ALL);
    let typed = settings(&["--smoke", "--rounds", "3", "--bytes", "1MiB"]).unwrap();
    assert_eq!((typed.rounds, typed.amounts.bytes), (3, 1 << 20));
}

#[test]
fn the_slow_carry_less_but_something() {
    let all = Amounts::usual(1024 * MIB);
    assert_eq!(all.divided(1), all);
    let fewer = all.divided(1024);
    assert_eq!((fewer.bytes, fewer.warm_up), (MIB, LEAST));
    assert_eq!(Amounts::smoke(64 << 10).divided(1024).bytes, 64 << 10);
}

#[test]
fn mistakes_are_refused() {
    for bad in [
        &["--suite", "ss-tpc"][..],
        &["--rounds", "0"],
        &["--streams", "0"],
        &["--bytes", "1"],
        &["--method", "rot13"],
        &["--only", "nobody"],
        &["--smoke", "--write-docs"],
        &["--idle-connections", "50001"],
        &["--workers", "0"],
        &["--bless"],
        &["--hot", "seal"],
        &["--instructions", "--suite", "idle"],
    ] {
        assert!(settings(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn counting_is_a_wish_of_its_own() {
    let wish = |words: &[&str]| {
        let words = ["bench"].iter().chain(words);
        Wish::from_args(Args::try_parse_from(words).unwrap()).unwrap()
    };
    assert!(matches!(
        wish(&["--instructions"]),
        Wish::Instructions { bless: false }
    ));
    assert!(matches!(
        wish(&["--instructions", "--bless"]),
        Wish::Instructions { bless: true }
    ));
    assert!(matches!(
        wish(&["--hot", "x", "--times", "3"]),
        Wish::Hot { times: 3, .. }
    ));
    assert!(matches!(wish(&["--smoke"]), Wish::Measure(_)));
}

#[test]
fn only_narrows() {
    let all = settings(&[]).unwrap();
    assert!(all.wants("adit") && all.wants("sing-box"));
    let one = settings(&["--only", "sing-box"]).unwrap();
    assert!(!one.wants("adit") && one.wants("sing-box"));
}
