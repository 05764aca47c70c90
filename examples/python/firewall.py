#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Forward between two ports, except frames whose source is in a list of prefixes.

firewall.py LIST PORT PORT, for example: firewall.py list.txt xdp:eth0 xdp:eth1

The list is a file with an IPv4 or IPv6 prefix per line; # begins a comment.
"""

import asyncio
import contextlib
import signal
import sys
from collections import Counter
from ipaddress import collapse_addresses, ip_network
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace import Burst, Pool, Port, arrays

# EtherType, and the source addresses of both IP versions.
HEADERS = np.dtype(
    {
        "names": ["type", "src4", "src6"],
        "formats": [">u2", "S4", "S16"],
        "offsets": [12, 26, 22],
        "itemsize": 46,  # with two VLAN tags
    }
)
VERSIONS = {4: (0x0800, "src4", 30), 6: (0x86DD, "src6", 38)}
Ranges = dict[int, tuple[NDArray[Any], NDArray[Any]]]


def read(path: str) -> Ranges:
    """First and last addresses of ranges that do not overlap, sorted, by version."""
    networks: dict[int, list[Any]] = {4: [], 6: []}
    for i, line in enumerate(Path(path).read_text("utf-8", "replace").split("\n"), 1):
        address, slash, n_bits = line.partition("#")[0].strip().partition("/")
        try:
            if "%" in address:
                raise ValueError  # a scope
            if address or slash:
                prefix = (address, int(n_bits)) if slash else address
                network = ip_network(prefix, strict=False)
                networks[network.version].append(network)
        except ValueError:
            sys.exit(
                f"firewall: {path}:{i}: write one prefix per line, "
                "such as 192.0.2.0/24 or 2001:db8::/32"
            )
    ranges: Ranges = {}
    for version, some in networks.items():
        merged = list(collapse_addresses(some))
        # A sentinel above all addresses of 16 bytes.
        first = [n[0].packed for n in merged] + [b"\xff" * 17]
        ranges[version] = np.array(first, "S17"), np.array([n[-1].packed for n in merged], "S16")
    return ranges


def find_listed(burst: Burst, ranges: Ranges) -> NDArray[Any]:
    """Which entries begin a frame from a listed address."""
    rows = arrays.headers(burst, HEADERS)
    n_bytes = arrays.entries(burst)["len"].astype("i8")
    by_byte = rows.view("u1").reshape(-1, HEADERS.itemsize)
    for _ in range(2):
        tagged = np.isin(rows["type"], (0x8100, 0x88A8))
        by_byte[tagged, 12:-4] = by_byte[tagged, 16:]
        n_bytes[tagged] -= 4
    listed = np.zeros(len(rows), bool)
    for version, (first, last) in ranges.items():
        ether_type, name, end = VERSIONS[version]
        is_it = (rows["type"] == ether_type) & (n_bytes >= end)
        sources = rows[name][is_it]
        listed[is_it] = first[np.searchsorted(last, sources)] <= sources
    found: NDArray[Any] = listed & arrays.begins(burst)
    return found


async def forward(source: Port, sink: Port, ranges: Ranges, counts: Counter[str]) -> None:
    tx = sink.tx()
    async for burst in source:
        listed = find_listed(burst, ranges)
        burst.keep(~listed)
        begins = arrays.begins(burst)
        n = tx.send(burst)
        counts["passed"] += np.count_nonzero(begins[:n])
        counts["listed"] += np.count_nonzero(listed)
        counts["not sent"] += np.count_nonzero(begins[n:])


async def bridge(one: Port, other: Port, ranges: Ranges) -> None:
    counts = Counter({"passed": 0, "listed": 0, "not sent": 0})
    both = asyncio.gather(forward(one, other, ranges, counts), forward(other, one, ranges, counts))
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, both.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await both
    print(", ".join(f"{n} {name}" for name, n in counts.items()))


def main(path: str, one: str, other: str) -> None:
    ranges = read(path)
    n_pages = Pool.size_for([one, other], n_pages=2048)
    with Pool(n_pages) as pool, Port(pool, one) as near, Port(pool, other) as far:
        asyncio.run(bridge(near, far, ranges))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    try:
        main(*sys.argv[1:])
    except OSError as error:  # millrace.Error, too
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(f"firewall: {where}{error.strerror}")
