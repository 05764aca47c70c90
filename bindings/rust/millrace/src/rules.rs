// SPDX-License-Identifier: BSD-3-Clause
use crate::error::call;
use crate::port::{PortInner, borrow};
use crate::{Error, Port};
use millrace_sys as sys;
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which frames the driver handles without the program, and how. Ports are
/// indices of those passed to [`Rules::open()`].
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Each frame that arrives on `port`.
    Any {
        /// The port that it arrives on.
        port: usize,
        /// The port to send it from; None: drop it.
        to: Option<usize>,
    },
    /// An entry of a learning bridge: the station `mac` is behind port `to`. A
    /// frame is forwarded if its source and its destination have active rules.
    Station {
        /// A unicast address.
        mac: [u8; 6],
        /// The port that it is behind.
        to: usize,
    },
}

/// A rule in a set. Give it to [`Rules::remove()`]; dropping it leaves the rule
/// in the set.
#[derive(Debug)]
pub struct RuleId {
    set: u64,
    id: u32,
}

/// A set of rules for some ports of one driver: see
/// `<millrace/experimental/offload.h>`.
/// Dropping it stops all its rules, so that frames reach the program again. The
/// ports cannot be in another set later.
pub struct Rules(Arc<RulesInner>);

/// The set is closed when nobody uses its ports any more.
pub(crate) struct RulesInner {
    raw: *mut sys::mr_rules,
    ports: Box<[Arc<PortInner>]>,
    serial: u64, // address and number of a set can come again
}

// SAFETY: calls that are not for any thread need `&mut Rules`, which is unique.
unsafe impl Send for RulesInner {}
// SAFETY: as above.
unsafe impl Sync for RulesInner {}

/// When a station last sent frames, according to its rule. Times are in ns of
/// `CLOCK_MONOTONIC`; 0: never.
pub use sys::mr_rule_stats as RuleStats;
/// Frames that rules sent from a port.
pub use sys::mr_rules_sent as RulesSent;

impl Rules {
    /// Open an empty set of at most `n_max` rules (0: 8192) for `ports`.
    ///
    /// # Errors
    /// EBUSY: a queue of a port is in use, or a port has a set already; the
    /// ports have different drivers, or a driver without rules.
    ///
    /// # Panics
    /// The ports are of different pools.
    pub fn open(ports: &mut [&mut Port], n_max: u32) -> Result<Self, Error> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let Some(pool) = ports.first().map(|port| port.pool().clone()) else {
            return Err(Error::invalid("a set of rules needs a port"));
        };
        for port in ports.iter() {
            port.pool().must_be(&pool);
            // Nobody gets a queue meanwhile: that takes a reference to a port.
            if port.is_used() {
                return Err(Error::busy("a queue is in use; open rules first"));
            }
        }
        let raw_ports: Vec<_> = ports.iter().map(|port| port.inner.raw).collect();
        let config = sys::mr_rules_config {
            size: size_of::<sys::mr_rules_config>() as u32,
            n_ports: u32::try_from(ports.len()).unwrap_or(u32::MAX),
            ports: raw_ports.as_ptr(),
            n_max,
            n_hops: 0,
            first_id: 0,
            id_step: 0,
            hands_over: 0,
        };
        let mut raw = null_mut();
        {
            let _one_at_a_time = pool.0.ctx.lock();
            // SAFETY: the ports are open, and nobody uses their queues.
            call(|why| unsafe { sys::mr_rules_open(&raw const config, &raw mut raw, why) })?;
        }
        let inner = Arc::new(RulesInner {
            raw,
            ports: ports.iter().map(|port| port.inner.clone()).collect(),
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
        });
        for port in ports {
            port.rules = Some(inner.clone());
        }
        Ok(Self(inner))
    }

    /// Add a rule, which matches nothing until [`set()`](Self::set) makes it
    /// active. None if the set is full or has this rule, if the device refuses
    /// it, or if it names no port of the set.
    pub fn add(&mut self, rule: Rule) -> Option<RuleId> {
        let n = self.0.ports.len();
        let index = |port: usize| (port < n).then_some(port as u16); // at most 64
        let mut raw = sys::mr_rule::default();
        match rule {
            Rule::Any { port, to } => {
                raw.r#match = sys::MR_RULE_ANY;
                raw.port = index(port)?;
                raw.to = index(to.unwrap_or(0))?;
                if to.is_none() {
                    raw.action = sys::MR_RULE_DROP;
                }
            }
            Rule::Station { mac, to } => {
                raw.r#match = sys::MR_RULE_STATION;
                raw.to = index(to)?;
                raw.mac = mac;
            }
        }
        let mut id = 0;
        // SAFETY: `&mut`: one at a time; one rule, one id.
        let n_added = unsafe { sys::mr_rules_add(self.0.raw, &raw const raw, 1, &raw mut id) };
        (n_added == 1).then_some(RuleId {
            set: self.0.serial,
            id,
        })
    }

    /// Remove a rule. Frames that match it reach the program again.
    ///
    /// # Panics
    /// The rule is of another set.
    #[allow(clippy::needless_pass_by_value)] // its only owner gives it up
    pub fn remove(&mut self, rule: RuleId) {
        self.must_be(rule.set);
        // SAFETY: `&mut`: one at a time. The id is in the set: it has one owner,
        // who gives it up.
        unsafe { sys::mr_rules_remove(self.0.raw, &raw const rule.id, 1) }
    }

    /// Change the port that a rule sends from, and whether it is active.
    ///
    /// # Panics
    /// The rule is of another set, or there is no such port.
    pub fn set(&self, rule: &RuleId, to: usize, is_active: bool) {
        self.must_be(rule.set);
        assert!(to < self.0.ports.len(), "no such port");
        // SAFETY: for any thread.
        unsafe { sys::mr_rules_set(self.0.raw, rule.id, to as u32, is_active) }
    }

    /// The state of a rule of a station.
    ///
    /// # Panics
    /// The rule is of another set.
    #[must_use]
    pub fn read(&self, rule: &RuleId) -> RuleStats {
        self.must_be(rule.set);
        let mut stats = RuleStats::default();
        // SAFETY: for any thread; one id, one result.
        unsafe { sys::mr_rules_read(self.0.raw, &raw const rule.id, 1, &raw mut stats) };
        stats
    }

    /// Frames that rules sent from a port. None if there is no such port.
    pub fn sent(&mut self, port: usize) -> Option<RulesSent> {
        let mut sent = RulesSent {
            size: size_of::<RulesSent>() as u32,
            ..RulesSent::default()
        };
        let port = u32::try_from(port).ok()?;
        // SAFETY: `&mut`: one at a time.
        let ret = unsafe { sys::mr_rules_sent(self.0.raw, port, &raw mut sent) };
        (ret == 0).then_some(sent)
    }

    /// Handle changes of the ports: call it when [`fd()`](Self::fd) is readable,
    /// and after [`Port::poll()`] of each port. Returns how many ports changed.
    pub fn poll(&mut self) -> usize {
        // SAFETY: `&mut`: one at a time.
        usize::try_from(unsafe { sys::mr_rules_poll(self.0.raw) }).unwrap_or(0)
    }

    /// An fd that is readable when [`poll()`](Self::poll) has something to do.
    /// None if it never has.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the set owns the fd, and is borrowed.
        unsafe { borrow(sys::mr_rules_fd(self.0.raw)) }
    }

    fn must_be(&self, set: u64) {
        assert!(set == self.0.serial, "of another set");
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        // SAFETY: unique: one at a time.
        unsafe { sys::mr_rules_stop(self.0.raw) }
    }
}

impl Drop for RulesInner {
    fn drop(&mut self) {
        let _one_at_a_time = self.ports[0].pool.0.ctx.lock();
        // SAFETY: the ports and their queues keep the set, so nobody uses them;
        // the set keeps the ports.
        unsafe { sys::mr_rules_close(self.raw) }
    }
}
