// SPDX-License-Identifier: BSD-3-Clause
//! Queues and workers in tasks of tokio.
#![cfg(feature = "tokio")]
mod common;

use common::{at_rest, frame, pair, pool};
use millrace::{Burst, Cache, Idle, Port, Safety, Workers, WorkersConfig};
use std::time::Duration;
use tokio::time::timeout;
use tokio::{join, select, task};

/// Something did not wake up.
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "current_thread")]
async fn block_on<T>(f: impl Future<Output = T>) -> T {
    timeout(LIMIT, f).await.expect("nobody woke us")
}

#[test]
fn a_task_sleeps_until_a_frame_arrives() {
    let pool = pool(Safety::Poison);
    let [(_, mut tx), (mut rx, _)] = pair(&pool, "");
    let receive = async {
        let mut cache = Cache::new(&pool).unwrap();
        let mut burst = Burst::<32>::new(&pool);
        for i in 0..10 {
            assert_eq!(rx.recv(&mut cache, &mut burst).await.unwrap(), 1);
            assert_eq!(burst.pop().unwrap().view().bytes(), [i; 60]);
        }
    };
    let send = async {
        let mut cache = Cache::new(&pool).unwrap();
        let mut burst = Burst::<32>::new(&pool);
        for i in 0..10 {
            // The receiver waits, then has taken the frame.
            task::yield_now().await;
            burst.push(frame(&mut cache, &[i; 60])).ok().unwrap();
            tx.send_all(&mut cache, &mut burst).await.unwrap();
            while tx.stats().pending > 0 {
                task::yield_now().await;
                tx.send(&mut cache, &mut burst);
            }
        }
    };
    block_on(async { join!(receive, send) });
    drop((rx, tx));
    at_rest(&pool);
}

#[test]
fn a_task_sleeps_until_there_is_room() {
    let pool = pool(Safety::States);
    let [(_, mut tx), (mut rx, _)] = pair(&pool, "");
    let send = async {
        let mut cache = Cache::new(&pool).unwrap();
        let mut burst = Burst::<64>::new(&pool);
        while burst.alloc(&mut cache, 60).is_some() {}
        assert_eq!(burst.n_entries(), 47, "more than the ring has");
        tx.send_all(&mut cache, &mut burst).await.unwrap();
        assert!(burst.is_empty());
    };
    let receive = async {
        let mut cache = Cache::new(&pool).unwrap();
        let mut burst = Burst::<64>::new(&pool);
        while burst.n_entries() < 47 {
            let n = rx.recv(&mut cache, &mut burst).await.unwrap();
            assert!(n > 0 && n <= 16);
        }
        assert_eq!(rx.recv(&mut cache, &mut burst).await.unwrap(), 0, "full");
    };
    block_on(async { join!(send, receive) });
}

#[test]
fn a_cancelled_receive_loses_nothing() {
    let pool = pool(Safety::States);
    let [(_, mut tx), (mut rx, _)] = pair(&pool, "");
    let mut cache = Cache::new(&pool).unwrap();
    let mut burst = Burst::<32>::new(&pool);

    block_on(async {
        for i in 0..10 {
            select! {
                biased;
                _ = rx.recv(&mut cache, &mut burst) => panic!("nothing was sent"),
                () = task::yield_now() => (),
            }
            burst.push(frame(&mut cache, &[i; 60])).ok().unwrap();
            tx.send(&mut cache, &mut burst);
            assert_eq!(rx.recv(&mut cache, &mut burst).await.unwrap(), 1);
            cache.free(&mut burst);
        }
    });
    assert_eq!(rx.stats().delivered, 10);
}

#[test]
fn a_busy_port_leaves_time_for_other_tasks() {
    let pool = pool(Safety::Counts);
    let port = Port::open(&pool, "null:", 1).unwrap();
    let (mut rx, mut tx) = (port.rxq(0).unwrap(), port.txq(0).unwrap());
    let mut cache = Cache::new(&pool).unwrap();
    let mut burst = Burst::<32>::new(&pool);
    let forward = async {
        loop {
            rx.recv(&mut cache, &mut burst).await.unwrap();
            tx.send_all(&mut cache, &mut burst).await.unwrap();
        }
    };
    let short = Duration::from_millis(1);
    let end = block_on(async { timeout(short, forward).await });
    assert!(end.is_err(), "time is up");
    assert!(tx.stats().accepted > 0);
}

#[test]
fn a_worker_is_a_task_until_it_is_stopped() {
    let pool = pool(Safety::States);
    let specs = ["pair:a,ring=16", "pair:b,ring=16"];
    let ports = specs.map(|spec| Port::open(&pool, spec, 1).unwrap());
    let [a, b] = specs.map(|spec| Port::open(&pool, spec, 1).unwrap());
    for idle in [Idle::Adaptive, Idle::Interrupt] {
        let config = WorkersConfig {
            n_workers: 1,
            idle,
            ..WorkersConfig::default()
        };
        let workers = Workers::new(&ports.each_ref(), &config).unwrap();
        let mut worker = workers.attach(0).unwrap();
        let forward = async {
            let mut cache = Cache::new(&pool).unwrap();
            let mut burst = Burst::<32>::new(&pool);
            let mut n = 0;
            while worker.idle(n).await.unwrap() {
                n = 0;
                for i in 0..worker.n_rxqs() {
                    n += worker.receive(i, &mut cache, &mut burst);
                    worker.send(1 - worker.port_of(i), &mut cache, &mut burst);
                }
            }
        };
        let talk = async {
            let mut cache = Cache::new(&pool).unwrap();
            let mut burst = Burst::<32>::new(&pool);
            let (mut tx, mut rx) = (a.txq(0).unwrap(), b.rxq(0).unwrap());
            for i in 0..10 {
                burst.push(frame(&mut cache, &[i; 60])).ok().unwrap();
                tx.send_all(&mut cache, &mut burst).await.unwrap();
                rx.recv(&mut cache, &mut burst).await.unwrap();
                assert_eq!(burst.pop().unwrap().view().bytes(), [i; 60]);
            }
            workers.stop();
        };
        block_on(async { join!(forward, talk) });
    }
}
