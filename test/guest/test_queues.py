# SPDX-License-Identifier: BSD-3-Clause
"""RSS of NICs of the kernel, by way of xdp:, and of ours: what is set, that
frames follow it, and that it goes back."""
import collections
import contextlib
import re
import time

import pytest

from conftest import boot, forget_log, need_driver
from guest import Nic
from probe import opened
from queues import KEEP_KEY, LIMIT_MS, N_FLOWS, queue_of, ways
from taps import TapWire, new_lab
from traffic import own_flow

HASH = 1  # MR_META_RSS_HASH
IPV4, L4, UDP = 1, 8, 32  # MR_HASH_*
XDP = "xdp:nic0,ring=256,promisc"


@contextlib.contextmanager
def two_queues(kind, folder):
    """A machine and its NIC with two queues; virtio's wire has two, too."""
    lab = None
    options = {"n_cpus": 2}
    nic = Nic("nic0", kind)
    if kind.startswith("virtio"):
        lab = new_lab(folder)
        namespace = lab.namespace("tap")
        wire = TapWire(namespace, "nic0")
        nic = Nic("nic0", kind, "tap", "mq=on,vectors=6,rss=on,hash=on",
                  queues=2)
        options["prefix"] = namespace.command()
    try:
        with boot([nic], **options) as guest:
            if lab is not None:
                guest.wires["nic0"] = wire
            yield guest, nic
    finally:
        if lab is not None:
            lab.close()


@pytest.fixture(scope="module", params=["igb", "virtio-split"])
def machine(request, tmp_path_factory):
    with two_queues(request.param, tmp_path_factory.mktemp("taps")) as (guest,
                                                                        _):
        guest.run("ethtool -L nic0 combined 2")
        forget_log(guest)
        yield guest


def rss_of(guest, name="nic0"):
    """(table, key) as ethtool shows them."""
    status, text = guest.run(f"ethtool -x {name}")
    assert status == 0, text
    table = [int(n) for row in re.findall(r"^ *\d+:((?: +\d+)+)", text, re.M)
             for n in row.split()]
    key = re.search(r"hash key:\n(\S+)", text)
    return table, key.group(1) if key else ""


def test_a_table_moves_flows_and_goes_back(guest, probe):
    before = rss_of(guest)
    assert before[0]
    probe.do("open", XDP)
    for queue in 1, 0:
        probe.do("rss", 0, KEEP_KEY, 0, queue)
        assert set(rss_of(guest)[0]) == {queue}
        for i in range(4):
            assert queue_of(guest, probe, own_flow(i, 100)) == queue
    assert "it has 2 rx queues" in probe.refused("rss", 0, KEEP_KEY, 0, 2)
    probe.do("close", 0)
    assert rss_of(guest) == before


def test_both_directions_have_one_queue(guest, probe):
    """Or the port says that the kernel's driver has no key to set."""
    before = rss_of(guest)
    answer = probe.ask("open", XDP + ",rss=symmetric")
    if not answer["ok"]:
        assert not before[1] or "hash key" in answer["reason"], answer
        assert rss_of(guest) == before
        pytest.skip(answer["reason"])
    assert set(rss_of(guest)[1].split(":")) == {"6d", "5a"}
    assert ways(guest, probe) == (N_FLOWS, {0, 1})
    probe.do("close", 0)
    assert rss_of(guest) == before


def test_metadata_has_the_hash(guest, probe):
    """virtio_net tells XDP programs about it (QEMU computes it), igb does not."""
    guest.run("ethtool -K nic0 rxhash on")
    driver = re.search(r"driver: (\S+)", guest.run("ethtool -i nic0")[1])[1]
    probe.do("open", XDP + ",meta")
    probe.do("rss", 0, KEEP_KEY, 0, 0)
    probe.begin("metas", 0, 20, LIMIT_MS)
    for i in range(20):
        while not guest.wires["nic0"].try_send(own_flow(i % 5, 100)):
            time.sleep(0.01)
    metas = probe.answer()["metas"]
    assert len(metas) == 20
    is_told = driver == "virtio_net"
    assert {meta["valid"] for meta in metas} == {HASH if is_told else 0}
    assert ("hash" in probe.do("info", 0)["why"]) != is_told
    if is_told:
        assert {meta["type"] for meta in metas} == {IPV4 | L4 | UDP}
        # A tap has two queues, and its flows overtake each other.
        hashes = collections.Counter(meta["hash"] for meta in metas)
        assert sorted(hashes.values()) == [4] * 5
    probe.do("close", 0)


def test_by_the_broker(guest, probe):
    """A client's table is set by the broker, and restored when it ends."""
    before = rss_of(guest)
    guest.run("mkdir -p /tmp/b; echo 'rules: [{user: 0, interface: nic0, "
              "memory: 1G, rss: yes, settings: yes}]' >/tmp/b/rules.yaml")
    status, pid = guest.run(
        "mr-brokerd --rules /tmp/b/rules.yaml --socket /tmp/b/sock "
        ">/dev/null 2>&1 & echo $!; until [ -S /tmp/b/sock ]; do "
        "usleep 10000; done")
    assert status == 0, pid
    probe.do("open", XDP + ",via=broker,broker=/tmp/b/sock")
    probe.do("rss", 0, KEEP_KEY, 0, 1)
    assert set(rss_of(guest)[0]) == {1}
    for i in range(4):
        assert queue_of(guest, probe, own_flow(i, 100)) == 1
    assert "it has 2 rx queues" in probe.refused("rss", 0, KEEP_KEY, 0, 2)
    probe.do("close", 0)
    assert rss_of(guest) == before
    pid = int(pid)
    guest.run(f"kill {pid}; while kill -0 {pid} 2>/dev/null; do usleep 10000; "
              "done")


def test_killed(guest):
    """The next port on the interface puts the table back."""
    before = rss_of(guest)
    with opened(guest, XDP) as probe:
        probe.do("rss", 0, KEEP_KEY, 0, 1)
        probe.kill()
    assert set(rss_of(guest)[0]) == {1}
    with opened(guest, XDP):
        assert rss_of(guest) == before


@pytest.mark.parametrize("kind", ["igb", "e1000e", "virtio-split",
                                  "virtio-packed"])
def test_both_directions_by_our_drivers(kind, tmp_path):
    """The device's table and key, and another table while it runs."""
    need_driver(kind)
    with two_queues(kind, tmp_path) as (guest, nic):
        guest.bind(nic, "vfio-pci")
        forget_log(guest)
        with opened(guest, f"vfio:{nic.bdf},queues=2,ring=256,promisc,"
                    "rss=symmetric") as probe:
            assert ways(guest, probe) == (N_FLOWS, {0, 1})
            probe.do("rss", 0, KEEP_KEY, 0, 1)
            assert ways(guest, probe) == (N_FLOWS, {1})
