#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sample a port: print, and chart, frames per second by EtherType and bits per second.

rates.py PORT SECONDS [CHART], for example: rates.py xdp:eth1 60 rates.png
"""

import asyncio
import sys
from collections import Counter

import numpy as np

from millrace import Error, Pool, Port, arrays

NAMES = {0x0800: "IPv4", 0x0806: "ARP", 0x86DD: "IPv6"}


async def count(port: Port, counts: Counter[str]) -> None:
    """Count the frames that arrive, until no more can."""
    async for burst in port:
        counts["bits"] += 8 * int(arrays.entries(burst)["len"].sum())
        types = arrays.headers(burst, arrays.ETHERNET)["type"][arrays.begins(burst)]
        for number, n in zip(*np.unique(types, return_counts=True)):
            counts[NAMES.get(int(number), "other")] += int(n)


async def sample(port: Port, seconds: float) -> list[dict[str, float]]:
    """Print the rates of each interval. Returns all of them."""
    every_s = min(1.0, seconds / 4)
    rows: list[dict[str, float]] = []
    counts: Counter[str] = Counter(bits=0)
    counter = asyncio.create_task(count(port, counts))
    while not counter.done() and len(rows) < round(seconds / every_s):
        await asyncio.wait([counter], timeout=every_s)
        rows.append({name: n / every_s for name, n in sorted(counts.items())})
        print(*(f"{name}/s {rate:,.0f}" for name, rate in rows[-1].items()), sep="   ")
        counts.clear()
        counts["bits"] = 0
    if not counter.cancel():
        counter.result()  # raises what ended it
    return rows


def draw(rows: list[dict[str, float]], path: str) -> None:
    import matplotlib.pyplot as plt

    for name in sorted({name for row in rows for name in row} - {"bits"}):
        plt.plot([row.get(name, 0) for row in rows], label=name)
    plt.gca().set(xlabel="interval", ylabel="frames/s", ylim=0)
    plt.legend()
    plt.savefig(path)


def main(spec: str, seconds: str, chart: str = "") -> None:
    with Pool(Pool.size_for([spec])) as pool, Port(pool, spec) as port:
        rows = asyncio.run(sample(port, float(seconds)))
    if chart:
        draw(rows, chart)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except Error as error:
        sys.exit(f"rates: {error.strerror}")
