# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench nic: instructions per frame of our NIC drivers.

Counted by callgrind over models of the NICs: receive and send, in bursts of 1,
8 and 32. A frame has 60 bytes and one entry. Each figure includes all that a
burst does: for receive the refill with new buffers, for send the return of
buffers that were sent. The model's own work is not in it: it runs between the
bursts, and the register write that calls it is left out (on hardware it is one
store). xdp is the AF_XDP driver in copy mode, over a fake kernel, which is left
out in the same way; xdp-meta is the same with metadata.
"""
import re
import subprocess
import sys
import tempfile

import command
from topology import BenchError

# The models' names, in test/model.
NICS = {"igb": "82576", "e1000e": "82574L", "virtio-split": "split",
        "virtio-split-in-order": "split, in order", "virtio-packed": "packed",
        "virtio-packed-in-order": "packed, in order", "xdp": "xdp",
        "xdp-meta": "xdp, meta"}
BURSTS = [1, 8, 32]
# Counting begins and ends at these functions; trapped(), which is called
# within, is left out; sendto() and recvfrom() belong to the fake kernel.
TOGGLES = ["measured_rx", "measured_tx", "trapped",
           "__wrap_sendto", "__wrap_recvfrom"]


def count(programs, nic, way, burst, n_frames):
    """Instructions per frame."""
    program = programs / ("xdp_cost" if nic.startswith("xdp") else "nic_cost")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no",
             f"--callgrind-out-file={folder}/out",
             *(f"--toggle-collect={name}" for name in TOGGLES),
             str(program), NICS[nic], way, str(burst), str(n_frames)],
            capture_output=True, text=True, check=False, timeout=300)
    frames = re.search(r"^frames (\d+)$", done.stdout, re.M)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not frames or not counted:
        raise BenchError(f"{nic} {way} {burst}: {done.stderr[-2000:]}")
    return int(counted.group(1)) / int(frames.group(1))


def main():
    parser = command.parser("nic", __doc__, (
        ("frames", 32000, 32000, "per figure"),), ",".join(NICS))
    args = command.parse(parser)
    command.need_program("valgrind", "valgrind")
    rows = []
    print(f"{'instructions per frame':24}" +
          "".join(f"{'burst ' + str(burst):>12}" for burst in BURSTS))
    for nic in args.parts:
        for way in ("rx", "tx"):
            costs = [count(args.build / "test/bench", nic, way, burst,
                           args.frames) for burst in BURSTS]
            print(f"{nic + ' ' + way:24}" +
                  "".join(f"{cost:12.1f}" for cost in costs), flush=True)
            rows += [{"nic": nic, "way": way, "burst": burst,
                      "instructions_per_frame": round(cost, 2)}
                     for burst, cost in zip(BURSTS, costs)]
    command.write_json(args.json, command.document(rows=rows))
    return 0


if __name__ == "__main__":
    sys.exit(command.run("nic", main))
