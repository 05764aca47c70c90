# SPDX-License-Identifier: BSD-3-Clause
"""Two queues and two workers, each on a processor of its own, with RSS."""
import pytest

from conftest import boot, check_log, forget_log, need_driver
from forwarder import end_l2fwd, start_l2fwd
from guest import Nic
from lib import laws
from taps import TapWire, new_lab
from traffic import WINDOW, Traffic, own_flow, run_all

N_FRAMES = 3000
RSS = "mq=on,vectors=6,rss=on,hash=on"


def spread(guest, wires, names, specs):
    """Many flows both ways; each worker and each queue had its share."""
    pid = start_l2fwd(guest, "--queues 2", "--workers 2", "--cores 0,1",
                      *specs)
    frames = [own_flow(i, 60 + i % 1400) for i in range(N_FRAMES)]
    one, other = (wires[name] for name in names)
    ways = [Traffic(one, other, frames, WINDOW),
            Traffic(other, one, frames, WINDOW)]
    run_all(ways, len(frames))
    final = end_l2fwd(guest, pid)
    for way in ways:
        assert sorted(way.received) == sorted(frames)
    for port in final["ports"]:
        assert laws.total(port, "rx", "received") == len(frames)
        for queue in port["queues"]:
            assert queue["rx"]["received"] > N_FRAMES / 10, port
    assert len(final["workers"]) == 2
    for worker in final["workers"]:
        assert worker["entries"] > N_FRAMES / 5, final["workers"]


def test_igb():
    """igb with two queues each way."""
    need_driver("igb")
    nics = [Nic("nic0", "igb"), Nic("nic1", "igb")]
    with boot(nics, n_cpus=2) as guest:
        for nic in nics:
            guest.bind(nic, "vfio-pci")
        forget_log(guest)
        spread(guest, guest.wires, ("nic0", "nic1"),
               [f"vfio:{nic.bdf},queues=2" for nic in nics])
        check_log(guest)


@pytest.mark.parametrize("kind", ["virtio-split", "virtio-packed"])
def test_virtio(tmp_path, kind):
    """virtio with two queue pairs, which its wire must have too: taps."""
    need_driver(kind)
    lab = new_lab(tmp_path)
    try:
        namespace = lab.namespace("tap")
        wires = {name: TapWire(namespace, name) for name in ("nic0", "nic1")}
        nics = [Nic(name, kind, "tap", RSS, queues=2) for name in wires]
        with boot(nics, n_cpus=2, prefix=namespace.command()) as guest:
            for nic in nics:
                guest.bind(nic, "vfio-pci")
            forget_log(guest)
            spread(guest, wires, ("nic0", "nic1"),
                   [f"vfio:{nic.bdf},queues=2" for nic in nics])
            check_log(guest)
    finally:
        lab.close()
