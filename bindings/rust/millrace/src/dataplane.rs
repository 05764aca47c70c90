// SPDX-License-Identifier: BSD-3-Clause
use crate::error::call;
use crate::pool::c_string;
use crate::port::print;
use crate::{Burst, Cache, Context, Error, Idle, Pool, Port, Safety, Worker, WorkerStats, Workers};
use millrace_sys as sys;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::available_parallelism;

/// How to open a data plane. For each number, 0 selects the default.
#[derive(Clone, Debug, Default)]
pub struct DataplaneConfig {
    /// Pages of the pool; 0: what ports, workers and `kept_pages` need.
    pub n_pages: u32,
    /// For frames that the program holds beyond a burst per worker.
    pub kept_pages: u32,
    /// As in [`PoolConfig`](crate::PoolConfig).
    pub page_bytes: u32,
    /// As in [`PoolConfig`](crate::PoolConfig).
    pub headroom_bytes: u32,
    /// As in [`PoolConfig`](crate::PoolConfig).
    pub tailroom_bytes: u32,
    /// What the pool checks at run time.
    pub safety: Safety,
    /// How many; 0: one per core in `cores`, or one per rx queue of the port
    /// with the most, at most one per core.
    pub n_workers: u32,
    /// If `n_workers` is 0, at most this many; 0: 16.
    pub max_workers: u32,
    /// Whether workers may have no queue; otherwise that is refused.
    pub may_idle: bool,
    /// Whether there may be fewer than `n_workers`, rather than two on a core.
    pub may_be_fewer: bool,
    /// One worker on each of these cores, in order; empty: the library chooses.
    pub cores: Vec<u32>,
    /// To which port frames of each port are sent; None: to any. Empty: to any
    /// from all. It places workers where they need no hand-off.
    pub sends_to: Vec<Option<usize>>,
    /// Entries of each hand-off ring, a power of two; 0: 1024.
    pub handoff_entries: u32,
    /// What idle workers do.
    pub idle: Idle,
}

/// A context, a pool that is large enough for its ports, the ports, and the
/// workers that share their queues: see `<millrace/dataplane.h>`.
///
/// ```no_run
/// use millrace::{Burst, Dataplane};
///
/// let dataplane = Dataplane::open(&["xdp:eth0", "xdp:eth1"])?;
/// dataplane.run(|worker, rx, burst: &mut Burst<32>| {
///     worker.send(1 - rx.port, burst);
/// })?;
/// # Ok::<(), millrace::Error>(())
/// ```
///
/// The ports are closed when the data plane, and what was obtained from its
/// ports, is dropped; the pool, when no frame, cache or handle of it is left. A
/// port cannot be used after that:
///
/// ```compile_fail,E0505
/// # use millrace::*;
/// fn use_after_close(dataplane: Dataplane) {
///     let port = &dataplane.ports()[0];
///     drop(dataplane);
///     println!("{}", port.stats_text());
/// }
/// ```
pub struct Dataplane {
    workers: Workers,
    ports: Vec<Port>,
    opened: Arc<Opened>,
}

/// What the library opened. Ports and workers keep it.
pub(crate) struct Opened {
    raw: *mut sys::mr_dataplane,
    /// Asked to, even before it runs.
    is_stopping: AtomicBool,
    pool: Pool,
}

// SAFETY: calls that are not for any thread are those of `run()`, which has a
// lease, and of `drop()`.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

impl Drop for Opened {
    fn drop(&mut self) {
        let _one_at_a_time = self.pool.0.ctx.lock();
        // SAFETY: ports and workers are gone, and run() has joined its threads.
        // The pool closes the rest.
        unsafe {
            sys::mr_dataplane_drain(self.raw, 1000, None, null_mut());
            sys::mr_dataplane_close_ports(self.raw);
        }
    }
}

/// An rx queue of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerRxq {
    /// The place of its port among the specs.
    pub port: usize,
    /// Its number in the port.
    pub queue: usize,
}

/// A worker of a data plane, on its thread, with its [`Cache`].
pub struct DataplaneWorker {
    worker: Worker,
    cache: Cache,
}

impl DataplaneConfig {
    /// Open everything in a new context. On failure, nothing is left open.
    ///
    /// # Errors
    /// The configuration cannot be satisfied: no port, or more than 64; too few
    /// pages; a core that does not exist; a worker that would have no queue. As
    /// [`Port::open()`]: the error names the port.
    pub fn open(&self, specs: &[&str]) -> Result<Dataplane, Error> {
        self.open_in(&Context::new()?, specs)
    }

    /// The same in a given context, such as one with a log.
    ///
    /// # Errors
    /// As [`open()`](Self::open).
    pub fn open_in(&self, ctx: &Context, specs: &[&str]) -> Result<Dataplane, Error> {
        let specs = specs
            .iter()
            .map(|spec| c_string(spec))
            .collect::<Result<Vec<_>, _>>()?;
        let mut texts: Vec<_> = specs.iter().map(|spec| spec.as_ptr()).collect();
        texts.push(null()); // ends them
        let n_cores = self.cores.len() as u32;
        if !self.sends_to.is_empty() && self.sends_to.len() != specs.len() {
            return Err(Error::invalid("sends_to must have a port for each spec"));
        }
        let to_any = |port: &Option<usize>| port.map_or(sys::MR_SENDS_TO_ANY, |i| i as u32);
        let sends_to: Vec<u32> = self.sends_to.iter().map(to_any).collect();
        let config = sys::mr_dataplane_config {
            size: size_of::<sys::mr_dataplane_config>() as u32,
            n_specs: 0,
            specs: texts.as_ptr(),
            ctx: ctx.0.raw,
            name: null(),
            n_pages: self.n_pages,
            kept_pages: self.kept_pages.saturating_add(self.cache_pages()),
            page_bytes: self.page_bytes,
            headroom_bytes: self.headroom_bytes,
            tailroom_bytes: self.tailroom_bytes,
            safety: self.safety as u32,
            n_workers: self.n_workers,
            max_workers: self.max_workers,
            may_idle: self.may_idle.into(),
            n_cores,
            cores: if n_cores == 0 {
                null()
            } else {
                self.cores.as_ptr()
            },
            sends_to: if sends_to.is_empty() {
                null()
            } else {
                sends_to.as_ptr()
            },
            handoff_entries: self.handoff_entries,
            idle: self.idle as u32,
            may_be_fewer: self.may_be_fewer.into(),
            takes_meta: 0,
        };
        let mut raw = null_mut();
        {
            let _one_at_a_time = ctx.lock();
            // SAFETY: the context exists, and the pointers are valid for the
            // call.
            call(|why| unsafe { sys::mr_dataplane_open(&raw const config, &raw mut raw, why) })?;
        }
        Ok(Dataplane::wrap(raw, ctx))
    }

    /// Pages that the caches of the program's calls may hold: each worker has
    /// one besides the library's, as that cannot be lent.
    fn cache_pages(&self) -> u32 {
        let n_cores = available_parallelism().map_or(1, |n| n.get() as u32);
        let n_workers = match (self.n_workers, self.cores.len() as u32, self.max_workers) {
            (0, 0, 0) => n_cores.min(16),
            (0, 0, most) => n_cores.min(most),
            (0, n, _) | (n, _, _) => n,
        };
        let magazine = if self.n_pages == 0 {
            sys::MR_MAGAZINE_MAX_PAGES
        } else {
            sys::MR_MAGAZINE_PAGES
        };
        n_workers.saturating_mul(2 * magazine)
    }
}

impl Dataplane {
    /// Open ports, and what they need, with a worker for each rx queue of the
    /// port with the most, at most one per core. [`DataplaneConfig`] has
    /// more to choose from.
    ///
    /// # Errors
    /// As [`DataplaneConfig::open()`].
    pub fn open(specs: &[&str]) -> Result<Self, Error> {
        DataplaneConfig::default().open(specs)
    }

    fn wrap(raw: *mut sys::mr_dataplane, ctx: &Context) -> Self {
        // SAFETY: it is open, and its members do not change before drop().
        let base = unsafe { &*raw };
        // SAFETY: the pool closes the data plane, so it lives as long.
        let pool = unsafe { Pool::of_dataplane(base.pool, ctx, raw) };
        let opened = Arc::new(Opened {
            raw,
            is_stopping: AtomicBool::new(false),
            pool: pool.clone(),
        });
        let ports: Vec<_> = (0..base.n_ports as usize)
            .map(|i| {
                // SAFETY: an array of n_ports, open as long as `opened`.
                unsafe { Port::of_dataplane(*base.ports.add(i), &pool, &opened) }
            })
            .collect();
        // SAFETY: the workers of these ports, open as long as `opened`.
        let workers = unsafe { Workers::of_dataplane(base.workers, &ports, &opened) };
        Self {
            workers,
            ports,
            opened,
        }
    }

    /// The ports, in the order of the specs. Workers use their queues.
    #[must_use]
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// The pool.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.opened.pool
    }

    /// How many workers there are.
    #[must_use]
    pub fn n_workers(&self) -> usize {
        self.workers.len()
    }

    /// Copy the counters of worker `i`. None if there is no such worker.
    #[must_use]
    pub fn worker_stats(&self, i: usize) -> Option<WorkerStats> {
        self.workers.stats(i)
    }

    /// Call `f` for each rx queue of each worker in each round, at least every
    /// 100 ms, with what was received, if anything. What `f` leaves in the
    /// burst is freed. Each worker has a thread of its own, pinned to its core,
    /// with signals blocked. Returns after a [`Stop`], when all threads have
    /// ended.
    ///
    /// # Errors
    /// EBUSY: it runs already. A thread cannot be started; no more caches.
    ///
    /// # Panics
    /// `f` panicked; all workers were told to stop.
    pub fn run<F, const N: usize>(&self, f: F) -> Result<(), Error>
    where
        F: Fn(&mut DataplaneWorker, WorkerRxq, &mut Burst<N>) + Sync,
    {
        self.run_with(|_| &f)
    }

    /// [`run()`](Self::run) with a function for each worker, which may have
    /// state of its own, such as a [`FlowTable`](crate::FlowTable): `init` makes
    /// it on the worker's thread, from the worker's number.
    ///
    /// # Errors
    /// As [`run()`](Self::run).
    ///
    /// # Panics
    /// As [`run()`](Self::run).
    pub fn run_with<I, F, const N: usize>(&self, init: I) -> Result<(), Error>
    where
        I: Fn(usize) -> F + Sync,
        F: FnMut(&mut DataplaneWorker, WorkerRxq, &mut Burst<N>),
    {
        let mut caches = Vec::new();
        for _ in 0..self.n_workers() {
            caches.push(Mutex::new(Some(Cache::new(self.pool())?)));
        }
        self.workers.run(|worker| {
            let cache = caches[worker.index()]
                .lock()
                .ok()
                .and_then(|mut cache| cache.take());
            let f = init(worker.index());
            if let Some(cache) = cache {
                self.run_worker(worker.same(), cache, f);
            }
        })
    }

    fn run_worker<F, const N: usize>(&self, worker: Worker, mut cache: Cache, mut f: F)
    where
        F: FnMut(&mut DataplaneWorker, WorkerRxq, &mut Burst<N>),
    {
        cache.adopt();
        let mut burst = Burst::new(self.pool());
        let mut worker = DataplaneWorker { worker, cache };
        let mut n_rounds = 0_u32;
        let _end = End(&self.opened.is_stopping);
        // Starting cancels a stop, and one may have come before.
        if self.opened.is_stopping.load(Ordering::SeqCst) {
            self.workers.stop();
        }
        loop {
            let mut n = worker.worker.serve();
            for i in 0..worker.worker.n_rxqs() {
                n += worker.worker.receive(i, &mut worker.cache, &mut burst);
                let rx = worker.worker.rxq_of(i);
                f(&mut worker, rx, &mut burst);
                worker.cache.free(&mut burst);
            }
            n_rounds += 1;
            if worker.index() == 0 && (n == 0 || n_rounds >= 1024) {
                n_rounds = 0;
                self.ports.iter().for_each(Port::handle_events);
            }
            if !worker.worker.wait(n) {
                return;
            }
        }
    }

    /// A handle that ends [`run()`](Self::run).
    #[must_use]
    pub fn stopper(&self) -> Stop {
        Stop(self.opened.clone())
    }

    /// All counters of ports, workers and pool by name, one per line. For any
    /// thread, while workers run.
    #[must_use]
    pub fn text(&self) -> String {
        // SAFETY: open; the text has this length.
        print(|text, n| unsafe { sys::mr_dataplane_text(self.opened.raw, text, n) })
    }

    /// The same as a JSON object.
    #[must_use]
    pub fn json(&self) -> String {
        // SAFETY: as above.
        print(|text, n| unsafe { sys::mr_dataplane_json(self.opened.raw, text, n) })
    }
}

/// A worker that ends, or panics, has taken notice of a stop.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// Ends [`Dataplane::run()`]. It keeps the ports open.
#[derive(Clone)]
pub struct Stop(Arc<Opened>);

impl Stop {
    /// End `run()` after the current round, or the next call of it after its
    /// first round. For any thread and for signal handlers: it allocates and
    /// locks nothing, and keeps `errno`. (Dropping a `Stop` is not for signal
    /// handlers.)
    pub fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::SeqCst);
        // SAFETY: for any thread, and for signal handlers.
        unsafe { sys::mr_dataplane_stop(self.0.raw) }
    }
}

impl DataplaneWorker {
    /// Its number.
    #[must_use]
    pub fn index(&self) -> usize {
        self.worker.index()
    }

    /// The core that its thread is bound to.
    #[must_use]
    pub fn core(&self) -> u32 {
        self.worker.core()
    }

    /// Its share of the pool, for calls that take a cache.
    pub fn cache(&mut self) -> &mut Cache {
        &mut self.cache
    }

    /// Send the frames of `burst` by this worker's route to a port; the rest
    /// stays in `burst`. Returns how many entries were taken.
    ///
    /// # Panics
    /// There is no such port; the burst is of another pool.
    #[inline]
    pub fn send<const N: usize>(&mut self, port: usize, burst: &mut Burst<N>) -> usize {
        self.worker.send(port, &mut self.cache, burst)
    }

    /// Copy its counters.
    #[must_use]
    pub fn stats(&self) -> WorkerStats {
        self.worker.stats()
    }
}
