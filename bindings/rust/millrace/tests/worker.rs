// SPDX-License-Identifier: BSD-3-Clause
//! Workers, on threads of the library and of the program.
mod common;

use common::{at_rest, frame, pool, wait};
use millrace::{Burst, Cache, Idle, Pool, Port, Safety, Worker, Workers, WorkersConfig};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

fn config(n_workers: u32, idle: Idle) -> WorkersConfig {
    WorkersConfig {
        n_workers,
        idle,
        ..WorkersConfig::default()
    }
}

fn open(pool: &Pool, specs: [&str; 2]) -> [Port; 2] {
    specs.map(|spec| Port::open(pool, spec, 1).unwrap())
}

/// Forward between two ports until the worker is stopped.
fn forward(worker: &mut Worker, pool: &Pool, mut on_moved: impl FnMut(usize)) {
    let mut cache = Cache::new(pool).unwrap();
    let mut burst = Burst::<32>::new(pool);
    let mut n = 0;

    while worker.wait(n) {
        n = worker.serve();
        for i in 0..worker.n_rxqs() {
            n += worker.receive(i, &mut cache, &mut burst);
            worker.send(1 - worker.port_of(i), &mut cache, &mut burst);
            cache.free(&mut burst);
        }
        on_moved(n);
    }
}

#[test]
fn threads_of_the_library_run_until_they_are_stopped() {
    let pool = pool(Safety::States);
    let ports = open(&pool, ["null:", "null:"]);
    let workers = Workers::new(&ports.each_ref(), &config(1, Idle::Poll)).unwrap();

    for _ in 0..2 {
        let n_moved = AtomicUsize::new(0);
        workers
            .run(|worker| {
                assert_eq!(workers.run(|_| ()).unwrap_err().errno(), 16); // EBUSY
                assert_eq!(workers.attach(0).err().unwrap().errno(), 16);
                forward(worker, &pool, |n| {
                    if n_moved.fetch_add(n, Ordering::Relaxed) > 10_000 {
                        workers.stop();
                    }
                });
            })
            .unwrap();
        assert!(n_moved.into_inner() > 10_000);
    }
    assert_eq!(
        Workers::new(&ports.each_ref(), &config(1, Idle::Poll))
            .err()
            .unwrap()
            .errno(),
        16
    );
    assert!(ports[0].rxq(0).is_none(), "the workers have it");
    // Counters are there for all to see.
    let stats = ports[0].rxq_stats(0).unwrap();
    assert!(stats.delivered > 0);
    assert!(ports[1].txq_stats(0).unwrap().accepted > 0);
    assert!(ports[0].rxq_stats(99).is_none() && ports[0].txq_stats(99).is_none());
    let line = format!("queue 0 rx delivered {}\n", stats.delivered);
    assert!(ports[0].stats_text().contains(&line));
    let json = ports[0].stats_json();
    assert!(json.starts_with("{\"port\": ") && json.ends_with("]}"));
    drop(workers);
    assert!(ports[0].rxq(0).is_some());
    drop(ports);
    at_rest(&pool);
}

#[test]
fn a_panic_stops_all_and_goes_on_in_the_caller() {
    let pool = pool(Safety::Counts);
    let ports = open(&pool, ["null:", "null:"]);
    let workers = Workers::new(&ports.each_ref(), &config(1, Idle::Poll)).unwrap();
    let panics = thread::spawn(move || workers.run(|_| panic!("in a worker"))).join();

    assert_eq!(panics.unwrap_err().downcast_ref(), Some(&"in a worker"));
    assert!(ports[0].rxq(0).is_some(), "the workers are gone");
}

#[test]
fn a_thread_of_the_program_sleeps_until_there_is_work() {
    let pool = pool(Safety::States);
    let ports = open(&pool, ["pair:a,ring=16", "pair:b,ring=16"]);
    let [far_a, far_b] = open(&pool, ["pair:a,ring=16", "pair:b,ring=16"]);
    let workers = Workers::new(&ports.each_ref(), &config(1, Idle::Interrupt)).unwrap();
    assert_eq!(workers.len(), 1);
    assert_eq!(workers.attach(1).err().unwrap().errno(), 22);

    let thread = thread::spawn({
        let (workers, pool) = (workers.clone(), pool.clone());
        move || {
            let mut worker = workers.attach(0).unwrap();
            forward(&mut worker, &pool, |_| ());
            // Other loops do their own sleeping.
            assert!(worker.pause(0).is_none(), "stopped");
            worker.stats()
        }
    });
    let mut cache = Cache::new(&pool).unwrap();
    let mut burst = Burst::<32>::new(&pool);
    let (mut tx, mut rx) = (far_a.txq(0).unwrap(), far_b.rxq(0).unwrap());
    for i in 0..10 {
        burst.push(frame(&mut cache, &[i; 60])).ok().unwrap();
        tx.send(&mut cache, &mut burst);
        while rx.receive(&mut cache, &mut burst) == 0 {
            if let Some(fd) = rx.arm() {
                wait(&fd);
            }
        }
        assert_eq!(burst.pop().unwrap().view().bytes(), [i; 60]);
    }
    workers.stop();
    let stats = thread.join().unwrap();
    assert!(stats.rounds >= 10, "{stats:?}");
}

#[test]
fn a_paused_worker_has_an_fd() {
    let pool = pool(Safety::States);
    let ports = open(&pool, ["pair:a,ring=16", "pair:b,ring=16"]);
    let workers = Workers::new(&ports.each_ref(), &config(1, Idle::Interrupt)).unwrap();
    let mut worker = workers.attach(0).unwrap();

    let pause = worker.pause(0).unwrap();
    assert!(pause.timeout().as_millis() > 0);
    thread::scope(|s| {
        s.spawn(|| workers.wake(0));
        wait(&pause.fd().unwrap());
    });
    drop(pause);
    workers.wake(0);
    assert_eq!(worker.pause(0).unwrap().timeout().as_millis(), 0, "called");
    assert_eq!((worker.index(), worker.n_rxqs()), (0, 2));
}

#[test]
fn frames_are_handed_to_the_worker_that_has_the_queue() {
    let pool = pool(Safety::States);
    let ports = open(&pool, ["pair:a,ring=16", "pair:b,ring=16"]);
    let far = Port::open(&pool, "pair:a,ring=16", 1).unwrap();
    let Ok(workers) = Workers::new(&ports.each_ref(), &config(2, Idle::Poll)) else {
        return; // on one core
    };
    let [mut first, mut second] = [0, 1].map(|i| workers.attach(i).unwrap());
    let mut cache = Cache::new(&pool).unwrap();
    let mut burst = Burst::<32>::new(&pool);
    let mut rx = far.rxq(0).unwrap();

    for i in [1, 2] {
        for worker in [&mut first, &mut second] {
            burst.push(frame(&mut cache, &[i; 60])).ok().unwrap();
            assert_eq!(worker.send(0, &mut cache, &mut burst), 1);
            assert!(burst.is_empty());
        }
    }
    assert_eq!(first.stats().handed_off + second.stats().handed_off, 2);
    assert_eq!(first.serve() + second.serve(), 2);
    assert_eq!(rx.receive(&mut cache, &mut burst), 4);
    // What is left in a ring is freed with the workers.
    second.send(0, &mut cache, &mut burst);
    first.send(0, &mut cache, &mut burst);
    drop((first, second, workers, ports, rx, far, burst, cache));
    at_rest(&pool);
}
