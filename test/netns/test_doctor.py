# SPDX-License-Identifier: BSD-3-Clause
"""mr-devices doctor on real interfaces: each planted fault is found, and the
command that it prints fixes it."""
import json
import os

import pytest
from lib.process import BUILD

DEVICES = BUILD / "apps" / "devices" / "mr-devices"
# Checks of the machine, which a test here can neither break nor fix.
MACHINES = {"frequency", "c-states"}


class Host:
    """A namespace with a veth pair, v0 and v1, on which nothing is wrong."""

    def __init__(self, lab):
        self.space = lab.namespace("d")
        lab.veth(self.space, "v0", self.space, "v1")
        for name in "v0", "v1":
            self.do(f"ethtool -K {name} txvlan off gro on")

    def do(self, script):
        return self.space.run("sh", "-ec", script)

    def findings(self, name="v0"):
        """(check, finding, fix) of each."""
        done = self.space.run(DEVICES, "doctor", "--json", name, check=False)
        found = [tuple(f.values()) for f in json.loads(done.stdout)["findings"]]
        assert done.returncode == (3 if found else 0), done.stdout
        return [f for f in found if f[0] not in MACHINES]


@pytest.fixture
def host(lab):
    a_host = Host(lab)
    assert a_host.findings() == []
    return a_host


# Name: how it is planted, the check, words of the finding, the fix.
FAULTS = {
    "MTU": ("ip link set v1 mtu 9000; ip link set v0 mtu 9000", "mtu",
            "MTU 9000", "ip link set dev v0 mtu 3498"),
    "offload": ("ethtool -K v1 gro off", "offload", "its peer v1 has GRO off",
                "ethtool -K v1 gro on"),
    "deferral by half": (
        "echo 2 > /sys/class/net/v0/napi_defer_hard_irqs", "deferral",
        "gro_flush_timeout is not", "echo 0 > "),
    "long deferral": (
        "echo 2 > /sys/class/net/v0/napi_defer_hard_irqs;"
        "echo 2000000 > /sys/class/net/v0/gro_flush_timeout", "deferral",
        "up to 4000 us", "echo 0 > "),
    "foreign program": (
        "ip link set v0 xdpdrv object {0} section xdp", "program",
        "another XDP program is attached", "ip link set dev v0 xdpdrv off"),
    "foreign program, generic": (
        "ip link set v0 xdpgeneric object {0} section xdp", "program",
        "another XDP program is attached", "ip link set dev v0 xdpgeneric off"),
}


if [int(n) for n in os.uname().release.split(".")[:2]] < [6, 8]:
    # From then on, ports see them outside the frame.
    FAULTS["VLAN tags"] = ("ethtool -K v1 txvlan on", "offloads",
                           "the peer v1 strips", "ethtool -K v1 txvlan off")


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.short
def test_the_fix_removes_the_fault(host, pass_object, fault):
    plant, check, words, fix = fault
    host.do(plant.format(pass_object))
    (found,) = host.findings()
    assert found[0] == check and words in found[1] and fix in found[2], found
    host.do(found[2])
    assert host.findings() == []


def test_a_bridge_and_its_member(host):
    host.do("ip link add br0 type bridge; ip link set v0 master br0")
    (found,) = host.findings("br0")
    assert found[0] == "kind" and "a bridge" in found[1], found
    assert found[2] == "mr-devices doctor v0"
    (found,) = host.findings()
    assert found[0] == "use" and "member of br0" in found[1], found
    assert "xdp:v0,force" in found[2]


def test_an_interface_that_is_needed(host):
    host.do("ip address add 192.0.2.1/24 dev v0; "
            "ip route add default via 192.0.2.2 dev v0")
    (found,) = host.findings()
    assert found[0] == "use" and "carries the default route" in found[1], found
