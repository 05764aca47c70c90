// SPDX-License-Identifier: BSD-3-Clause
//! l2fwd: forward frames between two ports for some seconds, then print all
//! counters. The counterpart of examples/l2fwd.c.
//!
//! ```text
//! sudo l2fwd xdp:eth0 xdp:eth1 10
//! ```
use millrace::{Burst, Dataplane};
use std::time::Duration;
use std::{env, error, process, thread};

fn run(ports: [&str; 2], seconds: &str) -> Result<(), Box<dyn error::Error>> {
    let limit = Duration::from_secs_f64(seconds.parse()?);
    let dataplane = Dataplane::open(&ports)?;
    let stop = dataplane.stopper(); // for any thread, and signal handlers

    println!("forwarding");
    thread::spawn(move || {
        thread::sleep(limit);
        stop.stop();
    });
    // What the other port does not take is freed: waiting would add latency.
    dataplane.run(|worker, rx, burst: &mut Burst<32>| {
        worker.send(1 - rx.port, burst);
    })?;
    print!("{}", dataplane.text());
    Ok(())
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [a, b, seconds] = &arguments[..] else {
        eprintln!("usage: l2fwd PORT PORT SECONDS, for example null: null: 1");
        process::exit(2);
    };
    if let Err(error) = run([a, b], seconds) {
        eprintln!("{error}");
        process::exit(1);
    }
}
