# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench guest --ports PORT PORT: real NICs, joined by a cable.

mr-bench sends as fast as it can on one port and receives on the other, by
frame size; what is sent and what arrives stands beside the rate of the line.
"""
import json
import subprocess

from topology import BenchError

SIZES = (64, 128, 256, 512, 1024, 1518)
FCS_BYTES = 4
# Preamble, start of frame, and the gap behind it.
GAP_BYTES = 20
HEAD = (f"{'frame':>7} {'sent Mpps':>10} {'of line':>8} {'arrived Mpps':>13} "
        f"{'of line':>8} {'lost':>12}")


def line_pps(document, size):
    """Frames per second of the slower link; None: its speed is unknown."""
    speeds = [port["link_mbps"] for port in document["ports"]
              if port["link_mbps"] > 0]
    return min(speeds) * 1e6 / 8 / (size + GAP_BYTES) if speeds else None


def share(pps, line):
    return f"{100 * pps / line:.1f} %" if line else "?"


def one_size(program, ports, size, seconds):
    """The document of one run; the tester's line if there is none."""
    done = subprocess.run(
        [program, "loop", "--quiet", "--json", "--rate", "max", "--duration",
         str(seconds), "--size", str(size - FCS_BYTES), *ports],
        capture_output=True, text=True, check=False, timeout=seconds + 60)
    if not done.stdout.strip():
        raise BenchError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)


def measure(program, ports, seconds):
    """Measure and print a line per size. The documents."""
    documents = []
    print(HEAD)
    for size in SIZES:
        document = one_size(program, ports, size, seconds)
        trial = document["trials"][0]
        line = line_pps(document, size)
        sent, arrived = trial["tx"]["pps"], trial["rx"]["pps"]
        print(f"{size:5} B {sent / 1e6:10.3f} {share(sent, line):>8} "
              f"{arrived / 1e6:13.3f} {share(arrived, line):>8} "
              f"{trial['rx']['lost']:12}", flush=True)
        documents.append(document)
    if line_pps(documents[0], SIZES[0]) is None:
        print("the links do not say their speed")
    return documents
