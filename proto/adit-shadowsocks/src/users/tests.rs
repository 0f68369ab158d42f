//! Memory use of a list of users, the lists it refuses, and the identity of users across lists.

use super::*;
use crate::KeyError;
use adit_wire::Entropy;

const AES: Method = Method::Blake3Aes128Gcm;
const AEAD: Method = Method::Aes128Gcm;

/// Returns a key that is different for every `n`.
fn secret(method: Method, n: u32) -> String {
    struct Counting(u32);
    impl Entropy for Counting {
        fn fill(&mut self, out: &mut [u8]) {
            out.fill(0);
            out[..4].copy_from_slice(&self.0.to_le_bytes());
        }
    }
    Key::generate(method, &mut Counting(n)).1
}

fn identity() -> Key {
    Key::parse(AES, &secret(AES, u32::MAX)).unwrap()
}

fn identified(list: &[(&str, u32)]) -> Result<Arc<Users>, UsersError> {
    let list = list.iter().map(|(name, n)| (*name, secret(AES, *n)));
    Users::with_identity_key(&identity(), list)
}

/// Returns the memory of the whole list, on the heap and off, including malloc's own 8 bytes for
/// each block and its rounding to 16.
fn memory(users: &Users) -> usize {
    let block = |len: usize| (len + 8).next_multiple_of(16);
    let names = users.entries.iter();
    // Two counters precede a user.
    let names: usize = names
        .map(|entry| block(16 + size_of_val(&*entry.user.0)))
        .sum();
    let named = match &users.mode {
        LookupMode::Identified { by_hash: named, .. } => named.heap_bytes(),
        _ => 0,
    };
    size_of::<Users>()
        + block(size_of_val(&*users.entries))
        + names
        + block(named)
        + block(users.by_id.allocation_size())
}

#[test]
fn ten_thousand_users_take_150_bytes_each_at_most() {
    let list = |method| {
        let one = move |n| (format!("someone-{n:05}@example.org"), secret(method, n));
        (0..10_000).map(one)
    };
    let aes = Users::with_identity_key(&identity(), list(AES)).unwrap();
    let each = memory(&aes) / aes.len();
    assert!((100..=150).contains(&each), "{each} bytes");
    let trial = Users::with_trial_keys(AEAD, list(AEAD).take(MAX_TRIAL_USERS)).unwrap();
    assert!(memory(&trial) / trial.len() <= 150);
    // Every user is found, each at its own index.
    for (place, user) in aes.iter().enumerate() {
        assert_eq!(aes.index_of(user.id()), Some(place));
        assert_eq!(
            aes.find_by_hash(aes.material_at(place).unwrap().identity_hash()),
            Some(place)
        );
    }
}

#[test]
fn errors_name_users_and_no_keys() {
    let secrets: Vec<_> = (0..4).map(|n| secret(AES, n)).collect();
    let message = |list: &[(&str, &str)]| {
        let why = Users::with_identity_key(&identity(), list.iter().copied()).unwrap_err();
        let both = format!("{why} {why:?}");
        assert!(!secrets.iter().any(|secret| both.contains(&**secret)));
        why.to_string()
    };
    assert_eq!(
        message(&[("alice", &secrets[0]), ("alice", &secrets[1])]),
        "two users have the name `alice`"
    );
    assert_eq!(
        message(&[
            ("alice", &secrets[0]),
            ("bob", &secrets[1]),
            ("carol", &secrets[0])
        ]),
        "users `alice` and `carol` have the same key"
    );
    assert_eq!(
        message(&[("alice", &secrets[0]), ("", &secrets[1])]),
        "user number 2 has no name"
    );
    assert_eq!(
        message(&[("alice", &secret(AES, u32::MAX))]),
        "the key of user `alice` is the identity key of the server"
    );
    assert_eq!(
        message(&[("alice", "c2hvcnQ=")]),
        "user `alice`: the key has 5 bytes, 2022-blake3-aes-128-gcm needs exactly 16: \
         make one with `adit keygen 2022-blake3-aes-128-gcm`"
    );
    let several = format!("{}:{}", secrets[0], secrets[1]);
    assert_eq!(
        message(&[("alice", &several)]),
        "user `alice`: 2022-blake3-aes-128-gcm takes one key here, not several joined by `:`"
    );
    let empty = Users::with_trial_keys(AEAD, [("alice", "")]).unwrap_err();
    let why = KeyError::Empty { method: AEAD };
    let name = "alice".into();
    assert_eq!(empty, UsersError::Key { name, why });
    let same = Users::with_trial_keys(AEAD, [("alice", "x"), ("bob", "x")]).unwrap_err();
    assert!(matches!(same, UsersError::SameKey { .. }));
}

#[test]
fn only_some_methods_tell_users_apart() {
    let none: [(&str, &str); 0] = [];
    for method in Method::ALL {
        let (key, _) = Key::generate(method, &mut adit_wire::FixedEntropy::default());
        let identified = Users::with_identity_key(&key, none);
        assert_eq!(identified.is_ok(), method.has_identities(), "{method}");
        let trial = Users::with_trial_keys(method, none);
        assert_eq!(
            trial.is_ok(),
            method.edition() == crate::Edition::Aead,
            "{method}"
        );
        let single = Users::with_single_key(key);
        assert_eq!((single.len(), single.iter().count()), (1, 0));
    }
}

#[test]
fn lists_are_bounded() {
    let many = (0..=1024).map(|n| (format!("{n}"), format!("password {n}")));
    let refused = Users::with_trial_keys(AEAD, many.clone()).map(|_| ());
    let limit = MAX_TRIAL_USERS;
    assert_eq!(refused, Err(UsersError::TooMany { limit }));
    assert!(Users::with_trial_keys(AEAD, many.take(MAX_TRIAL_USERS)).is_ok());
}

#[test]
fn a_user_is_name_and_key() {
    let before = identified(&[("alice", 1), ("bob", 2), ("carol", 3), ("dave", 4)]).unwrap();
    // Another order; bob has another key, carol another name, dave is gone.
    let after = identified(&[("eve", 5), ("caroline", 3), ("bob", 6), ("alice", 1)]).unwrap();
    let kept: Vec<_> = before
        .iter()
        .filter(|user| after.still_has(user.id()))
        .map(|user| user.to_string())
        .collect();
    assert_eq!(kept, ["alice"]);
    let alice = before.iter().next().unwrap();
    assert_eq!(after.find_user(alice.id()), Some(alice.clone()));
    assert_eq!(
        format!("{alice:?} {:?}", alice.id()),
        "UserRef(alice) UserId(***)"
    );
    // Another identity key does not change any user.
    let other = Key::parse(AES, &secret(AES, 99)).unwrap();
    let moved = Users::with_identity_key(&other, [("alice", secret(AES, 1))]).unwrap();
    assert!(moved.still_has(alice.id()));
    // The single holder of a key has no name.
    let single = Users::with_single_key(Key::parse(AES, &secret(AES, 1)).unwrap());
    assert!(!single.still_has(alice.id()));
    assert_eq!(single.find_user(single.id_at(0).unwrap()), None);
    let again = Users::with_single_key(Key::parse(AES, &secret(AES, 1)).unwrap());
    assert!(again.still_has(single.id_at(0).unwrap()));
}

#[test]
fn the_hinted_one_is_tried_first_and_everyone_once() {
    let users =
        Users::with_trial_keys(AEAD, (0..5).map(|n| (format!("{n}"), format!("pw {n}")))).unwrap();
    let order = |hint| users.trial_order(hint).collect::<Vec<_>>();
    assert_eq!(order(None), [0, 1, 2, 3, 4]);
    assert_eq!(order(users.id_at(3)), [3, 0, 1, 2, 4]);
    assert_eq!(order(Some(UserId(7))), [0, 1, 2, 3, 4], "a removed user");
}

#[test]
fn updates_keep_the_users_that_they_do_not_name() {
    let before = identified(&[("a", 1), ("b", 2), ("c", 3)]).unwrap();
    let mut refused = Vec::new();
    let keys = [4, 3, 5].map(|n| secret(AES, n));
    let [new, taken, other] = &keys;
    let put = [
        ("b", new),
        ("d", taken),
        ("e", other),
        ("e", other),
        ("f", &String::new()),
    ];
    let after = before
        .with_updates(&["a"], put, &mut |why| refused.push(why.to_string()))
        .unwrap();
    let names: Vec<String> = after.iter().map(|user| user.name().to_owned()).collect();
    assert_eq!(names, ["c", "b", "e"]);
    // The key of `c`, a name twice, and a text that is not a key.
    assert_eq!(refused.len(), 3, "{refused:?}");
    let id = |users: &Users, name| users.find_by_name(name).unwrap().id();
    assert!(after.still_has(id(&before, "c")));
    assert!(!after.still_has(id(&before, "a")) && !after.still_has(id(&before, "b")));
    let hash = |n| {
        KeyMaterial::parse(AES, &secret(AES, n))
            .unwrap()
            .identity_hash()
    };
    assert_eq!(after.find_by_hash(hash(3)), Some(0));
    assert_eq!(after.find_by_hash(hash(4)), Some(1));
    assert_eq!(after.find_by_hash(hash(1)), None);
    let none = Users::without_users(AES, Some(&identity())).unwrap();
    let one = none
        .with_updates(&[], [("a", &keys[0])], &mut |_| {})
        .unwrap();
    assert_eq!(one.len(), 1);
    let single = Users::with_single_key(identity());
    assert!(
        single
            .with_updates(&[], [("a", &keys[0])], &mut |_| {})
            .is_err()
    );
}
