// SPDX-License-Identifier: BSD-3-Clause
//! Two stacks of smoltcp, at the ends of a cable.
#![cfg(feature = "smoltcp")]
mod common;

use common::{at_rest, pool};
use millrace::phy::Phy;
use millrace::{Pool, Port, Safety};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, TxToken};
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};

struct Host {
    device: Phy,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

fn buffer() -> PacketBuffer<'static> {
    PacketBuffer::new(vec![PacketMetadata::EMPTY; 8], vec![0; 16384])
}

impl Host {
    fn new(pool: &Pool, spec: &str, n: u8) -> Self {
        let mut device = Phy::new(&Port::open(pool, spec, 1).unwrap(), 0).unwrap();
        let config = Config::new(EthernetAddress([2, 0, 0, 0, 0, n]).into());
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            let address = IpCidr::new(IpAddress::v4(192, 0, 2, n), 24);
            addresses.push(address).unwrap();
        });
        let mut socket = Socket::new(buffer(), buffer());
        socket.bind(7).unwrap();
        let mut sockets = SocketSet::new(vec![]);
        Self {
            device,
            interface,
            socket: sockets.add(socket),
            sockets,
        }
    }

    fn poll(&mut self) -> &mut Socket<'static> {
        self.interface
            .poll(Instant::ZERO, &mut self.device, &mut self.sockets);
        self.sockets.get_mut(self.socket)
    }

    fn receive(&mut self, from: &mut Self) -> Vec<u8> {
        while !self.poll().can_recv() {
            from.poll();
        }
        self.poll().recv().unwrap().0.to_vec()
    }
}

#[test]
fn datagrams_come_back_as_they_were() {
    let pool = pool(Safety::Poison);
    let [mut client, mut server] = [1, 2].map(|n| Host::new(&pool, "pair:x,ring=16", n));

    assert!(server.device.arm().is_some(), "nothing to do");
    for n_bytes in [1, 100, 1472] {
        let payload: Vec<u8> = (0..=250).cycle().take(n_bytes).collect();
        let to = (IpAddress::v4(192, 0, 2, 2), 7);
        client.poll().send_slice(&payload, to).unwrap();
        assert_eq!(server.receive(&mut client), payload);
        let to = (IpAddress::v4(192, 0, 2, 1), 7);
        server.poll().send_slice(&payload, to).unwrap();
        assert_eq!(client.receive(&mut server), payload);
    }
    drop((client, server));
    at_rest(&pool);
}

#[test]
fn a_full_queue_gives_no_tokens() {
    let pool = pool(Safety::States);
    let [mut near, mut far] = [1, 2].map(|n| Host::new(&pool, "pair:x,ring=16", n));
    let mut n_sent = 0;

    while let Some(token) = near.device.transmit(Instant::ZERO) {
        token.consume(60, |bytes| bytes.fill(9));
        n_sent += 1;
    }
    assert_eq!(n_sent, 17, "16 in the ring, and one that waits");
    assert!(near.device.arm().is_none(), "one waits");
    assert!(far.device.arm().is_none(), "16 wait");
    assert!(far.device.receive(Instant::ZERO).is_some());
    assert!(far.device.arm().is_none(), "15 are left");
    assert!(near.device.arm().is_some(), "it was sent");
    assert!(near.device.transmit(Instant::ZERO).is_some());
    drop((near, far));
    at_rest(&pool);
}

#[test]
fn queues_in_use_are_refused() {
    let pool = pool(Safety::Counts);
    let port = Port::open(&pool, "null:", 1).unwrap();
    let device = Phy::new(&port, 0).unwrap();
    assert_eq!(Phy::new(&port, 0).err().unwrap().errno(), 16);
    assert_eq!(Phy::new(&port, 9).err().unwrap().errno(), 16);
    assert_eq!(device.capabilities().max_transmission_unit, 1514);
}
