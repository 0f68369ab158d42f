//! Records of fleets: any bytes are a user with one encoding, or none; a sealed record opens in its place alone.

#![no_main]

use adit_fleet::{
    Change, ChangeBatch, ChangeId, ChangeOp, Feed, FleetUser, RealmKey, RecordCipher, SealedRecord,
    Snapshot,
};
use adit_fuzz::ActionScript;
use adit_wire::FixedEntropy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let cipher = RecordCipher::new("fuzz", &RealmKey::new([5; 32]));
    let mut rng = FixedEntropy::new(input.to_vec());
    // What a node reads after opening it.
    if let Some(user) = FleetUser::from_bytes(7, input) {
        let again = user.to_bytes().expect("what was decoded can be encoded");
        assert_eq!(again.as_slice(), input);
        let sealed = cipher
            .seal(&user, ChangeId(9), &mut rng)
            .expect("it is short");
        assert_eq!(cipher.open(7, &sealed), Ok(user));
        assert!(cipher.open(8, &sealed).is_err());
    }
    // What the store has: no bytes of the fuzzer are authentic.
    assert!(
        cipher
            .open(7, &SealedRecord::from_bytes(input.to_vec()))
            .is_err()
    );
    // A feed keeps its users, whatever the store answers.
    let mut script = ActionScript::new(input);
    let good = FleetUser::new(1, "good", [1; 32]);
    let sealed = cipher
        .seal(&good, ChangeId(1), &mut rng)
        .expect("it is short");
    let mut feed = Feed::new(cipher);
    let first = Snapshot {
        version: ChangeId(1),
        users: vec![(1, sealed.clone())],
    };
    feed.apply_snapshot(&first, false);
    let ops = [
        Some(ChangeOp::Put),
        Some(ChangeOp::Delete),
        Some(ChangeOp::Kick),
        Some(ChangeOp::Node),
        Some(ChangeOp::Policy),
        None,
    ];
    for _ in 0..8 {
        let number = ChangeId(script.pick_one(&[0, 1, 2, 3, 4, u64::MAX]));
        let records = [sealed.clone(), SealedRecord::from_bytes(input.to_vec())];
        let record = script.pick_one(&[0, 1]);
        let change = Change {
            number,
            op: script.pick_one(&ops),
            target: script.pick_one(&[0, 1, 2]),
            sealed: records[record].clone(),
        };
        let head = ChangeId(script.pick_one(&[0, 1, 2, 3, u64::MAX]));
        feed.apply_batch(&ChangeBatch {
            head,
            changes: vec![change],
        });
        assert!(feed.user(1).is_some_and(|user| user == good));
        assert_eq!(feed.len(), 1);
    }
});
