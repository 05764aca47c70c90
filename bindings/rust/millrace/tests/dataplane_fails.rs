// SPDX-License-Identifier: BSD-3-Clause
//! In a file of its own, because it counts the fds of its process.
use millrace::{Dataplane, DataplaneConfig, Idle};
use std::fs;

#[test]
fn a_failed_open_leaves_nothing() {
    let n_fds = || fs::read_dir("/proc/self/fd").unwrap().count();
    let n_before = n_fds();
    for (specs, reason) in [
        (&["pair:f", "nothing:"][..], "nothing"),
        (&["pair:f,ring=3"], "ring"),
        (&[], "no ports"),
    ] {
        let why = Dataplane::open(specs).err().unwrap();
        assert!(why.to_string().contains(reason), "{why}");
        assert!([19, 22].contains(&why.errno()), "{why}");
    }
    let few = DataplaneConfig {
        n_pages: 1,
        idle: Idle::Poll,
        ..DataplaneConfig::default()
    };
    assert!(
        few.open(&["pair:f"])
            .err()
            .unwrap()
            .to_string()
            .contains("too small")
    );
    let unused = DataplaneConfig {
        cores: vec![4096],
        ..DataplaneConfig::default()
    };
    assert_eq!(unused.open(&["pair:f"]).err().unwrap().errno(), 22);
    assert_eq!(n_fds(), n_before);
}
