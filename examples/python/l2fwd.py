#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Forward frames between two ports, until Ctrl-C.

l2fwd.py PORT PORT, for example: l2fwd.py xdp:eth0 xdp:eth1
"""

import contextlib
import sys

from millrace import Burst, Dataplane, Error, RxQueue, Worker


def forward(worker: Worker, rx: RxQueue, burst: Burst) -> None:
    """What the other port does not take is dropped: waiting would add latency."""
    worker.send(1 - rx.port_idx, burst)


def main(one: str, other: str) -> None:
    with Dataplane(one, other) as dp:
        with contextlib.suppress(KeyboardInterrupt):
            print("forwarding", flush=True)
            dp.run(forward)
        print(dp.text(), end="")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except Error as error:
        sys.exit(f"l2fwd: {error.strerror}")
