# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench nic [--frames N] [--json FILE] [--program FILE] [NIC...]

Instructions per frame of our NIC drivers, counted by callgrind over models of
the NICs: receive and send, in bursts of 1, 8 and 32. A frame has 60 bytes and
one entry. Each figure includes all that a burst does: for receive the refill
with new buffers, for send the return of buffers that were sent. The model's
own work is not in it: it runs between the bursts, and the register write that
calls it is left out (on hardware it is one store). xdp is the AF_XDP driver in
copy mode, over a fake kernel, which is left out in the same way.

--frames N      frames per figure; default 32000
--json FILE     write the table as JSON, too
--programs DIR  of nic_cost and xdp_cost; default build/test/bench
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
NICS = ["igb", "e1000e", "virtio-split", "virtio-split-in-order",
        "virtio-packed", "virtio-packed-in-order", "xdp"]
BURSTS = [1, 8, 32]
# Counting begins and ends where these are entered and left; trapped() lies
# within them and turns it off; sendto() and recvfrom() are the fake kernel's.
TOGGLES = ["measured_rx", "measured_tx", "trapped",
           "__wrap_sendto", "__wrap_recvfrom"]


def count(programs, nic, way, burst, n_frames):
    """Instructions per frame."""
    program = programs / ("xdp_cost" if nic == "xdp" else "nic_cost")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no",
             f"--callgrind-out-file={folder}/out",
             *(f"--toggle-collect={name}" for name in TOGGLES),
             str(program), nic, way, str(burst), str(n_frames)],
            capture_output=True, text=True, check=False, timeout=300)
    frames = re.search(r"^frames (\d+)$", done.stdout, re.M)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not frames or not counted:
        sys.exit(f"bench nic: {nic} {way} {burst}: {done.stderr[-2000:]}")
    return int(counted.group(1)) / int(frames.group(1))


def main():
    parser = argparse.ArgumentParser(
        usage=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("nics", nargs="*", metavar="NIC")
    parser.add_argument("--frames", type=int, default=32000)
    parser.add_argument("--json")
    parser.add_argument("--programs", type=pathlib.Path,
                        default=TOP / "build/test/bench")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("bench nic: no valgrind: apt install valgrind",
              file=sys.stderr)
        return 77
    rows = []
    print(f"{'instructions per frame':24}" +
          "".join(f"{'burst ' + str(burst):>12}" for burst in BURSTS))
    for nic in options.nics or NICS:
        for way in ("rx", "tx"):
            costs = [count(options.programs, nic, way, burst, options.frames)
                     for burst in BURSTS]
            print(f"{nic + ' ' + way:24}" +
                  "".join(f"{cost:12.1f}" for cost in costs), flush=True)
            rows += [{"nic": nic, "way": way, "burst": burst,
                      "instructions_per_frame": round(cost, 2)}
                     for burst, cost in zip(BURSTS, costs)]
    if options.json:
        pathlib.Path(options.json).write_text(
            json.dumps({"frames": options.frames, "rows": rows}, indent=1) +
            "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
