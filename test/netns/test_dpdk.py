# SPDX-License-Identifier: BSD-3-Clause
"""dpdk: ports in the applications: two kernels talk, one side by DPDK.

The forwarder's namespace is one of the hosts, where the other side is a tap: it
is where DPDK makes it.
"""
import os
import signal
import sys

import pytest
from lib import nat, talk
from lib.forwarder import Forwarder, Refused
from lib.namespaces import Star, wait_until
from lib.process import BUILD, NAT, Process

MODULE = BUILD / "lib/link/libmillrace-dpdk.so"
TAP = r"dpdk:net_tap0\,iface=dt0"
TAP_ADDRESS = "10.77.0.9"


@pytest.fixture(autouse=True)
def module():
    if not MODULE.exists():
        pytest.skip("the dpdk driver is not built (libdpdk?)")
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("no /dev/net/tun")


@pytest.fixture
def one_host(lab):
    """A host at p0; the other one is the forwarder's own namespace."""
    return Star(lab, n_hosts=1)


def address_tap(namespace, address=TAP_ADDRESS):
    """Give the tap that DPDK has made an address."""
    wait_until("DPDK has made its tap", lambda: namespace.link("dt0"))
    namespace.ip("address", "add", f"{address}/24", "dev", "dt0")
    namespace.ip("link", "set", "dt0", "up")


def test_tcp_between_xdp_and_a_tap_of_dpdk(lab, one_host):
    forwarder = Forwarder(lab, one_host.middle, "p0", TAP)
    address_tap(one_host.middle)
    host, here = one_host.hosts[0], one_host.middle
    for sender, receiver, address in ((host, here, TAP_ADDRESS),
                                      (here, host, one_host.address(0))):
        assert talk.ping(sender, address) == 3
        talk.tcp(sender, receiver, address)
        assert talk.udp(sender, receiver, address) == 20
    final = forwarder.stop()
    assert final["ports"][1]["mode"] == "net_tap"
    for port in final["ports"]:
        for queue in port["queues"]:
            for name, n in queue["events"].items():
                assert "copied" not in name or n == 0, (name, n)


def test_a_device_refuses_rules_in_its_own_words(lab, one_host):
    Refused(lab, one_host.middle, "--offload", "on", "--mode", "drop",
            TAP).check(1, "accepts no rules: to forward: transfer is not")


def test_the_mtu_of_an_interface_is_restored(lab):
    star = Star(lab)
    star.middle.ip("link", "set", "p1", "mtu", "1400")
    forwarder = Forwarder(lab, star.middle, "xdp:p0",
                          r"dpdk:net_af_packet0\,iface=p1,mtu=1300")
    assert star.middle.link("p1")["mtu"] == 1300
    forwarder.stop()
    assert star.middle.link("p1")["mtu"] == 1400


def test_an_interface_in_use_needs_force(lab):
    star = Star(lab)
    star.middle.ip("route", "add", "default", "dev", "p1")
    spec = r"dpdk:net_af_xdp0\,iface=p1"
    Refused(lab, star.middle, "xdp:p0", spec).check(
        1, "carries the default route", "'force'")
    # Asked for, it goes on, as far as DPDK 22.11 does: it makes no UMEM of
    # memory that is not its own.
    Refused(lab, star.middle, "xdp:p0", spec + ",force").check(
        2, "cannot set up its queues")


def test_flooding_to_two_ports_of_dpdk(lab):
    """A bridge of three: what is flooded has one header per port."""
    star = Star(lab, n_hosts=3)
    for host in star.hosts:
        host.run("ethtool", "-K", "h0", "tx", "off")
    Forwarder(
        lab, star.middle, "xdp:p0",
        *(rf"dpdk:net_af_packet{i}\,iface=p{i}" for i in (1, 2)),
        options=["--mode", "learn"])
    for i in (1, 2):
        assert talk.ping(star.hosts[0], star.address(i)) == 3
        talk.tcp(star.hosts[0], star.hosts[i], star.address(i))
    assert talk.ping(star.hosts[1], star.address(2)) == 3


def test_nat_with_its_inside_on_dpdk(lab):
    house = nat.House(lab)
    config = house.write()
    config.write_text(config.read_text().replace(
        "port: p0", rf"port: 'dpdk:net_af_packet0\,iface=p0'"))
    for host in (house.a, house.b):
        host.run("ethtool", "-K", "h0", "tx", "off")
    process = Process(lab, house.middle, [
        "env", f"RUNTIME_DIRECTORY={lab.tmp_path}", NAT, "--json",
        "--config", config])
    ready = process.err.wait(lambda line: line.startswith("worker "), 15)
    assert ready is not None, process.err.text()
    assert talk.ping(house.a, nat.SERVER) == 3
    talk.tcp(house.b, house.server, nat.SERVER)
    process.process.send_signal(signal.SIGINT)
    assert process.wait() == 0, process.err.text()


def test_device_that_is_not_there(lab, one_host):
    Refused(lab, one_host.middle, "p0", "dpdk:net_nosuch0").check(
        1, "net_nosuch0")
    Refused(lab, one_host.middle, "p0", "dpdk:7777:00:00.0").check(
        1, "no such PCI device")


def pci_device_of_the_kernel():
    """One that a driver of the kernel has, which DPDK does not work beside."""
    for driver in ("virtio-pci", "pcieport", "ahci"):
        folder = f"/sys/bus/pci/drivers/{driver}"
        if os.path.isdir(folder):
            for name in sorted(os.listdir(folder)):
                if ":" in name:
                    return name, driver
    return None


def test_device_that_the_kernel_has(lab, one_host):
    found = pci_device_of_the_kernel()
    if found is None:
        pytest.skip("no PCI device with a driver of the kernel")
    name, driver = found
    Refused(lab, one_host.middle, "p0", f"dpdk:{name}").check(
        1, name, f"the kernel's '{driver}'", "vfio-pci")


def test_rss_is_set_from_python(lab, python_path):
    """Whose driver cannot say so has nothing to set: null: and pair:."""
    if not python_path:
        pytest.skip("the package for Python is not built")
    lab.namespace("f").run(sys.executable, "-c", """
from millrace import Error, Pool, Port
with Pool(16384) as pool, Port(pool, "dpdk:net_null0,queues=2") as port:
    port.set_rss(table=bytes([0, 0, 0, 1]), key=bytes(range(40)))
    try:
        port.set_rss(key=bytes(4))
    except Error as error:
        assert "4 bytes: the device's has 40" in error.strerror, error
    else:
        raise AssertionError
""")
