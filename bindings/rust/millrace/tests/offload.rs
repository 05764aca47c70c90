// SPDX-License-Identifier: BSD-3-Clause
//! Metadata and rules, on ports in memory.
mod common;

use common::{at_rest, frame, pair, pool};
use millrace::{Burst, Cache, Meta, Port, Rules, Safety, Time, Vlan};
use std::thread;

#[test]
fn tags_are_inserted_in_frames() {
    let pool = pool(Safety::Poison);
    let mut cache = Cache::new(&pool).unwrap();
    let [(_, mut tx), (mut rx, _)] = pair(&pool, "");
    let mut burst = Burst::<32>::new(&pool);
    let mut metas = [Meta::default(); 32];

    for i in [1, 2] {
        burst.push(frame(&mut cache, &[i; 60])).ok().unwrap();
    }
    metas[1].set_vlan(Vlan {
        proto: 0x8100,
        tci: 7,
    });
    assert_eq!(tx.send_meta(&mut cache, &mut burst, &metas[..2]), 2);
    assert_eq!(rx.receive_meta(&mut cache, &mut burst, &mut metas), 2);
    let frames: Vec<_> = burst.iter().collect();
    assert_eq!(frames[0].bytes(), [1; 60]);
    assert_eq!(frames[1].len(), 64);
    assert_eq!(frames[1].bytes()[11..17], [2, 0x81, 0, 0, 7, 2]);
    // What a device in memory knows about a frame.
    assert_eq!((metas[0].rss_hash(), metas[0].vlan()), (None, None));
    drop((burst, cache, tx, rx));
    at_rest(&pool);
}

#[test]
fn launch_times_of_a_port_without_them_drop_the_frame() {
    let pool = pool(Safety::States);
    let mut cache = Cache::new(&pool).unwrap();
    let [(_, mut tx), (mut rx, _)] = pair(&pool, "");
    let mut burst = Burst::<32>::new(&pool);
    let mut metas = [Meta::default(); 32];

    while burst.n_entries() < 3 {
        burst.alloc(&mut cache, 60).unwrap();
    }
    metas[1].set_launch_time(Time {
        ns: u64::MAX,
        clock: 1, // CLOCK_MONOTONIC
    });
    assert_eq!(tx.send_meta(&mut cache, &mut burst, &metas), 3);
    assert_eq!(rx.receive_meta(&mut cache, &mut burst, &mut metas), 2);
    let without = thread::spawn(move || {
        burst.alloc(&mut cache, 60).unwrap();
        tx.send_meta(&mut cache, &mut burst, &[])
    });
    assert!(without.join().is_err());
}

#[test]
fn ports_without_rules_refuse_them() {
    let pool = pool(Safety::Counts);
    let mut port = Port::open(&pool, "null:", 1).unwrap();
    let error = Rules::open(&mut [&mut port], 0).err().unwrap();

    assert_eq!(error.errno(), 95); // ENOTSUP
    assert!(error.to_string().contains("has no rules"), "{error}");
}
