// SPDX-License-Identifier: BSD-3-Clause
use crate::dataplane::Opened;
use crate::error::call;
use crate::lease::{HasUsers, Lease, Users};
use crate::port::{PortInner, Queue, receive, send};
use crate::{Burst, Cache, Error, Pool, Port, WorkerRxq};
use millrace_sys as sys;
use std::any::Any;
use std::ffi::{c_int, c_void};
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a worker does after a round that found no work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// Poll or sleep, depending on the gaps between frames and the cost of a
    /// wake-up.
    #[default]
    Adaptive,
    /// Keep polling.
    Poll,
    /// Sleep immediately.
    Interrupt,
}

/// How to create workers. For each number, 0 selects the default.
#[derive(Clone, Debug, Default)]
pub struct WorkersConfig {
    /// How many; 0: one per core in `cores`, or one per rx queue of the port
    /// with the most, at most one per core.
    pub n_workers: u32,
    /// One worker on each of these cores, in order; empty: the library chooses.
    pub cores: Vec<u32>,
    /// Entries of each hand-off ring, a power of two; 0: 1024.
    pub handoff_entries: u32,
    /// What idle workers do.
    pub idle: Idle,
}

/// Run-to-completion workers that share the queues of some ports: each rx queue
/// has one worker, and each worker has a route to each port, which is a tx queue
/// or a ring to a worker that has one. See `<millrace/worker.h>`.
///
/// This is a handle; clones refer to the same workers.
#[derive(Clone)]
pub struct Workers(Arc<WorkersInner>);

struct WorkersInner {
    raw: *mut sys::mr_workers,
    /// Of the right to start and join them.
    users: Users,
    pool: Pool,
    _queues: Vec<Queue>,
    _ports: Vec<Arc<PortInner>>,
    /// The data plane that destroys them.
    of: Option<Arc<Opened>>,
}

// SAFETY: calls that are not for any thread need a `Worker`, which stays on its
// thread, or the lease.
unsafe impl Send for WorkersInner {}
// SAFETY: as above.
unsafe impl Sync for WorkersInner {}

impl HasUsers for WorkersInner {
    fn users(&self) -> &Users {
        &self.users
    }
}

/// Counters of one worker.
pub use sys::mr_worker_stats as WorkerStats;

impl Workers {
    /// Create the workers of `ports`, whose queues they use until the last
    /// handle is dropped. Starts nothing. Each worker takes a cache of the pool
    /// for what others hand to it.
    ///
    /// # Errors
    /// EBUSY: a queue is in use. A core does not exist; more workers than cores;
    /// no memory, or no more caches.
    ///
    /// # Panics
    /// The ports are of different pools.
    pub fn new(ports: &[&Port], config: &WorkersConfig) -> Result<Self, Error> {
        let Some(pool) = ports.first().map(|port| port.pool()) else {
            return Err(Error::invalid("workers need a port"));
        };
        let mut queues = Vec::new();
        for port in ports {
            port.pool().must_be(pool);
            for i in 0..port.n_queues() {
                let queue = port.queue(i);
                queues.push(queue.ok_or_else(|| Error::busy("a queue is in use"))?);
            }
        }
        let raw_ports: Vec<_> = ports.iter().map(|port| port.inner.raw).collect();
        let n_cores = config.cores.len() as u32;
        let config = sys::mr_workers_config {
            size: size_of::<sys::mr_workers_config>() as u32,
            n_workers: config.n_workers,
            pool: pool.0.raw,
            ports: raw_ports.as_ptr(),
            sends_to: null(),
            cores: if n_cores == 0 {
                null()
            } else {
                config.cores.as_ptr()
            },
            n_ports: ports.len() as u32,
            n_cores,
            handoff_entries: config.handoff_entries,
            idle: config.idle as u32,
            has_meta: 0,
            may_be_fewer: 0,
        };
        let mut raw = null_mut();
        // SAFETY: the pool and the ports exist, and the workers keep them.
        call(|why| unsafe {
            sys::mr_workers_create(pool.0.ctx.0.raw, &raw const config, &raw mut raw, why)
        })?;
        Ok(Self(Arc::new(WorkersInner {
            raw,
            users: Users::new(1),
            pool: pool.clone(),
            _queues: queues,
            _ports: ports.iter().map(|port| port.inner.clone()).collect(),
            of: None,
        })))
    }

    /// # Safety
    /// The workers of these ports, whose queues nobody uses; `of` destroys them.
    pub(crate) unsafe fn of_dataplane(
        raw: *mut sys::mr_workers,
        ports: &[Port],
        of: &Arc<Opened>,
    ) -> Self {
        let queues = ports
            .iter()
            .flat_map(|port| (0..port.n_queues()).filter_map(|i| port.queue(i)));
        Self(Arc::new(WorkersInner {
            raw,
            users: Users::new(1),
            pool: ports[0].pool().clone(),
            _queues: queues.collect(),
            _ports: ports.iter().map(|port| port.inner.clone()).collect(),
            of: Some(of.clone()),
        }))
    }

    /// Copy the counters of worker `i`, whoever runs it. None if there is no
    /// such worker.
    #[must_use]
    pub fn stats(&self, i: usize) -> Option<WorkerStats> {
        // SAFETY: the worker exists as long as `self`.
        self.get(i).map(|raw| unsafe { worker_stats(raw) })
    }

    fn get(&self, i: usize) -> Option<*mut sys::mr_worker> {
        let i = u32::try_from(i).ok()?;
        // SAFETY: NULL after the last one.
        let raw = unsafe { sys::mr_workers_get(self.0.raw, i) };
        (!raw.is_null()).then_some(raw)
    }

    /// How many there are.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // there is at least one
    pub fn len(&self) -> usize {
        let mut n = 0;
        while self.get(n).is_some() {
            n += 1;
        }
        n
    }

    /// Make the calling thread the thread of worker `i`, until the result is
    /// dropped.
    ///
    /// # Errors
    /// EBUSY: it has a thread. EINVAL: there is no such worker.
    pub fn attach(&self, i: usize) -> Result<Worker, Error> {
        let raw = self
            .get(i)
            .ok_or_else(|| Error::invalid("no such worker"))?;
        // SAFETY: the worker exists; one with a thread is refused.
        call(|why| unsafe { sys::mr_worker_attach(raw, why) })?;
        Ok(Worker {
            raw,
            of: self.0.clone(),
            is_attached: true,
        })
    }

    /// Run `f` on a new thread per worker, pinned to its core, and wait until
    /// all have returned. Signals are blocked on these threads. Workers that are
    /// attached keep their threads. If `f` panics on one of them, all are told
    /// to stop, and the panic continues in this thread.
    ///
    /// # Errors
    /// EBUSY: they are running already. A thread cannot be started.
    ///
    /// # Panics
    /// `f` panicked.
    pub fn run<F: Fn(&mut Worker) + Sync>(&self, f: F) -> Result<(), Error> {
        const ETIMEDOUT: i32 = 110;
        let Some(_lease) = Lease::new(&self.0, 0) else {
            return Err(Error::busy("the workers are already running"));
        };
        let call_of_f = Call {
            f,
            of: &self.0,
            panic: Mutex::new(None),
        };
        let opaque = (&raw const call_of_f).cast_mut().cast();
        // SAFETY: the lease: one at a time. `call_of_f` exists until all have
        // been joined.
        call(|why| unsafe { sys::mr_workers_start(self.0.raw, Some(run_one::<F>), opaque, why) })?;
        // SAFETY: as above. No worker returns ETIMEDOUT.
        while unsafe { sys::mr_workers_join(self.0.raw, 1000, null_mut()) } == -ETIMEDOUT {}
        let panic = call_of_f.panic.into_inner();
        match panic.unwrap_or_else(PoisonError::into_inner) {
            Some(why) => resume_unwind(why),
            None => Ok(()),
        }
    }

    /// Tell all workers to end after the current round, until the next
    /// [`run()`](Self::run). Wakes those asleep.
    pub fn stop(&self) {
        // SAFETY: for any thread.
        unsafe { sys::mr_workers_stop(self.0.raw) }
    }

    /// Wake worker `i`, if there is one: its current sleep ends or, if it is
    /// awake, its next sleep does not begin.
    pub fn wake(&self, i: usize) {
        if let Some(raw) = self.get(i) {
            // SAFETY: for any thread.
            unsafe { sys::mr_worker_wake(raw) }
        }
    }
}

impl Drop for WorkersInner {
    fn drop(&mut self) {
        if self.of.is_some() {
            return;
        }
        // SAFETY: workers keep it, and run() has joined its threads. The queues
        // are dropped after this.
        unsafe { sys::mr_workers_destroy(self.raw) }
    }
}

/// # Safety
/// The worker exists.
unsafe fn worker_stats(raw: *const sys::mr_worker) -> WorkerStats {
    let mut stats = WorkerStats {
        size: size_of::<WorkerStats>() as u32,
        ..WorkerStats::default()
    };
    // SAFETY: for any thread; the size is right, so it cannot fail.
    unsafe { sys::mr_worker_stats(raw, &raw mut stats) };
    stats
}

/// What `run()` passes to its threads.
struct Call<'a, F> {
    f: F,
    of: &'a Arc<WorkersInner>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

unsafe extern "C" fn run_one<F: Fn(&mut Worker) + Sync>(
    raw: *mut sys::mr_worker,
    opaque: *mut c_void,
) -> c_int {
    const ECANCELED: c_int = 125;
    // SAFETY: run() waits for this thread.
    let call = unsafe { &*opaque.cast::<Call<'_, F>>() };
    let mut worker = Worker {
        raw,
        of: call.of.clone(),
        is_attached: false,
    };
    // A panic must not unwind through C.
    match catch_unwind(AssertUnwindSafe(|| (call.f)(&mut worker))) {
        Ok(()) => 0,
        Err(why) => {
            let mut first = call.panic.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(why);
            -ECANCELED
        }
    }
}

/// A worker, on its thread. It is neither `Send` nor `Sync`. Calls that move
/// frames take the thread's [`Cache`], as those of queues do.
///
/// ```no_run
/// # use millrace::{Burst, Cache, Worker};
/// fn run(worker: &mut Worker, cache: &mut Cache, burst: &mut Burst<32>) {
///     let mut n_moved = 0;
///     while worker.wait(n_moved) {
///         n_moved = worker.serve();
///         for i in 0..worker.n_rxqs() {
///             n_moved += worker.receive(i, cache, burst);
///             worker.send(1 - worker.port_of(i), cache, burst);
///             cache.free(burst); // what was not taken
///         }
///     }
/// }
/// ```
pub struct Worker {
    raw: *mut sys::mr_worker,
    of: Arc<WorkersInner>,
    is_attached: bool,
}

impl Worker {
    fn base(&self) -> &sys::mr_worker {
        // SAFETY: it exists as long as `of`; on this thread it does not change
        // during this borrow.
        unsafe { &*self.raw }
    }

    fn rxq(&self, i: usize) -> &sys::mr_worker_rxq {
        let base = self.base();
        assert!(i < base.n_rxqs as usize, "no such rx queue");
        // SAFETY: an array of n_rxqs, which does not change.
        unsafe { &*base.rxqs.add(i) }
    }

    /// Its number.
    #[must_use]
    pub fn index(&self) -> usize {
        self.base().idx as usize
    }

    /// The core that the core map assigned to it.
    #[must_use]
    pub fn core(&self) -> u32 {
        self.base().core
    }

    /// How many rx queues it has.
    #[must_use]
    pub fn n_rxqs(&self) -> usize {
        self.base().n_rxqs as usize
    }

    /// The port of its rx queue `i`: an index of those passed to
    /// [`Workers::new()`].
    ///
    /// # Panics
    /// It has no such rx queue.
    #[must_use]
    pub fn port_of(&self, i: usize) -> usize {
        self.rxq(i).port_idx as usize
    }

    /// Another handle of it, for the caller of this thread's function.
    pub(crate) fn same(&self) -> Self {
        Self {
            raw: self.raw,
            of: self.of.clone(),
            is_attached: false,
        }
    }

    pub(crate) fn rxq_of(&self, i: usize) -> WorkerRxq {
        let rxq = self.rxq(i);
        WorkerRxq {
            port: rxq.port_idx as usize,
            queue: rxq.queue_idx as usize,
        }
    }

    /// Receive from its rx queue `i`: see [`Rxq::receive()`](crate::Rxq::receive).
    ///
    /// # Panics
    /// It has no such rx queue; the cache or the burst is of another pool.
    pub fn receive<const N: usize>(
        &mut self,
        i: usize,
        cache: &mut Cache,
        burst: &mut Burst<N>,
    ) -> usize {
        let rxq = self.rxq(i).rxq;
        // SAFETY: this worker is the queue's only user.
        unsafe { receive(rxq, &self.of.pool, cache, burst, None) }
    }

    /// Send the frames of `burst` by this worker's route to a port; the rest
    /// stays in `burst`: see [`Txq::send()`](crate::Txq::send). Returns how many
    /// entries were taken.
    ///
    /// # Panics
    /// There is no such port; the cache or the burst is of another pool.
    pub fn send<const N: usize>(
        &mut self,
        port: usize,
        cache: &mut Cache,
        burst: &mut Burst<N>,
    ) -> usize {
        assert!(port < self.base().n_ports as usize, "no such port");
        // SAFETY: an array of n_ports.
        let txq = unsafe { (*self.base().routes.add(port)).txq };
        if !txq.is_null() {
            // SAFETY: this worker is the queue's only user.
            return unsafe { send(txq, &self.of.pool, cache, burst, None) };
        }
        self.of.pool.must_be(&cache.pool);
        self.of.pool.must_be(burst.pool());
        let entries = burst.entries();
        // SAFETY: the worker's thread; the burst owns the entries, whole
        // frames, and gives up those that are taken.
        let n = unsafe {
            let (first, n) = (entries.as_ptr(), entries.len() as u32);
            sys::mr_worker_hand_off(self.raw, port as u32, first, null(), n)
        };
        burst.advance(n as usize);
        n as usize
    }

    /// Send the frames that other workers handed to this one. Returns how many
    /// entries were sent.
    pub fn serve(&mut self) -> usize {
        // SAFETY: the worker's thread.
        unsafe { sys::mr_worker_serve(self.raw) as usize }
    }

    /// End a round that moved `n_moved` entries; poll or sleep according to
    /// [`Idle`], at most 100 ms. Returns false after [`Workers::stop()`].
    pub fn wait(&mut self, n_moved: usize) -> bool {
        let n_moved = u32::try_from(n_moved).unwrap_or(u32::MAX);
        // SAFETY: the worker's thread.
        unsafe { sys::mr_worker_wait(self.raw, n_moved) != 0 }
    }

    /// [`wait()`](Self::wait) for a thread with its own event loop: end a round,
    /// but let the caller sleep. None after [`Workers::stop()`].
    pub fn pause(&mut self, n_moved: usize) -> Option<Pause<'_>> {
        let n_moved = u32::try_from(n_moved).unwrap_or(u32::MAX);
        // SAFETY: the worker's thread.
        let ms = unsafe { sys::mr_worker_pause(self.raw, n_moved) };
        let ms = u32::try_from(ms).ok()?;
        Some(Pause { worker: self, ms })
    }

    /// Copy its counters.
    #[must_use]
    pub fn stats(&self) -> WorkerStats {
        // SAFETY: it exists as long as `of`.
        unsafe { worker_stats(self.raw) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.is_attached {
            // SAFETY: the worker's thread, as it is not `Send`.
            unsafe { sys::mr_worker_detach(self.raw) }
        }
    }
}

/// A worker between two rounds, during which its thread may sleep. Drop it
/// before the next round.
pub struct Pause<'a> {
    worker: &'a mut Worker,
    ms: u32,
}

impl Pause<'_> {
    /// How long to wait for [`fd()`](Self::fd), at most; 0: run the next round
    /// now.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.ms.into())
    }

    /// An fd that is readable (level-triggered) when the worker has work. It is
    /// the same each time.
    ///
    /// # Errors
    /// EMFILE and the like, on the first call.
    pub fn fd(&self) -> Result<BorrowedFd<'_>, Error> {
        let mut fd = -1;
        call(|why| {
            // SAFETY: the worker's thread.
            fd = unsafe { sys::mr_worker_fd(self.worker.raw, why) };
            fd
        })?;
        // SAFETY: the worker owns the fd, and is borrowed.
        Ok(unsafe { BorrowedFd::borrow_raw(fd) })
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        if self.ms > 0 {
            // SAFETY: the worker's thread, after a positive result.
            unsafe { sys::mr_worker_resume(self.worker.raw) }
        }
    }
}
