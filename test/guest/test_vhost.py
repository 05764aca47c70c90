# SPDX-License-Identifier: BSD-3-Clause
"""Guests behind vhost: ports: joined by mr-l2fwd to each other, to a veth or to
a tap, or by a NAT; processes that are killed, and configuration errors."""
import json

import pytest

from guest import END_LIMIT_S
from vhost import (Arriving, Switch, Transfer, address, configure, do, lab,
                   migrate, new_guest, ping, tcp, tcp_with)
from lib import invariants
from lib.forwarder import Forwarder
from lib.namespaces import wait_until
from lib.process import NAT, Process, environment

PACKED = 34  # VIRTIO_F_RING_PACKED
# rings of the guests, pairs of queues, options of our ports
CASES = {
    "split": ("vhost-split", 2, ",tso=on"),
    "packed": ("vhost-packed", 2, ",tso=on"),
    "split-plain": ("vhost-split", 1, ",csum=off,tso=off"),
    "packed-plain": ("vhost-packed", 2, ",csum=off,tso=off"),
}


def talk(one, other, mtu, queues):
    """Ping, and TCP both ways from each CPU."""
    for guest in one, other:
        do(guest, f"ip link set nic0 mtu {mtu}")
    assert ping(one, address(1), mtu - 28) == 3
    for cpu in range(queues):
        tcp(one, other, address(1), cpu)
        tcp(other, one, address(0), cpu)


def check_carried(snapshot, has_tso):
    """Each queue has received frames. With has_tso they are unsplit segments;
    otherwise they fit into the MTU."""
    for port in snapshot["ports"]:
        rx_bytes, n = (invariants.total(port, "rx", counter)
                       for counter in ("bytes", "delivered"))
        assert (rx_bytes > 1514 * n) == has_tso, port
        for queue in port["queues"]:
            assert queue["rx"]["delivered"] > 0, port
            assert queue["events"]["tx_gso_software"] == 0, port
        assert invariants.drops(port, "tx")["too_long"] == 0, port


def features_of(guest):
    """The features that the driver has negotiated, as bits."""
    return do(guest, "cat /sys/class/net/nic0/device/features")


@pytest.mark.parametrize("kind, queues, options", CASES.values(),
                         ids=CASES.keys())
@pytest.mark.short
def test_two_guests_talk(lab, kind, queues, options):
    """Pings, and TCP that arrives whole, with frames of two sizes."""
    switch = Switch(lab, f",queues={queues},mtu=9000{options}")
    with new_guest(switch.paths[0], kind, queues) as one, \
            new_guest(switch.paths[1], kind, queues) as other:
        switch.wait_for_links(True, True)
        configure(one, 0)
        configure(other, 1)
        assert features_of(one)[PACKED] == str(int("packed" in kind))
        talk(one, other, 1500, queues)
        check_carried(switch.running.next_snapshot(), "tso=on" in options)
        talk(one, other, 9000, queues)


@pytest.mark.parametrize("wire, options, n_kills", [
    ("vhost", "", 20), ("vhost-server", ",client=on", 3)],
    ids=["server", "client"])
def test_we_are_killed(lab, wire, options, n_kills):
    """Kill ours repeatedly while data flows between two guests: QEMU or our
    port connects again, and the interfaces recover."""
    switch = Switch(lab, options)
    with new_guest(switch.paths[0], wire=wire) as one, \
            new_guest(switch.paths[1], wire=wire) as other:
        configure(one, 0)
        configure(other, 1)
        switch.wait_for_links(True, True)
        assert ping(one, address(1)) == 3
        transfer = Transfer(one, other, address(1), 64 << 20)
        for _ in range(n_kills):
            n_before = transfer.n_got()
            wait_until("more has come",
                       lambda n=n_before: transfer.n_got() > n, 60)
            switch.kill()
            switch.start()
        transfer.finish()
        assert ping(other, address(0)) == 3


def test_qemu_is_killed(lab):
    """The port waits for the next peer, and no page is lost."""
    switch = Switch(lab)
    with new_guest(switch.paths[1]) as other:
        configure(other, 1)
        for _ in range(3):
            with new_guest(switch.paths[0]) as one:
                switch.wait_for_links(True, True)
                configure(one, 0)
                assert ping(one, address(1)) == 3
                Transfer(one, other, address(1), 64 << 20)
                one.process.kill()
                one.process.wait(END_LIMIT_S)
                switch.wait_for_links(False, True)
                do(other, "ip neigh flush all; killall nc")
        switch.running.stop(pending=True)


SERVER = "10.78.0.254"


@pytest.mark.parametrize("spec", ["xdp:p1", "tap:p1,tso=on"])
def test_a_guest_and_a_kernel_talk(lab, spec):
    """Segments go to the tap unchanged, and are split for the veth."""
    middle, host = lab.namespace("f"), lab.namespace("h")
    path = lab.tmp_path / "vm0"
    if spec.startswith("xdp"):
        lab.veth(middle, "p1", host, "h0")
    running = Forwarder(lab, middle, f"vhost:{path},tso=on", spec)
    if spec.startswith("tap"):
        middle.ip("link", "set", "p1", "netns", host.name, "name", "h0")
        host.ip("link", "set", "h0", "up")
    host.ip("address", "add", f"{SERVER}/24", "dev", "h0")
    with new_guest(path) as guest:
        configure(guest, 0)
        assert ping(guest, SERVER) == 3
        assert tcp_with(guest, host, SERVER) == address(0)
        final = running.stop()
    rx = final["ports"][0]["queues"][0]["rx"]
    assert rx["bytes"] > 1514 * rx["delivered"], rx


NAT_CONFIG = """
inside: {{port: "vhost:{path}", addresses: 10.78.0.100/24}}
outside: {{port: "xdp:p1", addresses: 192.0.2.1/24}}
"""


def test_a_guest_reaches_a_server_through_a_nat(lab):
    middle, server = lab.namespace("f"), lab.namespace("o")
    lab.veth(middle, "p1", server, "h0")
    server.ip("address", "add", "192.0.2.254/24", "dev", "h0")
    path, config = lab.tmp_path / "vm0", lab.tmp_path / "nat.yaml"
    config.write_text(NAT_CONFIG.format(path=path))
    nat = Process(lab, middle, [*environment(lab), NAT, "--json", "--config",
                                config])
    nat.says("worker ")
    with new_guest(path) as guest:
        configure(guest, 0)
        do(guest, "ip route add default via 10.78.0.100")
        assert ping(guest, "192.0.2.254") == 3
        assert tcp_with(guest, server, "192.0.2.254") == "192.0.2.1"
    nat.process.terminate()
    assert nat.wait() == 0, nat.err.text()
    final = json.loads(nat.out.text().splitlines()[-1])
    assert final["invariants_hold"] and final["conserved"], final


def test_memory_that_is_not_shared(lab):
    """The line names QEMU's option, and the next guest works."""
    switch = Switch(lab)
    with new_guest(switch.paths[0], is_shared=False) as one:
        switch.running.says("memory-backend-memfd", 60)
        switch.running.says("share=on")
    with new_guest(switch.paths[0]) as one, new_guest(switch.paths[1]) as other:
        configure(one, 0)
        configure(other, 1)
        assert ping(one, address(1)) == 3


@pytest.mark.parametrize("kind", ["vhost-split", "vhost-packed"])
def test_a_guest_moves_while_it_downloads(lab, kind):
    """A guest migrates to a QEMU at another port of a learning bridge."""
    switch = Switch(lab, ",tso=on", 3, ["--mode", "learn"])
    with new_guest(switch.paths[0], kind) as one, \
            new_guest(switch.paths[1]) as other:
        configure(one, 0)
        configure(other, 1)
        assert ping(one, address(1)) == 3
        with Arriving(one, switch.paths[2]) as moved:
            transfer = Transfer(other, one, address(0), 64 << 20)
            wait_until("some has come", lambda: transfer.n_got() > 0, 60)
            migrate(one, moved)
            transfer.sink = moved
            assert transfer.n_got() < transfer.n_bytes
            one.process.kill()
            transfer.finish()
            assert ping(moved, address(1)) == 3
        switch.running.stop(pending=True)
