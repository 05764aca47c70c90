// SPDX-License-Identifier: BSD-3-Clause
//! Packet I/O past the kernel: a safe interface to `libmillrace`.
//!
//! ```text
//! device --> Rxq::receive() --> Burst --> your program
//! device <-- Txq::send()    <-- Burst <-- your program
//! ```
//!
//! [`Dataplane::open()`] opens all that a program needs, and runs a function on
//! workers. The parts can also be opened one by one.
//!
//! A [`Pool`] of recycled pages feeds every [`Port`]. A port is opened from a
//! spec such as `xdp:eth0` and lends out its queues. Frames move between queues
//! in a [`Burst`], by address; nothing on that path allocates or locks. Each
//! thread has a [`Cache`] of the pool, which it passes to data path calls.
//!
//! Forward one burst from one port to another:
//!
//! ```
//! # fn main() -> Result<(), millrace::Error> {
//! use millrace::{Burst, Cache, Context, Pool, PoolConfig, Port};
//!
//! let pool = Pool::new(&Context::new()?, &PoolConfig::default())?;
//! let mut cache = Cache::new(&pool)?;
//! let (a, b) = (Port::open(&pool, "null:", 1)?, Port::open(&pool, "null:", 1)?);
//! let mut rxq = a.rxq(0).expect("a new port's queue is free");
//! let mut txq = b.txq(0).expect("a new port's queue is free");
//!
//! let mut burst = Burst::<32>::new(&pool);
//! rxq.receive(&mut cache, &mut burst);
//! txq.send(&mut cache, &mut burst);
//! let n_dropped = cache.free(&mut burst); // what the queue did not take
//! # assert_eq!(n_dropped, 0);
//! # Ok(()) }
//! ```
//!
//! # Threads
//!
//! A queue and a cache have one user at a time: they can be sent to another
//! thread, but their calls need `&mut`, and they are not `Sync`. Frames and
//! bursts can also be sent. [`Context`] and [`Pool`] are handles: clones refer
//! to the same object. Anything obtained from a pool or a port keeps it open.
//!
//! # Ownership
//!
//! A [`Frame`] and the frames in a [`Burst`] own their buffers, and return them
//! to the pool when dropped. [`Cache::free()`] does so faster, because it
//! needs no lock. None of these examples compiles, each because of one line:
//!
//! ```compile_fail,E0382
//! # use millrace::*;
//! fn use_after_send(txq: &mut Txq, cache: &mut Cache, burst: &mut Burst<32>, frame: Frame) {
//!     let _ = burst.push(frame);
//!     txq.send(cache, burst);
//!     println!("{:?}", frame.view().bytes());
//! }
//! ```
//!
//! ```compile_fail,E0382
//! # use millrace::*;
//! fn free_twice(frame: Frame) {
//!     drop(frame);
//!     drop(frame);
//! }
//! ```
//!
//! ```compile_fail,E0502
//! # use millrace::*;
//! fn read_after_send(txq: &mut Txq, cache: &mut Cache, burst: &mut Burst<32>) {
//!     let first = burst.iter().next();
//!     txq.send(cache, burst);
//!     println!("{:?}", first.map(|frame| frame.len()));
//! }
//! ```
//!
//! ```compile_fail,E0499
//! # use millrace::*;
//! fn two_users(rxq: &mut Rxq, cache: [&mut Cache; 2], burst: [&mut Burst<32>; 2]) {
//!     std::thread::scope(|s| {
//!         let ([ca, cb], [ba, bb]) = (cache, burst);
//!         s.spawn(|| rxq.receive(ca, ba));
//!         s.spawn(|| rxq.receive(cb, bb));
//!     });
//! }
//! ```
//!
//! ```compile_fail,E0277
//! # use millrace::*;
//! fn shared(rxq: &Rxq) {
//!     std::thread::scope(|s| {
//!         s.spawn(|| rxq.stats());
//!     });
//! }
//! ```
//!
//! ```compile_fail,E0080
//! let context = millrace::Context::new().unwrap();
//! let pool = millrace::Pool::new(&context, &millrace::PoolConfig::default()).unwrap();
//! let burst = millrace::Burst::<8>::new(&pool); // shorter than the longest frame
//! ```
//!
//! # Misuse
//!
//! The cache, queue, burst and frame of a call must belong to one pool. If
//! they do not, the call panics before anything has moved.

mod answer;
mod burst;
mod dataplane;
mod device;
mod error;
mod flow;
mod frame;
mod lease;
mod lpm;
mod meta;
#[cfg(feature = "smoltcp")]
pub mod phy;
mod pool;
mod port;
mod rules;
mod sync;
#[cfg(feature = "tokio")]
mod tasks;
mod worker;

pub use answer::{Answer, AnswerConfig};
pub use burst::Burst;
pub use dataplane::{Dataplane, DataplaneConfig, DataplaneWorker, Stop, WorkerRxq};
pub use device::{Rss, RssFields, SteerRule};
pub use error::Error;
pub use flow::{FlowId, FlowTable};
pub use frame::{Frame, View, ViewMut};
pub use lpm::Lpm;
/// The maximum number of entries of a frame.
pub const MAX_SEGS: usize = millrace_sys::MR_MAX_SEGS as usize;
pub use meta::{Meta, Time, Vlan};
pub use millrace_sys::{
    mr_link as Link, mr_pool_stats as PoolStats, mr_rx_stats as RxStats, mr_tx_stats as TxStats,
};
pub use pool::{Cache, Context, Level, Pool, PoolConfig, Safety};
pub use port::{Port, PortInfo, Rxq, Txq};
pub use rules::{Rule, RuleId, RuleStats, Rules, RulesSent};
pub use worker::{Idle, Pause, Worker, WorkerStats, Workers, WorkersConfig};

/// The version of the loaded library, such as "0.1.0".
#[must_use]
pub fn version() -> &'static str {
    // SAFETY: a constant string.
    unsafe { std::ffi::CStr::from_ptr(millrace_sys::mr_version()) }
        .to_str()
        .unwrap_or_default()
}
