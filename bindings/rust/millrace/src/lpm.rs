// SPDX-License-Identifier: BSD-3-Clause
use crate::error::{call, check};
use crate::{Context, Error};
use millrace_sys as sys;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

/// Routes: from an address of `A` bytes, 4 (IPv4) or 16 (IPv6), to the number
/// that the program gave to the longest matching prefix. See
/// `<millrace/lpm.h>`. With another `A` the program does not compile.
///
/// All threads look up without locks, also while one of them changes routes.
///
/// ```
/// # use millrace::{Context, Lpm};
/// let routes = Lpm::<4>::new(&Context::new()?, 1000)?;
/// routes.add([10, 0, 0, 0], 8, 1)?;
/// routes.add([10, 1, 0, 0], 16, 2)?;
/// assert_eq!(routes.find(&[10, 1, 2, 3]), Some(2));
/// let mut hops = [None; 2];
/// routes.find_bulk(&[[10, 9, 9, 9], [11, 0, 0, 1]], &mut hops);
/// assert_eq!(hops, [Some(1), None]);
/// # Ok::<(), millrace::Error>(())
/// ```
///
/// ```compile_fail,E0080
/// let routes = millrace::Lpm::<6>::new(&millrace::Context::new().unwrap(), 1);
/// ```
pub struct Lpm<const A: usize> {
    raw: *mut sys::mr_lpm,
    changes: Mutex<()>,
    _ctx: Context,
}

// SAFETY: not tied to a thread.
unsafe impl<const A: usize> Send for Lpm<A> {}
// SAFETY: any number of threads look up while one, which has `changes`, adds or
// removes; `trim()` needs `&mut`.
unsafe impl<const A: usize> Sync for Lpm<A> {}

impl<const A: usize> Lpm<A> {
    const FITS: () = assert!(A == 4 || A == 16, "an address has 4 or 16 bytes");

    /// A table without routes, for at most `n_max`.
    ///
    /// # Errors
    /// EINVAL: `n_max` is 0, or more than 2^24; no memory.
    pub fn new(ctx: &Context, n_max: u32) -> Result<Self, Error> {
        const { Self::FITS };
        let mut raw = null_mut();
        // SAFETY: the context exists, and the table keeps it.
        call(|why| unsafe { sys::mr_lpm_create(ctx.0.raw, A as u32, n_max, &raw mut raw, why) })?;
        Ok(Self {
            raw,
            changes: Mutex::new(()),
            _ctx: ctx.clone(),
        })
    }

    /// Add a route to the first `n_bits` of an address, or change its hop. One
    /// thread changes routes at a time; others wait for it.
    ///
    /// # Errors
    /// EINVAL: `n_bits`, or a hop above 2^23 - 2; ENOSPC: too many routes; no
    /// memory, or removed routes hold it: [`trim()`](Self::trim).
    pub fn add(&self, addr: [u8; A], n_bits: u32, hop: u32) -> Result<(), Error> {
        let _one_at_a_time = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: A bytes; the only thread that changes routes.
        check(unsafe { sys::mr_lpm_add(self.raw, addr.as_ptr().cast(), n_bits, hop) })
    }

    /// Remove a route: its addresses match the next shorter one.
    ///
    /// # Errors
    /// ENOENT: there is no such route; EINVAL: `n_bits`.
    pub fn remove(&self, addr: [u8; A], n_bits: u32) -> Result<(), Error> {
        let _one_at_a_time = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: as in add().
        check(unsafe { sys::mr_lpm_remove(self.raw, addr.as_ptr().cast(), n_bits) })
    }

    /// Free memory of removed routes for others. Returns how many KiB.
    pub fn trim(&mut self) -> u32 {
        // SAFETY: no other thread uses the table.
        unsafe { sys::mr_lpm_trim(self.raw) }
    }

    /// The hop of an address. None if there is no route.
    #[must_use]
    #[inline]
    pub fn find(&self, addr: &[u8; A]) -> Option<u32> {
        // SAFETY: A bytes; for any thread.
        let hop = unsafe { sys::mr_lpm_find(self.raw, addr.as_ptr().cast()) };
        (hop != sys::MR_LPM_NONE).then_some(hop)
    }

    /// The hops of a burst of addresses, whose cache misses overlap.
    ///
    /// # Panics
    /// There are fewer results than addresses.
    pub fn find_bulk(&self, addrs: &[[u8; A]], hops: &mut [Option<u32>]) {
        const MOST: usize = 64;
        assert!(hops.len() >= addrs.len(), "fewer results than addresses");
        let mut found = [0; MOST];
        for (addrs, hops) in addrs.chunks(MOST).zip(hops.chunks_mut(MOST)) {
            let n = addrs.len();
            // SAFETY: n addresses of A bytes in a row, n results.
            unsafe {
                sys::mr_lpm_find_bulk(
                    self.raw,
                    addrs.as_ptr().cast(),
                    n as u32,
                    found.as_mut_ptr(),
                );
            }
            for (hop, found) in hops.iter_mut().zip(&found[..n]) {
                *hop = (*found != sys::MR_LPM_NONE).then_some(*found);
            }
        }
    }
}

impl<const A: usize> Drop for Lpm<A> {
    fn drop(&mut self) {
        // SAFETY: its last user drops it.
        unsafe { sys::mr_lpm_destroy(self.raw) }
    }
}
