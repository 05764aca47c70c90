# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench on a port of DPDK's: what it sends to a ring comes back from it."""
import json
import os
import subprocess
from pathlib import Path

from host import limit

BUILD = Path(os.environ["MR_BUILD"])
BENCH = BUILD / "apps" / "bench" / "mr-bench"
N_FRAMES = 5000


def test_every_frame_comes_back():
    done = subprocess.run(
        [BENCH, "loop", "--json", "--quiet", "--rate", "50k", "--count",
         str(N_FRAMES), "--max-lag", "5", "--settle", "1", "dpdk:net_ring0",
         "dpdk:net_ring0"], capture_output=True, text=True, timeout=limit(60),
        check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    port, = document["ports"]
    assert port["name"] == "dpdk:net_ring0"
    assert port["sends"] and port["receives"] and port["mode"]
    trial, = document["trials"]
    tx, rx = trial["tx"], trial["rx"]
    assert (tx["sent"], tx["unsent"]) == (N_FRAMES, 0)
    assert (rx["unique"], rx["lost"], rx["duplicates"], rx["reordered"],
            rx["foreign"]) == (N_FRAMES, 0, 0, 0, 0)
    assert trial["drops"] == []
    assert trial["latency"]["n"] == N_FRAMES
    assert trial["latency"]["min"] >= 0
