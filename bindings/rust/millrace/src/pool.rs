// SPDX-License-Identifier: BSD-3-Clause
use crate::error::{call, check};
use crate::{Burst, Error, Frame, PoolStats};
use millrace_sys as sys;
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something failed.
    Error,
    /// Something works less well than it could.
    Warning,
    /// Normal events.
    Info,
    /// For debugging.
    Debug,
}

type Hook = Box<dyn Fn(Level, &str) + Send + Sync>;

/// What a program's ports and pools share: a log hook and the list of drivers.
/// This is a handle; clones refer to the same context.
#[derive(Clone)]
pub struct Context(pub(crate) Arc<ContextInner>);

pub(crate) struct ContextInner {
    pub(crate) raw: *mut sys::mr_ctx,
    /// Ports of a context are opened and closed one at a time.
    ports: Mutex<()>,
    _hook: Option<Box<Hook>>,
}

// SAFETY: calls that must not run concurrently hold `ports`.
unsafe impl Send for ContextInner {}
// SAFETY: as above.
unsafe impl Sync for ContextInner {}

/// The library's log hook: `opaque` is a `Hook`.
unsafe extern "C" fn log(opaque: *mut c_void, level: u32, line: *const c_char) {
    let level = match level {
        1 => Level::Error,
        2 => Level::Warning,
        3 => Level::Info,
        _ => Level::Debug,
    };
    // SAFETY: the context owns the hook and outlives its calls; a line is
    // NUL-terminated.
    let (hook, line) = unsafe { (&*opaque.cast::<Hook>(), CStr::from_ptr(line)) };
    // A panic must not unwind through C; a line is lost.
    let _ = catch_unwind(AssertUnwindSafe(|| hook(level, &line.to_string_lossy())));
}

impl Context {
    /// A context that logs nothing.
    ///
    /// # Errors
    /// No memory.
    pub fn new() -> Result<Self, Error> {
        Self::create(None)
    }

    /// A context that passes each line of its log to `hook`, on the thread
    /// that caused it. The hook must not open or close a port of the context:
    /// that may wait for itself.
    ///
    /// # Errors
    /// No memory.
    pub fn with_log(hook: impl Fn(Level, &str) + Send + Sync + 'static) -> Result<Self, Error> {
        Self::create(Some(Box::new(Box::new(hook))))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.0.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn create(hook: Option<Box<Hook>>) -> Result<Self, Error> {
        let opaque = hook.as_deref().map_or(null(), |hook| &raw const *hook);
        let config = sys::mr_ctx_config {
            size: size_of::<sys::mr_ctx_config>() as u32,
            reserved: 0,
            opaque: opaque.cast_mut().cast(),
            log: hook.is_some().then_some(log as sys::mr_log_fn),
            alloc: null_mut(),
            free: null_mut(),
            clock: null_mut(),
            sysfs: null(),
        };
        let mut raw = null_mut();
        // SAFETY: the hook's address is that of its box.
        call(|why| unsafe { sys::mr_ctx_create(&raw const config, &raw mut raw, why) })?;
        Ok(Self(Arc::new(ContextInner {
            raw,
            ports: Mutex::new(()),
            _hook: hook,
        })))
    }
}

impl Drop for ContextInner {
    fn drop(&mut self) {
        // SAFETY: pools and ports keep the context, so there are none.
        unsafe { sys::mr_ctx_destroy(self.raw) }
    }
}

/// What a pool checks at run time; each level includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Safety {
    /// Conservation, valid page numbers.
    #[default]
    Counts,
    /// Each page has a state, which detects double frees.
    States,
    /// Freed pages are filled with a pattern that is checked.
    Poison,
}

/// How to create a pool. For each number, 0 selects the default.
#[derive(Clone, Debug, Default)]
pub struct PoolConfig {
    /// Pages in the pool, from `Pool::size_for()`; 0: 8192, and what ports and
    /// caches add as they need it.
    pub n_pages: u32,
    /// Size of a page, which is a buffer: a power of two, 2048 to 32768
    /// (`xdp:` takes 2048 and 4096); 0: 4096.
    pub page_bytes: u32,
    /// Room before each frame; 0: 128.
    pub headroom_bytes: u32,
    /// Room after each frame.
    pub tailroom_bytes: u32,
    /// Maximum number of caches that exist at a time; 0: 64.
    pub max_caches: u32,
    /// What the pool checks at run time.
    pub safety: Safety,
}

impl PoolConfig {
    fn raw(&self) -> sys::mr_pool_config {
        sys::mr_pool_config {
            size: size_of::<sys::mr_pool_config>() as u32,
            n_pages: self.n_pages,
            page_bytes: self.page_bytes,
            headroom_bytes: self.headroom_bytes,
            tailroom_bytes: self.tailroom_bytes,
            max_caches: self.max_caches,
            safety: self.safety as u32,
            region: null_mut(),
            name: null(),
            max_pages: 0,
            segment_pages: 0,
            low_pages: 0,
            numa_node_plus_1: 0,
            magazine_pages: 0,
            is_elastic: 0,
        }
    }
}

/// A pool of pages, for receive buffers and frames of the program. This is a
/// handle; clones refer to the same pool, which exists as long as one of them
/// or anything obtained from it.
#[derive(Clone)]
pub struct Pool(pub(crate) Arc<PoolInner>);

pub(crate) struct PoolInner {
    pub(crate) raw: *mut sys::mr_pool,
    /// The address in memory of address 0 of its region.
    pub(crate) base: *mut u8,
    pub(crate) ctx: Context,
    /// The data plane that it belongs to, or NULL.
    dataplane: *mut sys::mr_dataplane,
}

// SAFETY: every call made here on the pool is documented for any thread.
unsafe impl Send for PoolInner {}
// SAFETY: as above.
unsafe impl Sync for PoolInner {}

impl Pool {
    /// Create a pool and its pages, in a region of its own.
    ///
    /// # Errors
    /// A value is out of range; no memory.
    pub fn new(ctx: &Context, config: &PoolConfig) -> Result<Self, Error> {
        let config = config.raw();
        let mut raw = null_mut();
        // SAFETY: the context is open.
        call(|why| unsafe {
            sys::mr_pool_create(ctx.0.raw, &raw const config, &raw mut raw, why)
        })?;
        // SAFETY: it was created, and belongs to no data plane.
        Ok(unsafe { Self::of_dataplane(raw, ctx, null_mut()) })
    }

    /// # Safety
    /// A pool of `ctx`, which nobody else destroys; with its data plane, if that
    /// is not NULL, which nobody else closes.
    pub(crate) unsafe fn of_dataplane(
        raw: *mut sys::mr_pool,
        ctx: &Context,
        dataplane: *mut sys::mr_dataplane,
    ) -> Self {
        // SAFETY: a pool has a region, whose base never changes.
        let base = unsafe { sys::mr_region_base(sys::mr_pool_region(raw)) };
        Self(Arc::new(PoolInner {
            raw,
            base: base.cast(),
            ctx: ctx.clone(),
            dataplane,
        }))
    }

    /// The number of pages that a pool of this configuration needs for ports
    /// of these specs, with `n_workers` workers each, and for `n_caches`
    /// caches. In `config`, `n_pages` is what the program holds in addition.
    /// Create the pool with it before the first port opens. Opens no port.
    ///
    /// # Errors
    /// A spec does not parse, or there is no such device.
    pub fn size_for(
        ctx: &Context,
        specs: &[&str],
        n_workers: u32,
        n_caches: u32,
        config: &PoolConfig,
    ) -> Result<u32, Error> {
        let specs = specs
            .iter()
            .map(|spec| c_string(spec))
            .collect::<Result<Vec<_>, _>>()?;
        let texts: Vec<_> = specs.iter().map(|spec| spec.as_ptr()).collect();
        let mut config = config.raw();
        let _one_at_a_time = ctx.lock();
        // SAFETY: the context exists, and the pointers are valid for the call.
        call(|why| unsafe {
            sys::mr_pool_size_for(
                ctx.0.raw,
                texts.as_ptr(),
                texts.len() as u32,
                n_workers,
                n_caches,
                &raw mut config,
                why,
            )
        })?;
        Ok(config.n_pages)
    }

    /// Where the pages are and how they got there. At rest, `n_free` plus
    /// `n_in_flight` equals `n_pages`.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        let mut stats = PoolStats {
            size: size_of::<PoolStats>() as u32,
            ..PoolStats::default()
        };
        // SAFETY: the pool exists; the size is right, so it cannot fail.
        unsafe { sys::mr_pool_stats(self.0.raw, &raw mut stats) };
        stats
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A mistake in the program, which must not be found by what it breaks.
    #[inline]
    pub(crate) fn must_be(&self, other: &Self) {
        assert!(self.is(other), "of another pool");
    }

    /// Free buffers without a cache, which may take a lock.
    pub(crate) fn free(&self, entries: &[sys::mr_frame]) {
        for some in entries.chunks(64) {
            let mut addrs = [0; 64];
            for (addr, entry) in addrs.iter_mut().zip(some) {
                *addr = entry.addr;
            }
            // SAFETY: the caller owns the entries, and gives them up.
            unsafe {
                sys::mr_pool_frag_free_bulk(self.0.raw, addrs.as_ptr(), some.len() as u32);
            }
        }
    }
}

impl Drop for PoolInner {
    fn drop(&mut self) {
        // SAFETY: ports, caches, frames and bursts keep the pool; ports and
        // workers of a data plane are closed.
        let ret = unsafe {
            if self.dataplane.is_null() {
                sys::mr_pool_destroy(self.raw, null_mut())
            } else {
                sys::mr_dataplane_close(self.dataplane, null_mut())
            }
        };
        if ret < 0 {
            // A frame was leaked (mem::forget). Leak its pool, which cannot
            // be freed, and the context that the pool uses.
            std::mem::forget(self.ctx.clone());
        }
    }
}

/// One thread's share of a pool. Allocating and freeing through it takes no
/// lock.
pub struct Cache {
    pub(crate) raw: *mut sys::mr_cache,
    pub(crate) pool: Pool,
}

// SAFETY: not tied to its thread; all calls need `&mut`.
unsafe impl Send for Cache {}

impl Cache {
    /// Create a cache of `pool`.
    ///
    /// # Errors
    /// No memory, or the pool has its maximum number of caches.
    pub fn new(pool: &Pool) -> Result<Self, Error> {
        let mut raw = null_mut();
        // SAFETY: the pool exists.
        call(|why| unsafe { sys::mr_cache_create(pool.0.raw, &raw mut raw, why) })?;
        Ok(Self {
            raw,
            pool: pool.clone(),
        })
    }

    /// Tell a pool with [`Safety::States`] or above that this thread uses the
    /// cache from now on. Otherwise the pool logs a warning.
    pub fn adopt(&mut self) {
        // SAFETY: `&mut`: its last user's calls happened before.
        self.raw = unsafe { sys::mr_cache_adopt(self.raw) };
    }

    /// Free the frames of a burst. Returns how many entries they had.
    ///
    /// # Panics
    /// The burst is of another pool.
    #[inline]
    pub fn free<const N: usize>(&mut self, burst: &mut Burst<N>) -> usize {
        self.pool.must_be(burst.pool());
        let entries = burst.take();
        if !entries.is_empty() {
            // SAFETY: the burst owned them, and has given them up.
            unsafe { sys::mr_frame_free_bulk(self.raw, entries.as_ptr(), entries.len() as u32) };
        }
        entries.len()
    }

    /// Allocate a frame of one entry, of `n_bytes` with unspecified content. A
    /// burst does the same in place: [`Burst::alloc()`]. None if the pool has
    /// no page, or `n_bytes` is 0 or more than a page.
    #[must_use]
    pub fn alloc(&mut self, n_bytes: u32) -> Option<Frame> {
        let entry = self.alloc_entry(n_bytes)?;
        Some(Frame::new(&self.pool, &[entry]))
    }

    #[inline]
    pub(crate) fn alloc_entry(&mut self, n_bytes: u32) -> Option<sys::mr_frame> {
        // SAFETY: `&mut`: this thread uses the cache.
        let addr = unsafe { sys::mr_frag_alloc(self.raw, n_bytes) };
        (addr != u64::MAX).then_some(sys::mr_frame {
            addr,
            len: n_bytes,
            flags: 0,
        })
    }

    /// Return pages that other pools are waiting for. Call this before a long
    /// time without receiving; an empty [`Rxq::receive()`](crate::Rxq::receive) also does it.
    pub fn flush(&mut self) {
        // SAFETY: `&mut`: this thread uses the cache.
        unsafe { sys::mr_cache_flush(self.raw) }
    }

    /// Run a call that takes the cache and a frame of its pool.
    pub(crate) fn with(
        &mut self,
        pool: &Pool,
        f: impl FnOnce(*mut sys::mr_cache) -> i32,
    ) -> Result<(), Error> {
        self.pool.must_be(pool);
        check(f(self.raw))
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // SAFETY: its only user drops it.
        unsafe { sys::mr_cache_destroy(self.raw) }
    }
}

/// The program's text as a C string.
pub(crate) fn c_string(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::invalid("a NUL in a string"))
}
