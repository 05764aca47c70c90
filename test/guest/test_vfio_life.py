# SPDX-License-Identifier: BSD-3-Clause
"""Our own drivers, by vfio-pci: what ends, breaks off or is taken away."""
import time

import pytest

from conftest import boot, spec_of
from forwarder import end_l2fwd, last_snapshot, start_l2fwd
from guest import Nic
from host import limit
from lib import invariants
from probe import check_idle, opened, wait_for_link
from traffic import (WINDOW, Traffic, all_lengths, clear, compare, cut_link,
                     echo, kill_under_traffic)

KINDS = ["igb", "e1000e", "virtio-split", "virtio-packed"]
UNPLUG_LIMIT_S = limit(30)
# A region of the probe's pool and the rings, in KiB, is more than this.
SMALL_MEMLOCK_KB = 1024


@pytest.fixture(scope="module")
def machine():
    """A NIC of each kind, in slots that can be emptied."""
    nics = [Nic(kind, kind, is_pluggable=True) for kind in KINDS]
    with boot(nics, needs_all=False) as guest:
        for nic in guest.nics:
            guest.bind(nic, "vfio-pci")
        yield guest


@pytest.mark.parametrize("kind", KINDS)
def test_killed(guest, kind):
    """And the IOMMU is quiet."""
    spec = spec_of(guest, kind)
    kill_under_traffic(guest, guest.wires[kind], spec)


@pytest.mark.parametrize("kind", KINDS)
def test_link_down_and_up(guest, probe, kind):
    """The cable is pulled and put back."""
    probe.do("open", spec_of(guest, kind))
    wait_for_link(probe, True)
    for _ in range(2):
        cut_link(guest.wires[kind], probe, lambda is_up: guest.qmp(
            "set_link", name=kind, up=is_up))
    check_idle(probe)


@pytest.mark.parametrize("kind", KINDS)
def test_unplugged(guest, kind):
    """The NIC is pulled under traffic: the port says so, the other goes on;
    put back, it works again."""
    other = "virtio-split" if kind != "virtio-split" else "virtio-packed"
    pid = start_l2fwd(guest, spec_of(guest, kind), spec_of(guest, other))
    nic = guest.nic(kind)
    traffic = Traffic(guest.wires[kind], guest.wires[other],
                      all_lengths(20000), WINDOW)
    traffic.start(500)
    guest.qmp("device_del", id=f"{kind}-nic")
    deadline = time.monotonic() + UNPLUG_LIMIT_S
    while not last_snapshot(guest)["ports"][0]["link"]["gone"]:
        assert time.monotonic() < deadline, last_snapshot(guest)
        time.sleep(0.3)
    end_l2fwd(guest, pid)
    assert guest.wait_for_event("DEVICE_DELETED", UNPLUG_LIMIT_S)
    guest.qmp("device_add", **nic.device_as_json())
    path = f"/sys/bus/pci/devices/{nic.bdf}"
    status, text = guest.run(
        f"for i in $(seq 50); do [ -e {path} ] && exit; usleep 200000; done; "
        "exit 1")
    assert status == 0, text
    guest.bind(nic, "vfio-pci")
    with opened(guest, spec_of(guest, kind)) as probe:
        echo(guest.wires[kind], probe, all_lengths(300), is_clear=False)


def test_not_root(guest):
    """A user who owns the group's node: first with too little memory that may
    be locked, which the reason says, then with enough."""
    kind = "virtio-packed"
    nic = guest.nic(kind)
    guest.run("mkdir -p /etc; echo 'user:x:1000:1000::/tmp:/bin/sh' "
              ">/etc/passwd")
    status, group = guest.run(
        f"basename $(readlink /sys/bus/pci/devices/{nic.bdf}/iommu_group)")
    assert status == 0
    node = f"/dev/vfio/{group.strip()}"

    def as_user(memlock):
        return opened(guest, command=f"ulimit -l {memlock}; "
                      "exec su -s /bin/sh user -c netns-probe")

    with as_user("unlimited") as probe:
        assert node in probe.refused("open", spec_of(guest, kind))
    guest.run(f"chown user {node}")
    with as_user(SMALL_MEMLOCK_KB) as probe:
        assert "lock" in probe.refused("open", spec_of(guest, kind))
    with as_user("unlimited") as probe:
        probe.do("open", spec_of(guest, kind))
        echo(guest.wires[kind], probe, all_lengths(300))


@pytest.mark.parametrize("kind", ["igb", "virtio-split"])
def test_refused(guest, probe, kind):
    """A NIC that the kernel has: what it says, and that the NIC is as it was."""
    nic = guest.nic(kind)
    theirs = {"igb": "igb", "virtio-split": "virtio-pci"}[kind]
    guest.bind(nic, theirs)
    answer = probe.ask("open", spec_of(guest, kind))
    assert not answer["ok"] and theirs in answer["reason"], answer
    guest.bind(nic, "vfio-pci")
    probe.do("open", spec_of(guest, kind))
    echo(guest.wires[kind], probe, all_lengths(100))


@pytest.mark.parametrize("kind", KINDS)
def test_in_use_by_another_process(guest, kind):
    """The second is told so in one line, and the first goes on."""
    other = "virtio-split" if kind != "virtio-split" else "virtio-packed"
    frames = all_lengths(3000)
    pid = start_l2fwd(guest, spec_of(guest, kind), spec_of(guest, other))
    traffic = Traffic(guest.wires[kind], guest.wires[other], frames, WINDOW)
    traffic.start(500)
    status, text = guest.run(
        f"mr-l2fwd --quiet --duration 1 {spec_of(guest, kind)} null: 2>&1")
    assert status == 1 and text.count("\n") == 1, text
    assert f"{guest.nic(kind).bdf} is in use by another process" in text
    compare(traffic.run(len(frames)), frames)
    final = end_l2fwd(guest, pid)
    assert invariants.total(final["ports"][1], "tx", "completed") == len(frames)


def test_machine_reset(machine):
    """The machine's reset line under traffic: afterwards all NICs work."""
    one, other = "e1000e", "virtio-split"
    start_l2fwd(machine, spec_of(machine, one), spec_of(machine, other))
    wires = machine.wires
    traffic = Traffic(wires[one], wires[other], all_lengths(20000), WINDOW)
    traffic.start(500)
    machine.restart()
    for nic in machine.nics:
        machine.bind(nic, "vfio-pci")
    pid = start_l2fwd(machine, spec_of(machine, one), spec_of(machine, other))
    clear(wires[one], wires[other])
    frames = all_lengths(500)
    got = Traffic(wires[one], wires[other], frames, WINDOW).run(len(frames))
    compare(got, frames)
    end_l2fwd(machine, pid)
