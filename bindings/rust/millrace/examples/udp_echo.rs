// SPDX-License-Identifier: BSD-3-Clause
//! `udp_echo`: answer each UDP datagram with its payload, from an address that
//! the kernel does not have, through a TCP/IP stack in this program (smoltcp).
//!
//! ```text
//! sudo udp_echo xdp:eth0 192.0.2.7/24 7
//! ```
use millrace::phy::Phy;
use millrace::{Context, Pool, PoolConfig, Port};
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy;
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr};
use std::os::fd::AsRawFd;
use std::{env, error, process};

fn buffer() -> PacketBuffer<'static> {
    PacketBuffer::new(vec![PacketMetadata::EMPTY; 64], vec![0; 65536])
}

fn run(spec: &str, address: &str, udp_port: &str) -> Result<(), Box<dyn error::Error>> {
    let address: IpCidr = address.parse().map_err(|()| {
        format!("{address} is not an address with its prefix length, such as 192.0.2.7/24")
    })?;
    let pool = Pool::new(&Context::new()?, &PoolConfig::default())?;
    let port = Port::open(&pool, spec, 1)?;
    let mut device = Phy::new(&port, 0)?;
    let mac = port.info().mac.unwrap_or([2, 0, 0, 0, 0, 1]);

    let config = Config::new(EthernetAddress(mac).into());
    let mut interface = Interface::new(config, &mut device, Instant::now());
    interface.update_ip_addrs(|addresses| addresses.push(address).expect("the first one"));
    let mut socket = Socket::new(buffer(), buffer());
    socket.bind(udp_port.parse::<u16>()?)?;
    let mut sockets = SocketSet::new(vec![]);
    let handle = sockets.add(socket);
    println!("ready");

    loop {
        let now = Instant::now();
        interface.poll(now, &mut device, &mut sockets);
        let socket = sockets.get_mut::<Socket>(handle);
        while socket.can_recv() && socket.can_send() {
            let (payload, from) = socket.recv()?;
            let payload = payload.to_vec();
            socket.send_slice(&payload, from)?;
        }
        interface.poll(now, &mut device, &mut sockets);
        let delay = interface.poll_delay(now, &sockets);
        if let Some(fd) = device.arm() {
            phy::wait(fd.as_raw_fd(), delay)?;
        }
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [spec, address, udp_port] = &arguments[..] else {
        eprintln!("usage: udp_echo PORT ADDRESS/PREFIX UDP-PORT");
        process::exit(2);
    };
    if let Err(error) = run(spec, address, udp_port) {
        eprintln!("{error}");
        process::exit(1);
    }
}
