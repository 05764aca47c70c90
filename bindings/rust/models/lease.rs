// SPDX-License-Identifier: BSD-3-Clause
//! All interleavings of threads that share a port: lease.rs itself, with the
//! atomics of loom.
use loom::cell::UnsafeCell;
use loom::{model, thread};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

mod sync {
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
}
#[allow(dead_code)]
#[path = "../millrace/src/lease.rs"]
mod lease;

use lease::{HasUsers, Lease, Users};
use sync::Arc;

/// What a port is to its users: a queue without locks, and an end.
struct Port {
    users: Users,
    /// Loom reports accesses that are not ordered.
    queue: UnsafeCell<u32>,
}

impl HasUsers for Port {
    fn users(&self) -> &Users {
        &self.users
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        assert!(!self.users.any(), "closed while a queue is in use");
        self.queue.with_mut(|n| {
            // SAFETY: loom checks that this access comes last.
            unsafe { *n = u32::MAX }
        });
    }
}

fn open() -> Arc<Port> {
    Arc::new(Port {
        users: Users::new(2),
        queue: UnsafeCell::new(0),
    })
}

fn use_queue(port: &Port) {
    port.queue.with_mut(|n| {
        // SAFETY: loom checks that nobody else does.
        unsafe { *n += 1 }
    });
}

#[test]
fn a_queue_has_one_user_at_a_time() {
    static N_USED: AtomicUsize = AtomicUsize::new(0);
    static N_REFUSED: AtomicUsize = AtomicUsize::new(0);
    model(|| {
        let port = open();
        let users = [1, 2].map(|n_tries| {
            let port = port.clone();
            thread::spawn(move || {
                // A user that is refused does not end the other's lease.
                for _ in 0..n_tries {
                    let lease = Lease::new(&port, 0);
                    lease
                        .as_deref()
                        .map_or(&N_REFUSED, |port| {
                            use_queue(port);
                            &N_USED
                        })
                        .fetch_add(1, Relaxed);
                }
            })
        });
        drop(port);
        for user in users {
            user.join().unwrap();
        }
    });
    assert!(N_USED.load(Relaxed) > 0 && N_REFUSED.load(Relaxed) > 0);
}

#[test]
fn the_last_user_closes_the_port() {
    model(|| {
        let port = open();
        let lease = Lease::new(&port, 0).unwrap();
        let user = thread::spawn(move || {
            use_queue(&lease);
            drop(lease);
        });
        drop(port);
        user.join().unwrap();
    });
}

#[test]
fn rules_open_while_no_queue_is_used() {
    static N_OPENED: AtomicUsize = AtomicUsize::new(0);
    model(|| {
        let port = open();
        let lease = Lease::new(&port, 0).unwrap();
        let user = thread::spawn(move || use_queue(&lease));
        // As Rules::open(): nobody gets a lease meanwhile.
        if !port.users.any() {
            use_queue(&port);
            N_OPENED.fetch_add(1, Relaxed);
        }
        user.join().unwrap();
    });
    assert!(N_OPENED.load(Relaxed) > 0);
}
