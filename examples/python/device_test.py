#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Test a device that forwards between two ports: do frames arrive as they were sent?

device_test.py PORT PORT, for example: device_test.py xdp:t0 xdp:t1
"""

import sys
import time
from collections import Counter

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from millrace import Error, Pool, Port

ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
FRAMES: dict[str, Packet] = {
    "UDP": ETHER / IP(dst="192.0.2.1") / UDP(dport=7) / Raw(bytes(64)),
    "TCP": ETHER / IP(dst="192.0.2.1") / TCP(dport=80, flags="S") / Raw(bytes(64)),
    "fragment": ETHER / IP(dst="192.0.2.1", frag=100) / Raw(bytes(64)),
    "IPv6": ETHER / IPv6(dst="2001:db8::1") / UDP(dport=7) / Raw(bytes(64)),
    "VLAN tag": ETHER / Dot1Q(vlan=5) / IP(dst="192.0.2.1") / UDP() / Raw(bytes(64)),
    "longest": ETHER / IP(dst="192.0.2.1") / UDP() / Raw(bytes(1472)),
}
WAIT_S = 1.0


def crossed(near: Port, far: Port, pool: Pool, n: int) -> bool:
    """Send each frame n times. Print those that arrived changed, or fewer than n times."""
    wanted = Counter({bytes(frame): n for frame in FRAMES.values()})
    got: Counter[bytes] = Counter()
    end_s = time.monotonic() + WAIT_S
    queues = [far.rx(i) for i in range(far.info()["n_rxqs"])]
    with near.tx() as tx, pool.burst(wanted.elements()) as burst:
        while got != wanted and time.monotonic() < end_s:
            tx.send(burst)
            for rx in queues:
                with rx.receive() as arrived:
                    got.update(map(bytes, arrived))
    for name, frame in FRAMES.items():
        print(f"  {name:10} {got[bytes(frame)]} of {n}")
    for frame in got - wanted:
        print(f"  not sent, or too often: {Ether(frame).summary()}")
    return got == wanted


def main(one: str, other: str) -> bool:
    n_pages = Pool.size_for([one, other], n_pages=2048)
    with Pool(n_pages) as pool, Port(pool, one) as near, Port(pool, other) as far:
        print(f"{one} to {other}")
        there = crossed(near, far, pool, 5)
        print(f"{other} to {one}")
        return crossed(far, near, pool, 5) and there


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        sys.exit(0 if main(*sys.argv[1:]) else 1)
    except Error as error:
        sys.exit(f"device_test: {error.strerror}")
