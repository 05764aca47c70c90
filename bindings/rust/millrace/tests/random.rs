// SPDX-License-Identifier: BSD-3-Clause
//! Random sequences of calls, with objects of two pools: no sequence that
//! compiles crashes the process, writes into another's frame, or loses a page.
//! Seeds are the same in each run; `MILLRACE_SECONDS=3600 cargo test random`
//! goes on with others.
use millrace::{Burst, Cache, Context, Frame, Pool, PoolConfig, Port, Rxq, Safety, Txq};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use std::{env, panic, thread};

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
        }
    }

    fn step(&mut self, r: &mut u64) {
        let (pool, cache, burst) = (below(r, 2), below(r, 2), below(r, 4));
        let len = [0, 1, 60, 1514, 4096, 5000][below(r, 6)];
        let cache = &mut self.caches[cache];
        let burst = &mut self.bursts[burst];
        let n_frames = self.frames.len();
        let i = below(r, n_frames.max(1));
        match (below(r, 16), self.frames.get_mut(i)) {
            (0, _) => {
                let spec = ["null:", "pair:x,ring=32", "pair:x,ring=32,sg=on"][below(r, 3)];
                self.ports.extend(Port::open(&self.pools[pool], spec, 1));
            }
            (1, _) if !self.ports.is_empty() => {
                let i = below(r, self.ports.len());
                drop(self.ports.swap_remove(i));
            }
            (2, _) if !self.ports.is_empty() => {
                let port = below(r, self.ports.len());
                self.rxqs.extend(self.ports[port].rxq(below(r, 2) as u32));
                self.txqs.extend(self.ports[port].txq(below(r, 2) as u32));
            }
            (3, _) if !self.rxqs.is_empty() => drop(self.rxqs.swap_remove(0)),
            (4, _) if !self.txqs.is_empty() => drop(self.txqs.swap_remove(0)),
            (5 | 6, _) if !self.rxqs.is_empty() => {
                let i = below(r, self.rxqs.len());
                self.rxqs[i].receive(cache, burst);
                self.rxqs[i].arm();
            }
            (7 | 8, _) if !self.txqs.is_empty() => {
                let i = below(r, self.txqs.len());
                self.txqs[i].send(cache, burst);
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

fn run(seed: u64) {
    let mut world = World::new();
    let mut r = seed;
    let mut n_refused = 0;

    for _ in 0..2000 {
        if let Err(why) = catch_unwind(AssertUnwindSafe(|| world.step(&mut r))) {
            assert_eq!(why.downcast_ref(), Some(&"of another pool"));
            n_refused += 1;
        }
    }
    assert!(n_refused > 0 && n_refused < 1500, "{n_refused} panics");
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
        if why.payload().downcast_ref() != Some(&"of another pool") {
            hook(why);
        }
    }));
    let mut n = 0;
    while n < 20 || Instant::now() < end {
        n += 1;
        run(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(n));
    }
    println!("{n} sequences of 2000 calls");
}
