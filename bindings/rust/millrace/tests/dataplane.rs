// SPDX-License-Identifier: BSD-3-Clause
//! Data planes: workers, ways to stop, errors, and that nothing is left.
mod common;

use common::{at_rest, frame};
use millrace::{
    Answer, AnswerConfig, Burst, Cache, DataplaneConfig, DataplaneWorker, FlowTable, Lpm, Port,
    Safety, Stop, WorkerRxq,
};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

fn config(n_workers: u32) -> DataplaneConfig {
    DataplaneConfig {
        n_workers,
        safety: Safety::States,
        kept_pages: 512,
        ..DataplaneConfig::default()
    }
}

fn is_one_core() -> bool {
    thread::available_parallelism().is_ok_and(|n| n.get() < 2)
}

#[test]
fn frames_pass_between_its_ports_until_it_is_stopped() {
    let dataplane = config(1)
        .open(&["pair:a,ring=64", "pair:b,ring=64"])
        .unwrap();
    let pool = dataplane.pool().clone();
    let [far_a, far_b] = ["pair:a", "pair:b"].map(|spec| Port::open(&pool, spec, 1).unwrap());

    thread::scope(|s| {
        let running = s.spawn(|| {
            dataplane.run(|worker, rx, burst: &mut Burst<32>| {
                worker.send(1 - rx.port, burst);
            })
        });
        let mut cache = Cache::new(&pool).unwrap();
        let mut burst = Burst::<32>::new(&pool);
        let (mut tx, mut rx) = (far_a.txq(0).unwrap(), far_b.rxq(0).unwrap());
        for i in 0..20 {
            burst.push(frame(&mut cache, &[i; 60])).ok().unwrap();
            tx.send(&mut cache, &mut burst);
            while rx.receive(&mut cache, &mut burst) == 0 {
                thread::yield_now();
            }
            assert_eq!(burst.pop().unwrap().view().bytes(), [i; 60]);
            // Counters are for all to see, while it runs.
            let stats = dataplane.ports()[0].rxq_stats(0).unwrap();
            assert_eq!(stats.delivered, u64::from(i) + 1);
        }
        assert!(dataplane.text().contains("queue 0 rx delivered 20\n"));
        assert_eq!(
            dataplane
                .run(|_, _, _: &mut Burst<32>| ())
                .unwrap_err()
                .errno(),
            16
        );
        dataplane.stopper().stop();
        running.join().unwrap().unwrap();
    });
    assert!(dataplane.worker_stats(0).unwrap().rounds >= 20);
    assert!(dataplane.worker_stats(1).is_none());
    assert!(dataplane.ports()[0].rxq(0).is_none(), "the workers have it");
    let json = dataplane.json();
    assert!(json.starts_with("{\"ports\": [") && json.ends_with("}}"));
    drop((far_a, far_b, dataplane));
    at_rest(&pool);
}

#[test]
fn each_worker_has_a_thread_and_state_of_its_own() {
    if is_one_core() {
        return;
    }
    let dataplane = config(2).open(&["null:queues=2", "null:queues=2"]).unwrap();
    let (stop, n_done) = (dataplane.stopper(), AtomicUsize::new(0));
    assert_eq!(dataplane.n_workers(), 2);

    for _ in 0..2 {
        n_done.store(0, Ordering::Relaxed);
        dataplane
            .run_with(|index| {
                let (thread, mut n, stop, n_done) = (thread::current().id(), 0, &stop, &n_done);
                move |worker, rx, burst: &mut Burst<64>| {
                    assert_eq!((worker.index(), rx.queue), (index, index));
                    assert_eq!(thread::current().id(), thread);
                    let view = burst.iter_mut().next();
                    assert!(view.is_none_or(|mut view| view.bytes_mut(worker.cache()).is_ok()));
                    n += worker.send(1 - rx.port, burst);
                    if n > 10_000 && n < 20_000 {
                        n = 20_000;
                        if n_done.fetch_add(1, Ordering::Relaxed) == 1 {
                            stop.stop();
                        }
                    }
                }
            })
            .unwrap();
    }
    let pool = dataplane.pool().clone();
    drop((stop, dataplane));
    at_rest(&pool);
}

#[test]
fn frames_are_handed_to_the_worker_that_has_the_queue() {
    if is_one_core() {
        return;
    }
    let dataplane = config(2).open(&["null:queues=2", "null:queues=1"]).unwrap();
    let stop = dataplane.stopper();
    let handed_off = || -> u64 {
        (0..2)
            .filter_map(|i| Some(dataplane.worker_stats(i)?.handed_off))
            .sum()
    };
    dataplane
        .run(|worker, _, burst: &mut Burst<32>| {
            worker.send(1, burst);
            if handed_off() > 1000 {
                stop.stop();
            }
        })
        .unwrap();
    let pool = dataplane.pool().clone();
    drop((stop, dataplane));
    at_rest(&pool);
}

#[test]
fn a_stop_before_it_runs_counts_once() {
    let dataplane = config(1).open(&["null:"]).unwrap();
    let (stop, n_calls) = (dataplane.stopper(), AtomicUsize::new(0));
    stop.stop();
    let count = |_: &mut DataplaneWorker, _: WorkerRxq, _: &mut Burst<32>| {
        n_calls.fetch_add(1, Ordering::Relaxed);
    };
    dataplane.run(count).unwrap();
    assert_eq!(n_calls.swap(0, Ordering::Relaxed), 1, "one round");
    dataplane
        .run(|worker, rx, burst: &mut Burst<32>| {
            count(worker, rx, burst);
            if n_calls.load(Ordering::Relaxed) == 10 {
                stop.stop();
            }
        })
        .unwrap();
    assert_eq!(n_calls.into_inner(), 10);
}

static STOP: OnceLock<Stop> = OnceLock::new();

extern "C" fn on_signal(_number: i32) {
    if let Some(stop) = STOP.get() {
        stop.stop();
    }
}

#[test]
fn a_signal_handler_may_stop_it() {
    const SIGUSR1: i32 = 10;
    unsafe extern "C" {
        fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
        fn raise(number: i32) -> i32;
    }
    let dataplane = config(1).open(&["pair:idle"]).unwrap();
    STOP.set(dataplane.stopper()).ok().unwrap();
    // SAFETY: the handler does what a handler may do.
    unsafe { signal(SIGUSR1, on_signal) };
    thread::scope(|s| {
        s.spawn(|| {
            while dataplane
                .worker_stats(0)
                .is_none_or(|stats| stats.rounds == 0)
            {
                thread::yield_now();
            }
            // SAFETY: it has a handler.
            unsafe { raise(SIGUSR1) };
        });
        dataplane.run(|_, _, _: &mut Burst<32>| ()).unwrap();
    });
}

#[test]
fn a_panic_stops_all_and_goes_on_in_the_caller() {
    let dataplane = config(1).open(&["null:"]).unwrap();
    let pool = dataplane.pool().clone();
    let panics =
        thread::spawn(move || dataplane.run(|_, _, _: &mut Burst<32>| panic!("in a worker")))
            .join();
    assert_eq!(panics.unwrap_err().downcast_ref(), Some(&"in a worker"));
    at_rest(&pool);
}

#[test]
fn frames_and_handles_may_outlive_it() {
    let dataplane = config(1).open(&["null:"]).unwrap();
    let (stop, kept) = (dataplane.stopper(), OnceLock::new());
    dataplane
        .run(|_, _, burst: &mut Burst<32>| {
            if let Some(frame) = burst.pop() {
                let _ = kept.set(frame);
                stop.stop();
            }
        })
        .unwrap();
    let pool = dataplane.pool().clone();
    drop(dataplane);
    assert!(pool.stats().n_in_flight > 0);
    stop.stop();
    drop((stop, kept));
    at_rest(&pool);
}

#[test]
fn flows_are_found_until_they_are_removed() {
    let ctx = millrace::Context::new().unwrap();
    let mut table = FlowTable::<4, String>::new(&ctx, 1000).unwrap();
    let keys: Vec<[u8; 4]> = (0..1000_u32).map(u32::to_ne_bytes).collect();
    for key in &keys {
        assert!(table.find(key).is_none());
        table.insert(*key, format!("{key:?}")).unwrap();
    }
    assert!(table.insert([255; 4], String::new()).is_none(), "full");
    *table.entry(keys[7]).unwrap() = "changed".into();
    let mut found = vec![None; 1000];
    assert_eq!(table.find_bulk(&keys, &mut found), 1000);
    assert_eq!(table.get(found[7].unwrap()).unwrap(), "changed");
    for (key, id) in keys.iter().zip(&found).skip(500) {
        assert_eq!(table.remove(id.unwrap()), Some(format!("{key:?}")));
        assert!(table.remove(id.unwrap()).is_none());
    }
    assert_eq!(table.find_bulk(&keys, &mut found), 500);
    assert_eq!((table.len(), table.iter().count()), (500, 500));
    assert!(!table.is_empty() && found[500].is_none());
    assert_eq!(FlowTable::<4, ()>::new(&ctx, 0).err().unwrap().errno(), 22);
}

#[test]
fn routes_change_while_other_threads_look_them_up() {
    let ctx = millrace::Context::new().unwrap();
    let mut routes = Lpm::<16>::new(&ctx, 100).unwrap();
    let (net, host) = ([0x20; 16], [0x20; 16]);
    let is_done = AtomicBool::new(false);
    routes.add(net, 32, 1).unwrap();
    thread::scope(|s| {
        let readers = [(); 2].map(|()| {
            s.spawn(|| {
                let mut hops = [None; 100];
                while !is_done.load(Ordering::Relaxed) {
                    routes.find_bulk(&[host; 100], &mut hops);
                    assert!(hops.iter().all(|hop| matches!(hop, Some(1 | 2))));
                }
            })
        });
        for _ in 0..1000 {
            routes.add(host, 128, 2).unwrap();
            assert_eq!(routes.find(&host), Some(2));
            routes.remove(host, 128).unwrap();
            assert_eq!(routes.find(&host), Some(1));
        }
        is_done.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
    assert!(routes.trim() > 0);
    assert_eq!(routes.find(&[0x21; 16]), None);
    assert_eq!(routes.remove(host, 128).unwrap_err().errno(), 2);
    assert_eq!(routes.add(host, 129, 0).unwrap_err().errno(), 22);
    assert_eq!(Lpm::<4>::new(&ctx, 0).err().unwrap().errno(), 22);
}

#[test]
fn requests_are_answered_and_the_rest_is_left() {
    let dataplane = config(1).open(&["null:"]).unwrap();
    let pool = dataplane.pool().clone();
    let mut cache = Cache::new(&pool).unwrap();
    let mut answer = Answer::new(
        &cache,
        &AnswerConfig {
            mac: [2, 0, 0, 0, 0, 1],
            ipv4: vec![[192, 0, 2, 1].into()],
            ipv6: vec!["2001:db8::1".parse().unwrap()],
            burst: 1,
            per_s: 1,
            ..AnswerConfig::default()
        },
    )
    .unwrap();
    let mut request = [0xff_u8; 60];
    request[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    request[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    request[22..32].copy_from_slice(&[2, 0, 0, 0, 0, 2, 192, 0, 2, 2]);
    request[38..42].copy_from_slice(&[192, 0, 2, 1]);
    let (mut burst, mut answers) = (Burst::<32>::new(&pool), Burst::<32>::new(&pool));
    for bytes in [[7; 60], request, [8; 60], request] {
        burst.push(frame(&mut cache, &bytes)).ok().unwrap();
    }
    answer.take(&mut cache, &mut burst, &mut answers);
    let left: Vec<_> = burst.iter().map(|view| view.bytes()[0]).collect();
    assert_eq!(left, [7, 8]);
    let reply = answers.pop().unwrap();
    assert_eq!(reply.view().bytes()[..6], [2, 0, 0, 0, 0, 2]);
    assert_eq!(reply.view().bytes()[20..28], [0, 2, 2, 0, 0, 0, 0, 1]);
    assert!(answers.is_empty(), "the second is over the rate");
    let stats = answer.stats();
    assert!(stats.contains(&("arp", 1)) && stats.contains(&("limited", 1)));
    let group = AnswerConfig {
        mac: [1; 6],
        ..AnswerConfig::default()
    };
    assert_eq!(Answer::new(&cache, &group).err().unwrap().errno(), 22);
    drop((reply, burst, answers, cache, answer, dataplane));
    at_rest(&pool);
}

#[test]
fn where_frames_go_can_be_said() {
    let specs = ["null:", "null:", "null:"];
    let open = |sends_to: &[Option<usize>]| {
        DataplaneConfig {
            sends_to: sends_to.to_vec(),
            ..config(1)
        }
        .open(&specs)
    };
    let dataplane = open(&[Some(1), Some(0), None]).unwrap();
    let stop = dataplane.stopper();
    dataplane
        .run(|worker, rx, burst: &mut Burst<32>| {
            worker.send([1, 0, 2][rx.port], burst);
            stop.stop();
        })
        .unwrap();
    assert_eq!(open(&[Some(1)]).err().unwrap().errno(), 22);
    assert_eq!(open(&[Some(3), None, None]).err().unwrap().errno(), 22);
}

#[test]
fn a_device_in_memory_says_which_settings_it_has_not() {
    let dataplane = config(1).open(&["null:"]).unwrap();
    let port = &dataplane.ports()[0];
    for refused in [
        port.set_promisc(true),
        port.set_allmulti(true),
        port.set_mac([2; 6]),
        port.set_filter("udp"),
        port.set_rss(&millrace::Rss::default()),
        port.steer(&millrace::SteerRule::default()).map(drop),
        port.unsteer(1),
    ] {
        let why = refused.unwrap_err();
        assert!([2, 22, 95].contains(&why.errno()), "{why}: {}", why.errno());
        assert!(!why.to_string().is_empty());
    }
}
