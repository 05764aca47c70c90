// SPDX-License-Identifier: BSD-3-Clause
//! l2fwd: forward every frame between two ports, in both directions, for some
//! seconds; print the rate. The counterpart of examples/l2fwd.c.
//!
//! ```text
//! sudo l2fwd xdp:eth0 xdp:eth1 10
//! ```
use millrace::{Burst, Cache, Context, Pool, PoolConfig, Port, Rxq, Txq};
use std::time::{Duration, Instant};
use std::{env, error, process};

/// Move one burst. What `to` does not take is dropped: a forwarder that waits
/// turns overload into latency. Returns entries: received, and dropped.
fn forward(from: &mut Rxq, to: &mut Txq, cache: &mut Cache, burst: &mut Burst<32>) -> [usize; 2] {
    let n_received = from.receive(cache, burst);
    to.send(cache, burst);
    [n_received, cache.free(burst)]
}

/// Open a port. Returns all its rx queues, and a tx queue.
fn open(pool: &Pool, spec: &str) -> Result<(Vec<Rxq>, Txq), Box<dyn error::Error>> {
    let port = Port::open(pool, spec, 1)?; // its queues keep it open
    let rxqs = (0..port.info().n_rxqs)
        .filter_map(|i| port.rxq(i))
        .collect();
    Ok((rxqs, port.txq(0).ok_or("no tx queue")?))
}

fn run(a: &str, b: &str, seconds: &str) -> Result<(), Box<dyn error::Error>> {
    let limit = Duration::from_secs_f64(seconds.parse()?);
    let (ctx, mut config) = (Context::new()?, PoolConfig::default());
    config.n_pages = Pool::size_for(&ctx, &[a, b], 1, 1, &config)?;
    let pool = Pool::new(&ctx, &config)?;
    let mut cache = Cache::new(&pool)?; // this thread's share of the pool
    let (mut rxqs_a, mut tx_a) = open(&pool, a)?;
    let (mut rxqs_b, mut tx_b) = open(&pool, b)?;
    let mut burst = Burst::new(&pool);
    let mut n = [0; 2];
    let start = Instant::now();

    while start.elapsed() < limit {
        for _ in 0..256 {
            for (rxqs, tx) in [(&mut rxqs_a, &mut tx_b), (&mut rxqs_b, &mut tx_a)] {
                for rx in rxqs {
                    let [received, dropped] = forward(rx, tx, &mut cache, &mut burst);
                    n = [n[0] + received, n[1] + dropped];
                }
            }
        }
    }
    let rate = n[0] as u128 * 1_000_000_000 / start.elapsed().as_nanos();
    println!("{rate} frames/s, dropped {} entries", n[1]);
    Ok(())
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [a, b, seconds] = &arguments[..] else {
        eprintln!("usage: l2fwd PORT PORT SECONDS, for example null: null: 1");
        process::exit(2);
    };
    if let Err(error) = run(a, b, seconds) {
        eprintln!("{error}");
        process::exit(1);
    }
}
