# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench's engine on NICs: a loop between two of our drivers, and from one
of them to the kernel's. What became of each frame is tested, and no time.
"""
import json

import pytest

from conftest import boot, check_log, forget_log, need_driver
from guest import BUILD, Nic
from host import limit

# A guest has no Python for the front end.
BENCH = BUILD / "apps" / "bench" / "mr-bench-engine"
N_FRAMES = 4000
# Each is joined with the other of its pair; virtio-net is the kernel's. Two
# senders and two receivers want more than one processor.
PAIRS = [("igb", "e1000e"), ("virtio-split", "virtio-packed"),
         ("virtio-net", "virtio-split-in-order")]
N_CPUS = 2
LIMIT_S = limit(120)


def loop(guest, specs):
    """mr-bench loop --bidirectional to its end, without its front end: the trial."""
    requests = [
        {"request": "begin", "v": 5, "tx": specs, "rx": specs[::-1]},
        {"request": "open", "has_map": True},
        {"request": "trial", "pps": 4000, "frames": N_FRAMES,
         "settle_ns": int(limit(2) * 10**9), "max_lag_ns": int(limit(10) * 10**9)},
        {"request": "finish"}]
    status, _ = guest.run("printf '%s\\n' " + " ".join(
        f"'{json.dumps(request)}'" for request in requests) + " >/tmp/requests")
    assert status == 0
    status, text = guest.run(
        "mr-bench-engine serve </tmp/requests 2>/tmp/bench.log", LIMIT_S)
    assert status == 0, guest.run("cat /tmp/bench.log")[1]
    reply, = [json.loads(line) for line in text.splitlines()
              if '"reply":"trial"' in line]
    return reply["trial"]


@pytest.mark.parametrize("one,other", PAIRS)
def test_loop(one, other):
    """Both ways at once: what was sent has come, once, in order, whole."""
    nics = [Nic(one, one, peer=other), Nic(other, other, peer=one)]
    ours = [nic for nic in nics if nic.kind != "virtio-net"]
    for nic in ours:
        need_driver(nic.kind)
    with boot(nics, programs=[BENCH], n_cpus=N_CPUS) as guest:
        for nic in ours:
            guest.bind(nic, "vfio-pci")
        forget_log(guest)
        specs = [f"vfio:{nic.bdf}" if nic in ours else f"xdp:{nic.name}"
                 for nic in nics]
        trial = loop(guest, specs)
        check_log(guest)
    tx, rx = trial["tx"], trial["rx"]
    assert tx["sent"] + tx["unsent"] == N_FRAMES
    # What it could not send in time is said, and not sent.
    assert tx["sent"] > N_FRAMES // 2, trial
    assert rx["unique"] == tx["sent"], trial
    for key in ("lost", "duplicates", "reordered", "foreign", "too_old"):
        assert rx[key] == 0, (key, trial)
    assert not trial["drops"], trial
    assert trial["latency"]["n"] == rx["unique"]
    there, back = trial["directions"]
    assert [there["from"], there["to"]] == specs
    assert [back["from"], back["to"]] == specs[::-1]
    assert there["unique"] + back["unique"] == rx["unique"]
