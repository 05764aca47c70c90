#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sample a port: frames and bits per second by EtherType, and a chart of them.

rates.py PORT SECONDS [CHART], for example: rates.py xdp:eth1 60 rates.png
"""

import asyncio
import sys

import numpy as np

from millrace import MORE, Error, Pool, Port, arrays

NAMES = {0x0800: "IPv4", 0x0806: "ARP", 0x86DD: "IPv6"}


async def sample(port: Port, rows: list[dict[str, float]], every_s: float) -> None:
    """Print and append the rates of each interval, in frames/s and bit/s."""
    loop = asyncio.get_running_loop()
    counts: dict[str, float] = {}
    end_s = loop.time() + every_s
    async for burst in port:
        entries = arrays.entries(burst)
        counts["bit/s"] = counts.get("bit/s", 0) + 8 * int(entries["len"].sum())
        # An entry behind one with MORE continues a frame, and has no header.
        begins = np.append(True, (entries["flags"] & MORE) == 0)[: len(entries)]
        types = arrays.headers(burst, arrays.ETHERNET)["type"][begins]
        for number, n in zip(*np.unique(types, return_counts=True)):
            name = NAMES.get(int(number), "other")
            counts[name] = counts.get(name, 0) + int(n)
        if loop.time() >= end_s:
            rows.append({name: n / every_s for name, n in counts.items()})
            print(*(f"{name} {rate:,.0f}" for name, rate in sorted(rows[-1].items())), sep="   ")
            counts.clear()
            end_s += every_s
            await asyncio.sleep(0)  # a port that is never idle lets others run


def draw(rows: list[dict[str, float]], path: str) -> None:
    import matplotlib.pyplot as plt

    for name in sorted({name for row in rows for name in row} - {"bit/s"}):
        plt.plot([row.get(name, 0) for row in rows], label=name)
    plt.gca().set(xlabel="interval", ylabel="frames/s", ylim=0)
    plt.legend()
    plt.savefig(path)


def main(spec: str, seconds: str, chart: str = "") -> None:
    rows: list[dict[str, float]] = []
    with Pool() as pool, Port(pool, spec) as port:
        try:
            asyncio.run(
                asyncio.wait_for(sample(port, rows, min(1, float(seconds) / 4)), float(seconds))
            )
        except TimeoutError:
            pass
    if chart:
        draw(rows, chart)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except Error as error:
        sys.exit(f"rates: {error.strerror}")
