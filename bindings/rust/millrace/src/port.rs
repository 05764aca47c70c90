// SPDX-License-Identifier: BSD-3-Clause
use crate::dataplane::Opened;
use crate::error::{call, text};
use crate::lease::{HasUsers, Lease, Users};
use crate::pool::c_string;
use crate::rules::RulesInner;
use crate::{Burst, Cache, Error, Link, Meta, Pool, RxStats, TxStats};
use millrace_sys as sys;
use std::ffi::c_char;
use std::os::fd::BorrowedFd;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};

/// An open device. It is closed when the port and its queues are dropped.
pub struct Port {
    pub(crate) inner: Arc<PortInner>,
    /// The set of rules that it is in.
    pub(crate) rules: Option<Arc<RulesInner>>,
}

pub(crate) struct PortInner {
    pub(crate) raw: *mut sys::mr_port,
    pub(crate) pool: Pool,
    /// Of its queues: rx, then tx.
    users: Users,
    n_rxqs: u32,
    n_queues: u32,
    /// The device is set, and its events handled, one call at a time.
    pub(crate) settings: Mutex<()>,
    /// The data plane that closes it.
    of: Option<Arc<Opened>>,
}

impl HasUsers for PortInner {
    fn users(&self) -> &Users {
        &self.users
    }
}

/// The right to use a queue. Keeps the port open, and the rules that replace
/// functions of the queue.
pub(crate) struct Queue {
    port: Lease<PortInner>,
    _rules: Option<Arc<RulesInner>>,
}

// SAFETY: calls on a port are documented for any thread; settings and events
// hold their lock, and opening and closing hold the context's lock.
unsafe impl Send for PortInner {}
// SAFETY: as above.
unsafe impl Sync for PortInner {}

/// Properties of a port.
#[derive(Clone, Debug)]
pub struct PortInfo {
    /// "driver:device"; the whole spec if there is no device.
    pub name: String,
    /// "zc", "copy", "memory" and so on.
    pub mode: String,
    /// Why no better mode is used; empty if it is the best.
    pub why: String,
    /// Its MAC address.
    pub mac: Option<[u8; 6]>,
    /// How many rx queues it has.
    pub n_rxqs: u32,
    /// How many tx queues it has.
    pub n_txqs: u32,
    /// Longest layer 3 packet; 0: no limit.
    pub mtu_bytes: u32,
    /// Whether frames may have several entries.
    pub has_sg: bool,
    /// The network interface's name now; empty: none.
    pub netdev: String,
    /// Rx queues that the device has now; 0: unknown.
    pub n_channels: u32,
}

fn raw_info(raw: *mut sys::mr_port) -> sys::mr_port_info {
    // SAFETY: all zeroes are a value of it; the port is open and the size is
    // right, so the call cannot fail.
    unsafe {
        let mut info: sys::mr_port_info = std::mem::zeroed();
        info.size = size_of::<sys::mr_port_info>() as u32;
        sys::mr_port_info(raw, &raw mut info);
        info
    }
}

impl Port {
    /// Open the device that `spec` names, such as `xdp:eth0,queues=2`, and
    /// start its queues. `n_workers` is how many threads will use it.
    ///
    /// # Errors
    /// The spec does not parse; no such device, or it is in use; a capability
    /// or pages are missing. The error says which.
    pub fn open(pool: &Pool, spec: &str, n_workers: u32) -> Result<Self, Error> {
        let spec = c_string(spec)?;
        let config = sys::mr_port_config {
            size: size_of::<sys::mr_port_config>() as u32,
            n_workers,
            pool: pool.0.raw,
        };
        let ctx = &pool.0.ctx.0;
        let mut raw = null_mut();
        {
            let _one_at_a_time = pool.0.ctx.lock();
            // SAFETY: the pool and the context exist, and the port keeps them.
            call(|why| unsafe {
                sys::mr_port_open(ctx.raw, spec.as_ptr(), &raw const config, &raw mut raw, why)
            })?;
        }
        Ok(Self::wrap(raw, pool, None))
    }

    fn wrap(raw: *mut sys::mr_port, pool: &Pool, of: Option<Arc<Opened>>) -> Self {
        let info = raw_info(raw);
        let n_queues = info.n_rxqs + info.n_txqs;
        Self {
            inner: Arc::new(PortInner {
                raw,
                pool: pool.clone(),
                users: Users::new(n_queues),
                n_rxqs: info.n_rxqs,
                n_queues,
                settings: Mutex::new(()),
                of,
            }),
            rules: None,
        }
    }

    /// # Safety
    /// An open port of `pool`, which `of` closes.
    pub(crate) unsafe fn of_dataplane(
        raw: *mut sys::mr_port,
        pool: &Pool,
        of: &Arc<Opened>,
    ) -> Self {
        Self::wrap(raw, pool, Some(of.clone()))
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.inner.pool
    }

    pub(crate) fn n_queues(&self) -> u32 {
        self.inner.n_queues
    }

    /// Whether a queue has a user.
    pub(crate) fn is_used(&self) -> bool {
        self.inner.users.any()
    }

    /// Queue `i`, which exists: rx, then tx. None if it has a user.
    pub(crate) fn queue(&self, i: u32) -> Option<Queue> {
        Some(Queue {
            port: Lease::new(&self.inner, i)?,
            _rules: self.rules.clone(),
        })
    }

    /// Return its properties.
    #[must_use]
    pub fn info(&self) -> PortInfo {
        let info = raw_info(self.inner.raw);
        PortInfo {
            name: text(&info.name),
            mode: text(&info.mode),
            why: text(&info.why),
            mac: (info.has_mac != 0).then_some(info.mac),
            n_rxqs: info.n_rxqs,
            n_txqs: info.n_txqs,
            mtu_bytes: info.mtu_bytes,
            has_sg: info.has_sg != 0,
            netdev: text(&info.netdev),
            n_channels: info.n_channels,
        }
    }

    /// Rx queue `i`. None if it does not exist or has a user already.
    #[must_use]
    pub fn rxq(&self, i: u32) -> Option<Rxq> {
        // SAFETY: the port is open; NULL if there is no such queue.
        let raw = unsafe { sys::mr_port_rxq(self.inner.raw, i) };
        (!raw.is_null()).then_some(())?;
        let queue = self.queue(i)?;
        Some(Rxq { raw, queue })
    }

    /// Tx queue `i`. None if it does not exist or has a user already.
    #[must_use]
    pub fn txq(&self, i: u32) -> Option<Txq> {
        // SAFETY: the port is open; NULL if there is no such queue.
        let raw = unsafe { sys::mr_port_txq(self.inner.raw, i) };
        (!raw.is_null()).then_some(())?;
        let queue = self.queue(self.inner.n_rxqs + i)?;
        Some(Txq { raw, queue })
    }

    /// Copy the counters of rx queue `i`, whoever uses it. None if it does not
    /// exist.
    #[must_use]
    pub fn rxq_stats(&self, i: u32) -> Option<RxStats> {
        // SAFETY: the port is open; NULL if there is no such queue.
        let raw = unsafe { sys::mr_port_rxq(self.inner.raw, i) };
        // SAFETY: the port is open; counters are for any thread.
        (!raw.is_null()).then(|| unsafe { rx_stats(raw) })
    }

    /// Copy the counters of tx queue `i`, whoever uses it. None if it does not
    /// exist.
    #[must_use]
    pub fn txq_stats(&self, i: u32) -> Option<TxStats> {
        // SAFETY: the port is open; NULL if there is no such queue.
        let raw = unsafe { sys::mr_port_txq(self.inner.raw, i) };
        // SAFETY: the port is open; counters are for any thread.
        (!raw.is_null()).then(|| unsafe { tx_stats(raw) })
    }

    /// All counters of the port and its queues by name, one per line.
    #[must_use]
    pub fn stats_text(&self) -> String {
        // SAFETY: the port is open, and the text has this length.
        print(|text, n| unsafe { sys::mr_port_stats_text(self.inner.raw, text, n) })
    }

    /// The same as a JSON object.
    #[must_use]
    pub fn stats_json(&self) -> String {
        // SAFETY: as above.
        print(|text, n| unsafe { sys::mr_port_stats_json(self.inner.raw, text, n) })
    }

    /// Handle timers, link and MTU changes, and removal of the device: call it
    /// when [`fd()`](Self::fd) is readable, or periodically. Returns how many
    /// events there were.
    pub fn poll(&mut self) -> usize {
        let _one_at_a_time = self.lock();
        // SAFETY: the lock; queues may be used meanwhile.
        let n = unsafe { sys::mr_port_poll(self.inner.raw) };
        usize::try_from(n).unwrap_or(0)
    }

    /// [`poll()`](Self::poll) for a data plane.
    pub(crate) fn handle_events(&self) {
        if let Ok(_one_at_a_time) = self.inner.settings.try_lock() {
            // SAFETY: the lock; queues may be used meanwhile.
            unsafe { sys::mr_port_poll(self.inner.raw) };
        }
    }

    /// An fd that is readable when [`poll()`](Self::poll) has something to do.
    /// None if it never has.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the port owns the fd, and is borrowed.
        unsafe { borrow(sys::mr_port_fd(self.inner.raw)) }
    }

    /// State of the link, as of the last [`poll()`](Self::poll). None if the
    /// device has none.
    #[must_use]
    pub fn link(&self) -> Option<Link> {
        let mut link = Link::default();
        // SAFETY: the port is open.
        let ret = unsafe { sys::mr_port_link(self.inner.raw, &raw mut link) };
        (ret == 0).then_some(link)
    }
}

/// The text of a function that writes as much as fits, and returns the length of
/// all.
pub(crate) fn print(write: impl Fn(*mut c_char, usize) -> usize) -> String {
    let mut text: Vec<u8> = Vec::new();
    loop {
        let n = write(text.as_mut_ptr().cast(), text.len());
        if n < text.len() {
            text.truncate(n);
            return String::from_utf8_lossy(&text).into_owned();
        }
        text.resize(n + 64, 0); // counters may become longer
    }
}

/// # Safety
/// The queue exists.
unsafe fn rx_stats(raw: *const sys::mr_rxq) -> RxStats {
    let mut stats = RxStats {
        size: size_of::<RxStats>() as u32,
        ..RxStats::default()
    };
    // SAFETY: the caller's; the size is right, so it cannot fail.
    unsafe { sys::mr_rxq_stats(raw, &raw mut stats) };
    stats
}

/// # Safety
/// The queue exists.
unsafe fn tx_stats(raw: *const sys::mr_txq) -> TxStats {
    let mut stats = TxStats {
        size: size_of::<TxStats>() as u32,
        ..TxStats::default()
    };
    // SAFETY: the caller's; the size is right, so it cannot fail.
    unsafe { sys::mr_txq_stats(raw, &raw mut stats) };
    stats
}

/// # Safety
/// An fd stays open for `'a`.
pub(crate) unsafe fn borrow<'a>(fd: i32) -> Option<BorrowedFd<'a>> {
    // SAFETY: the caller's.
    (fd >= 0).then(|| unsafe { BorrowedFd::borrow_raw(fd) })
}

/// # Safety
/// The queue exists for `'a`, and the caller is its only user. An rx or tx queue
/// begins with its queue.
unsafe fn arm<'a>(queue: *mut sys::mr_queue) -> Option<BorrowedFd<'a>> {
    // SAFETY: the caller's; the port owns the fd.
    unsafe {
        if sys::mr_queue_arm(queue) != 0 {
            return None;
        }
        borrow(sys::mr_queue_fd(queue))
    }
}

impl Drop for PortInner {
    fn drop(&mut self) {
        if self.of.is_some() {
            return;
        }
        let _one_at_a_time = self.pool.0.ctx.lock();
        // SAFETY: queues keep the port, so nobody uses it.
        unsafe { sys::mr_port_close(self.raw) }
    }
}

/// Receive into the room of `burst`; `metas`, if any, has as much.
///
/// # Safety
/// The queue of an open port of `pool`; the caller is its only user.
#[inline]
pub(crate) unsafe fn receive<const N: usize>(
    rxq: *mut sys::mr_rxq,
    pool: &Pool,
    cache: &mut Cache,
    burst: &mut Burst<N>,
    metas: Option<&mut [Meta; N]>,
) -> usize {
    pool.must_be(&cache.pool);
    pool.must_be(burst.pool());
    let metas = metas.map_or(null_mut(), |metas| metas.as_mut_ptr().cast());
    let room = burst.room();
    let (first, n) = (room.as_mut_ptr(), room.len() as u32);
    // SAFETY: room is 0, or 18 to 256 entries, and no more than N.
    let n = unsafe { sys::mr_rx_burst_meta(rxq, cache.raw, first, metas, n) };
    burst.extend(n as usize);
    n as usize
}

/// Send the entries of `burst`; `metas`, if any, has one for each.
///
/// # Safety
/// The queue of an open port of `pool`; the caller is its only user.
#[inline]
pub(crate) unsafe fn send<const N: usize>(
    txq: *mut sys::mr_txq,
    pool: &Pool,
    cache: &mut Cache,
    burst: &mut Burst<N>,
    metas: Option<&[sys::mr_meta; N]>,
) -> usize {
    pool.must_be(&cache.pool);
    pool.must_be(burst.pool());
    let metas = metas.map_or(null(), |metas| metas.as_ptr());
    let entries = burst.entries();
    let (first, n) = (entries.as_ptr(), entries.len() as u32);
    // SAFETY: the burst owns the entries, whole frames, and gives up those that
    // are taken.
    let n = unsafe { sys::mr_tx_burst_meta(txq, cache.raw, first, metas, n) };
    burst.advance(n as usize);
    n as usize
}

/// An rx queue of a port. It can be sent to another thread; dropping it makes
/// it available again.
pub struct Rxq {
    raw: *mut sys::mr_rxq,
    queue: Queue,
}

// SAFETY: not tied to a thread; calls that use the queue need `&mut`.
unsafe impl Send for Rxq {}

impl Rxq {
    /// Append received frames to `burst`, as many as fit. Returns how many
    /// entries were received. Never blocks.
    ///
    /// If fewer than 18 entries are free in `burst`, nothing is received.
    ///
    /// # Panics
    /// The cache or the burst is of another pool than the port.
    #[inline]
    pub fn receive<const N: usize>(&mut self, cache: &mut Cache, burst: &mut Burst<N>) -> usize {
        // SAFETY: `&mut`: the only user.
        unsafe { receive(self.raw, &self.queue.port.pool, cache, burst, None) }
    }

    /// [`receive()`](Self::receive) with metadata: `metas[0]` is that of the
    /// first frame received now, and so on. If `burst` was empty, they belong to
    /// the frames of [`Burst::iter()`], in order.
    ///
    /// # Panics
    /// As [`receive()`](Self::receive).
    pub fn receive_meta<const N: usize>(
        &mut self,
        cache: &mut Cache,
        burst: &mut Burst<N>,
        metas: &mut [Meta; N],
    ) -> usize {
        let pool = &self.queue.port.pool;
        // SAFETY: `&mut`: the only user.
        let n = unsafe { receive(self.raw, pool, cache, burst, Some(metas)) };
        // The library has one for each entry.
        let entries = burst.entries();
        let mut n_frames = 0;
        let mut is_first = true;
        for (i, entry) in entries[entries.len() - n..].iter().enumerate() {
            if is_first {
                metas[n_frames] = metas[i];
                n_frames += 1;
            }
            is_first = entry.flags & sys::MR_FRAME_MORE == 0;
        }
        n
    }

    /// Request a wake-up before sleeping. None: there is work, do not sleep.
    /// Otherwise the fd becomes readable when there is work.
    pub fn arm(&mut self) -> Option<BorrowedFd<'_>> {
        // SAFETY: `&mut`: the only user.
        unsafe { arm(self.raw.cast()) }
    }

    /// Copy its counters.
    #[must_use]
    pub fn stats(&self) -> RxStats {
        // SAFETY: the port is open.
        unsafe { rx_stats(self.raw) }
    }
}

/// A tx queue of a port. It can be sent to another thread; dropping it makes
/// it available again.
pub struct Txq {
    raw: *mut sys::mr_txq,
    queue: Queue,
}

// SAFETY: not tied to a thread; calls that use the queue need `&mut`.
unsafe impl Send for Txq {}

impl Txq {
    /// Send the frames of `burst`, in order, as many as the queue has room for;
    /// the rest stays in `burst`. Returns how many entries were taken. Never
    /// blocks. With an empty burst, it collects completions, and wakes a device
    /// that has frames left.
    ///
    /// # Panics
    /// The cache or the burst is of another pool than the port.
    #[inline]
    pub fn send<const N: usize>(&mut self, cache: &mut Cache, burst: &mut Burst<N>) -> usize {
        // SAFETY: `&mut`: the only user.
        unsafe { send(self.raw, &self.queue.port.pool, cache, burst, None) }
    }

    /// [`send()`](Self::send) with metadata: `metas[0]` is that of the first
    /// frame of `burst`, and so on. Returns how many frames were taken.
    ///
    /// The library does for the device what it cannot. A frame that is to leave
    /// later stays in the burst, with those after it: call this again.
    ///
    /// # Panics
    /// As [`send()`](Self::send); or there are more frames than `metas`.
    pub fn send_meta<const N: usize>(
        &mut self,
        cache: &mut Cache,
        burst: &mut Burst<N>,
        metas: &[Meta],
    ) -> usize {
        let mut by_entry = [sys::mr_meta::default(); N];
        let mut at = 0;
        for (i, frame) in burst.iter().enumerate() {
            assert!(i < metas.len(), "a frame without metadata");
            by_entry[at] = metas[i].sent();
            at += frame.n_entries();
        }
        let before = burst.iter().count();
        let pool = &self.queue.port.pool;
        // SAFETY: `&mut`: the only user.
        unsafe { send(self.raw, pool, cache, burst, Some(&by_entry)) };
        before - burst.iter().count()
    }

    /// Request a wake-up before sleeping, for a queue that did not take all of a
    /// burst. None: send again now. Otherwise the fd becomes readable when the
    /// device has sent some of the queue's frames.
    pub fn arm(&mut self) -> Option<BorrowedFd<'_>> {
        // SAFETY: `&mut`: the only user.
        unsafe { arm(self.raw.cast()) }
    }

    /// Copy its counters.
    #[must_use]
    pub fn stats(&self) -> TxStats {
        // SAFETY: the port is open.
        unsafe { tx_stats(self.raw) }
    }
}
