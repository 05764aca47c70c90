// SPDX-License-Identifier: BSD-3-Clause
//! Settings of a port's device.
use crate::error::call;
use crate::pool::c_string;
use crate::{Error, Port};
use millrace_sys as sys;
use std::ptr::null;
use std::sync::{MutexGuard, PoisonError};

/// Which parts of a frame the hash of [`Rss`] covers, for TCP and UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RssFields {
    /// As before.
    #[default]
    Keep,
    /// The addresses: fragments go with the rest.
    Addresses,
    /// Addresses and ports.
    Ports,
}

/// Receive-side scaling: a hash, and the queue for each of its values.
#[derive(Clone, Debug, Default)]
pub struct Rss {
    /// As long as the device's; empty: one that gives both directions of a
    /// connection the same hash.
    pub key: Vec<u8>,
    /// Rx queues, repeated until the device's table is full; empty: all in turn.
    pub table: Vec<u32>,
    /// Input of the hash.
    pub fields: RssFields,
    /// Leave the key as it is.
    pub keeps_key: bool,
    /// Leave the table as it is.
    pub keeps_table: bool,
}

/// Frames of one kind, and their queue. A member that is 0 matches anything:
/// see `<millrace/experimental/port_queues.h>`. `size` is set by
/// [`Port::steer()`].
pub use sys::mr_steer_rule as SteerRule;

/// Settings last until the port is closed. Queues may be in use meanwhile.
///
/// All of them fail with ENOTSUP if the device cannot do it, EPERM if a
/// capability is missing, ENODEV if the device is gone, EIO if it does not
/// answer; nothing has changed then.
impl Port {
    /// The device is set one call at a time.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        let settings = &self.inner.settings;
        settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(
        &self,
        f: impl FnOnce(*mut sys::mr_port, *mut sys::mr_reason) -> i32,
    ) -> Result<(), Error> {
        let _one_at_a_time = self.lock();
        call(|why| f(self.inner.raw, why))
    }

    /// Replace the filter of a port that shares its device with the kernel:
    /// pcap-filter(7).
    ///
    /// # Errors
    /// EINVAL: it does not compile. EBUSY: it may match frames that keep this
    /// machine reachable. Others: see above.
    pub fn set_filter(&self, expression: &str) -> Result<(), Error> {
        let text = c_string(expression)?;
        // SAFETY: the port is open; the text is copied.
        self.set(|port, why| unsafe { sys::mr_port_set_filter(port, text.as_ptr(), why) })
    }

    /// Receive all frames, or only broadcasts and frames to the port's address.
    ///
    /// # Errors
    /// See above.
    pub fn set_promisc(&self, on: bool) -> Result<(), Error> {
        // SAFETY: the port is open.
        self.set(|port, why| unsafe { sys::mr_port_set_promisc(port, on, why) })
    }

    /// Receive all multicasts, or not.
    ///
    /// # Errors
    /// See above.
    pub fn set_allmulti(&self, on: bool) -> Result<(), Error> {
        // SAFETY: the port is open.
        self.set(|port, why| unsafe { sys::mr_port_set_allmulti(port, on, why) })
    }

    /// Set the longest layer 3 packet.
    ///
    /// # Errors
    /// EINVAL: out of range. Others: see above.
    pub fn set_mtu(&self, mtu_bytes: u32) -> Result<(), Error> {
        // SAFETY: the port is open.
        self.set(|port, why| unsafe { sys::mr_port_set_mtu(port, mtu_bytes, why) })
    }

    /// Set the MAC address.
    ///
    /// # Errors
    /// EINVAL: not a unicast address. Others: see above.
    pub fn set_mac(&self, mac: [u8; 6]) -> Result<(), Error> {
        // SAFETY: the port is open; the address is copied.
        self.set(|port, why| unsafe { sys::mr_port_set_mac(port, mac.as_ptr(), why) })
    }

    /// Set how frames are distributed over the rx queues.
    ///
    /// # Errors
    /// EINVAL: no such queue, or a length that does not suit the device. EBUSY:
    /// another program has the interface. Others: see above.
    pub fn set_rss(&self, rss: &Rss) -> Result<(), Error> {
        let config = sys::mr_rss_config {
            size: size_of::<sys::mr_rss_config>() as u32,
            keep: u32::from(rss.keeps_key) * sys::MR_RSS_KEEP_KEY
                + u32::from(rss.keeps_table) * sys::MR_RSS_KEEP_TABLE,
            fields: rss.fields as u32,
            n_key_bytes: rss.key.len() as u32,
            key: if rss.key.is_empty() {
                null()
            } else {
                rss.key.as_ptr()
            },
            table: if rss.table.is_empty() {
                null()
            } else {
                rss.table.as_ptr()
            },
            n_entries: rss.table.len() as u32,
            reserved: 0,
        };
        // SAFETY: the port is open; the arrays have these lengths.
        self.set(|port, why| unsafe { sys::mr_port_set_rss(port, &raw const config, why) })
    }

    /// Add a rule that steers frames to a queue, with priority over RSS.
    /// Returns its number, for [`unsteer()`](Self::unsteer).
    ///
    /// # Errors
    /// EINVAL: an impossible combination, or no such queue. ENOSPC: no room for
    /// another rule. Others: see above.
    pub fn steer(&self, rule: &SteerRule) -> Result<u32, Error> {
        let rule = SteerRule {
            size: size_of::<SteerRule>() as u32,
            ..*rule
        };
        let mut id = 0;
        // SAFETY: the port is open; the rule is copied.
        self.set(|port, why| unsafe {
            sys::mr_port_steer(port, &raw const rule, &raw mut id, why)
        })?;
        Ok(id)
    }

    /// Remove a rule of [`steer()`](Self::steer).
    ///
    /// # Errors
    /// ENOENT: there is no such rule. Others: see above.
    pub fn unsteer(&self, id: u32) -> Result<(), Error> {
        // SAFETY: the port is open.
        self.set(|port, why| unsafe { sys::mr_port_unsteer(port, id, why) })
    }
}
