//! The erasure of hashers that have seen keys.

use adit_wire::u64_from;
use blake3::{CHUNK_LEN, Hasher};
use zeroize::{Zeroize, optimization_barrier};

/// Erases the key and the input of a hasher.
///
/// `Hasher::zeroize` erases 1.7 KiB for the chaining values of earlier chunks byte by byte, which takes longer than to
/// hash a key. Input of one chunk has no such values.
pub(crate) fn erase(hasher: &mut Hasher) {
    if hasher.count() > u64_from(CHUNK_LEN) {
        return hasher.zeroize();
    }
    *hasher = Hasher::new();
    // Without it, the compiler could leave out stores that are never read.
    optimization_barrier(hasher);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_key_and_the_input_remains() {
        for len in [0, 1, 64, 65, CHUNK_LEN, CHUNK_LEN + 1, 3 * CHUNK_LEN] {
            let mut hasher = Hasher::new_keyed(&[7; 32]);
            let with_key = hasher.finalize();
            hasher.update(&vec![3; len]);
            let with_input = hasher.finalize();
            erase(&mut hasher);
            assert_eq!(hasher.count(), 0, "{len} bytes");
            assert_ne!(hasher.finalize(), with_key, "{len} bytes");
            assert_ne!(hasher.finalize(), with_input, "{len} bytes");
        }
    }
}
