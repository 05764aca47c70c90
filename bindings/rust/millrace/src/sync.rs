// SPDX-License-Identifier: BSD-3-Clause
//! What `lease.rs` shares between threads. The models have loom's instead.
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
