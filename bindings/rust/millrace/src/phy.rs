// SPDX-License-Identifier: BSD-3-Clause
//! A port as a device of the TCP/IP stack `smoltcp`.
use crate::{Burst, Cache, Error, Frame, Port, Rxq, Txq};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use std::os::fd::BorrowedFd;

const HEADER_BYTES: u32 = 14;

/// A device of `smoltcp`: one queue of a port in each direction.
///
/// Frames are read and written in place, except that a received frame of several
/// entries is copied. Each frame is sent as a burst of its own.
///
/// While the queue takes no frame, or the pool has no page, the device gives no
/// tokens, and `smoltcp` tries again when it is polled next.
pub struct Phy {
    rxq: Rxq,
    txq: Txq,
    cache: Cache,
    received: Burst<64>,
    /// Frames that were read, and are to be freed.
    done: Burst<64>,
    /// Frames that the queue did not take.
    unsent: Burst<18>,
    /// A frame of `max_bytes` for the next token.
    spare: Option<Frame>,
    max_bytes: u32,
}

impl Phy {
    /// Use rx and tx queue `i` of `port`, with a cache of its pool.
    ///
    /// # Errors
    /// EBUSY: a queue is in use, or the port does not have it. No memory, or no
    /// more caches.
    pub fn new(port: &Port, i: u32) -> Result<Self, Error> {
        let pool = port.pool();
        let in_use = || Error::busy("no such queue, or it is in use");
        let max_bytes = match port.info().mtu_bytes {
            0 => 1500, // no limit
            n => n,
        } + HEADER_BYTES;
        Ok(Self {
            rxq: port.rxq(i).ok_or_else(in_use)?,
            txq: port.txq(i).ok_or_else(in_use)?,
            cache: Cache::new(pool)?,
            received: Burst::new(pool),
            done: Burst::new(pool),
            unsent: Burst::new(pool),
            spare: None,
            max_bytes: max_bytes.min(pool.stats().page_bytes),
        })
    }

    /// Request a wake-up before sleeping. None: poll the interface now, also
    /// while a frame waits for the tx queue. Otherwise the fd becomes readable
    /// when a frame arrives.
    pub fn arm(&mut self) -> Option<BorrowedFd<'_>> {
        self.txq.send(&mut self.cache, &mut self.unsent);
        if !self.received.is_empty() || !self.unsent.is_empty() {
            return None;
        }
        self.rxq.arm()
    }

    /// Whether a token can send.
    fn can_send(&mut self) -> bool {
        self.txq.send(&mut self.cache, &mut self.unsent); // also completions
        if self.spare.is_none() {
            self.spare = self.cache.alloc(self.max_bytes);
        }
        self.unsent.is_empty() && self.spare.is_some()
    }
}

impl phy::Device for Phy {
    type RxToken<'a> = RxToken<'a>;
    type TxToken<'a> = TxToken<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(RxToken<'_>, TxToken<'_>)> {
        self.cache.free(&mut self.done);
        if self.received.is_empty() {
            self.rxq.receive(&mut self.cache, &mut self.received);
        }
        if self.received.is_empty() || !self.can_send() {
            return None;
        }
        let mut frame = self.received.pop()?;
        // The kernel at the other end of a veth leaves checksums to the device.
        // This cannot fail: the frame has no other owner, so it is not copied.
        let _ = frame.view_mut().finish_checksum(&mut self.cache);
        let done = &mut self.done;
        let tx = TxToken {
            txq: &mut self.txq,
            cache: &mut self.cache,
            unsent: &mut self.unsent,
            spare: &mut self.spare,
        };
        Some((RxToken { frame, done }, tx))
    }

    fn transmit(&mut self, _now: Instant) -> Option<TxToken<'_>> {
        self.can_send().then_some(TxToken {
            txq: &mut self.txq,
            cache: &mut self.cache,
            unsent: &mut self.unsent,
            spare: &mut self.spare,
        })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.max_bytes as usize;
        capabilities
    }
}

/// A received frame: see [`Phy`].
pub struct RxToken<'a> {
    frame: Frame,
    done: &'a mut Burst<64>,
}

impl phy::RxToken for RxToken<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        let frame = self.frame.view();
        let result = if frame.n_entries() == 1 {
            f(frame.bytes())
        } else {
            f(&frame.segments().collect::<Vec<_>>().concat())
        };
        drop(self.done.push(self.frame)); // it has room for one
        result
    }
}

/// A frame to send: see [`Phy`].
pub struct TxToken<'a> {
    txq: &'a mut Txq,
    cache: &'a mut Cache,
    unsent: &'a mut Burst<18>,
    spare: &'a mut Option<Frame>,
}

impl phy::TxToken for TxToken<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, n_bytes: usize, f: F) -> R {
        let mut frame = self.spare.take().expect("a token has one");
        let mut view = frame.view_mut();
        let n_over = view.view().len().checked_sub(n_bytes);
        view.trim(n_over.expect("a frame no longer than the MTU") as u32)
            .expect("a frame is not empty");
        let bytes = view.bytes_mut(self.cache).expect("its only owner");
        let result = f(bytes);
        drop(self.unsent.push(frame)); // it is empty
        self.txq.send(self.cache, self.unsent);
        result
    }
}
