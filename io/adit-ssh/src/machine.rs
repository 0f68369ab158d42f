//! Processor features that decide the order of ciphers.

use adit_ssh_proto::algorithm::{Machine, Preferred};

/// Returns the cryptographic instructions that this processor supports.
#[must_use]
pub fn machine() -> Machine {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return Machine {
        aes: std::arch::is_x86_feature_detected!("aes"),
        clmul: std::arch::is_x86_feature_detected!("pclmulqdq"),
    };
    #[cfg(target_arch = "aarch64")]
    return Machine {
        aes: std::arch::is_aarch64_feature_detected!("aes"),
        clmul: std::arch::is_aarch64_feature_detected!("pmull"),
    };
    #[allow(unreachable_code, reason = "for other processors")]
    Machine {
        aes: false,
        clmul: false,
    }
}

/// Returns all algorithms in the order that is fastest on this machine.
#[must_use]
pub fn preferred() -> Preferred {
    Preferred::for_machine(machine())
}
