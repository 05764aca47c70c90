// SPDX-License-Identifier: BSD-3-Clause
//! firewall: forward between two ports, except frames from listed addresses. The
//! list is a file with an IPv4 or IPv6 prefix per line; # begins a comment.
//!
//! ```text
//! sudo firewall list.txt xdp:eth0 xdp:eth1
//! ```
use millrace::{Burst, Cache, Context, Pool, PoolConfig, Port, Rxq, Txq};
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::rc::Rc;
use std::{env, error, fs, io, process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinSet, LocalSet};

const MAX_TASKS: u32 = 32;

/// Prefixes by `EtherType` and length; addresses begin at the highest bit.
#[derive(Default)]
struct List(BTreeMap<(u16, u32), HashSet<u128>>);

fn prefix(address: u128, n_bits: u32) -> u128 {
    address & u128::MAX.checked_shl(128 - n_bits).unwrap_or(0)
}

impl List {
    fn read(path: &str) -> Result<Self, String> {
        let mut list = Self::default();
        let text = fs::read(path).map_err(|e| format!("{path}: {e}"))?;
        for (i, line) in String::from_utf8_lossy(&text).lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if !line.is_empty() && list.add(line).is_none() {
                let remedy = "write one prefix per line, such as 192.0.2.0/24 or 2001:db8::/32";
                return Err(format!("{path}:{}: {remedy}", i + 1));
            }
        }
        Ok(list)
    }

    /// "192.0.2.0/24"; without a length, one address. None: neither.
    fn add(&mut self, text: &str) -> Option<()> {
        let (address, n_bits) = text.split_once('/').unzip();
        let (ether_type, address, max) = match address.unwrap_or(text).trim().parse().ok()? {
            IpAddr::V4(ip) => (0x0800, u128::from(ip.to_bits()) << 96, 32),
            IpAddr::V6(ip) => (0x86dd, ip.to_bits(), 128),
        };
        let n_bits = n_bits.map_or(Some(max), |n| n.trim().parse().ok())?;
        let addresses = (n_bits <= max).then(|| self.0.entry((ether_type, n_bits)).or_default())?;
        addresses.insert(prefix(address, n_bits));
        Some(())
    }

    /// Whether the source of a frame is listed.
    fn has(&self, mut bytes: &[u8]) -> bool {
        for _ in 0..2 {
            if matches!(bytes.get(12..14), Some([0x81, 0] | [0x88, 0xa8])) {
                bytes = &bytes[4..]; // without a VLAN tag
            }
        }
        let (ether_type, source) = match bytes.get(12..14) {
            Some([0x08, 0x00]) if bytes.len() >= 30 => (0x0800, &bytes[26..30]),
            Some([0x86, 0xdd]) if bytes.len() >= 38 => (0x86dd, &bytes[22..38]),
            _ => return false,
        };
        let address = source
            .iter()
            .rfold(0, |rest, byte| rest >> 8 | u128::from(*byte) << 120);
        let mut of_type = self.0.range((ether_type, 0)..=(ether_type, 128));
        of_type.any(|(key, some)| some.contains(&prefix(address, key.1)))
    }
}

/// Counts of frames passed, listed, and not sent.
type Counts = Cell<[usize; 3]>;

/// The state that the tasks, one per rx queue, share.
struct Shared {
    list: List,
    pool: Pool,
    n: Counts,
}

async fn forward(mut rx: Rxq, mut tx: Txq, shared: Rc<Shared>) -> io::Result<()> {
    let Shared { list, pool, n } = &*shared;
    let mut cache = Cache::new(pool)?;
    let mut received = Burst::<32>::new(pool);
    let [mut passed, mut listed] = [(); 2].map(|()| Burst::<64>::new(pool)); // have room

    loop {
        rx.recv(&mut cache, &mut received).await?;
        while let Some(frame) = received.pop() {
            let is_listed = list.has(frame.view().bytes());
            drop(if is_listed { &mut listed } else { &mut passed }.push(frame));
        }
        let n_passed = passed.iter().count();
        tx.send(&mut cache, &mut passed);
        let [n_left, n_listed] = [&passed, &listed].map(|burst| burst.iter().count());
        let [a, b, c] = n.get();
        n.set([a + n_passed - n_left, b + n_listed, c + n_left]);
        cache.free(&mut passed);
        cache.free(&mut listed);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run(list: &str, specs: [&str; 2]) -> Result<(), Box<dyn error::Error>> {
    let list = List::read(list)?;
    let ctx = Context::new()?;
    let mut config = PoolConfig::default();
    config.n_pages = Pool::size_for(&ctx, &specs, 1, MAX_TASKS, &config)?;
    let pool = Pool::new(&ctx, &config)?;
    let open = |spec| Port::open(&pool, spec, 1);
    let [a, b] = [open(specs[0])?, open(specs[1])?];
    let n = Counts::default();
    let shared = Rc::new(Shared { list, pool, n });
    let (local, mut tasks) = (LocalSet::new(), JoinSet::new());
    // Before the first frame passes, so that the counts are printed after any Ctrl-C.
    let mut interrupt = signal(SignalKind::interrupt())?;
    for (from, to) in [(&a, &b), (&b, &a)] {
        for i in 0..from.info().n_rxqs {
            let queues = from.rxq(i).zip(to.txq(i));
            let (rx, tx) = queues.ok_or("the ports differ in their number of queues")?;
            tasks.spawn_local_on(forward(rx, tx, shared.clone()), &local);
        }
    }
    tokio::select! {
        failed = local.run_until(tasks.join_next()) => failed.ok_or("no task")???,
        _ = interrupt.recv() => {}
    }
    let [passed, listed, unsent] = shared.n.get();
    println!("{passed} passed, {listed} listed, {unsent} not sent");
    Ok(())
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [list, a, b] = &arguments[..] else {
        eprintln!("usage: firewall LIST PORT PORT");
        process::exit(2);
    };
    if let Err(error) = run(list, [a, b]) {
        eprintln!("firewall: {error}");
        process::exit(1);
    }
}
