// SPDX-License-Identifier: BSD-3-Clause
//! Random sequences of calls, with objects of two pools: no sequence that
//! compiles crashes the process, writes into another's frame, or loses a page.
//! Seeds are the same in each run; `MILLRACE_SECONDS=3600 cargo test random`
//! goes on with others.
use millrace::{
    Burst, Cache, Context, Frame, Idle, Meta, Pool, PoolConfig, Port, Rxq, Safety, Time, Txq, Vlan,
    Worker, Workers, WorkersConfig,
};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use std::{env, panic, thread};

/// Panics that are documented.
const REFUSALS: [&str; 4] = [
    "of another pool",
    "no such port",
    "no such rx queue",
    "a frame without metadata",
];

fn is_refusal(why: &(dyn Any + Send)) -> bool {
    why.downcast_ref().is_some_and(|why| REFUSALS.contains(why))
}

/// Of xorshift: below `n`.
fn below(state: &mut u64, n: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 16) as usize % n
}

struct World {
    pools: [Pool; 2],
    caches: Vec<Cache>,
    bursts: Vec<Burst<40>>,
    frames: Vec<Frame>,
    ports: Vec<Port>,
    rxqs: Vec<Rxq>,
    txqs: Vec<Txq>,
    metas: Box<[Meta; 40]>,
    workers: Vec<Workers>,
    attached: Vec<Worker>,
    n: Reached,
}

/// What the sequences were about.
#[derive(Debug, Default)]
struct Reached {
    by_workers: u64,
    handed_off: u64,
    with_meta: u64,
}

impl World {
    fn new() -> Self {
        let context = Context::new().unwrap();
        let config = PoolConfig {
            n_pages: 2048,
            safety: Safety::Poison,
            ..PoolConfig::default()
        };
        let pools = [(); 2].map(|()| Pool::new(&context, &config).unwrap());
        Self {
            caches: pools.iter().map(|p| Cache::new(p).unwrap()).collect(),
            bursts: pools.iter().cycle().take(4).map(Burst::new).collect(),
            pools,
            frames: Vec::new(),
            ports: Vec::new(),
            rxqs: Vec::new(),
            txqs: Vec::new(),
            metas: Box::new([Meta::default(); 40]),
            workers: Vec::new(),
            attached: Vec::new(),
            n: Reached::default(),
        }
    }

    /// Begin with workers, which random calls seldom reach.
    fn begin(&mut self, r: &mut u64) {
        let ports = ["null:", "null:", "pair:x,ring=32", "pair:x,ring=32"]
            .map(|spec| Port::open(&self.pools[0], spec, 1).unwrap());
        let n_cores = thread::available_parallelism().map_or(1, usize::from);
        let config = WorkersConfig {
            n_workers: 1 + below(r, n_cores.min(2)) as u32,
            ..WorkersConfig::default()
        };
        let workers = Workers::new(&ports.each_ref(), &config).unwrap();
        self.attached
            .extend([0, 1].map(|i| workers.attach(i)).into_iter().flatten());
        self.workers.push(workers);
        self.ports.extend(ports);
    }

    fn step(&mut self, r: &mut u64) {
        let (pool, cache, burst) = (below(r, 2), below(r, 2), below(r, 4));
        let len = [0, 1, 60, 1514, 4096, 5000][below(r, 6)];
        match below(r, 5) {
            0 => return self.step_workers(r, cache, burst),
            1 => return self.step_metas(r, cache, burst),
            _ => (),
        }
        let cache = &mut self.caches[cache];
        let burst = &mut self.bursts[burst];
        let n_frames = self.frames.len();
        let i = below(r, n_frames.max(1));
        match (below(r, 16), self.frames.get_mut(i)) {
            (0, _) => {
                let spec = [
                    "null:",
                    "pair:x,ring=32",
                    "pair:x,ring=32,sg=on",
                    "pair:y,ring=32,queues=2",
                ][below(r, 4)];
                self.ports.extend(Port::open(&self.pools[pool], spec, 1));
            }
            (1, _) if self.ports.len() > below(r, 8) => {
                let i = below(r, self.ports.len());
                drop(self.ports.swap_remove(i));
            }
            (2, _) if !self.ports.is_empty() => {
                let port = below(r, self.ports.len());
                self.rxqs.extend(self.ports[port].rxq(below(r, 2) as u32));
                self.txqs.extend(self.ports[port].txq(below(r, 2) as u32));
            }
            (3, _) if self.rxqs.len() > below(r, 6) => drop(self.rxqs.swap_remove(0)),
            (4, _) if self.txqs.len() > below(r, 6) => drop(self.txqs.swap_remove(0)),
            (5 | 6, _) if !self.rxqs.is_empty() => {
                let i = below(r, self.rxqs.len());
                let rxq = &mut self.rxqs[i];
                rxq.receive(cache, burst);
                rxq.arm();
            }
            (7 | 8, _) if !self.txqs.is_empty() => {
                let i = below(r, self.txqs.len());
                self.txqs[i].send(cache, burst);
                self.txqs[i].arm();
            }
            (9, _) => drop(burst.alloc(cache, len)),
            (10, _) if n_frames < 200 => {
                self.frames.extend(cache.alloc(len));
                self.frames.extend(burst.pop());
            }
            (11, Some(_)) => drop(burst.push(self.frames.swap_remove(i))),
            (12, Some(frame)) if n_frames < 200 => {
                let other = frame.share(cache).ok();
                self.frames.extend(other);
            }
            (13, Some(frame)) => {
                let mut view = frame.view_mut();
                let _ = view.push(cache, len);
                let _ = view.put(cache, len);
                let _ = (view.pull(len), view.trim(len));
                if let Ok(bytes) = view.bytes_mut(cache) {
                    bytes.fill(7);
                }
            }
            (14, Some(_)) => {
                let frame = self.frames.swap_remove(i);
                thread::spawn(move || frame.view().bytes().len())
                    .join()
                    .unwrap();
            }
            (15, _) => drop(cache.free(burst)),
            _ => {
                for mut view in burst.iter_mut() {
                    let _ = view.pull(1);
                    view.bytes_mut(cache).map(|bytes| bytes.fill(9)).ok();
                }
            }
        }
    }
}

impl World {
    /// Workers of up to three ports, on this thread or on those of `run()`.
    fn step_workers(&mut self, r: &mut u64, cache: usize, burst: usize) {
        let (cache, burst) = (&mut self.caches[cache], &mut self.bursts[burst]);
        let (w, a) = (below(r, 2), below(r, 4));
        match (below(r, 12), self.workers.get(w), self.attached.get_mut(a)) {
            (0, _, _) if self.workers.len() < 2 && below(r, 4) == 0 => {
                let config = WorkersConfig {
                    n_workers: below(r, 3) as u32,
                    idle: [Idle::Adaptive, Idle::Poll, Idle::Interrupt][below(r, 3)],
                    handoff_entries: [0, 2, 3, 64][below(r, 4)],
                    ..WorkersConfig::default()
                };
                let ports: Vec<_> = self.ports.iter().rev().take(below(r, 4)).collect();
                self.workers.extend(Workers::new(&ports, &config));
            }
            (2, Some(_), _) if below(r, 8) == 0 => drop(self.workers.swap_remove(w)),
            (3, Some(workers), _) => self.attached.extend(workers.attach(below(r, 3))),
            (4, _, Some(_)) => drop(self.attached.swap_remove(a)),
            (5, Some(workers), _) if below(r, 16) == 0 => run_workers(workers),
            (5, Some(workers), _) => workers.wake(below(r, 3)),
            (6 | 7, _, Some(worker)) => {
                worker.receive(below(r, 2), cache, burst);
            }
            (8 | 9, _, Some(worker)) => {
                burst.alloc(cache, 60);
                self.n.by_workers += worker.send(below(r, 3), cache, burst) as u64;
                self.n.handed_off += worker.stats().handed_off;
            }
            (10, _, Some(worker)) => {
                worker.serve();
                worker.wait(1);
            }
            (11, _, Some(worker)) => {
                if let Some(pause) = worker.pause(below(r, 2)) {
                    match below(r, 3) {
                        0 => drop(pause.fd().map(|fd| fd.try_clone_to_owned())),
                        1 => std::mem::forget(pause),
                        _ => (),
                    }
                }
            }
            _ => (),
        }
    }

    fn step_metas(&mut self, r: &mut u64, cache: usize, burst: usize) {
        let (cache, burst) = (&mut self.caches[cache], &mut self.bursts[burst]);
        let meta = &mut self.metas[below(r, 40)];
        match below(r, 8) {
            0 => meta.set_vlan(Vlan {
                proto: [0, 0x8100, 0x88a8, 0xffff][below(r, 4)],
                tci: below(r, 0x1_0000) as u16,
            }),
            1 => meta.set_launch_time(Time {
                ns: [0, 1, u64::MAX][below(r, 3)],
                clock: [1, 11, 0xffff, 0x1234][below(r, 4)],
            }),
            2 => *meta = Meta::default(),
            3 | 4 if !self.rxqs.is_empty() => {
                let i = below(r, self.rxqs.len());
                self.rxqs[i].receive_meta(cache, burst, &mut self.metas);
            }
            _ if !self.txqs.is_empty() => {
                let i = below(r, self.txqs.len());
                let n = [40, 40, 40, 0, 1][below(r, 5)];
                let n_sent = self.txqs[i].send_meta(cache, burst, &self.metas[..n]);
                self.n.with_meta += n_sent as u64;
            }
            _ => (),
        }
    }
}

/// On threads of their own, some rounds of each.
fn run_workers(workers: &Workers) {
    let _ = workers.run(|worker| {
        for round in 0..20 {
            let n = worker.serve();
            if !worker.wait(n + round % 8) {
                break;
            }
        }
    });
}

fn run(seed: u64, reached: &mut Reached) {
    let mut world = World::new();
    let mut r = seed;
    let mut n_refused = 0;

    world.begin(&mut r);
    for _ in 0..2000 {
        if let Err(why) = catch_unwind(AssertUnwindSafe(|| world.step(&mut r))) {
            assert!(
                is_refusal(&*why),
                "seed {seed}: {:?}",
                why.downcast_ref::<String>()
            );
            n_refused += 1;
        }
    }
    assert!(n_refused > 0 && n_refused < 1500, "{n_refused} panics");
    reached.by_workers += world.n.by_workers;
    reached.handed_off += world.n.handed_off;
    reached.with_meta += world.n.with_meta;
    let pools = world.pools.clone();
    drop(world);
    for pool in pools {
        let stats = pool.stats();
        assert_eq!(
            (stats.n_in_flight, stats.n_free),
            (0, stats.n_pages),
            "seed {seed}"
        );
        assert_eq!(
            stats.free_double + stats.free_invalid + stats.poison_broken,
            0
        );
    }
}

#[test]
fn no_random_sequence_breaks_anything() {
    let seconds = env::var("MILLRACE_SECONDS").map_or(0, |s| s.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |why| {
        if !is_refusal(why.payload()) {
            hook(why);
        }
    }));
    let mut n = 0;
    let mut reached = Reached::default();
    while n < 20 || Instant::now() < end {
        n += 1;
        run(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(n), &mut reached);
    }
    println!("{n} sequences of 2000 calls: {reached:?}");
    assert!(reached.by_workers > 0 && reached.with_meta > 0);
}
