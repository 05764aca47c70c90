# SPDX-License-Identifier: BSD-3-Clause
"""What a program sets on the interface of an open port, and gives back."""
import fcntl
import os
import shutil
import signal
import socket
import struct
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from lib.broker import SMALL
from lib.forwarder import Forwarder
from lib.namespaces import wait_until
from lib.probe import Probe, opened
from lib.process import L2FWD
from lib.wire import TEST_TYPE, Wire, frame

GROUP = "01:00:5e:01:02:03"
OTHER_GROUP = "33:33:00:00:12:34"
UNICAST = "02:aa:bb:cc:dd:ee"
MAC = "02:12:34:56:78:9a"
SO_NETNS_COOKIE = 71  # asm-generic/socket.h


def to_bytes(*macs):
    return bytes.fromhex("".join(macs).replace(":", ""))


def state(namespace, name="p0"):
    """What can be set on an interface, as the kernel has it."""
    link = namespace.link(name)
    return {"mtu": link["mtu"], "mac": link["address"],
            "promiscuity": link["promiscuity"],
            "allmulti": link["allmulti"],
            "filter": filter_of(namespace, name)}


def filter_of(namespace, name="p0"):
    """Link-layer addresses, besides its own, that an interface receives."""
    groups = namespace.ip("maddress", "show", "dev", name).stdout
    unicast = namespace.run("bridge", "fdb", "show", "dev", name).stdout
    return {mac for mac in (GROUP, OTHER_GROUP, UNICAST)
            if mac in groups + unicast}


@pytest.fixture
def probe(lab, star):
    """A probe with p0 open; p0 is afterwards as it was."""
    before = state(star.middle)
    probe = opened(lab, star.middle, "p0")
    yield probe
    probe.close()
    assert state(star.middle) == before


@pytest.fixture
def port(star, end):
    """The same, opened in this process."""
    before = state(star.middle)
    port = end(star.middle, "p0")
    yield port
    port.close()
    assert state(star.middle) == before


@pytest.mark.short
def test_promiscuous_modes_are_switched(star, port):
    for kind, name in ("promiscuity", "promisc"), ("allmulti", "allmulti"):
        was = state(star.middle)[kind]
        for on in (True, True, False, False, True):
            port.set(**{name: on})
            assert state(star.middle)[kind] == was + on, name


def test_several_settings_change_at_once(star, port):
    port.set(mac=to_bytes(MAC), mtu_bytes=1400, mac_filter=to_bytes(GROUP))
    now = state(star.middle)
    assert (now["mac"], now["mtu"], now["filter"]) == (MAC, 1400, {GROUP})
    with pytest.raises(OSError, match="at most 3822"):
        port.set(mac_filter=b"", mtu_bytes=9000)
    assert not filter_of(star.middle)  # those before the one refused stay


def test_the_option_is_switched_off_and_on(lab, star):
    probe = opened(lab, star.middle, "p0,promisc=off")
    assert state(star.middle)["promiscuity"] == 0
    probe.do("close", 0)
    probe.do("open", "p0,promisc")
    assert state(star.middle)["promiscuity"] == 1
    probe.do("promisc", 0, 0)
    assert state(star.middle)["promiscuity"] == 0


def test_a_new_mac_filter_replaces_the_old_one(star, port):
    for macs in ([GROUP, UNICAST], [GROUP, OTHER_GROUP], [UNICAST], []):
        port.set(mac_filter=to_bytes(*macs))
        assert filter_of(star.middle) == set(macs)
    port.set(mac_filter=to_bytes(GROUP))  # and is given back


@pytest.mark.short
def test_the_mtu_is_set_within_the_mode(star, probe):
    for mtu in (1400, 68, 3000):
        probe.do("mtu", 0, mtu)
        assert state(star.middle)["mtu"] == mtu
        assert probe.do("info", 0)["mtu"] == mtu
    # 4096, less 256 of the kernel's headroom and a header with a VLAN tag.
    reason = probe.refused("mtu", 0, 3823)
    assert "3823" in reason and "at most 3822" in reason
    assert "mode copy without sg" in reason
    assert state(star.middle)["mtu"] == 3000
    assert probe.do("info", 0)["mtu"] == 3000
    probe.do("mtu", 0, 3822)
    # The port knows of its own change: it is no news.
    probe.do("link", 0)
    assert "MTU is now" not in probe.err.text()


def test_the_mtu_of_the_port_follows_the_interface(star, probe):
    for mtu in (1400, 3000, 1500):
        star.middle.ip("link", "set", "p0", "mtu", mtu)
        probe.do("link", 0)
        assert probe.do("info", 0)["mtu"] == mtu


def test_an_mtu_that_the_device_refuses(lab, star):
    """A tap takes no more than 65521."""
    star.middle.ip("tuntap", "add", "t0", "mode", "tap")
    probe = opened(lab, star.middle, "t0,sg=on")
    reason = probe.refused("mtu", 0, 65530)
    assert "does not take an MTU of 65530" in reason and "at most" in reason


def test_settings_are_restored_on_a_renamed_interface(lab, star):
    before = state(star.middle)
    probe = opened(lab, star.middle, "p0")
    if star.middle.ip("link", "set", "p0", "name", "new0",
                      check=False).returncode != 0:
        pytest.skip("this kernel renames only what is down (before 6.2)")
    probe.do("mtu", 0, 1400)
    probe.do("mac", 0, MAC)
    assert state(star.middle, "new0")["mtu"] == 1400
    probe.close()
    assert state(star.middle, "new0") == before


def records(namespace):
    with namespace, socket.socket() as asked:
        cookie, = struct.unpack("=Q", asked.getsockopt(
            socket.SOL_SOCKET, SO_NETNS_COOKIE, 8))
    return list(Path("/run/millrace-root").glob(f"xdp-{cookie}-*"))


def killed_probe(lab, namespace):
    """MTU, address and up were set by a process that was killed."""
    namespace.ip("link", "set", "p0", "down")
    probe = opened(lab, namespace, "p0,mtu=1400")
    probe.do("mac", 0, MAC)
    probe.kill()
    left = namespace.link("p0")
    assert left["mtu"] == 1400 and left["address"] == MAC
    assert "UP" in left["flags"]


@pytest.mark.parametrize("since, mtu", [(None, 1500), (1300, 1300)])
@pytest.mark.short
def test_settings_of_a_killed_program_are_restored(lab, star, since, mtu):
    """But not what someone else has changed since."""
    before = state(star.middle)
    killed_probe(lab, star.middle)
    assert len(records(star.middle)) == 1
    if since:
        star.middle.ip("link", "set", "p0", "mtu", since)
    probe = opened(lab, star.middle, "p0")
    assert probe.do("info", 0)["mtu"] == mtu
    assert state(star.middle) == {**before, "mtu": mtu}
    assert ("restored 'mtu 1500', it was 'mtu 1400': a program that had set "
            "it was killed" in probe.err.text()) == (since is None)
    probe.close()
    assert "UP" not in star.middle.link("p0")["flags"]
    assert not records(star.middle)


CAPABILITIES = "+net_raw,+net_admin,+bpf,+ipc_lock"
AS_ROOT = ["setpriv", f"--bounding-set=-all,{CAPABILITIES}",
           "--groups=65533", "--"]
AS_USER = ["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups",
           f"--inh-caps={CAPABILITIES}", f"--ambient-caps={CAPABILITIES}",
           "--"]


class Folders:
    """As config/tmpfiles and config/sysusers create them, for programs in a mount
    namespace of their own."""

    def __init__(self, lab):
        self.folder = Path(lab.closing(ExitStack()).enter_context(
            TemporaryDirectory(prefix="mrt-run-")))
        self.folder.chmod(0o755)
        for name, mode in ("millrace", 0o3775), ("millrace-root", 0o2755):
            path = self.folder / name
            path.mkdir()
            os.chown(path, 0, 65533)
            path.chmod(mode)
        (self.folder / "passwd").write_text(
            "root:x:0:0::/root:/bin/sh\nmillrace:x:65533:65533::/:\n", "ascii")
        self.program = shutil.copy(L2FWD, self.folder)
        binds = "".join(
            f"mkdir -p /run/{name} && mount --bind {self.folder / name} "
            f"/run/{name} && " for name in ("millrace", "millrace-root"))
        self.wrap = ["unshare", "-m", "sh", "-c",
                     f"{binds} mount --bind {self.folder / 'passwd'} "
                     '/etc/passwd && exec "$@"', "sh"]

    def records(self):
        return list(self.folder.glob("millrace*/xdp-*"))

    def start(self, lab, namespace, user, *options):
        return Forwarder(lab, namespace, "p0", wrap=[*self.wrap, *user],
                         options=["--mode", "drop", *options, *SMALL],
                         program=self.program)


@pytest.mark.parametrize("first, then", [(AS_USER, AS_ROOT),
                                         (AS_ROOT, AS_USER)])
def test_another_program_of_the_group_restores_settings(lab, star, first, then):
    """As under systemd: mr-brokerd is root without CAP_DAC_OVERRIDE, others run as
    the user millrace."""
    folders = Folders(lab)
    killed = folders.start(lab, star.middle, first, "--mtu", 1400)
    lab.checks.remove(killed.check_end)
    killed.kill()
    record, = folders.records()
    assert record.stat().st_mode & 0o777 == 0o640
    assert record.parent.name == ("millrace" if first is AS_USER else
                                  "millrace-root")
    assert star.middle.link("p0")["mtu"] == 1400
    running = folders.start(lab, star.middle, then)
    assert "restored 'mtu 1500'" in running.err.text()
    running.stop()
    assert star.middle.link("p0")["mtu"] == 1500
    # In its own folder, it records what it changes next.
    running = folders.start(lab, star.middle, then, "--mtu", 1400)
    assert "no record in" not in running.err.text()
    running.stop()
    assert star.middle.link("p0")["mtu"] == 1500


@pytest.mark.parametrize("owner, mode", [(65534, 0o640), (0, 0o660),
                                         (65533, 0o646)])
@pytest.mark.parametrize("user", [AS_ROOT, AS_USER])
def test_a_record_that_others_can_write_is_not_used(lab, star, owner, mode,
                                                        user):
    """A member of the folder's group has added or changed the record."""
    before = state(star.middle)
    with star.middle, socket.socket() as asked:
        cookie, = struct.unpack("=Q", asked.getsockopt(
            socket.SOL_SOCKET, SO_NETNS_COOKIE, 8))
        ifindex = socket.if_nametoindex("p0")
    folders = Folders(lab)
    path = folders.folder / f"millrace/xdp-{cookie}-{ifindex}"
    path.write_text(f"{'mtu':20} {0:10} {68:20} {1500:20}      \n", "ascii")
    os.chown(path, owner, 65533)
    path.chmod(mode)
    running = folders.start(lab, star.middle, user)
    assert f"cannot use /run/millrace/{path.name}" in running.err.text()
    assert state(star.middle)["mtu"] == before["mtu"]
    running.stop()
    assert state(star.middle) == before
    assert path.exists()


def test_settings_of_a_running_program_stay(lab, star):
    probes = [Probe(lab, star.middle) for _ in range(2)]
    for probe in probes:
        probe.do("pool", 8192)
    probes[0].do("open", "p0,mtu=1400")
    assert "another Millrace program is using this interface" in probes[1].refused(
        "open", "p0,mtu=1300")
    assert star.middle.link("p0")["mtu"] == 1400
    for probe in probes:
        probe.close()
    assert star.middle.link("p0")["mtu"] == 1500


def test_a_record_of_another_program_is_named(lab, star):
    """Both opened the interface, and the other one changed something first."""
    probes = [Probe(lab, star.middle) for _ in range(2)]
    for probe in probes:
        probe.do("pool", 8192)
        probe.do("open", "p0")
        if probe is probes[0]:
            probe.do("mtu", 0, 1400)
            [path] = records(star.middle)
            probe.close()
    with path.open("w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for command in ("mtu", 0, 1400), ("mac", 0, MAC):
            assert ("another Millrace program is using this interface"
                    in probe.refused(*command))
        path.unlink()


def test_a_record_that_cannot_be_removed_is_empty(lab, star):
    killed_probe(lab, star.middle)
    [path] = records(star.middle)
    probe = opened(lab, star.middle, "p0", wrap=[
        "unshare", "-m", "sh", "-c",
        f"mount --bind {path} {path} && exec $0"])
    probe.close()
    assert path.read_text(encoding="ascii") == ""
    path.unlink()
    star.middle.ip("link", "set", "p0", "up")


def test_a_missing_record_is_reported_once_with_the_remedy(lab, star):
    star.middle.ip("link", "set", "p0", "down")
    probe = opened(lab, star.middle, "p0,mtu=1400", wrap=[
        "unshare", "-m", "sh", "-c",
        "mount -t tmpfs -o ro tmpfs /run && exec $0"])
    assert ("Read-only file system): if this program is killed, restore "
            "'mtu 1500', and what it sets later, by hand" in probe.err.text())
    assert probe.err.text().count("if this program is killed") == 1
    probe.close()
    assert star.middle.link("p0")["mtu"] == 1500
    star.middle.ip("link", "set", "p0", "up")


def test_nothing_of_it_outlives_a_killed_program(lab, star):
    before = state(star.middle)
    probe = opened(lab, star.middle, "p0")
    probe.do("promisc", 0, 1)
    probe.do("allmulti", 0, 1)
    probe.do("filter", 0, GROUP, UNICAST)
    assert state(star.middle) != before
    probe.kill()
    wait_until("everything is given back",
               lambda: state(star.middle) == before)


def test_a_child_does_not_keep_it(lab, star):
    before = state(star.middle)
    probe = opened(lab, star.middle, "p0")
    probe.do("promisc", 0, 1)
    probe.do("filter", 0, GROUP)
    child = probe.do("fork", 60)["pid"]
    try:
        probe.do("close", 0)
        # The child closes its copies when it is first run.
        wait_until("all is given back", lambda: state(star.middle) == before)
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_deleted_interface_is_reported_as_gone(lab, star):
    probe = opened(lab, star.middle, "p0")
    star.middle.ip("link", "delete", "p0")
    for command in (("promisc", 0, 1), ("allmulti", 0, 1), ("mtu", 0, 1400),
                    ("mac", 0, MAC), ("filter", 0, GROUP)):
        assert "was deleted" in probe.refused(*command), command
    assert probe.do("device-stats", 0)["stats"]  # what it last had


def test_a_capability_that_was_dropped_is_named(star, probe):
    """Dropped behind the opening, as a careful program does."""
    before = state(star.middle)
    probe.do("drop-capabilities")
    for name, *command in (("NET_RAW", "promisc", 0, 1),
                           ("NET_RAW", "allmulti", 0, 1),
                           ("NET_RAW", "filter", 0, GROUP),
                           ("NET_ADMIN", "mtu", 0, 1400),
                           ("NET_ADMIN", "mac", 0, MAC)):
        reason = probe.refused(*command)
        assert f"capability CAP_{name} is missing" in reason, reason
    assert state(star.middle) == before


def test_the_filter_passes_the_addresses_it_names(lab, star):
    """A macvlan drops groups that nobody asked for before XDP sees them."""
    star.middle.ip("link", "add", "link", "p0", "name", "m0", "type",
                   "macvlan", "mode", "private")
    star.middle.ip("link", "set", "p0", "up")
    wire = lab.closing(Wire(star.hosts[0], "h0", TEST_TYPE))
    probe = opened(lab, star.middle, "m0,attach=generic")
    own = to_bytes(star.middle.link("m0")["address"])

    def n_bytes():
        return probe.stats(0)["queues"][0]["rx"]["bytes"]

    def arrive(group):
        """Whether one to the group is received before one to all. Both go
        through macvlan's work queue, which frames to itself overtake."""
        before = n_bytes()
        wire.send(frame(60, dst=to_bytes(group)))
        wire.send(frame(100, dst=b"\xff" * 6))
        while n_bytes() < before + 100:
            assert probe.do("hold", 0, 1, 10000)["n"] > 0
        probe.do("release")
        n = n_bytes() - before
        assert n in (100, 160), n
        return n == 160

    assert not arrive(GROUP)
    probe.do("filter", 0, GROUP)
    assert arrive(GROUP) and not arrive(OTHER_GROUP)
    # What is taken off the list, macvlan forgets at its next change.
    probe.do("filter", 0)
    probe.do("allmulti", 0, 1)
    assert arrive(GROUP) and arrive(OTHER_GROUP)
    probe.do("allmulti", 0, 0)
    assert not arrive(GROUP) and not arrive(OTHER_GROUP)


def test_counters_of_the_interface_and_of_its_driver(star, port):
    def stats():
        with star.middle:
            return dict(port.port.device_stats())

    before = stats()
    port.send(frame(60, i) for i in range(10))
    now = stats()
    assert set(now) == set(before)
    link = star.middle.link("p0")["stats64"]
    assert now["tx_packets"] == link["tx"]["packets"] >= 10
    assert now["tx_packets"] - before["tx_packets"] >= 10
    assert now["rx_dropped"] == link["rx"]["dropped"]
    shown = star.middle.run("ethtool", "-S", "p0").stdout
    own = [line.split(":")[0].strip() for line in shown.splitlines()[1:]]
    assert own and set(own) <= set(now), shown
