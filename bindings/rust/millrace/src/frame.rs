// SPDX-License-Identifier: BSD-3-Clause
use crate::{Cache, Error, MAX_SEGS, Pool};
use millrace_sys as sys;
use std::ptr::null;
use std::slice;

/// A frame that owns its buffers, outside a burst. Dropping it frees them,
/// which may take a lock; pushing it to a [`Burst`](crate::Burst) that is sent
/// or freed does not.
pub struct Frame {
    pool: Pool,
    n: usize,
    entries: [sys::mr_frame; MAX_SEGS],
}

impl Frame {
    /// The caller gives up `entries`, one whole frame of `pool`.
    pub(crate) fn new(pool: &Pool, entries: &[sys::mr_frame]) -> Self {
        let mut frame = Self {
            pool: pool.clone(),
            n: entries.len(),
            entries: [sys::mr_frame::default(); MAX_SEGS],
        };
        frame.entries[..entries.len()].copy_from_slice(entries);
        frame
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn entries(&self) -> &[sys::mr_frame] {
        &self.entries[..self.n]
    }

    /// Give up the buffers.
    pub(crate) fn take(mut self) {
        self.n = 0;
    }

    /// Borrow it for reading.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View::new(&self.pool, self.entries())
    }

    /// Borrow it for writing.
    pub fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut::new(&self.pool, &mut self.entries[..self.n])
    }

    /// Add an owner, for flooding and mirroring. While a frame has several,
    /// its bytes are read-only; [`ViewMut::bytes_mut()`] copies them.
    ///
    /// # Errors
    /// EOVERFLOW: it has 254 owners.
    ///
    /// # Panics
    /// The cache is of another pool.
    pub fn share(&self, cache: &mut Cache) -> Result<Self, Error> {
        let entries = self.entries();
        cache.with(&self.pool, |cache| {
            // SAFETY: `self` owns the entries.
            unsafe { sys::mr_frame_ref(cache, entries.as_ptr(), entries.len() as u32) }
        })?;
        Ok(Self::new(&self.pool, entries))
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        self.pool.free(self.entries());
    }
}

/// Read access to a frame of a burst, or to a [`Frame`].
#[derive(Clone, Copy)]
pub struct View<'a> {
    pool: &'a Pool,
    entries: &'a [sys::mr_frame],
}

impl<'a> View<'a> {
    pub(crate) fn new(pool: &'a Pool, entries: &'a [sys::mr_frame]) -> Self {
        Self { pool, entries }
    }

    /// The length of the whole frame in bytes, without FCS.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // no frame is empty
    pub fn len(&self) -> usize {
        self.entries.iter().map(|entry| entry.len as usize).sum()
    }

    /// How many entries it has, 1 to [`MAX_SEGS`].
    #[must_use]
    pub fn n_entries(&self) -> usize {
        self.entries.len()
    }

    /// The bytes of the first entry: the whole frame, or its headers and more.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        bytes(self.pool, &self.entries[0])
    }

    /// The bytes of each entry.
    pub fn segments(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let pool = self.pool;
        self.entries.iter().map(move |entry| bytes(pool, entry))
    }

    /// Whether the device verified its checksums.
    #[must_use]
    pub fn has_valid_checksum(&self) -> bool {
        self.entries[0].flags & sys::MR_FRAME_CSUM_VALID != 0
    }

    /// Whether its TCP or UDP checksum is still to be computed, by the device
    /// that sends it or by [`ViewMut::finish_checksum()`].
    #[must_use]
    pub fn has_partial_checksum(&self) -> bool {
        self.entries[0].flags & sys::MR_FRAME_CSUM_PARTIAL != 0
    }
}

fn bytes<'a>(pool: &'a Pool, entry: &'a sys::mr_frame) -> &'a [u8] {
    // SAFETY: the entry's owner is borrowed, and an owner may read it. Nobody
    // writes to it meanwhile: that takes `&mut` of its only owner.
    unsafe { slice::from_raw_parts(pool.0.base.add(entry.addr as usize), entry.len as usize) }
}

/// Write access to a frame of a burst, or to a [`Frame`].
///
/// All methods but [`view()`](Self::view) and those that shorten the frame take
/// the thread's cache of its pool, and panic if it is of another pool.
pub struct ViewMut<'a> {
    pool: &'a Pool,
    entries: &'a mut [sys::mr_frame],
}

impl<'a> ViewMut<'a> {
    pub(crate) fn new(pool: &'a Pool, entries: &'a mut [sys::mr_frame]) -> Self {
        Self { pool, entries }
    }

    /// Borrow it for reading.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View::new(self.pool, self.entries)
    }

    /// The bytes of the first entry, for writing. A frame with other owners is
    /// copied first, and only this owner has the copy.
    ///
    /// # Errors
    /// ENOMEM: it had to be copied, but no page is free, or it does not fit
    /// into pages of the pool.
    ///
    /// # Panics
    /// The cache is of another pool.
    pub fn bytes_mut(&mut self, cache: &mut Cache) -> Result<&mut [u8], Error> {
        let n = self.entries.len() as u32;
        cache.with(self.pool, |cache| {
            // SAFETY: one whole frame, of this owner.
            unsafe { sys::mr_frame_unshare(cache, self.entries.as_mut_ptr(), n) }
        })?;
        let entry = &self.entries[0];
        // SAFETY: the only owner is borrowed `&mut`.
        Ok(unsafe {
            slice::from_raw_parts_mut(
                self.pool.0.base.add(entry.addr as usize),
                entry.len as usize,
            )
        })
    }

    /// Compute a partial checksum, for programs that verify checksums. A frame
    /// without one is left as it is.
    ///
    /// # Errors
    /// As [`bytes_mut()`](Self::bytes_mut).
    ///
    /// # Panics
    /// The cache is of another pool.
    pub fn finish_checksum(&mut self, cache: &mut Cache) -> Result<(), Error> {
        if !self.view().has_partial_checksum() {
            return Ok(());
        }
        self.bytes_mut(cache)?;
        let base = self.pool.0.base.cast();
        let entries = self.entries.as_mut_ptr();
        let mut partial = sys::mr_partial::default();
        // SAFETY: one whole frame, whose only owner is borrowed `&mut`; the
        // library finds only a field in its first entry.
        unsafe {
            if sys::mr_partial_find(base, entries, null(), &raw mut partial) == 0 {
                sys::mr_partial_finish(base, entries, &raw const partial);
            }
        }
        self.entries[0].flags &= !sys::MR_FRAME_CSUM_PARTIAL;
        Ok(())
    }

    /// Extend it at its front by `n_bytes` with unspecified content, into the
    /// headroom.
    ///
    /// # Errors
    /// ENOSPC: not enough room. EROFS: it has other owners.
    ///
    /// # Panics
    /// The cache is of another pool.
    pub fn push(&mut self, cache: &mut Cache, n_bytes: u32) -> Result<(), Error> {
        let first = &raw mut self.entries[0];
        // SAFETY: the owner of the entry is borrowed `&mut`.
        cache.with(self.pool, |cache| unsafe {
            sys::mr_frame_push(cache, first, n_bytes)
        })
    }

    /// Shorten it at its front.
    ///
    /// # Errors
    /// ENOSPC: the first entry has no more than `n_bytes`.
    pub fn pull(&mut self, n_bytes: u32) -> Result<(), Error> {
        // SAFETY: as push().
        crate::error::check(unsafe { sys::mr_frame_pull(&raw mut self.entries[0], n_bytes) })
    }

    /// Extend it at its end by `n_bytes` with unspecified content, into the
    /// tailroom.
    ///
    /// # Errors
    /// As [`push()`](Self::push).
    ///
    /// # Panics
    /// The cache is of another pool.
    pub fn put(&mut self, cache: &mut Cache, n_bytes: u32) -> Result<(), Error> {
        let last = self.last();
        // SAFETY: as push().
        cache.with(self.pool, |cache| unsafe {
            sys::mr_frame_put(cache, last, n_bytes)
        })
    }

    /// Shorten it at its end.
    ///
    /// # Errors
    /// ENOSPC: the last entry has no more than `n_bytes`.
    pub fn trim(&mut self, n_bytes: u32) -> Result<(), Error> {
        // SAFETY: as push().
        crate::error::check(unsafe { sys::mr_frame_trim(self.last(), n_bytes) })
    }

    fn last(&mut self) -> *mut sys::mr_frame {
        let i = self.entries.len() - 1;
        &raw mut self.entries[i]
    }
}
