// SPDX-License-Identifier: BSD-3-Clause
//! Metadata and rules, on ports in memory.
mod common;

use common::{at_rest, frame, pair, pool};
use millrace::{Burst, Cache, Meta, Port, Rule, Rules, Safety, Time, Vlan};
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
    let mut burst = Burst::<3>::new(&pool);
    let mut metas = [Meta::default(); 3];

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
fn rules_forward_until_their_set_is_dropped() {
    let pool = pool(Safety::States);
    let mut cache = Cache::new(&pool).unwrap();
    let mut burst = Burst::<32>::new(&pool);
    // far a -- [a, b] -- far b
    let [mut far_a, mut a, mut b, far_b] = [
        "pair:a,ring=16",
        "pair:a,ring=16",
        "pair:b,ring=16",
        "pair:b,ring=16",
    ]
    .map(|spec| Port::open(&pool, spec, 1).unwrap());
    let mut rules = Rules::open(&mut [&mut a, &mut b], 0).unwrap();
    let (mut tx, mut near, mut far) = (
        far_a.txq(0).unwrap(),
        a.rxq(0).unwrap(),
        far_b.rxq(0).unwrap(),
    );
    let any = Rule::Any {
        port: 0,
        to: Some(1),
    };
    let rule = rules.add(any).unwrap();
    assert!(rules.add(any).is_none(), "it is in the set");
    assert!(rules.add(Rule::Any { port: 2, to: None }).is_none());

    // Returns what reached the program, and what went to the other port.
    let mut pass = || {
        burst.push(frame(&mut cache, &[9; 60])).ok().unwrap();
        tx.send(&mut cache, &mut burst);
        let n = near.receive(&mut cache, &mut burst);
        cache.free(&mut burst);
        let n_far = far.receive(&mut cache, &mut burst);
        cache.free(&mut burst);
        (n, n_far)
    };
    assert_eq!(pass(), (1, 0), "a new rule matches nothing");
    rules.set(&rule, 1, true);
    assert_eq!(pass(), (0, 1));
    assert_eq!(rules.sent(1).unwrap().attempted, 1);
    assert!(rules.sent(2).is_none());
    assert_eq!(rules.read(&rule).seen_ns, 0, "no station's");
    rules.remove(rule);
    assert_eq!(pass(), (1, 0));
    let rule = rules.add(Rule::Any { port: 0, to: None }).unwrap();
    rules.set(&rule, 0, true);
    assert_eq!(pass(), (0, 0), "dropped");

    let busy = |ports: &mut [&mut Port]| Rules::open(ports, 0).err().unwrap().errno();
    assert_eq!(busy(&mut [&mut far_a]), 16, "its queue is in use");
    assert_eq!(busy(&mut [&mut b]), 16, "it is in a set");
    drop(rules);
    assert_eq!(pass(), (1, 0));
    // The last user closes the set, on whatever thread it is.
    drop((a, b));
    thread::spawn(move || drop(near)).join().unwrap();
}

#[test]
fn rules_of_other_sets_are_refused() {
    let pool = pool(Safety::Counts);
    let [mut ours, mut theirs] = [(); 2].map(|()| {
        let mut port = Port::open(&pool, "null:", 1).unwrap();
        Rules::open(&mut [&mut port], 0).unwrap()
    });
    let rule = ours.add(Rule::Any { port: 0, to: None }).unwrap();
    assert!(
        thread::spawn(move || theirs.remove(rule)).join().is_err(),
        "of another set"
    );
}
