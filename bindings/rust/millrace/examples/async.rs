// SPDX-License-Identifier: BSD-3-Clause
//! async: forward between two ports in tasks of tokio, on one thread, and print
//! the rate each second: an l2fwd that sleeps when idle.
//!
//! ```text
//! sudo async xdp:eth0 xdp:eth1 10
//! ```
use millrace::{Burst, Cache, Context, Pool, PoolConfig, Port, Rxq, Txq};
use std::cell::Cell;
use std::time::Duration;
use std::{env, error, io, process};
use tokio::time::{interval, timeout};

/// A task. It waits until `to` takes the frames; meanwhile, `from` drops and
/// counts frames that do not fit into its ring.
async fn forward(mut from: Rxq, mut to: Txq, pool: &Pool, n_moved: &Cell<usize>) -> io::Result<()> {
    let mut cache = Cache::new(pool)?; // each task has its own
    let mut burst = Burst::<32>::new(pool);

    loop {
        let n = from.recv(&mut cache, &mut burst).await?;
        to.send_all(&mut cache, &mut burst).await?;
        n_moved.set(n_moved.get() + n);
    }
}

async fn print_rate(n_moved: &Cell<usize>) -> io::Result<()> {
    let mut second = interval(Duration::from_secs(1));
    second.tick().await; // the first one is due

    loop {
        second.tick().await;
        println!("{} frames/s", n_moved.take());
    }
}

/// Open a port, and return its first queues.
fn open(pool: &Pool, spec: &str) -> Result<(Rxq, Txq), Box<dyn error::Error>> {
    let port = Port::open(pool, spec, 1)?; // its queues keep it open
    Ok((
        port.rxq(0).ok_or("no rx queue")?,
        port.txq(0).ok_or("no tx queue")?,
    ))
}

#[tokio::main(flavor = "current_thread")]
async fn run(a: &str, b: &str, seconds: &str) -> Result<(), Box<dyn error::Error>> {
    let limit = Duration::from_secs_f64(seconds.parse()?);
    let config = PoolConfig {
        n_pages: 16384,
        ..PoolConfig::default()
    };
    let pool = Pool::new(&Context::new()?, &config)?;
    let ((rx_a, tx_a), (rx_b, tx_b)) = (open(&pool, a)?, open(&pool, b)?);
    let n_moved = Cell::new(0);
    let tasks = async {
        tokio::try_join!(
            forward(rx_a, tx_b, &pool, &n_moved),
            forward(rx_b, tx_a, &pool, &n_moved),
            print_rate(&n_moved),
        )
    };

    match timeout(limit, tasks).await {
        Ok(failed) => Ok(failed.map(drop)?),
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
