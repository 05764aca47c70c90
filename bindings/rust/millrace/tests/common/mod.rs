// SPDX-License-Identifier: BSD-3-Clause
//! For the tests of several files, each of which uses some of it.
#![allow(dead_code)]
use millrace::{Cache, Context, Frame, Pool, PoolConfig, Port, Rxq, Safety, Txq};
use std::os::fd::AsRawFd;

pub fn pool(safety: Safety) -> Pool {
    let config = PoolConfig {
        n_pages: 2048,
        safety,
        ..PoolConfig::default()
    };
    Pool::new(&Context::new().unwrap(), &config).unwrap()
}

/// The two ends of a cable.
pub fn pair(pool: &Pool, options: &str) -> [(Rxq, Txq); 2] {
    [(); 2].map(|()| {
        let port = Port::open(pool, &format!("pair:x,ring=16{options}"), 1).unwrap();
        (port.rxq(0).unwrap(), port.txq(0).unwrap())
    })
}

pub fn frame(cache: &mut Cache, content: &[u8]) -> Frame {
    let mut frame = cache.alloc(content.len() as u32).unwrap();
    frame
        .view_mut()
        .bytes_mut(cache)
        .unwrap()
        .copy_from_slice(content);
    frame
}

/// Every page is free, and none was freed twice or written to while free.
pub fn at_rest(pool: &Pool) {
    let stats = pool.stats();
    assert_eq!((stats.n_in_flight, stats.n_free), (0, stats.n_pages));
    assert_eq!(
        stats.free_double + stats.free_invalid + stats.poison_broken,
        0
    );
}

/// poll(2), with a deadline.
pub fn wait(fd: &impl AsRawFd) {
    #[repr(C)]
    struct PollFd(i32, i16, i16);
    unsafe extern "C" {
        fn poll(fds: *mut PollFd, n: u64, timeout_ms: i32) -> i32;
    }
    let mut fds = PollFd(fd.as_raw_fd(), 1, 0);
    // SAFETY: one fd, which is open.
    let n = unsafe { poll(&raw mut fds, 1, 60_000) };
    assert_eq!(n, 1, "nobody woke us");
}
