// SPDX-License-Identifier: BSD-3-Clause
//! What the interface promises, on ports in memory: owners, threads, waiting,
//! errors. Each test ends with every page back in its pool.
mod common;

use common::{at_rest, frame, pair, pool, wait};
use millrace::{Burst, Cache, Context, Level, Pool, PoolConfig, Port, Safety};
use std::sync::{Arc, Mutex};
use std::thread;

#[test]
fn frames_pass_through_a_cable_in_order() {
    let pool = pool(Safety::Poison);
    let mut cache = Cache::new(&pool).unwrap();
    let [(_, mut tx), (mut rx, _)] = pair(&pool, "");
    let mut burst = Burst::<32>::new(&pool);

    for i in 0..10 {
        burst.push(frame(&mut cache, &[i; 60])).ok().unwrap();
    }
    assert_eq!(tx.send(&mut cache, &mut burst), 10);
    assert!(burst.is_empty());
    assert_eq!(rx.receive(&mut cache, &mut burst), 10);
    let bytes: Vec<u8> = burst.iter().map(|frame| frame.bytes()[59]).collect();
    assert_eq!(bytes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(burst.pop().unwrap().view().bytes(), [0; 60]);
    assert_eq!((burst.n_entries(), cache.free(&mut burst)), (9, 9));
    assert_eq!((rx.stats().delivered, tx.stats().accepted), (10, 10));
    drop((tx, rx, cache));
    at_rest(&pool);
}

#[test]
fn frames_that_a_queue_does_not_take_stay() {
    let pool = pool(Safety::States);
    let mut cache = Cache::new(&pool).unwrap();
    let [(_, mut tx), (mut rx, _)] = pair(&pool, "");
    let mut burst = Burst::<32>::new(&pool);

    while burst.alloc(&mut cache, 60).is_some() {}
    assert_eq!(burst.n_entries(), 15, "18 entries stay free");
    tx.send(&mut cache, &mut burst);
    while burst.alloc(&mut cache, 60).is_some() {}
    assert_eq!(tx.send(&mut cache, &mut burst), 1);
    assert_eq!(burst.n_entries(), 14);
    let mut others = Burst::<256>::new(&pool);
    assert_eq!(rx.receive(&mut cache, &mut others), 16);
    assert_eq!(tx.send(&mut cache, &mut burst), 14);
    drop((burst, others, tx, rx));
    assert_eq!(pool.stats().n_in_flight, 0);
}

#[test]
fn shared_frames_are_copied_before_they_are_written() {
    let pool = pool(Safety::Poison);
    let mut cache = Cache::new(&pool).unwrap();
    let mut ours = frame(&mut cache, b"the same for all");
    let theirs = ours.share(&mut cache).unwrap();

    assert_eq!(ours.view_mut().push(&mut cache, 4).unwrap_err().errno(), 30); // EROFS
    ours.view_mut().bytes_mut(&mut cache).unwrap()[0] = b'T';
    assert_eq!(ours.view().bytes(), b"The same for all");
    assert_eq!(theirs.view().bytes(), b"the same for all");
    thread::spawn(move || drop(theirs)).join().unwrap();
    drop((ours, cache));
    at_rest(&pool);
}

#[test]
fn frames_grow_into_their_room_and_shrink() {
    let pool = pool(Safety::Counts);
    let mut cache = Cache::new(&pool).unwrap();
    let mut frame = frame(&mut cache, b"payload and padding");
    let mut view = frame.view_mut();

    view.trim(12).unwrap();
    view.push(&mut cache, 2).unwrap();
    view.bytes_mut(&mut cache).unwrap()[..2].copy_from_slice(b"a ");
    view.put(&mut cache, 1).unwrap();
    view.bytes_mut(&mut cache).unwrap()[9] = b'!';
    assert_eq!(view.view().bytes(), b"a payload!");
    view.pull(2).unwrap();
    assert_eq!(frame.view().bytes(), b"payload!");
    let mut view = frame.view_mut();
    assert_eq!(view.pull(8).unwrap_err().errno(), 28); // ENOSPC
    assert_eq!(view.trim(8).unwrap_err().errno(), 28);
    assert_eq!(view.push(&mut cache, 5000).unwrap_err().errno(), 28);
    assert_eq!(view.put(&mut cache, u32::MAX).unwrap_err().errno(), 28);
}

#[test]
fn a_pool_is_sized_for_its_ports() {
    let specs = ["pair:x,ring=4096"; 2];
    let ctx = Context::new().unwrap();
    let mut config = PoolConfig::default();

    config.n_pages = Pool::size_for(&ctx, &specs, 1, 1, &config).unwrap();
    let pool = Pool::new(&ctx, &config).unwrap();
    let _cache = Cache::new(&pool).unwrap();
    let _ports = specs.map(|spec| Port::open(&pool, spec, 1).unwrap());
    assert_eq!(pool.stats().n_pages, u64::from(config.n_pages));
    let error = Pool::size_for(&ctx, &["none:"], 1, 1, &config).unwrap_err();
    assert!(error.to_string().contains("none"), "{error}");
}

#[test]
fn a_queue_has_one_user_and_keeps_its_port() {
    let pool = pool(Safety::Counts);
    let port = Port::open(&pool, "null:", 1).unwrap();
    let rxq = port.rxq(0).unwrap();

    assert!(port.rxq(0).is_none() && port.rxq(0).is_none(), "still");
    assert!(port.rxq(1).is_none() && port.txq(7).is_none());
    drop(rxq);
    let mut rxq = port.rxq(0).unwrap();
    drop(port);
    let thread = thread::spawn({
        let pool = pool.clone();
        move || {
            let mut cache = Cache::new(&pool).unwrap();
            let mut burst = Burst::<256>::new(&pool);
            rxq.receive(&mut cache, &mut burst)
        }
    });
    assert_eq!(thread.join().unwrap(), 256);
    at_rest(&pool);
}

#[test]
fn a_thread_wakes_another() {
    let pool = pool(Safety::States);
    let [(_, mut tx), (mut rx, _)] = pair(&pool, "");
    let receiver = thread::spawn({
        let pool = pool.clone();
        move || {
            let mut cache = Cache::new(&pool).unwrap();
            let mut burst = Burst::<32>::new(&pool);
            while rx.receive(&mut cache, &mut burst) == 0 {
                if let Some(fd) = rx.arm() {
                    wait(&fd);
                }
            }
            burst.pop().unwrap()
        }
    });
    let mut cache = Cache::new(&pool).unwrap();
    let mut burst = Burst::<32>::new(&pool);
    burst.push(frame(&mut cache, b"wake up")).ok().unwrap();
    tx.send(&mut cache, &mut burst);
    assert_eq!(receiver.join().unwrap().view().bytes(), b"wake up");
    drop(tx);
    assert_eq!(pool.stats().n_in_flight, 0);
}

#[test]
fn errors_have_the_reason_of_the_library() {
    let pool = pool(Safety::Counts);
    let error = Port::open(&pool, "null:,len=1", 1).err().unwrap();
    assert_eq!(error.errno(), 22);
    assert!(error.to_string().contains("len"), "{error}");
    assert_eq!(
        std::io::Error::from(error).kind(),
        std::io::ErrorKind::InvalidInput
    );
    assert!(
        Port::open(&pool, "null:\0", 1)
            .err()
            .unwrap()
            .to_string()
            .contains("NUL")
    );
    let config = PoolConfig {
        page_bytes: 1000,
        ..PoolConfig::default()
    };
    let error = Pool::new(&Context::new().unwrap(), &config).err().unwrap();
    assert!(error.to_string().contains("1000"), "{error}");
}

#[test]
fn the_log_reaches_the_program() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let hook = {
        let lines = lines.clone();
        move |level, line: &str| {
            lines.lock().unwrap().push((level, line.to_owned()));
            panic!("a hook that panics loses its line");
        }
    };
    let config = PoolConfig {
        safety: Safety::States,
        ..PoolConfig::default()
    };
    let pool = Pool::new(&Context::with_log(hook).unwrap(), &config).unwrap();
    let mut cache = Cache::new(&pool).unwrap();
    drop(frame(&mut cache, b"of this thread"));
    // Another thread uses the cache, and does not say so.
    thread::spawn(move || drop(cache.alloc(60))).join().unwrap();
    let lines = lines.lock().unwrap();
    assert!(
        lines
            .iter()
            .any(|(level, line)| *level == Level::Error && line.contains("second thread")),
        "{lines:?}"
    );
}

#[test]
fn other_pools_are_refused() {
    let (ours, theirs) = (pool(Safety::Counts), pool(Safety::Counts));
    let mut cache = Cache::new(&ours).unwrap();
    let mut burst = Burst::<32>::new(&theirs);
    let rejected = burst.push(frame(&mut cache, b"ours")).err().unwrap();
    let panics = thread::spawn(move || cache.free(&mut burst)).join();
    assert!(panics.is_err());
    drop(rejected);
    assert_eq!(
        (ours.stats().n_in_flight, theirs.stats().n_in_flight),
        (0, 0)
    );
}

#[test]
fn forgotten_frames_leave_their_pool() {
    let pool = pool(Safety::Counts);
    let mut cache = Cache::new(&pool).unwrap();
    std::mem::forget(frame(&mut cache, b"lost"));
    drop(cache);
    assert_eq!(pool.stats().n_in_flight, 1);
}
