//! Processor features that decide the order of ciphers.

use adit_ssh_proto::algorithm::{AlgorithmPreferences, CpuFeatures};

/// Returns the cryptographic instructions that this processor supports.
#[must_use]
pub fn cpu_features() -> CpuFeatures {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return CpuFeatures {
        aes: std::arch::is_x86_feature_detected!("aes"),
        clmul: std::arch::is_x86_feature_detected!("pclmulqdq"),
    };
    #[cfg(target_arch = "aarch64")]
    return CpuFeatures {
        aes: std::arch::is_aarch64_feature_detected!("aes"),
        clmul: std::arch::is_aarch64_feature_detected!("pmull"),
    };
    #[allow(unreachable_code, reason = "for other processors")]
    CpuFeatures {
        aes: false,
        clmul: false,
    }
}

/// Returns all algorithms in the order that is fastest on this machine.
#[must_use]
pub fn preferred_algorithms() -> AlgorithmPreferences {
    AlgorithmPreferences::for_machine(cpu_features())
}
