// SPDX-License-Identifier: BSD-3-Clause
//! async: forward between two ports in tasks of tokio, on one thread, and print
//! the rate each second: an l2fwd that sleeps when idle.
//!
//! ```text
//! sudo async xdp:eth0 xdp:eth1 10
//! ```
use millrace::{Burst, Cache, Context, Pool, PoolConfig, Port, Rxq, Txq};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use std::{env, error, io, process};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{interval, timeout};

const MAX_TASKS: u32 = 32;

/// A task. It waits until `to` takes the frames; meanwhile, `from` drops and
/// counts frames that do not fit into its ring.
async fn forward(mut from: Rxq, mut to: Txq, pool: Pool, n: Rc<Cell<usize>>) -> io::Result<()> {
    let mut cache = Cache::new(&pool)?; // each task has its own
    let mut burst = Burst::<32>::new(&pool);

    loop {
        let n_received = from.recv(&mut cache, &mut burst).await?;
        to.send_all(&mut cache, &mut burst).await?;
        n.set(n.get() + n_received);
    }
}

async fn print_rate(n: Rc<Cell<usize>>) -> io::Result<()> {
    let mut second = interval(Duration::from_secs(1));
    second.tick().await; // the first one is due

    loop {
        second.tick().await;
        println!("{} frames/s", n.take());
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run(a: &str, b: &str, seconds: &str) -> Result<(), Box<dyn error::Error>> {
    let limit = Duration::from_secs_f64(seconds.parse()?);
    let (ctx, mut config) = (Context::new()?, PoolConfig::default());
    config.n_pages = Pool::size_for(&ctx, &[a, b], 1, MAX_TASKS, &config)?;
    let pool = Pool::new(&ctx, &config)?;
    let (a, b) = (Port::open(&pool, a, 1)?, Port::open(&pool, b, 1)?);
    let n_moved = Rc::new(Cell::new(0));
    let (local, mut tasks) = (LocalSet::new(), JoinSet::new());

    for (from, to) in [(&a, &b), (&b, &a)] {
        for i in 0..from.info().n_rxqs {
            let queues = from.rxq(i).zip(to.txq(i));
            let (rx, tx) = queues.ok_or("the ports differ in their number of queues")?;
            let task = forward(rx, tx, pool.clone(), n_moved.clone());
            tasks.spawn_local_on(task, &local);
        }
    }
    tasks.spawn_local_on(print_rate(n_moved), &local);
    match timeout(limit, local.run_until(tasks.join_next())).await {
        Ok(failed) => Ok(failed.ok_or("no task")???),
        Err(_time_is_up) => Ok(()),
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [a, b, seconds] = &arguments[..] else {
        eprintln!("usage: async PORT PORT SECONDS, for example null: null: 3");
        process::exit(2);
    };
    if let Err(error) = run(a, b, seconds) {
        eprintln!("{error}");
        process::exit(1);
    }
}
