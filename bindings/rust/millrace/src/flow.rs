// SPDX-License-Identifier: BSD-3-Clause
use crate::error::call;
use crate::{Context, Error};
use millrace_sys as sys;
use std::ptr::null_mut;

/// A table of flows: a value for each key of `K` bytes, found in bursts. See
/// `<millrace/flow.h>`. `K` must be 4 to 64 and a multiple of 4, or the program
/// does not compile.
///
/// It is for one thread at a time: `Send`, if the values are, and not `Sync`.
///
/// ```
/// # use millrace::{Context, FlowTable};
/// let mut counts = FlowTable::<8, u64>::new(&Context::new()?, 1000)?;
/// *counts.entry([1; 8]).expect("room for the first") += 1;
/// let mut found = [None; 2];
/// assert_eq!(counts.find_bulk(&[[1; 8], [2; 8]], &mut found), 1);
/// assert_eq!(counts.get(found[0].unwrap()), Some(&1));
/// # Ok::<(), millrace::Error>(())
/// ```
pub struct FlowTable<const K: usize, V> {
    raw: *mut sys::mr_flow_table,
    values: Vec<Option<V>>, // by record
    _ctx: Context,
}

/// The number of a record, as long as the record exists. A later one may have
/// the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowId(u32);

// SAFETY: not tied to a thread; the raw pointer keeps it from being `Sync`.
unsafe impl<const K: usize, V: Send> Send for FlowTable<K, V> {}

impl<const K: usize, V> FlowTable<K, V> {
    const FITS: () = assert!(
        K >= 4 && K <= sys::MR_FLOW_KEY_MAX as usize && K % 4 == 0,
        "a key has 4 to 64 bytes, a multiple of 4"
    );

    /// An empty table for at most `n_max` flows, with a random hash.
    ///
    /// # Errors
    /// EINVAL: `n_max` is 0, or 2^31 or more; no memory.
    pub fn new(ctx: &Context, n_max: u32) -> Result<Self, Error> {
        const { Self::FITS };
        let config = sys::mr_flow_config {
            size: size_of::<sys::mr_flow_config>() as u32,
            key_bytes: K as u32,
            record_bytes: (K as u32).next_multiple_of(8),
            n_max,
            n_start: 0,
            reserved: 0,
            seed: 0,
        };
        let mut raw = null_mut();
        // SAFETY: the context exists, and the table keeps it.
        call(|why| unsafe {
            sys::mr_flow_create(ctx.0.raw, &raw const config, &raw mut raw, why)
        })?;
        Ok(Self {
            raw,
            values: Vec::new(),
            _ctx: ctx.clone(),
        })
    }

    /// Find the flow of a key.
    #[must_use]
    pub fn find(&self, key: &[u8; K]) -> Option<FlowId> {
        // SAFETY: the table's thread; K bytes.
        let id = unsafe { sys::mr_flow_find(self.raw, key.as_ptr().cast()) };
        (id != sys::MR_FLOW_NONE).then_some(FlowId(id))
    }

    /// Find the flows of a burst of keys, which overlaps the cache misses.
    /// Returns how many there are.
    ///
    /// # Panics
    /// There are fewer results than keys.
    pub fn find_bulk(&self, keys: &[[u8; K]], found: &mut [Option<FlowId>]) -> usize {
        const MOST: usize = sys::MR_FLOW_BURST_MAX as usize;
        assert!(found.len() >= keys.len(), "fewer results than keys");
        let mut ids = [0; MOST];
        let mut n_found = 0;
        for (keys, found) in keys.chunks(MOST).zip(found.chunks_mut(MOST)) {
            let n = keys.len();
            // SAFETY: the table's thread; n keys of K bytes in a row, n results.
            n_found += unsafe {
                sys::mr_flow_find_bulk(self.raw, keys.as_ptr().cast(), n as u32, ids.as_mut_ptr())
            } as usize;
            for (found, id) in found.iter_mut().zip(&ids[..n]) {
                *found = (*id != sys::MR_FLOW_NONE).then_some(FlowId(*id));
            }
        }
        n_found
    }

    /// The value of a flow. None if it was removed.
    #[must_use]
    pub fn get(&self, id: FlowId) -> Option<&V> {
        self.values.get(id.0 as usize)?.as_ref()
    }

    /// The value of a flow. None if it was removed.
    pub fn get_mut(&mut self, id: FlowId) -> Option<&mut V> {
        self.values.get_mut(id.0 as usize)?.as_mut()
    }

    /// Add a flow, or replace its value. None if the table is full, or there is
    /// no memory.
    pub fn insert(&mut self, key: [u8; K], value: V) -> Option<FlowId> {
        let mut id = sys::MR_FLOW_NONE;
        // SAFETY: the table's thread; K bytes. Sets the id also if there is one.
        unsafe { sys::mr_flow_add(self.raw, key.as_ptr().cast(), &raw mut id) };
        if id == sys::MR_FLOW_NONE {
            return None;
        }
        let at = id as usize;
        if at >= self.values.len() {
            self.values.resize_with(at + 1, || None);
        }
        self.values[at] = Some(value);
        Some(FlowId(id))
    }

    /// The value of a key, which is added if it is not there. None as
    /// [`insert()`](Self::insert).
    pub fn entry(&mut self, key: [u8; K]) -> Option<&mut V>
    where
        V: Default,
    {
        let id = match self.find(&key) {
            Some(id) => id,
            None => self.insert(key, V::default())?,
        };
        self.get_mut(id)
    }

    /// Remove a flow. Returns its value; None if it was removed before.
    pub fn remove(&mut self, id: FlowId) -> Option<V> {
        let value = self.values.get_mut(id.0 as usize)?.take()?;
        // SAFETY: the table's thread; the record exists, as it has a value.
        unsafe { sys::mr_flow_remove(self.raw, id.0) };
        Some(value)
    }

    /// How many flows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        let mut stats = sys::mr_flow_stats {
            size: size_of::<sys::mr_flow_stats>() as u32,
            ..sys::mr_flow_stats::default()
        };
        // SAFETY: the table's thread; the size is right, so it cannot fail.
        unsafe { sys::mr_flow_stats(self.raw, &raw mut stats) };
        stats.n as usize
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All flows, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (FlowId, &V)> {
        let numbered = self.values.iter().zip(0..);
        numbered.filter_map(|(value, id)| Some((FlowId(id), value.as_ref()?)))
    }
}

impl<const K: usize, V> Drop for FlowTable<K, V> {
    fn drop(&mut self) {
        // SAFETY: its only user drops it.
        unsafe { sys::mr_flow_destroy(self.raw) }
    }
}
