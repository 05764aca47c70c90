#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench python: the cost per frame in a Python program.

One thread, with bursts of 256 frames of 60 bytes on null:. The ways to read
headers take turns, so that drift affects all alike. Each figure is the median
of the rounds.
"""
import statistics
import sys
import time

import command
from topology import BenchError

WAYS = {
    "receive": "none is looked at",
    "numpy": "arrays.headers(), count those of one EtherType",
    "view": "for frame in burst: frame[12] == 8",
    "slice": "for frame in burst: frame[12:14] == b'...'",
    "bytes": "bytes(frame) of each",
    "send": "receive and send, nothing looked at",
}


def parse():
    return command.parse(command.parser("python", __doc__, (
        ("rounds", 15, 3, "of all ways in turn"),
        ("seconds", 0.5, 0.1, "of each")), ",".join(WAYS)))


def ways(millrace, tx):
    """{way: function of a burst}"""
    import numpy
    from millrace import arrays

    out = numpy.empty(millrace.BURST_MAX, arrays.IPV4)

    def look(burst):
        table = arrays.headers(burst, arrays.IPV4, out)
        numpy.count_nonzero(table["type"] == 0x800)

    def view(burst):
        n = 0
        for frame in burst:
            n += frame[12] == 8
        return n

    def cut(burst):
        n = 0
        for frame in burst:
            n += frame[12:14] == b"\x08\x00"
        return n

    return {"receive": len, "numpy": look, "view": view, "slice": cut,
            "bytes": lambda burst: [bytes(frame) for frame in burst],
            "send": tx.send}


def rate(rx, use, seconds):
    """Frames per second."""
    n = 0
    begin_s = time.perf_counter()
    while time.perf_counter() - begin_s < seconds:
        for _ in range(20):
            with rx.receive() as burst:
                n += len(burst)
                use(burst)
    return n / (time.perf_counter() - begin_s)


def main():
    args = parse()
    sys.path.insert(0, str(args.build / "bindings/python"))
    try:
        import millrace
    except ImportError as error:
        raise BenchError(f"no package: {error}") from error
    rates = {way: [] for way in args.parts}
    with millrace.Pool() as pool, millrace.Port(pool, "null:") as port:
        uses = ways(millrace, port.tx())
        for _ in range(args.rounds):
            for way in rates:
                rates[way].append(rate(port.rx(), uses[way], args.seconds))
    print(f"{'':8} {'Mframes/s':>9}  {'lowest':>7} {'highest':>7}  ns/frame")
    for way, samples in rates.items():
        middle = statistics.median(samples)
        print(f"{way:8} {middle / 1e6:9.2f}  {min(samples) / 1e6:7.2f} "
              f"{max(samples) / 1e6:7.2f}  {1e9 / middle:8.1f}  {WAYS[way]}")
    command.write_json(args.json, command.document(rates=rates))
    return 0


if __name__ == "__main__":
    sys.exit(command.run("python", main))
