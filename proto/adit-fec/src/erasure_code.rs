//! The erasure code: parity of data shards, and data shards restored from the remaining ones.

use alloc::vec::Vec;

use adit_wire::{subslice, subslice_mut};

use crate::{
    CodeMatrix, FecLevel,
    repair_plans::{MAX_SHARDS, RepairPlans, ShardSet},
    simd::{FactorRows, KernelPath},
};

/// Size of the widest register, in bytes.
const ROUND: usize = 64;
/// Number of parity shards that are updated at a time.
const ROWS_AT_ONCE: usize = 4;
/// Number of parity shards that are verified at a time, and of their bytes: 8 KiB of the stack.
const ROWS_TO_VERIFY: usize = 16;
const BYTES_TO_VERIFY: usize = 512;

/// The reason why a code or a call is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// There are no data shards, no parity shards, or more than 256 together.
    #[error(
        "{data} data and {parity} parity shards: at least one of each is required, and at most 256 together"
    )]
    Count {
        /// Requested number of data shards.
        data: usize,
        /// Requested number of parity shards.
        parity: usize,
    },
    /// The number of shards differs from that of the code.
    #[error("the number of shards differs from that of the code")]
    Shards,
    /// The shards have different lengths.
    #[error("the shards differ in length")]
    Length,
    /// Fewer shards are available than there are data shards.
    #[error("too few shards are left")]
    TooFew,
}

/// A systematic Reed–Solomon code over GF(2⁸): any `data` of the `data + parity` shards restore the data
/// shards.
///
/// The shards of one call have the same length. A code owns a small cache of plans for repairs, at most 64
/// KiB, which is allocated when the first loss is repaired.
///
/// # Examples
///
/// ```
/// use adit_fec::ErasureCode;
///
/// let mut code = ErasureCode::vandermonde(3, 2)?;
/// let data: [&[u8]; 3] = [b"one", b"two", b"six"];
/// let mut parity = [[0; 3]; 2];
/// code.encode_parity(&data, &mut parity.each_mut().map(|shard| &mut shard[..]))?;
///
/// let shards = [None, Some(data[1]), Some(data[2]), None, Some(&parity[1][..])];
/// let mut lost = [[0; 3]; 2];
/// code.reconstruct_all(&shards, &mut lost.each_mut().map(|shard| &mut shard[..]))?;
/// assert_eq!(lost, [*b"one", parity[0]]);
/// # Ok::<(), adit_fec::CodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ErasureCode {
    matrix: CodeMatrix,
    data: usize,
    parity: usize,
    rows: Vec<u8>,
    plans: RepairPlans,
    /// Rows of lost parity shards, whose memory is reused
    lost_rows: Vec<u8>,
    path: KernelPath,
}

impl ErasureCode {
    /// Creates a code of the given kind, on the fastest kernel of this CPU that [`crate::limit_level`] allows.
    ///
    /// # Errors
    /// [`CodeError::Count`] unless there are at least one data and one parity shard, and at most 256
    /// together.
    pub fn new(matrix: CodeMatrix, data: usize, parity: usize) -> Result<Self, CodeError> {
        if data == 0 || parity == 0 || data.saturating_add(parity) > MAX_SHARDS {
            return Err(CodeError::Count { data, parity });
        }
        Ok(Self {
            matrix,
            data,
            parity,
            rows: matrix.parity_rows(data, parity),
            plans: RepairPlans::default(),
            lost_rows: Vec::new(),
            path: KernelPath::of_process(),
        })
    }

    /// Creates the code of kcp-go and kcptun.
    ///
    /// # Errors
    /// See [`new`](Self::new).
    pub fn vandermonde(data: usize, parity: usize) -> Result<Self, CodeError> {
        Self::new(CodeMatrix::Vandermonde, data, parity)
    }

    /// Creates the code of ISA-L and of adit's `kcp9` mode.
    ///
    /// # Errors
    /// See [`new`](Self::new).
    pub fn cauchy(data: usize, parity: usize) -> Result<Self, CodeError> {
        Self::new(CodeMatrix::Cauchy, data, parity)
    }

    /// Returns the same code on the fastest kernel up to `level`; for tests and measurements.
    #[must_use]
    pub fn with_level(mut self, level: FecLevel) -> Self {
        self.path = KernelPath::best_within(level);
        self
    }

    /// Returns the level of the kernel in use.
    #[must_use]
    pub const fn level(&self) -> FecLevel {
        self.path.level()
    }

    /// Returns the kind of the code.
    #[must_use]
    pub const fn matrix(&self) -> CodeMatrix {
        self.matrix
    }

    /// Returns the number of data shards in a group, at least 1.
    #[must_use]
    pub const fn data_shards(&self) -> usize {
        self.data
    }

    /// Returns the number of parity shards in a group, at least 1.
    #[must_use]
    pub const fn parity_shards(&self) -> usize {
        self.parity
    }

    /// Returns the number of all shards in a group, at most 256.
    #[must_use]
    pub const fn total_shards(&self) -> usize {
        self.data + self.parity
    }

    /// Returns the factors of parity shard `row`, one for each data shard.
    #[must_use]
    pub fn parity_row(&self, row: usize) -> Option<&[u8]> {
        self.rows.chunks_exact(self.data).nth(row)
    }

    /// Writes the parity shards of `data`.
    ///
    /// # Errors
    /// [`CodeError::Shards`] or [`CodeError::Length`] if number or length of the shards is wrong.
    pub fn encode_parity(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), CodeError> {
        if data.len() != self.data || parity.len() != self.parity {
            return Err(CodeError::Shards);
        }
        check_equal_lengths(data.iter().copied(), parity.iter().map(|shard| shard.len()))?;
        let factors = FactorRows::new(&self.rows, self.data);
        self.path.sum_products(factors, data, parity);
        Ok(())
    }

    /// Returns true if `parity` is the parity of `data`.
    ///
    /// Nothing is allocated, and the rest is not read after the first difference. Parity does not
    /// authenticate: a peer can replace data and parity together.
    ///
    /// # Errors
    /// [`CodeError::Shards`] or [`CodeError::Length`] if number or length of the shards is wrong.
    ///
    /// # Examples
    ///
    /// ```
    /// let code = adit_fec::ErasureCode::cauchy(2, 1)?;
    /// let data: [&[u8]; 2] = [b"one", b"two"];
    /// let mut parity = [0; 3];
    /// code.encode_parity(&data, &mut [&mut parity])?;
    /// assert!(code.verify_parity(&data, &[&parity])?);
    /// parity[2] ^= 1;
    /// assert!(!code.verify_parity(&data, &[&parity])?);
    /// # Ok::<(), adit_fec::CodeError>(())
    /// ```
    pub fn verify_parity(&self, data: &[&[u8]], parity: &[&[u8]]) -> Result<bool, CodeError> {
        if data.len() != self.data || parity.len() != self.parity {
            return Err(CodeError::Shards);
        }
        check_equal_lengths(data.iter().copied(), parity.iter().map(|shard| shard.len()))?;
        let len = parity.first().map_or(0, |shard| shard.len());
        let mut sums = [[0; BYTES_TO_VERIFY]; ROWS_TO_VERIFY];
        let mut at = 0;
        while at < len {
            // The last part begins earlier instead of being shorter than a register.
            let end = len.min(at + BYTES_TO_VERIFY);
            let part = end.saturating_sub(BYTES_TO_VERIFY)..end;
            let mut inputs = [&[] as &[u8]; MAX_SHARDS];
            for (input, shard) in inputs.iter_mut().zip(data) {
                *input = subslice(shard, part.clone());
            }
            let inputs = subslice(&inputs, ..data.len());
            let rows = self.rows.chunks(ROWS_TO_VERIFY * self.data);
            for (rows, shards) in rows.zip(parity.chunks(ROWS_TO_VERIFY)) {
                let mut outputs = sums.each_mut().map(|sum| subslice_mut(sum, ..part.len()));
                let outputs = subslice_mut(&mut outputs, ..shards.len());
                self.path
                    .sum_products(FactorRows::new(rows, self.data), inputs, outputs);
                let mut pairs = outputs.iter().zip(shards);
                if !pairs.all(|(sum, shard)| **sum == *subslice(shard, part.clone())) {
                    return Ok(false);
                }
            }
            at = end;
        }
        Ok(true)
    }

    /// Adds the contribution of data shard `place` to all parity shards: rows of `stride` bytes, a multiple
    /// of 64 that is at least the length of the shard.
    pub(crate) fn add_contribution(
        &self,
        place: usize,
        shard: &[u8],
        parity: &mut [u8],
        stride: usize,
    ) {
        let (whole, rest) = shard.as_chunks::<ROUND>();
        let whole = whole.as_flattened();
        let mut end = [0; ROUND];
        if let Some(to) = end.get_mut(..rest.len()) {
            to.copy_from_slice(rest);
        }
        let pieces = [(0, whole), (whole.len(), &end[..])];
        let (pieces, _) = pieces.split_at(1 + usize::from(!rest.is_empty()));
        debug_assert!(place < self.data, "it must be a data shard");
        let mut factors = [0; ROWS_AT_ONCE];
        let mut rows = self.rows.chunks_exact(self.data);
        for four in parity.chunks_mut(ROWS_AT_ONCE * stride) {
            for (factor, row) in factors.iter_mut().zip(&mut rows) {
                *factor = row.get(place).copied().unwrap_or(0);
            }
            for (at, piece) in pieces {
                let mut outputs: [&mut [u8]; ROWS_AT_ONCE] = Default::default();
                let mut count = 0;
                for (output, row) in outputs.iter_mut().zip(four.chunks_exact_mut(stride)) {
                    *output = subslice_mut(row, *at..at + piece.len());
                    count += 1;
                }
                let outputs = subslice_mut(&mut outputs, ..count);
                let factors = subslice(&factors, ..count);
                self.path.add_products(factors, piece, outputs);
            }
        }
    }

    /// Writes the data shards that are `None` in `shards` to `lost`, in their order.
    ///
    /// `shards` has all shards of the group, data first; lost parity shards are not restored, which
    /// [`reconstruct_all`](Self::reconstruct_all) does. Shards that are not needed are not read.
    ///
    /// # Errors
    /// [`CodeError::Shards`] or [`CodeError::Length`] if number or length of the shards is wrong,
    /// [`CodeError::TooFew`] if too few are available.
    pub fn reconstruct(
        &mut self,
        shards: &[Option<&[u8]>],
        lost: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        let Some((data, parity)) = shards.split_at_checked(self.data) else {
            return Err(CodeError::Shards);
        };
        let missing = data.iter().filter(|shard| shard.is_none()).count();
        if parity.len() != self.parity || lost.len() != missing {
            return Err(CodeError::Shards);
        }
        let mut at_hand = ShardSet::default();
        let mut inputs = [&[] as &[u8]; MAX_SHARDS];
        let mut spare = parity
            .iter()
            .zip(self.data..)
            .filter_map(|(s, i)| s.map(|s| (s, i)));
        for ((place, shard), input) in data.iter().enumerate().zip(&mut inputs) {
            let (bytes, index) = match shard {
                Some(bytes) => (*bytes, place),
                None => spare.next().ok_or(CodeError::TooFew)?,
            };
            at_hand.insert(index);
            *input = bytes;
        }
        let inputs = subslice(&inputs, ..self.data);
        check_equal_lengths(inputs.iter().copied(), lost.iter().map(|shard| shard.len()))?;
        self.repair_shards(at_hand, inputs, lost)
    }

    /// Writes all shards that are `None` in `shards` to `lost`, in their order: data shards, then parity
    /// shards.
    ///
    /// `shards` has all shards of the group, data first. Parity shards that are not needed are not read.
    ///
    /// # Errors
    /// [`CodeError::Shards`] or [`CodeError::Length`] if number or length of the shards is wrong,
    /// [`CodeError::TooFew`] if too few are available. Nothing is written then.
    pub fn reconstruct_all(
        &mut self,
        shards: &[Option<&[u8]>],
        lost: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        let Some((data, parity)) = shards.split_at_checked(self.data) else {
            return Err(CodeError::Shards);
        };
        let missing = data.iter().filter(|shard| shard.is_none()).count();
        let Some((lost_data, lost_parity)) = lost.split_at_mut_checked(missing) else {
            return Err(CodeError::Shards);
        };
        let missing_parity = parity.iter().filter(|shard| shard.is_none()).count();
        if parity.len() != self.parity || lost_parity.len() != missing_parity {
            return Err(CodeError::Shards);
        }
        let lens = lost_data.iter().chain(&*lost_parity).map(|s| s.len());
        check_equal_lengths(data.iter().copied().flatten(), lens)?;
        if missing > 0 {
            self.reconstruct(shards, lost_data)?;
        }
        let mut restored = lost_data.iter();
        let mut inputs = [&[] as &[u8]; MAX_SHARDS];
        for (input, shard) in inputs.iter_mut().zip(data) {
            *input = match shard {
                Some(bytes) => bytes,
                None => restored.next().map_or(&[], |shard| &**shard),
            };
        }
        self.lost_rows.clear();
        let rows = self.rows.chunks_exact(self.data).zip(parity);
        let lost_rows = rows.filter(|(_, shard)| shard.is_none());
        self.lost_rows.extend(lost_rows.flat_map(|(row, _)| row));
        let factors = FactorRows::new(&self.lost_rows, self.data);
        self.path
            .sum_products(factors, subslice(&inputs, ..self.data), lost_parity);
        Ok(())
    }

    /// Writes the lost data shards. `inputs` are the members of `at_hand`: data shards at their index, and
    /// the parity shards in order at the indices of the lost ones.
    pub(crate) fn repair_shards(
        &mut self,
        at_hand: ShardSet,
        inputs: &[&[u8]],
        lost: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        let plan = self.plans.get_or_compute(&self.rows, self.data, at_hand);
        let factors = FactorRows::new(plan.ok_or(CodeError::TooFew)?, self.data);
        self.path.sum_products(factors, inputs, lost);
        Ok(())
    }
}

fn check_equal_lengths<'a>(
    mut inputs: impl Iterator<Item = &'a [u8]>,
    mut outputs: impl Iterator<Item = usize>,
) -> Result<(), CodeError> {
    let Some(len) = outputs.next() else {
        return Ok(());
    };
    let same = inputs.all(|shard| shard.len() == len) && outputs.all(|output| output == len);
    same.then_some(()).ok_or(CodeError::Length)
}
