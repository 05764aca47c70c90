#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Replay a capture through a port, as fast as the port accepts it.

replay.py FILE PORT, for example: replay.py traffic.pcap xdp:eth1
"""

import sys
import time

from millrace import Error, Pool, Port


def replay(capture: Port, port: Port) -> int:
    """Send a capture without copying it. Returns how many frames were sent."""
    rx, tx = capture.rx(), port.tx()
    while not capture.link()["is_ended"]:
        with rx.receive() as burst:
            while burst and not port.link()["is_gone"]:
                tx.send(burst)  # the burst keeps what does not fit
        capture.poll()
    while tx.stats()["pending"] and not port.link()["is_gone"]:
        tx.collect()
        port.poll()
    return tx.stats()["completed"]


def main(file: str, spec: str) -> None:
    specs = [f"pcap:rx={file}", spec]
    with (
        Pool(Pool.size_for(specs)) as pool,
        Port(pool, specs[0]) as capture,
        Port(pool, specs[1]) as port,
    ):
        begin_s = time.monotonic()
        n = replay(capture, port)
        rate = n / (time.monotonic() - begin_s)
        print(f"{n} frames sent, {rate:,.0f} frames/s")
        for reason, n_lost in capture.rx().stats()["drops"].items():
            if n_lost:
                print(f"{n_lost} records not sent: {reason}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except Error as error:
        sys.exit(f"replay: {error.strerror}")
