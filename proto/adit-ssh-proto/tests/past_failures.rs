//! Past failures of similar programs, and the tests that guard against them.
//!
//! Lists every class of published failures of SSH implementations, with the tests that would fail
//! if adit had the same. The table is data so that it cannot become outdated: renaming or removing
//! one of its tests breaks this one.

/// A class of failures, where it occurred, and the tests against it.
struct Class {
    what: &'static str,
    tests: &'static [(&'static str, &'static str)],
}

macro_rules! sources {
    ($($name:ident = $path:literal),* $(,)?) => {
        $(const $name: &str = $path;)*
        const SOURCES: &[(&str, &str)] = &[$(($path, include_str!(concat!("../../../", $path)))),*];
    };
}

sources! {
    TRANSPORT = "proto/adit-ssh-proto/src/transport/tests/ssh_hostile.rs",
    MITM = "proto/adit-ssh-proto/src/transport/tests/ssh_mitm.rs",
    HOST = "proto/adit-ssh-proto/src/transport/tests/ssh_client.rs",
    LIFE = "proto/adit-ssh-proto/src/transport/tests/life.rs",
    REKEY = "proto/adit-ssh-proto/src/transport/tests/rekey.rs",
    KEX = "proto/adit-ssh-proto/src/kex/tests.rs",
    CURVES = "proto/adit-crypto/src/key_agreement.rs",
    PACKET = "proto/adit-ssh-proto/src/packet/tests/hostile.rs",
    DEFLATE = "proto/adit-ssh-proto/src/packet/tests/compression.rs",
    CHANNELS = "proto/adit-ssh-proto/src/connection/tests/hostile.rs",
    FLOODS = "proto/adit-ssh-proto/src/connection/tests/floods.rs",
    POLICY = "proto/adit-ssh-proto/src/connection/tests/policy.rs",
    WORDS = "proto/adit-ssh-proto/src/connection/tests/life.rs",
    SERVER_AUTH = "proto/adit-ssh-proto/src/auth/tests/server.rs",
    CLIENT_AUTH = "proto/adit-ssh-proto/src/auth/tests/client.rs",
    FILES = "proto/adit-ssh-proto/src/key/tests/files.rs",
    CERTIFICATES = "proto/adit-ssh-proto/src/key/tests/certificates.rs",
    LINES = "proto/adit-ssh-proto/src/key/tests/lines.rs",
    AGENT = "proto/adit-ssh-proto/src/key/agent.rs",
    SFTP = "proto/adit-ssh-proto/src/sftp/tests/messages.rs",
    SFTP_MACHINES = "proto/adit-ssh-proto/src/sftp/tests/machines.rs",
    SFTP_STATUS = "proto/adit-ssh-proto/src/sftp/status.rs",
    VERSION = "proto/adit-ssh-proto/src/version.rs",
    PROOF = "proto/adit-ssh-proto/src/key/host_proof.rs",
    HOST_KEYS = "io/adit-ssh/tests/ssh/host_keys.rs",
    AGENTS = "app/adit/tests/it/ssh_client/agents.rs",
    LEARNED = "app/adit/tests/it/ssh_client/host_keys.rs",
    SESSIONS = "io/adit-ssh/tests/ssh/apart.rs",
    ENTRY = "io/adit-ssh/tests/ssh/entry.rs",
    TRUST = "app/adit/tests/it/ssh_client/trust.rs",
    ACCESS = "app/adit/tests/it/ssh_server/access.rs",
}

const CLASSES: &[Class] = &[
    Class {
        what: "an unbounded length leads to an allocation (CVE-2024-43410, CVE-2026-46673)",
        tests: &[
            (TRANSPORT, "ssh_len"),
            (PACKET, "lengths_out_of_bounds"),
            (PACKET, "padding_out_of_bounds"),
            (AGENT, "hostile_frames"),
            (SFTP, "counts_are_not_believed"),
            (VERSION, "bounds_hold"),
        ],
    },
    Class {
        what: "an all-zero X25519 secret, a value of the peer's that panics an encoder",
        tests: &[
            (TRANSPORT, "kex_zero"),
            (CURVES, "public_values_that_are_refused"),
            (KEX, "values_of_a_hostile_client"),
            (KEX, "values_of_a_hostile_server"),
            (KEX, "groups_of_a_hostile_server"),
        ],
    },
    Class {
        what: "a public key of the wrong length (CVE-2020-9283, CVE-2021-43565)",
        tests: &[
            (TRANSPORT, "key_len"),
            (FILES, "key_len"),
            (CURVES, "encapsulation_keys_that_are_refused"),
        ],
    },
    Class {
        what: "more terminal modes than fit in a buffer",
        tests: &[(CHANNELS, "pty_modes")],
    },
    Class {
        what: "an overflow in the arithmetic of windows",
        tests: &[
            (CHANNELS, "window_overflow"),
            (CHANNELS, "window_and_packet_are_kept"),
        ],
    },
    Class {
        what: "an endless loop for a huge write or a packet size of zero",
        tests: &[(CHANNELS, "window_zero_and_huge_write")],
    },
    Class {
        what: "a deadlock or leaked state from unsolicited replies",
        tests: &[
            (CHANNELS, "reply_unsolicited"),
            (TRANSPORT, "reply_unsolicited"),
            (
                SFTP_MACHINES,
                "a_reply_that_nobody_asked_for_breaks_the_channel",
            ),
        ],
    },
    Class {
        what: "a leak for each refused channel",
        tests: &[
            (FLOODS, "reject_100k_channels"),
            (FLOODS, "openings_that_nobody_answers"),
        ],
    },
    Class {
        what: "a channel that the peer opens without having been asked to",
        tests: &[
            (POLICY, "forwards_that_nobody_asked_for"),
            (POLICY, "each_role_is_asked_for_its_own"),
        ],
    },
    Class {
        what: "unbounded lists of names, keys, prompts, identities",
        tests: &[
            (TRANSPORT, "lists_out_of_bounds"),
            (FLOODS, "host_keys_flood"),
            (CLIENT_AUTH, "questions_are_bounded"),
            (CLIENT_AUTH, "parts_are_bounded"),
            (AGENT, "identities"),
            (LINES, "bad_lines_are_told"),
        ],
    },
    Class {
        what: "a login by a key that was only asked about (CVE-2024-45337)",
        tests: &[
            (SERVER_AUTH, "query_then_sign_other"),
            (SERVER_AUTH, "sign_is_refused_then_query_accepted"),
            (SERVER_AUTH, "nothing_is_asked_without_a_valid_signature"),
            (SERVER_AUTH, "another_user_starts_anew"),
            (ACCESS, "other_keys_and_other_users_are_refused"),
        ],
    },
    Class {
        what: "a certificate whose authority, times, names or options were not looked at",
        tests: &[
            (CERTIFICATES, "authorities_have_to_be_trusted"),
            (CERTIFICATES, "forged_certificates"),
            (CERTIFICATES, "an_authority_that_is_a_certificate"),
            (LINES, "revoked_keys_are_never_known"),
            (LINES, "unknown_options_let_nobody_in"),
        ],
    },
    Class {
        what: "a host key that was not verified (CVE-2024-39223)",
        tests: &[
            (HOST, "wrong_host_key_must_fail"),
            (HOST, "nothing_is_sent_to_an_unknown_host"),
            (HOST, "a_borrowed_host_key_proves_nothing"),
            (HOST, "the_host_key_stays_while_connected"),
            (ENTRY, "keys_of_hosts_are_judged"),
            (TRUST, "a_new_host_is_learned_once_or_refused"),
            (TRUST, "a_changed_key_is_never_taken_in_silence"),
        ],
    },
    Class {
        what: "a host key that is learned without a proof, or where the user keeps it by hand",
        tests: &[
            (PROOF, "all_keys_of_a_host_are_proved"),
            (PROOF, "a_host_signs_for_its_own_keys_once"),
            (HOST_KEYS, "a_key_that_is_told_only_is_not_proved"),
            (LEARNED, "what_is_not_to_be_touched_stays"),
        ],
    },
    Class {
        what: "an agent that signs for hosts that a key is not meant for",
        tests: &[
            (HOST_KEYS, "agents_are_told_before_they_sign"),
            (AGENTS, "a_key_for_one_host_opens_that_one_alone"),
            (AGENTS, "a_forwarded_agent_knows_where_it_is_used"),
        ],
    },
    Class {
        what: "prefix truncation (CVE-2023-48795)",
        tests: &[
            (MITM, "terrapin_chacha"),
            (MITM, "terrapin_etm"),
            (MITM, "terrapin_gcm_is_no_prey"),
            (MITM, "nothing_is_added_before_the_keys"),
            (MITM, "a_packet_less_is_noticed_at_every_exchange"),
            (LIFE, "chacha_is_left_out_for_clients_without_strict_kex"),
        ],
    },
    Class {
        what: "pings and words before the login use memory and time (CVE-2025-26466)",
        tests: &[
            (TRANSPORT, "ping_flood"),
            (TRANSPORT, "words_before_the_keys_are_counted"),
            (REKEY, "an_exchange_without_end"),
        ],
    },
    Class {
        what: "messages without data, requests and unread events accumulate",
        tests: &[
            (FLOODS, "empty_data_flood"),
            (FLOODS, "requests_that_nobody_answers"),
            (FLOODS, "events_that_nobody_polls"),
            (
                FLOODS,
                "closed_channels_count_until_their_bytes_are_consumed",
            ),
            (SESSIONS, "what_waits_for_a_program_is_bounded"),
        ],
    },
    Class {
        what: "a packet that grows without bound when it is inflated",
        tests: &[(DEFLATE, "bombs_are_refused")],
    },
    Class {
        what: "an error that reveals the cause of a failed encrypt-and-MAC",
        tests: &[(PACKET, "plain_macs_hide_what_is_wrong")],
    },
    Class {
        what: "one target that does not answer, or one reader that lags, freezes all channels",
        tests: &[
            (SESSIONS, "a_dead_target_freezes_nothing"),
            (SESSIONS, "a_slow_reader_holds_up_itself_alone"),
            (
                SESSIONS,
                "a_slow_reader_at_the_other_end_holds_up_itself_alone",
            ),
        ],
    },
    Class {
        what: "connections that are never let in and never let go",
        tests: &[
            (ENTRY, "who_says_nothing_is_not_waited_for"),
            (ACCESS, "strangers_have_a_number_and_a_time"),
            (ACCESS, "who_fails_again_and_again_is_turned_away"),
            (ACCESS, "silent_clients_are_asked_and_given_up"),
        ],
    },
    Class {
        what: "escapes of terminals in words of the peer",
        tests: &[
            (LIFE, "words_for_a_log_are_printable"),
            (WORDS, "a_refusal_tells_why"),
            (CLIENT_AUTH, "passwords_are_changed"),
            (SFTP_STATUS, "hostile_words_are_made_harmless"),
        ],
    },
];

#[test]
fn every_class_has_its_tests() {
    for class in CLASSES {
        assert!(!class.tests.is_empty(), "{}", class.what);
        for (path, name) in class.tests {
            let source = SOURCES.iter().find(|(known, _)| known == path);
            let (_, source) = source.unwrap_or_else(|| panic!("{path} is not read"));
            let what = class.what;
            assert!(is_test(source, name), "{what}: no test `{name}` in {path}");
        }
    }
}

/// True if a function of this name follows an attribute that makes it a test.
fn is_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let head = [format!("fn {name}("), format!("async fn {name}(")];
    let at = lines
        .iter()
        .position(|line| head.iter().any(|head| line.starts_with(head.as_str())));
    at.is_some_and(|at| {
        let above = lines[..at].iter().rev();
        let mut attributes = above.take_while(|line| line.starts_with("#["));
        attributes.any(|line| matches!(*line, "#[test]") || line.starts_with("#[tokio::test"))
    })
}

#[test]
fn a_name_alone_is_no_test() {
    assert!(is_test("#[test]\nfn a() {}", "a"));
    assert!(is_test("    #[tokio::test]\n    async fn a() {}", "a"));
    for text in [
        "fn a() {}",
        "#[test]\nfn b() {}",
        "// #[test]\n// fn a() {}",
        "",
    ] {
        assert!(!is_test(text, "a"), "{text}");
    }
}
