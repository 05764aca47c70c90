// SPDX-License-Identifier: BSD-3-Clause
use millrace_sys as sys;

/// Members that a program may set. Checksums and segmentation are missing,
/// because the library trusts the offsets that come with them.
const SENT: u32 = sys::MR_META_VLAN | sys::MR_META_LAUNCH_TIME | sys::MR_META_MARK;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// Nanoseconds since the epoch of the clock.
    pub ns: u64,
    /// A `clockid_t`, such as 1 for `CLOCK_MONOTONIC`; 0xffff is the device's
    /// own.
    pub clock: u16,
}

/// A VLAN tag that is not part of the frame's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// 0x8100 or 0x88a8.
    pub proto: u16,
    /// Priority and VLAN id.
    pub tci: u16,
}

/// Metadata of one frame: what a device reports about a received frame
/// ([`Rxq::receive_meta()`](crate::Rxq::receive_meta)), or what it is to do with
/// a frame to send ([`Txq::send_meta()`](crate::Txq::send_meta)).
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Meta(pub(crate) sys::mr_meta);

impl Meta {
    fn get<T>(&self, member: u32, value: T) -> Option<T> {
        (self.0.valid & member != 0).then_some(value)
    }

    /// Rx: the hash that chose the queue.
    #[must_use]
    pub fn rss_hash(&self) -> Option<u32> {
        self.get(sys::MR_META_RSS_HASH, self.0.rss_hash)
    }

    /// Rx: when the frame arrived.
    #[must_use]
    pub fn rx_time(&self) -> Option<Time> {
        let time = Time {
            ns: self.0.rx_ns,
            clock: self.0.rx_clock,
        };
        self.get(sys::MR_META_RX_TIME, time)
    }

    /// Rx: the tag that the device removed. Tx: the tag to insert.
    #[must_use]
    pub fn vlan(&self) -> Option<Vlan> {
        let vlan = Vlan {
            proto: self.0.vlan_proto,
            tci: self.0.vlan_tci,
        };
        self.get(sys::MR_META_VLAN, vlan)
    }

    /// Tx: insert this tag. The library does it if the device cannot.
    pub fn set_vlan(&mut self, vlan: Vlan) {
        self.0.valid |= sys::MR_META_VLAN;
        (self.0.vlan_proto, self.0.vlan_tci) = (vlan.proto, vlan.tci);
    }

    /// Tx: do not send the frame earlier. If the device does not have this clock,
    /// the frame and those after it stay in the burst until then. If the clock
    /// cannot be read, the frame is lost.
    pub fn set_launch_time(&mut self, time: Time) {
        self.0.valid |= sys::MR_META_LAUNCH_TIME;
        (self.0.launch_ns, self.0.launch_clock) = (time.ns, time.clock);
    }

    /// The part of it that applies to a frame to send.
    pub(crate) fn sent(self) -> sys::mr_meta {
        let mut meta = self.0;
        meta.valid &= SENT;
        meta
    }
}
