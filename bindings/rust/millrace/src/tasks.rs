// SPDX-License-Identifier: BSD-3-Clause
//! Waiting in tasks of tokio. The runtime needs its drivers: `enable_all()`.
use crate::{Burst, Cache, Rxq, Txq, Worker};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::{consume_budget, yield_now};
use tokio::time::timeout;

/// The longest sleep, as for workers.
const RX_LIMIT: Duration = Duration::from_millis(100);
/// The longest sleep with unsent frames: the device may need another wake-up.
const TX_LIMIT: Duration = Duration::from_millis(1);

/// Wait until `fd` is readable, or for the limit.
async fn readable(fd: BorrowedFd<'_>, limit: Duration) -> io::Result<()> {
    // The two queues of an AF_XDP socket share an fd, which cannot be registered
    // twice; a duplicate can.
    #[allow(deprecated)] // what replaces it is new, and unsafe for other types
    let fd = AsyncFd::with_interest(fd.try_clone_to_owned()?, Interest::READABLE)?;
    match timeout(limit, fd.readable()).await {
        Ok(is_readable) => is_readable.map(drop),
        Err(_too_late) => Ok(()),
    }
}

impl Rxq {
    /// [`receive()`](Self::receive) that waits for a frame. Returns how many
    /// entries were received; 0: fewer than 18 entries are free in `burst`.
    ///
    /// Cancel safe: received frames are in `burst`. At the end of a capture, or
    /// when the device is gone, it keeps waiting: another task must call
    /// [`Port::poll()`](crate::Port::poll) and check
    /// [`Port::link()`](crate::Port::link). A sleep costs a few system calls more
    /// than [`arm()`](Self::arm) and poll(2).
    ///
    /// # Errors
    /// The queue's fd cannot be registered.
    ///
    /// # Panics
    /// As [`receive()`](Self::receive); or outside a runtime with its drivers.
    pub async fn recv<const N: usize>(
        &mut self,
        cache: &mut Cache,
        burst: &mut Burst<N>,
    ) -> io::Result<usize> {
        consume_budget().await; // there may always be frames
        loop {
            let n = self.receive(cache, burst);
            if n > 0 || burst.room().is_empty() {
                return Ok(n);
            }
            match self.arm() {
                Some(fd) => readable(fd, RX_LIMIT).await?,
                None => yield_now().await,
            }
        }
    }
}

impl Txq {
    /// [`send()`](Self::send) that waits until the queue has taken all frames.
    ///
    /// Cancel safe: frames that were not taken are in `burst`.
    ///
    /// # Errors
    /// The queue's fd cannot be registered.
    ///
    /// # Panics
    /// As [`send()`](Self::send); or outside a runtime with its drivers.
    pub async fn send_all<const N: usize>(
        &mut self,
        cache: &mut Cache,
        burst: &mut Burst<N>,
    ) -> io::Result<()> {
        consume_budget().await;
        loop {
            self.send(cache, burst);
            if burst.is_empty() {
                return Ok(());
            }
            match self.arm() {
                Some(fd) => readable(fd, TX_LIMIT).await?,
                None => yield_now().await,
            }
        }
    }
}

impl Worker {
    /// [`wait()`](Self::wait) in a task: other tasks of the thread run while the
    /// worker has nothing to do. Returns false after
    /// [`Workers::stop()`](crate::Workers::stop). Cancel safe.
    ///
    /// A worker is not `Send`: use `Runtime::block_on()` or a `LocalSet`.
    ///
    /// # Errors
    /// The worker's fd cannot be registered.
    ///
    /// # Panics
    /// Outside a runtime with its drivers.
    pub async fn idle(&mut self, n_moved: usize) -> io::Result<bool> {
        let Some(pause) = self.pause(n_moved) else {
            return Ok(false);
        };
        if pause.timeout().is_zero() {
            yield_now().await;
        } else {
            readable(pause.fd()?, pause.timeout()).await?;
        }
        Ok(true)
    }
}
