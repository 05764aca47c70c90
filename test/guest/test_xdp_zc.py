# SPDX-License-Identifier: BSD-3-Clause
"""The xdp driver in zero-copy mode, on the kernel's igb driver; what every
port does is tested by the conformance suite.

Everything is counted, nothing is timed: the machine is emulated. What is
checked on the wire is compared with frames made here, not with what the
driver says about itself; and the IOMMU of the guest reports a device that
writes where it may not.
"""
import re

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from conftest import PROGRAMS, boot, check_log, forget_log
from forwarder import end_l2fwd, last_snapshot, start_l2fwd
from guest import Nic
from lib import invariants
from lib.namespaces import wait_until
from lib.process import CTL
from lib.wire import frame
from probe import check_idle, opened
from traffic import (WINDOW, Traffic, all_lengths, cut_link, echo, exchange,
                     hold, kill_under_traffic, own_flow, padded)

SPEC = "xdp:nic0,mode=zc"


@pytest.fixture(scope="module")
def machine():
    with boot([Nic("nic0"), Nic("nic1")]) as guest:
        yield guest


@pytest.fixture
def with_ctl():
    with boot([Nic("nic0"), Nic("nic1")], [*PROGRAMS, CTL]) as guest:
        forget_log(guest)
        yield guest


@pytest.fixture
def two_cpus():
    """One igb with a queue for each of two processors."""
    with boot([Nic("nic0")], n_cpus=2) as guest:
        forget_log(guest)
        yield guest


def test_mode(probe):
    """It binds zero-copy, and says so; close and reopen many times."""
    for _ in range(3):
        port = probe.do("open", SPEC)["port"]
        info = probe.do("info", port)
        assert info["mode"] == "zc" and "rxvlan off" in info["why"], info
        assert info["sg"] == 0, info
        probe.do("close", port)
    port = probe.do("open", "xdp:nic0")["port"]  # auto finds it too
    assert probe.do("info", port)["mode"] == "zc"


@pytest.mark.parametrize("ring", [64, 256])
def test_starved(guest, probe, ring):
    """The application keeps every page; when they are back all goes on.

    With a ring of 64 the NIC's own ring of 256 is never full, so the kernel
    finds the fill ring empty and must be woken when there is something in it.
    Each frame from the wire is delivered or a named drop.
    """
    wire = guest.wires["nic0"]
    probe.do("pool", 1200)
    probe.do("open", SPEC + f",ring={ring}", 1)
    frames = [frame(200, i) for i in range(3000)]
    traffic = Traffic(wire, wire, frames)
    held = hold(probe, traffic, until_sent=True)
    rx = check_idle(probe, 0, 1)["queues"][0]["rx"]
    assert 0 < held < len(frames) and rx["delivered"] == held, rx
    assert rx["events"]["pool_empty"] > 0, rx
    # The longer one can be empty if the guest has to wait for the host.
    assert ring > 64 or rx["events"]["fill_ring_empty"] > 0, rx
    probe.do("release")
    late = hold(probe, traffic)  # they were in the ring
    probe.do("release")
    stats = check_idle(probe, 0, 1)
    lost = sum(stats["queues"][0]["rx"]["drops"].values()) + \
        sum(stats["device_drops"].values())
    assert held + late + lost == len(frames), stats
    echo(guest.wires["nic0"], probe, [frame(60 + i, i) for i in range(1000)],
         window=ring // 2)


@pytest.mark.parametrize("page_bytes,headroom", [
    (2048, 0), (2048, 512), (4096, 0), (4096, 512), (4096, 1024)])
def test_pages(guest, probe, page_bytes, headroom):
    """Every length in pages of 2 and 4 KiB, copied where necessary.

    igb counts its buffers in KiB, and hands on a longer frame in pieces: of a
    page of 2 KiB it uses one, too few for MTU 1500.
    """
    pool = probe.do("pool", 8192, page_bytes, headroom)["pool"]
    if page_bytes == 2048:
        reason = probe.ask("open", SPEC, pool)["reason"]
        assert "mode=zc" in reason and "1500" in reason, reason
        port = probe.do("open", "xdp:nic0", pool)["port"]
        info = probe.do("info", port)
        assert info["mode"] == "copy" and "1500" in info["why"], info
    else:
        probe.do("open", SPEC, pool)
    echo(guest.wires["nic0"], probe, all_lengths(600))
    check_idle(probe, 0, pool)


def test_jumbo_falls_back(guest, probe):
    """igb takes no frames of several buffers natively: copy, and it says why.

    The MTU is set and given back; mode=zc is refused.
    """
    reason = probe.ask("open", SPEC + ",mtu=9000")["reason"]
    assert "MTU" in reason, reason
    assert "1500" in guest.run("cat /sys/class/net/nic0/mtu")[1]
    reason = probe.ask("open", SPEC + ",sg=on")["reason"]
    assert "several buffers" in reason, reason
    port = probe.do("open", "xdp:nic0,sg=on")["port"]
    info = probe.do("info", port)
    print(info)
    assert info["mode"] == "copy" and "several buffers" in info["why"], info
    echo(guest.wires["nic0"], probe, all_lengths(300))


def test_busy_polled(guest, probe):
    """Our calls run the driver; its interrupts are deferred."""
    probe.do("open", SPEC + ",busy=64")
    echo(guest.wires["nic0"], probe, all_lengths(1000))
    events = check_idle(probe)["queues"][0]["rx"]["events"]
    assert events["wakeup"] > 0, events


def test_zero_copy_beside_copy(guest, probe):
    """A zero-copy NIC and a veth in copy mode, one pool, no copy of ours.

    The same memory is registered twice: the kernel allows it, and refuses to
    share one registration between the two modes.
    """
    guest.run("/bin/ip link del v0; /bin/ip link add v0 type veth peer v1; "
              "/bin/ip link set v0 up; /bin/ip link set v1 up")
    probe.do("open", SPEC)
    probe.do("open", "xdp:v0,mode=copy,csum=off")
    with opened(guest, "xdp:v1,mode=copy,csum=off", channel=1) as far:
        far.begin("forward", 0)
        frames = all_lengths(1501)
        wire = guest.wires["nic0"]
        probe.begin("forward", 0, 1)
        got = Traffic(wire, wire, frames, WINDOW).run(len(frames))
        assert got == [padded(f) for f in frames]
        probe.end_forward()
        far.end_forward()
        for port in (0, 1):
            tx = check_idle(probe, port)["queues"][0]["tx"]
            assert tx["completed"] == len(frames), tx
            assert tx["events"]["foreign_copied"] == 0, tx
            assert tx["events"]["edge_copied"] == 0, tx


def test_killed(guest):
    """And no program is left on the interface."""
    kill_under_traffic(guest, guest.wires["nic0"], SPEC)
    assert "xdp" not in guest.run("/bin/ip link show nic0")[1]


def test_link_down_and_up(guest, probe):
    """The cable is pulled and put back, the interface taken down and up."""
    probe.do("open", SPEC)
    wire = guest.wires["nic0"]
    cut_link(wire, probe, lambda is_up: guest.qmp(
        "set_link", name="nic0", up=is_up))
    cut_link(wire, probe, lambda is_up: guest.run(
        f"/bin/ip link set nic0 {'up' if is_up else 'down'}"))
    check_idle(probe)


def test_small_mtu_in_small_pages(guest, probe):
    """Frames of at most 1 KiB need no copy in pages of 2 KiB either."""
    pool = probe.do("pool", 8192, 2048)["pool"]
    probe.do("open", SPEC + ",mtu=1006", pool)
    echo(guest.wires["nic0"], probe, [frame(14 + i, i) for i in range(1006)])
    probe.do("close", 0)
    assert "1500" in guest.run("cat /sys/class/net/nic0/mtu")[1]


def test_l2fwd(guest):
    """mr-l2fwd between two zero-copy ports: 20000 frames, both ways."""
    pid = start_l2fwd(guest, SPEC, "xdp:nic1,mode=zc")
    frames = all_lengths(10000)
    exchange(guest.wires["nic0"], guest.wires["nic1"], frames)
    final = end_l2fwd(guest, pid)
    for port in final["ports"]:
        assert port["mode"] == "zc", port
        assert invariants.total(port, "rx", "received") == len(frames)
        assert invariants.total(port, "tx", "completed") == len(frames)
        for queue in port["queues"]:
            assert queue["events"]["tx_foreign_copied"] == 0
            assert queue["events"]["tx_edge_copied"] == 0


def test_upgrade(with_ctl):
    """Frames in zero-copy rings go to the next process, twice."""
    guest = with_ctl
    wires = guest.wires["nic0"], guest.wires["nic1"]
    start_l2fwd(guest, "--control /tmp/sock", SPEC, "xdp:nic1,mode=zc")
    for _ in range(2):
        guest.start("mrctl --control /tmp/sock upgrade")
        exchange(*wires, all_lengths(3000))
        status, text = guest.finish()
        assert status == 0, text
    exchange(*wires, all_lengths(1000))
    final = end_l2fwd(guest, int(re.search(r"process (\d+)", text)[1]))
    for port in final["ports"]:
        assert port["mode"] == "zc", port
        assert invariants.total(port, "rx", "received") == 7000
        assert invariants.total(port, "tx", "completed") == 7000
    check_log(guest)


@pytest.mark.parametrize("mode", ["copy", "zc"])
def test_rules_forward_between_nics(guest, mode):
    """In the kernel, both ways, each frame as it was; and zero-copy, too."""
    pid = start_l2fwd(guest, "--offload on", f"xdp:nic0,mode={mode}",
                      f"xdp:nic1,mode={mode}")
    frames = all_lengths(1000)
    exchange(guest.wires["nic0"], guest.wires["nic1"], frames)
    final = end_l2fwd(guest, pid)
    for port in final["ports"]:
        assert invariants.total(port, "rx", "offloaded") == len(frames), port
    assert final["offload"]["tx_drops"] == 0


def side(name, mode, address, neighbour):
    """A side of mr-nat's configuration."""
    return (f'{{port: "xdp:{name},mode={mode}", addresses: {address}/24, '
            f'neighbours: ["{neighbour}"]}}')


@pytest.mark.parametrize("mode", ["copy", "zc"])
def test_sessions_are_translated_by_rules(guest, mode):
    """What this kernel's verifier loads forwards a session, both ways."""
    wires = guest.wires["nic0"], guest.wires["nic1"]
    inside = side("nic0", mode, "10.0.0.1", "10.0.0.2 02:00:00:00:00:01")
    outside = side("nic1", mode, "192.0.2.1", "192.0.2.2 02:00:00:00:00:02")
    guest.run(f"echo '{{inside: {inside}, outside: {outside}}}' "
              ">/tmp/nat.yaml")
    pid = start_l2fwd(guest, "--offload on --config /tmp/nat.yaml",
                      program="RUNTIME_DIRECTORY=/tmp mr-nat")
    macs = [guest.run(f"cat /sys/class/net/nic{i}/address")[1].strip()
            for i in range(2)]
    out = (Ether(src="02:00:00:00:00:01", dst=macs[0]) /
           IP(src="10.0.0.2", dst="192.0.2.2", id=7) /
           UDP(sport=1024, dport=53) / bytes(100))
    back = (Ether(src="02:00:00:00:00:02", dst=macs[1]) /
            IP(src="192.0.2.2", dst="192.0.2.1", flags="DF") /
            UDP(sport=53, dport=1024) / bytes(100))
    for wire in wires:
        while wire.receive() is not None:
            pass  # it announces its addresses
    n = 100

    def talk():
        for here, there, packet, ends in (
                (0, 1, out, ("192.0.2.1", "192.0.2.2")),
                (1, 0, back, ("192.0.2.2", "10.0.0.2"))):
            frames = [bytes(packet)] * 10
            for data in Traffic(wires[here], wires[there], frames).run(10):
                got = Ether(data)
                assert (got[IP].src, got[IP].dst) == ends
                sums = got[IP].chksum, got[UDP].chksum
                del got[IP].chksum, got[UDP].chksum
                got = Ether(bytes(got))
                assert (got[IP].chksum, got[UDP].chksum) == sums

    # Rules are added after the first frames, when the guest gets CPU time.
    wait_until("rules both ways", lambda: talk() or all(
        invariants.total(port, "rx", "offloaded") > 0
        for port in last_snapshot(guest)["ports"]), limit_s=120)
    for _ in range(n // 10):
        talk()
    final = end_l2fwd(guest, pid, lambda final:
                      invariants.check_ports(final["ports"]))
    assert final["invariants_hold"] and final["conserved"]
    assert final["offload"]["rules"] == 0 and final["state"]["mappings"] == 1
    for port in final["ports"]:
        assert invariants.total(port, "rx", "received") >= n
        assert invariants.total(port, "rx", "offloaded") >= n, port


def test_two_queues(two_cpus):
    """A socket for each of two queues: both are used, nothing is lost.

    Closing waits for the release of each: the IOMMU would tell.
    """
    guest = two_cpus
    assert "combined 2" not in guest.run("ethtool -L nic0 combined 2")[1]
    wire = guest.wires["nic0"]
    frames = [own_flow(i, 60 + i % 1400) for i in range(1500)]
    with opened(guest, pool=32768) as probe:
        for _ in range(2):
            probe.do("open", SPEC)
            info = probe.do("info", 0)
            assert info["mode"] == "zc" and info["rxqs"] == 2, info
            traffic = Traffic(wire, wire, frames, WINDOW)
            probe.begin("forward", 0)
            got = traffic.run(len(frames))
            probe.end_forward()
            assert sorted(got) == sorted(frames)
            queues = check_idle(probe)["queues"]
            for queue in queues:
                assert queue["rx"]["received"] > len(frames) / 10, queues
            assert sum(q["tx"]["completed"] for q in queues) == len(frames)
            probe.do("close", 0)
    check_log(guest)
