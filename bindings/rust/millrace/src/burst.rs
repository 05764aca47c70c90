// SPDX-License-Identifier: BSD-3-Clause
use crate::{Cache, Frame, MAX_SEGS, Pool, View, ViewMut};
use millrace_sys as sys;

/// A burst of whole frames, with up to `N` entries. It owns them, and frees
/// those left when it is dropped ([`Cache::free()`] is faster).
///
/// It allocates nothing. `N` must be 18 ([`MAX_SEGS`]) to 256, or the program
/// does not compile. Most frames have one entry.
#[repr(C, align(64))] // no entry crosses a cache line
pub struct Burst<const N: usize> {
    entries: [sys::mr_frame; N],
    // Frames leave at `start` and enter at `end`.
    start: usize,
    end: usize,
    pool: Pool,
}

/// How many entries the first of `entries` has.
fn first_len(entries: &[sys::mr_frame]) -> usize {
    let n_more = entries
        .iter()
        .take_while(|entry| entry.flags & sys::MR_FRAME_MORE != 0)
        .count();
    n_more + 1
}

impl<const N: usize> Burst<N> {
    const FITS: () = assert!(
        N >= MAX_SEGS && N <= sys::MR_BURST_MAX as usize,
        "a burst has room for 18 to 256 entries"
    );

    /// An empty burst for frames of `pool`.
    #[must_use]
    pub fn new(pool: &Pool) -> Self {
        const { Self::FITS };
        Self {
            entries: [sys::mr_frame::default(); N],
            start: 0,
            end: 0,
            pool: pool.clone(),
        }
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn entries(&self) -> &[sys::mr_frame] {
        &self.entries[self.start..self.end]
    }

    /// Give up all entries.
    #[inline]
    pub(crate) fn take(&mut self) -> &[sys::mr_frame] {
        let range = self.start..self.end;
        (self.start, self.end) = (0, 0);
        &self.entries[range]
    }

    /// Give up the first `n` entries.
    #[inline]
    pub(crate) fn advance(&mut self, n: usize) {
        self.start += n;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Room for entries, or empty if the longest frame would not fit.
    /// [`extend()`](Self::extend) takes how many were written.
    #[inline]
    pub(crate) fn room(&mut self) -> &mut [sys::mr_frame] {
        if N - self.end < MAX_SEGS && self.start > 0 {
            self.entries.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if N - self.end < MAX_SEGS {
            return &mut [];
        }
        &mut self.entries[self.end..]
    }

    /// Take ownership of entries. It is empty, and has room for them.
    pub(crate) fn put(&mut self, entries: &[sys::mr_frame]) {
        (self.start, self.end) = (0, entries.len());
        self.entries[..entries.len()].copy_from_slice(entries);
    }

    /// Take ownership of `n` entries that were written to its room.
    #[inline]
    pub(crate) fn extend(&mut self, n: usize) {
        self.end += n;
    }

    /// How many entries it has.
    #[must_use]
    pub fn n_entries(&self) -> usize {
        self.end - self.start
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Its frames, in order.
    pub fn iter(&self) -> impl Iterator<Item = View<'_>> {
        let mut rest = self.entries();
        std::iter::from_fn(move || {
            let (first, others) = rest.split_at_checked(first_len(rest))?;
            rest = others;
            Some(View::new(&self.pool, first))
        })
    }

    /// Its frames, in order, for writing.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = ViewMut<'_>> {
        let pool = &self.pool;
        let mut rest = &mut self.entries[self.start..self.end];
        std::iter::from_fn(move || {
            let n = first_len(rest);
            let (first, others) = std::mem::take(&mut rest).split_at_mut_checked(n)?;
            rest = others;
            Some(ViewMut::new(pool, first))
        })
    }

    /// Take out the first frame.
    pub fn pop(&mut self) -> Option<Frame> {
        let entries = self.entries();
        let frame = Frame::new(&self.pool, entries.get(..first_len(entries))?);
        self.advance(frame.entries().len());
        Some(frame)
    }

    /// Append a frame.
    ///
    /// # Errors
    /// Returns the frame if fewer than [`MAX_SEGS`] entries are free, or if it
    /// belongs to another pool.
    #[allow(clippy::result_large_err)] // moved, not allocated
    pub fn push(&mut self, frame: Frame) -> Result<(), Frame> {
        let n = frame.entries().len();
        if !self.pool.is(frame.pool()) || self.room().is_empty() {
            return Err(frame);
        }
        self.room()[..n].copy_from_slice(frame.entries());
        self.extend(n);
        frame.take();
        Ok(())
    }

    /// Append a frame of `n_bytes` with unspecified content. None if fewer than
    /// [`MAX_SEGS`] entries are free, the pool has no page, or `n_bytes` is 0
    /// or more than a page.
    ///
    /// # Panics
    /// The cache is of another pool.
    pub fn alloc(&mut self, cache: &mut Cache, n_bytes: u32) -> Option<ViewMut<'_>> {
        self.pool.must_be(&cache.pool);
        let slot = self.room().first_mut()?;
        *slot = cache.alloc_entry(n_bytes)?;
        self.extend(1);
        let entry = self.end - 1..self.end;
        Some(ViewMut::new(&self.pool, &mut self.entries[entry]))
    }
}

impl<const N: usize> Drop for Burst<N> {
    fn drop(&mut self) {
        self.pool.free(self.entries());
    }
}
