# SPDX-License-Identifier: BSD-3-Clause
"""Opening: what is refused, by one line that says why, and what is set.

Exit status 2 for usage, 1 for the rest; nothing is left behind.
"""
import re
import signal
import socket

import pytest
from lib import talk
from lib.forwarder import Forwarder, Refused
from lib.namespaces import Star
from lib.probe import Probe, opened


def state(star):
    """What opening could have changed: flags, MTU, programs, promiscuity."""
    links = [star.middle.link(port) for port in star.ports]
    return [(link["flags"], link["mtu"], link.get("xdp"), link["promiscuity"])
            for link in links]


@pytest.fixture
def unchanged(lab, star):
    """The interfaces are after the test as they were before."""
    before = state(star)
    yield
    lab.check()
    assert state(star) == before


# Ports that cannot be opened; more are in test/conformance/fixture_xdp.c. What is
# wrong with the command line or the grammar of specs is in test/unit.
USAGE = {
    "unknown driver": (["foo:p0", "p1"], ["no driver 'foo'", "xdp"]),
    "unknown option": (["p0,foo=1", "p1"], ["no option 'foo'", "queues"]),
    "ring too small": (["p0,ring=63", "p1"], ["63", "64 to 32768"]),
    "ring too large": (["p0,ring=65536", "p1"], ["65536", "64 to 32768"]),
    "mtu too small": (["p0,mtu=67", "p1"], ["67", "68 to 65535"]),
    "no queues": (["p0,queues=0", "p1"], ["queues", "1 to 64"]),
    "no busy budget": (["p0,busy=0", "p1"], ["busy", "1 to 65535"]),
    "busy too large": (["p0,busy=70000", "p1"], ["70000", "1 to 65535"]),
    "budget too small": (["p0,budget=31", "p1"], ["31", "32 to 32768"]),
    "budget over ring": (["p0,budget=65,ring=64", "p1"], ["65", "64 entries"]),
    "same by other name": (["p0", "xdp:p0,force"], ["p0", "twice"]),
    "unknown flag": (["--frob", "p0", "p1"], ["--frob", "--help"]),
    "no such core": (["--cores", "999", "p0", "p1"], ["core 999"]),
    "queue out of range": (["p0,start=5", "p1"], ["start=5", "0 to 0"]),
    "mtu for one chunk": (["p0,sg=off,mtu=9000", "p1"],
                          ["MTU 9000", "4096", "sg=off"]),
}


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("arguments, parts", USAGE.values(), ids=USAGE.keys())
@pytest.mark.short
def test_usage_is_refused(lab, star, arguments, parts):
    Refused(lab, star.middle, *arguments).check(2, *parts)


@pytest.mark.usefixtures("unchanged")
def test_no_such_interface(lab, star):
    Refused(lab, star.middle, "p0,mtu=1400", "nope").check(
        1, "nope", "no such network interface")


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("options, host_mtu, cause", [
    ("", 1500, ""),
    (",sg=on", 1500, "which sg=on requires"),
    (",mtu=9000", 1500, "which this MTU requires"),
    ("", 9000, "which the peer's larger MTU requires"),
])
def test_zero_copy_on_a_veth_is_refused_with_the_reason(
        lab, star, options, host_mtu, cause):
    for host in star.hosts:
        host.ip("link", "set", "h0", "mtu", host_mtu)
    Refused(lab, star.middle, f"p0,mode=zc{options}", "p1").check(
        1, "mode=zc", "veth", "zero-copy", cause)


@pytest.mark.parametrize("is_up", [True, False])
def test_a_refused_open_leaves_the_interface_as_it_was(lab, star, pass_object,
                                                       is_up):
    """The MTU is set and the interface is up by the time of the refusal."""
    if not is_up:
        star.middle.ip("link", "set", "p0", "down")
    probe = opened(lab, star.middle)
    before = state(star)
    assert "zero-copy" in probe.refused("open", "p0,mtu=1400,promisc,mode=zc")
    assert state(star) == before
    star.middle.run("ip", "link", "set", "dev", "p0", "xdp", "obj",
                    pass_object, "sec", "xdp")
    before = state(star)
    assert "another XDP program" in probe.refused("open",
                                                  "p0,mtu=1400,promisc")
    assert state(star) == before
    star.middle.run("ip", "link", "set", "dev", "p0", "xdp", "off")
    # The same without what was in the way.
    probe.do("open", "p0,mtu=1400,promisc")
    assert star.middle.link("p0")["mtu"] == 1400


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("without, missing, options", [
    ("net_raw", "CAP_NET_RAW", []),
    ("net_raw", "CAP_NET_RAW", ["--promisc", "off"]),
    ("bpf,-sys_admin", "CAP_BPF", []),
    ("net_admin,-sys_admin", "CAP_NET_ADMIN", []),
    ("net_admin,-sys_admin", "CAP_NET_ADMIN", ["--mtu", "1400"]),
])
def test_a_missing_capability_is_named(lab, star, without, missing, options):
    refused = Refused(lab, star.middle, *options, *star.ports,
                      wrap=["setpriv", f"--bounding-set=-{without}"])
    refused.check(1, f"capability {missing} is missing", "root",
                  "setcap cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon,cap_ipc_lock+ep")


@pytest.mark.usefixtures("unchanged")
def test_memlock_too_small_error_states_how_much_is_needed(lab, star):
    # Small enough for the hard limit of a machine where root may not raise it.
    options = ["--ring", 64, "--workers", 1, "--page-bytes", 2048]

    def wrap(limit_bytes):
        return ["setpriv", "--bounding-set=-ipc_lock", "prlimit",
                f"--memlock={limit_bytes}"]

    def refuse(limit_bytes):
        refused = Refused(lab, star.middle, *options, *star.ports,
                          wrap=wrap(limit_bytes))
        refused.check(1, "cannot lock", f"limit is {limit_bytes >> 10} KiB",
                      "CAP_IPC_LOCK")
        return int(re.search(r"ulimit -l (\d+)", refused.text).group(1)) << 10

    one = refuse(65536)
    assert refuse(one - 4096) == one
    # So much is enough for the first port; the second locks it once more.
    both = refuse(one)
    assert both == 2 * one
    Forwarder(lab, star.middle, *star.ports, options=options,
              wrap=wrap(both)).stop()


@pytest.mark.usefixtures("unchanged")
def test_too_many_files_has_its_remedy(lab, star):
    """The soft limit is raised to the hard one, which a message names."""
    for n_files in range(5, 18):
        Refused(lab, star.middle, *star.ports,
                wrap=["prlimit", f"--nofile={n_files}:{n_files}"]).check(
                    1, "too many open files", "ulimit -n")
    Forwarder(lab, star.middle, *star.ports,
              wrap=["prlimit", "--nofile=8:256"]).stop()


@pytest.mark.usefixtures("unchanged")
def test_pool_too_small_error_states_how_much_is_needed(lab, star):
    refused = Refused(lab, star.middle, "--pool-pages", "100", *star.ports)
    refused.check(2, "100", "too small")
    n_pages = int(re.search(r"need (\d+)", refused.text).group(1))
    Refused(lab, star.middle, "--pool-pages", n_pages - 1,
            *star.ports).check(2, "too small")
    Forwarder(lab, star.middle, *star.ports,
              options=["--pool-pages", n_pages]).stop()


def test_not_enough_huge_pages_falls_back_with_a_warning(lab, star):
    with open("/proc/meminfo", encoding="ascii") as meminfo:
        if re.search(r"Hugepagesize: *1048576 kB", meminfo.read()):
            pytest.skip("this machine has 1 GiB pages by default")
    probe = Probe(lab, star.middle)
    probe.do("region", 1)  # MR_OS_PAGES_1G
    probe.do("pool", 8192)
    segment = probe.do("segments")["segments"][0]
    if segment["os_page"] == 1 << 30:
        pytest.skip("this machine has a free 1 GiB page")
    assert "1 GiB huge pages" in segment["why"]
    probe.says("1 GiB huge pages")  # in the log, too
    probe.do("open", "p0")


def test_the_interface_of_the_default_route_needs_force(lab, star):
    middle = star.middle
    middle.ip("address", "add", "10.88.0.1/24", "dev", "p0")
    middle.ip("route", "add", "default", "via", "10.88.0.2", "dev", "p0")
    before = state(star)
    Refused(lab, middle, *star.ports).check(1, "default route", "force")
    assert state(star) == before
    Forwarder(lab, middle, "p0,force", "p1")
    assert talk.ping(star.hosts[0], star.address(1)) == 3


def bridge(_lab, middle, _host):
    """p0 is a port of a bridge."""
    middle.ip("link", "add", "br0", "type", "bridge")
    middle.ip("link", "set", "p0", "master", "br0")


def gateways(_lab, middle, _host):
    """p0 leads to one of two gateways."""
    for i in range(2):
        middle.ip("address", "add", f"10.{88 + i}.0.1/24", "dev", f"p{i}")
    middle.ip("route", "add", "default", "nexthop", "via", "10.89.0.2",
              "nexthop", "via", "10.88.0.2")


def upper(_lab, middle, _host):
    """A device on top of p0 has the default route."""
    middle.ip("link", "add", "link", "p0", "name", "m0", "type", "macvlan")
    middle.ip("link", "set", "m0", "up")
    middle.ip("route", "add", "default", "dev", "m0")


def connection(lab, middle, host, family=socket.AF_INET, scope="global"):
    """A client is connected to an address of p0."""
    middle.ip("address", "add", "10.88.0.1/24", "dev", "p0", "scope", scope)
    host.ip("address", "add", "10.88.0.2/24", "dev", "h0")
    with middle:
        server = lab.closing(socket.create_server(
            ("", 7), family=family, dualstack_ipv6=family == socket.AF_INET6))
    with host:
        lab.closing(socket.create_connection(("10.88.0.1", 7), 10))
    lab.closing(server.accept()[0])


def mapped(lab, middle, host):
    """The same, by a server for IPv6 and IPv4."""
    connection(lab, middle, host, socket.AF_INET6)


def near(lab, middle, host):
    """The address is good on this link only."""
    connection(lab, middle, host, scope="link")


def address(_lab, middle, _host):
    middle.ip("address", "add", "10.88.0.1/24", "dev", "p0")


@pytest.mark.parametrize(("prepare", "parts"), [
    (bridge, ["is a member of br0 (bridge)"]),
    (gateways, ["default route", "dev p0"]),
    (upper, ["default route", "dev m0"]),
    (connection, ["10.88.0.1", "TCP", "10.88.0.2"]),
    (mapped, ["10.88.0.1", "TCP", "10.88.0.2"])])
@pytest.mark.short
def test_an_interface_in_use_needs_force(lab, star, prepare, parts):
    prepare(lab, star.middle, star.hosts[0])
    before = state(star)
    Refused(lab, star.middle, "p0", "null:").check(1, *parts, "'force'")
    assert state(star) == before
    Forwarder(lab, star.middle, "p0,force", "null:").stop()


def test_a_bridge_is_refused_and_names_its_members(lab, star):
    bridge(lab, star.middle, None)
    for options in ("", ",force"):
        Refused(lab, star.middle, f"br0{options}", "null:").check(
            1, "is a bridge", "instead: xdp:p0,force")


def test_loopback_needs_force(lab, star):
    Refused(lab, star.middle, "lo", "null:").check(1, "loopback", "'force'")


@pytest.mark.parametrize(("prepare", "n_warnings"), [(address, 1), (near, 0)])
def test_an_address_alone_is_a_warning(lab, star, prepare, n_warnings):
    prepare(lab, star.middle, star.hosts[0])
    forwarder = Forwarder(lab, star.middle, "p0", "null:")
    said = [line for line in forwarder.err.text().splitlines()
            if "has the address" in line]
    assert len(said) == n_warnings, said


def test_fewer_queues_than_the_device_feeds(lab):
    star = Star(lab, queues=4)
    before = state(star)
    Refused(lab, star.middle, "p0,queues=3", "p1").check(
        2, "4 rx channels", "ethtool -L p0", "partial")
    assert state(star) == before
    probe = opened(lab, star.middle, "p0,queues=3,partial,ring=256",
                   pool=(32768,))
    assert probe.do("info", 0)["rxqs"] == 3
    probe.do("open", "p1,start=1,queues=2,partial,ring=256")
    assert probe.do("info", 1)["rxqs"] == 2


def test_fewer_rx_queues_than_the_peer_has_tx_queues(lab, star):
    """The kernel refuses the program; it is said which device to change."""
    star.hosts[0].ip("link", "delete", "h0")
    lab.veth(star.hosts[0], "h0", star.middle, "p0", queues=2)
    star.hosts[0].run("ethtool", "-L", "h0", "tx", 2)
    star.middle.run("ethtool", "-L", "p0", "rx", 1)
    Refused(lab, star.middle, *star.ports).check(
        1, "fewer rx queues", "ethtool -L")


@pytest.mark.short
def test_mtu_and_promisc_are_set_and_restored(lab, star):
    before = state(star)
    for sig in (signal.SIGINT, signal.SIGTERM):
        forwarder = Forwarder(lab, star.middle, *star.ports,
                              options=["--mtu", 1400])
        for flags, mtu, program, promiscuity in state(star):
            assert "UP" in flags and mtu == 1400
            assert program and promiscuity > 0
        forwarder.stop(sig)
        assert state(star) == before
    forwarder = Forwarder(lab, star.middle, *star.ports,
                          options=["--promisc", "off"])
    assert [s[3] for s in state(star)] == [0, 0]


def test_an_interface_that_is_down_is_brought_up_and_put_down(lab, star):
    star.middle.ip("link", "set", "p0", "down")
    before = state(star)
    assert "UP" not in before[0][0]
    forwarder = Forwarder(lab, star.middle, *star.ports)
    # Not all at once: the link may be up a moment later.
    assert talk.ping(star.hosts[0], star.address(1), 5,
                     more=["-l", 1, "-i", 1]) >= 4
    forwarder.stop()
    assert state(star) == before


@pytest.mark.parametrize("attach, kind", [("native", "xdp"),
                                          ("generic", "xdpgeneric")])
def test_the_program_is_attached_as_asked(lab, star, attach, kind):
    forwarder = Forwarder(lab, star.middle,
                          *(f"{p},attach={attach}" for p in star.ports))
    shown = star.middle.ip("link", "show", "dev", "p0").stdout
    assert re.search(rf"\b{kind}\b", shown), shown
    assert talk.ping(star.hosts[0], star.address(1)) == 3
    final = forwarder.stop()
    if attach == "generic":
        again = Refused(lab, star.middle, "p0,attach=generic,mode=zc", "p1")
        again.check(1, "generic")
    assert final["ports"][0]["mode"] == "copy"
    assert not any(star.has_program(p) for p in star.ports)


def test_opening_says_what_memory_it_takes(lab, star):
    probe = opened(lab, star.middle, "p0", pool=(8192, 4096))
    info = probe.do("info", 0)
    assert info["locked"] == 8192 * 4096 and info["kernel"] > 0
    probe.says(f"{info['locked'] >> 10} KiB locked")
