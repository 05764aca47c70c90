// SPDX-License-Identifier: BSD-3-Clause
use crate::error::{call, text};
use crate::pool::c_string;
use crate::{Burst, Cache, Error, Link, Pool, RxStats, TxStats};
use millrace_sys as sys;
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

/// An open device. It is closed when the port and its queues are dropped.
pub struct Port(Arc<PortInner>);

struct PortInner {
    raw: *mut sys::mr_port,
    pool: Pool,
    /// Queues that have a user: rx, then tx.
    used: Box<[AtomicBool]>,
    n_rxqs: u32,
}

// SAFETY: calls on a port are documented for any thread; poll() needs `&mut`,
// and opening and closing hold the context's lock.
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
            let _one_at_a_time = ctx.ports.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the pool and the context exist, and the port keeps them.
            call(|why| unsafe {
                sys::mr_port_open(ctx.raw, spec.as_ptr(), &raw const config, &raw mut raw, why)
            })?;
        }
        let info = raw_info(raw);
        Ok(Self(Arc::new(PortInner {
            raw,
            pool: pool.clone(),
            used: (0..info.n_rxqs + info.n_txqs)
                .map(|_| AtomicBool::new(false))
                .collect(),
            n_rxqs: info.n_rxqs,
        })))
    }

    /// Return its properties.
    #[must_use]
    pub fn info(&self) -> PortInfo {
        let info = raw_info(self.0.raw);
        PortInfo {
            name: text(&info.name),
            mode: text(&info.mode),
            why: text(&info.why),
            mac: (info.has_mac != 0).then_some(info.mac),
            n_rxqs: info.n_rxqs,
            n_txqs: info.n_txqs,
            mtu_bytes: info.mtu_bytes,
            has_sg: info.has_sg != 0,
        }
    }

    /// Rx queue `i`. None if it does not exist or has a user already.
    #[must_use]
    pub fn rxq(&self, i: u32) -> Option<Rxq> {
        // SAFETY: the port is open; NULL if there is no such queue.
        let raw = unsafe { sys::mr_port_rxq(self.0.raw, i) };
        (!raw.is_null()).then_some(())?;
        let lease = Lease::new(&self.0, i)?;
        Some(Rxq { raw, lease })
    }

    /// Tx queue `i`. None if it does not exist or has a user already.
    #[must_use]
    pub fn txq(&self, i: u32) -> Option<Txq> {
        // SAFETY: the port is open; NULL if there is no such queue.
        let raw = unsafe { sys::mr_port_txq(self.0.raw, i) };
        (!raw.is_null()).then_some(())?;
        let lease = Lease::new(&self.0, self.0.n_rxqs + i)?;
        Some(Txq { raw, lease })
    }

    /// Handle timers, link and MTU changes, and removal of the device: call it
    /// when [`fd()`](Self::fd) is readable, or periodically. Returns how many
    /// events there were.
    pub fn poll(&mut self) -> usize {
        // SAFETY: `&mut`: one at a time; queues may be used meanwhile.
        let n = unsafe { sys::mr_port_poll(self.0.raw) };
        usize::try_from(n).unwrap_or(0)
    }

    /// An fd that is readable when [`poll()`](Self::poll) has something to do.
    /// None if it never has.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the port owns the fd, and is borrowed.
        unsafe { borrow(sys::mr_port_fd(self.0.raw)) }
    }

    /// State of the link, as of the last [`poll()`](Self::poll). None if the
    /// device has none.
    #[must_use]
    pub fn link(&self) -> Option<Link> {
        let mut link = Link::default();
        // SAFETY: the port is open.
        let ret = unsafe { sys::mr_port_link(self.0.raw, &raw mut link) };
        (ret == 0).then_some(link)
    }
}

/// # Safety
/// An fd stays open for `'a`.
unsafe fn borrow<'a>(fd: i32) -> Option<BorrowedFd<'a>> {
    // SAFETY: the caller's.
    (fd >= 0).then(|| unsafe { BorrowedFd::borrow_raw(fd) })
}

impl Drop for PortInner {
    fn drop(&mut self) {
        let ctx = &self.pool.0.ctx.0;
        let _one_at_a_time = ctx.ports.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: queues keep the port, so nobody uses it.
        unsafe { sys::mr_port_close(self.raw) }
    }
}

/// The right to use a queue, for one user at a time. Keeps the port open.
struct Lease {
    port: Arc<PortInner>,
    i: usize,
}

impl Lease {
    fn new(port: &Arc<PortInner>, i: u32) -> Option<Self> {
        let (port, i) = (port.clone(), i as usize);
        // What the last user did with the queue happened before this.
        let was_used = port.used[i].swap(true, Ordering::Acquire);
        // Not then_some(): dropping a lease ends that of the queue's user.
        (!was_used).then(|| Self { port, i })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.port.used[self.i].store(false, Ordering::Release);
    }
}

/// An rx queue of a port. It can be sent to another thread; dropping it makes
/// it available again.
pub struct Rxq {
    raw: *mut sys::mr_rxq,
    lease: Lease,
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
        self.lease.port.pool.must_be(&cache.pool);
        self.lease.port.pool.must_be(burst.pool());
        let room = burst.room();
        // SAFETY: `&mut`: the only user; room is 0, or 18 to 256 entries.
        let n =
            unsafe { sys::mr_rx_burst(self.raw, cache.raw, room.as_mut_ptr(), room.len() as u32) };
        burst.extend(n as usize);
        n as usize
    }

    /// Request a wake-up before sleeping. None: there is work, do not sleep.
    /// Otherwise the fd becomes readable when there is work.
    pub fn arm(&mut self) -> Option<BorrowedFd<'_>> {
        let queue = self.raw.cast();
        // SAFETY: an rx queue begins with its queue; `&mut`: the only user.
        // The port owns the fd.
        unsafe {
            if sys::mr_queue_arm(queue) != 0 {
                return None;
            }
            borrow(sys::mr_queue_fd(queue))
        }
    }

    /// Copy its counters.
    #[must_use]
    pub fn stats(&self) -> RxStats {
        let mut stats = RxStats {
            size: size_of::<RxStats>() as u32,
            ..RxStats::default()
        };
        // SAFETY: the port is open; the size is right, so it cannot fail.
        unsafe { sys::mr_rxq_stats(self.raw, &raw mut stats) };
        stats
    }
}

/// A tx queue of a port. It can be sent to another thread; dropping it makes
/// it available again.
pub struct Txq {
    raw: *mut sys::mr_txq,
    lease: Lease,
}

// SAFETY: not tied to a thread; calls that use the queue need `&mut`.
unsafe impl Send for Txq {}

impl Txq {
    /// Send the frames of `burst`, in order, as many as the queue has room for;
    /// the rest stays in `burst`. Returns how many entries were taken. Never
    /// blocks. With an empty burst, it collects completions.
    ///
    /// # Panics
    /// The cache or the burst is of another pool than the port.
    #[inline]
    pub fn send<const N: usize>(&mut self, cache: &mut Cache, burst: &mut Burst<N>) -> usize {
        self.lease.port.pool.must_be(&cache.pool);
        self.lease.port.pool.must_be(burst.pool());
        let entries = burst.entries();
        // SAFETY: `&mut`: the only user; the burst owns the entries, whole
        // frames, and gives up those that are taken.
        let n = unsafe {
            sys::mr_tx_burst(self.raw, cache.raw, entries.as_ptr(), entries.len() as u32)
        };
        burst.advance(n as usize);
        n as usize
    }

    /// Copy its counters.
    #[must_use]
    pub fn stats(&self) -> TxStats {
        let mut stats = TxStats {
            size: size_of::<TxStats>() as u32,
            ..TxStats::default()
        };
        // SAFETY: the port is open; the size is right, so it cannot fail.
        unsafe { sys::mr_txq_stats(self.raw, &raw mut stats) };
        stats
    }
}
