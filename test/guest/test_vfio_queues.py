# SPDX-License-Identifier: BSD-3-Clause
"""Two queues and two workers, each on a processor of its own, with RSS."""
import os

import pytest

from conftest import boot, check_log, need_driver
from forwarder import end_l2fwd, start_l2fwd
from guest import Nic
from lib import laws, namespaces
from lib.wire import Wire
from traffic import WINDOW, Traffic, own_flow, run_all

N_FRAMES = 3000
RSS = "mq=on,vectors=6,rss=on,hash=on"


class TapWire:
    """A tap of ours as a wire: what is sent on it, the guest receives."""

    def __init__(self, namespace, name):
        namespace.ip("tuntap", "add", name, "mode", "tap", "multi_queue",
                     "vnet_hdr")
        namespace.ip("link", "set", name, "up")
        self.socket = Wire(namespace, name).socket

    def try_send(self, frame):
        """As guest.Wire."""
        try:
            self.socket.send(frame)
            return True
        except OSError:  # no room now; what is lost for good is missed later
            return False

    def receive(self, _limit_s=0):
        """As guest.Wire."""
        try:
            return self.socket.recv(65536)
        except BlockingIOError:
            return None


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
        guest.run("dmesg -c >/dev/null")
        spread(guest, guest.wires, ("nic0", "nic1"),
               [f"vfio:{nic.bdf},queues=2" for nic in nics])
        check_log(guest)


@pytest.mark.parametrize("kind", ["virtio-split", "virtio-packed"])
def test_virtio(tmp_path, kind):
    """virtio with two queue pairs, which its wire must have too: taps."""
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        pytest.skip("no tap interfaces: not root, or no /dev/net/tun")
    need_driver(kind)
    lab = namespaces.Lab(tmp_path)
    try:
        namespace = lab.namespace("tap")
        wires = {name: TapWire(namespace, name) for name in ("nic0", "nic1")}
        nics = [Nic(name, kind, "tap", RSS, queues=2) for name in wires]
        with boot(nics, n_cpus=2, prefix=namespace.command()) as guest:
            for nic in nics:
                guest.bind(nic, "vfio-pci")
            guest.run("dmesg -c >/dev/null")
            spread(guest, wires, ("nic0", "nic1"),
                   [f"vfio:{nic.bdf},queues=2" for nic in nics])
            check_log(guest)
    finally:
        lab.close()
