// SPDX-License-Identifier: BSD-3-Clause
//! Parts of an object, such as the queues of a port, that have one user at a
//! time. The object lives until its last user is gone.
use crate::sync::{Arc, AtomicBool, Ordering};
use std::ops::Deref;

/// Which parts of an object have a user.
pub(crate) struct Users(Box<[AtomicBool]>);

impl Users {
    pub(crate) fn new(n: u32) -> Self {
        Self((0..n).map(|_| AtomicBool::new(false)).collect())
    }

    /// Whether any part has a user. If not, all that earlier users did happened
    /// before this call.
    pub(crate) fn any(&self) -> bool {
        self.0.iter().any(|is_used| is_used.load(Ordering::Acquire))
    }
}

pub(crate) trait HasUsers {
    fn users(&self) -> &Users;
}

/// The right to use part `i` of an object, which it keeps alive.
pub(crate) struct Lease<T: HasUsers> {
    of: Arc<T>,
    i: usize,
}

impl<T: HasUsers> Lease<T> {
    /// None if the part has a user.
    pub(crate) fn new(of: &Arc<T>, i: u32) -> Option<Self> {
        let (of, i) = (of.clone(), i as usize);
        // What the last user did with it happened before this.
        of.users().0[i]
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        Some(Self { of, i })
    }
}

impl<T: HasUsers> Deref for Lease<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.of
    }
}

impl<T: HasUsers> Drop for Lease<T> {
    fn drop(&mut self) {
        self.of.users().0[self.i].store(false, Ordering::Release);
    }
}
