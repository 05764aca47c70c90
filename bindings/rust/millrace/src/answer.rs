// SPDX-License-Identifier: BSD-3-Clause
use crate::error::call;
use crate::{Burst, Cache, Error, Pool};
use millrace_sys as sys;
use std::ffi::CStr;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ptr::null_mut;

/// What to answer for. For each number, 0 selects the default.
#[derive(Clone, Debug, Default)]
pub struct AnswerConfig {
    /// The port's MAC address: [`PortInfo::mac`](crate::PortInfo::mac).
    pub mac: [u8; 6],
    /// Addresses that the kernel does not have.
    pub ipv4: Vec<Ipv4Addr>,
    /// The same of IPv6.
    pub ipv6: Vec<Ipv6Addr>,
    /// Most answers per second, to neighbours and to pings each; 0: 1000.
    pub per_s: u32,
    /// Most of them at once; 0: 50.
    pub burst: u32,
    /// Whether IPv6 neighbours are told that this is a router.
    pub is_router: bool,
}

/// Answers ARP requests, neighbour solicitations and pings to a program's own
/// addresses: see `<millrace/answer.h>`. It belongs to one [`Cache`].
pub struct Answer {
    raw: *mut sys::mr_answer,
    cache: *mut sys::mr_cache,
    pool: Pool,
}

// SAFETY: not tied to a thread; all calls that use the cache need `&mut` of it.
unsafe impl Send for Answer {}

impl Answer {
    /// Prepare to answer with pages of a cache.
    ///
    /// # Errors
    /// EINVAL: more than 1024 addresses of a family, or a MAC or IP address of
    /// a group; no memory.
    pub fn new(cache: &Cache, config: &AnswerConfig) -> Result<Self, Error> {
        let to_word = |addr: &Ipv4Addr| u32::from_ne_bytes(addr.octets());
        let ipv4: Vec<u32> = config.ipv4.iter().map(to_word).collect();
        let ipv6: Vec<[u8; 16]> = config.ipv6.iter().map(Ipv6Addr::octets).collect();
        let c_config = sys::mr_answer_config {
            size: size_of::<sys::mr_answer_config>() as u32,
            mac: config.mac,
            vlans: [0; 2],
            reserved: 0,
            n_ipv4: ipv4.len() as u32,
            n_ipv6: ipv6.len() as u32,
            ipv4: ipv4.as_ptr(),
            ipv6: ipv6.as_ptr().cast_mut().cast(),
            per_s: config.per_s,
            burst: config.burst,
            is_router: config.is_router.into(),
            link: 0,
            neighbours: null_mut(),
        };
        let mut raw = null_mut();
        // SAFETY: the cache exists; what the configuration points to is copied.
        call(|why| unsafe {
            sys::mr_answer_create(cache.raw, &raw const c_config, &raw mut raw, why)
        })?;
        Ok(Self {
            raw,
            cache: cache.raw,
            pool: cache.pool.clone(),
        })
    }

    /// Move the requests among the frames of `burst` to `answers`, as their
    /// answers, ready to be sent on the same port. Requests over the rate, and
    /// malformed ones, are freed. The other frames stay, in order.
    ///
    /// # Panics
    /// It was made for another cache; the burst is of another pool; `answers`
    /// is not empty.
    pub fn take<const N: usize>(
        &mut self,
        cache: &mut Cache,
        burst: &mut Burst<N>,
        answers: &mut Burst<N>,
    ) {
        assert!(std::ptr::eq(self.cache, cache.raw), "of another cache");
        assert!(answers.is_empty(), "answers that were not sent");
        self.pool.must_be(&cache.pool);
        self.pool.must_be(burst.pool());
        self.pool.must_be(answers.pool());
        let mut entries = [sys::mr_frame::default(); N];
        let taken = burst.take();
        let n = taken.len();
        entries[..n].copy_from_slice(taken);
        let mut n_answers = 0;
        // SAFETY: the cache's thread, as it is `&mut`; the entries were the
        // burst's. Without metadata.
        let n_left = unsafe {
            sys::mr_answer_burst(
                self.raw,
                entries.as_mut_ptr(),
                null_mut(),
                n as u32,
                &raw mut n_answers,
            )
        } as usize;
        burst.put(&entries[..n_left]);
        answers.put(&entries[n_left..n_left + n_answers as usize]);
    }

    /// How many frames it answered, or freed, by what they were.
    #[must_use]
    pub fn stats(&self) -> Vec<(&'static str, u64)> {
        let mut stats = sys::mr_answer_stats {
            size: size_of::<sys::mr_answer_stats>() as u32,
            reserved: 0,
            counts: [0; 16],
        };
        // SAFETY: the size is right, so it cannot fail.
        unsafe { sys::mr_answer_stats(self.raw, &raw mut stats) };
        let named = stats.counts.iter().zip(0..).map_while(|(n, i)| {
            // SAFETY: constant strings, NULL after the last.
            let name = unsafe { sys::mr_answer_name(i) };
            // SAFETY: as above.
            (!name.is_null()).then(|| (unsafe { CStr::from_ptr(name) }, *n))
        });
        named
            .map(|(name, n)| (name.to_str().unwrap_or_default(), n))
            .collect()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: its only user; the pool keeps the context. It does not use
        // the cache, which may be gone.
        unsafe { sys::mr_answer_destroy(self.raw) }
    }
}
