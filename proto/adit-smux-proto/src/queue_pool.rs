//! A pool for the byte queues of streams, which have memory only while they contain bytes.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Maximum number of queues kept for reuse.
const MAX_SPARE: usize = 8;
/// Maximum capacity of a queue that is kept, in bytes.
const MAX_SPARE_CAPACITY: usize = 64 << 10;

/// Empty queues with capacity.
#[derive(Debug, Default)]
pub(crate) struct QueuePool {
    spare: Vec<VecDeque<u8>>,
}

impl QueuePool {
    /// Appends to a queue.
    pub(crate) fn push_bytes(&mut self, queue: &mut VecDeque<u8>, bytes: &[u8]) {
        if queue.capacity() == 0
            && let Some(spare) = self.spare.pop()
        {
            *queue = spare;
        }
        queue.extend(bytes);
    }

    /// Removes up to `count` bytes from the front, and takes the queue's memory once it is empty.
    pub(crate) fn pop_bytes(&mut self, queue: &mut VecDeque<u8>, count: usize) {
        queue.drain(..count.min(queue.len()));
        if queue.is_empty() {
            let empty = core::mem::take(queue);
            if self.spare.len() < MAX_SPARE && (1..=MAX_SPARE_CAPACITY).contains(&empty.capacity())
            {
                self.spare.push(empty);
            }
        }
    }

    /// Frees the unused queues.
    pub(crate) fn release_spare(&mut self) {
        self.spare = Vec::new();
    }
}

/// Copies the front of `queue` to `out`, as much as fits. Returns the number of bytes.
pub(crate) fn copy_front(queue: &VecDeque<u8>, out: &mut [u8]) -> usize {
    let (first, second) = queue.as_slices();
    let (mut copied, mut rest) = (0, out);
    for part in [first, second] {
        let len = part.len().min(rest.len());
        let (Some((to, left)), Some(from)) = (rest.split_at_mut_checked(len), part.get(..len))
        else {
            break;
        };
        to.copy_from_slice(from);
        copied += len;
        rest = left;
    }
    copied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_queues_own_nothing_and_their_memory_is_used_again() {
        let mut buffers = QueuePool::default();
        let mut queue = VecDeque::new();
        buffers.push_bytes(&mut queue, &[1; 1000]);
        let (capacity, mut out) = (queue.capacity(), [0; 600]);
        assert_eq!(copy_front(&queue, &mut out), 600);
        buffers.pop_bytes(&mut queue, 600);
        buffers.push_bytes(&mut queue, &[2; 500]);
        assert_eq!(copy_front(&queue, &mut out), 600);
        assert_eq!((out[399], out[400], out[599]), (1, 2, 2));
        buffers.pop_bytes(&mut queue, 2000);
        assert_eq!(queue.capacity(), 0);
        let mut other = VecDeque::new();
        buffers.push_bytes(&mut other, b"x");
        assert!(other.capacity() >= capacity);
    }

    #[test]
    fn large_queues_are_freed() {
        let mut buffers = QueuePool::default();
        let mut queue = VecDeque::new();
        buffers.push_bytes(&mut queue, &[0; 2 * MAX_SPARE_CAPACITY]);
        buffers.pop_bytes(&mut queue, 2 * MAX_SPARE_CAPACITY);
        assert!(buffers.spare.is_empty());
    }
}
