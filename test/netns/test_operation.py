# SPDX-License-Identifier: BSD-3-Clause
"""Bad days: what happens to interfaces and to the forwarder while it runs."""
import os
import signal
import socket
import threading
import time

import pytest
from host import limit
from lib import invariants, talk
from lib.forwarder import Forwarder, Refused
from lib.namespaces import Star, run, wait_until
from lib.probe import opened
from lib.wire import BROADCAST, TEST_TYPE, Wire, both, frame, mac, number_of


def passes(source, sink, number=0):
    """Whether a frame comes through; others may come with it."""
    wanted = frame(100, 0x7000_0000 + number)
    end_s = time.monotonic() + limit(15.0)
    while time.monotonic() < end_s:
        try:
            source.send(wanted)
        except OSError:  # the interface is down, for now
            time.sleep(0.01)
            continue
        if wanted in sink.receive(1 << 20, 0.02):
            return True
    return False


class Stream(threading.Thread):
    """Frames at an even pace from a thread of its own, until stopped."""

    def __init__(self, wire, dst=BROADCAST, src=mac(1), per_s=1000):
        super().__init__()
        self.wire, self.dst, self.src, self.per_s = wire, dst, src, per_s
        self.ended = threading.Event()
        self.n = 0

    def run(self):
        start_s = time.monotonic()
        while not self.ended.is_set():
            while self.n < (time.monotonic() - start_s) * self.per_s:
                try:
                    self.wire.socket.send(
                        frame(100, self.n, dst=self.dst, src=self.src))
                except OSError:
                    pass  # the interface is down: nobody's frame
                self.n += 1
            self.ended.wait(0.002)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.ended.set()
        self.join()


def await_frames(a, b, n):
    """Wait until each of two streams has sent n more frames."""
    ends = a.n + n, b.n + n
    wait_until(f"{n} frames were sent",
               lambda: a.n >= ends[0] and b.n >= ends[1])


@pytest.mark.parametrize("whose", ["port", "peer"])
@pytest.mark.short
def test_down_and_up_again_during_traffic(lab, star, whose):
    source, sink = both(lab, star)
    Forwarder(lab, star.middle, *star.ports)
    for victim in (0, 1):
        namespace, name = (star.middle, star.ports[victim]) \
            if whose == "port" else (star.hosts[victim], "h0")
        with Stream(source) as a, Stream(sink) as b:
            await_frames(a, b, 100)
            namespace.ip("link", "set", name, "down")
            await_frames(a, b, 300)
            namespace.ip("link", "set", name, "up")
            assert passes(source, sink, victim)
            assert passes(sink, source, victim)


def test_the_link_is_reported(lab, star):
    forwarder = Forwarder(lab, star.middle, *star.ports)
    for state in "up", "down", "up", "down":
        star.hosts[1].ip("link", "set", "h0", state)
        wait_until(f"it is {state}", lambda: forwarder.next_snapshot()[
            "ports"][1]["link"]["up"] == (state == "up"))
    said = [line for line in forwarder.err.text().splitlines()
            if ": link " in line]
    assert said == [f"mr-l2fwd: xdp:p1: link {state}"
                    for state in ("down", "up", "down")]
    final = forwarder.stop()
    assert not any(p["link"]["gone"] for p in final["ports"])


def test_frames_wait_while_the_way_out_is_down(lab, star):
    """ENETDOWN: they stay in the ring, and leave when it is up again."""
    source, sink = both(lab, star)
    Forwarder(lab, star.middle, *star.ports)
    star.middle.ip("link", "set", "p1", "down")
    n = source.send_all(frame(100, i) for i in range(500))
    assert not sink.receive(1, 0.3)
    star.middle.ip("link", "set", "p1", "up")
    got = sink.receive(n)
    assert [number_of(f) for f in got] == list(range(n))


def test_it_ends_with_status_0_while_a_port_is_down(lab, star):
    source = both(lab, star)[0]
    forwarder = Forwarder(lab, star.middle, *star.ports)
    star.middle.ip("link", "set", "p1", "down")
    source.send_all(frame(100, i) for i in range(500))
    wait_until("all are in the ring", lambda: invariants.total(
        forwarder.next_snapshot()["ports"][1], "tx", "pending") == 500)
    final = forwarder.stop(pending=True)
    assert invariants.total(final["ports"][1], "tx", "pending") == 500
    assert "UP" not in star.middle.link("p1")["flags"]
    assert not star.has_program("p0")


def test_a_pair_forwards_after_another_pair_was_deleted(lab):
    star = Star(lab, n_hosts=4)
    wires = [lab.closing(Wire(h, "h0", TEST_TYPE)) for h in star.hosts]
    forwarder = Forwarder(lab, star.middle, *star.ports,
                          options=["--ring", 256])
    with Stream(wires[0]), Stream(wires[2]):
        assert passes(wires[0], wires[1]) and passes(wires[2], wires[3])
        star.middle.ip("link", "delete", "p1")
        assert passes(wires[2], wires[3], 1)
        wait_until("it is gone", lambda: forwarder.next_snapshot()[
            "ports"][1]["link"]["gone"])
        wait_until("its losses have a name", lambda: invariants.drops(
            forwarder.next_snapshot()["ports"][1], "tx")["port_gone"] > 0)
        assert passes(wires[2], wires[3], 2)
    final = forwarder.stop(pending=True)
    assert [p["link"]["gone"] for p in final["ports"]] == [
        False, True, False, False]


@pytest.mark.parametrize("change, text", [
    (("set", "p1", "down"), "link down"),
    (("delete", "p1"), "the device is gone"),
])
def test_a_lost_port_is_reported_and_may_end_it(lab, star, change, text):
    ends = Forwarder(lab, star.middle, *star.ports,
                     options=["--exit-on-port-loss"])
    star.middle.ip("link", *change)
    assert ends.wait(20) == 1
    assert f"mr-l2fwd: xdp:p1: {text}" in ends.err.text()


def without_its_namespace(_lab, star):
    """Delete the peer of p1 with the host's namespace."""
    star.hosts[1].delete()


def moved(lab, star):
    star.middle.ip("link", "set", "p1", "netns", lab.namespace("away").name)


def deleted(_lab, star):
    for port in star.ports:
        star.middle.ip("link", "delete", port)


@pytest.mark.parametrize("lose", [without_its_namespace, moved, deleted])
def test_it_ends_with_status_0_without_its_devices(lab, star, lose):
    # No socket in the other host: it would keep the namespace alive.
    source = lab.closing(Wire(star.hosts[0], "h0"))
    forwarder = Forwarder(lab, star.middle, *star.ports)
    with Stream(source):
        lose(lab, star)
        wait_until("it is gone", lambda: forwarder.next_snapshot()[
            "ports"][1]["link"]["gone"])
    forwarder.stop(pending=True)


def test_renamed_during_traffic(lab, star):
    source, sink = both(lab, star)
    forwarder = Forwarder(lab, star.middle, *star.ports,
                          options=["--mtu", 1400])
    with Stream(source):
        # Kernels before 6.2 rename only what is down.
        if star.middle.ip("link", "set", "p0", "name", "new0",
                          check=False).returncode != 0:
            star.middle.ip("link", "set", "p0", "down")
            star.middle.ip("link", "set", "p0", "name", "new0")
            star.middle.ip("link", "set", "new0", "up")
        assert passes(source, sink) and passes(sink, source)
    final = forwarder.stop()
    assert [p["port"] for p in final["ports"]] == ["xdp:p0", "xdp:p1"]
    # Given back under its new name.
    assert star.middle.link("new0")["mtu"] == 1500
    assert not star.has_program("new0")


@pytest.mark.parametrize("is_known", [True, False])
def test_settings_go_back_to_the_interface_not_to_its_name(lab, star,
                                                           is_known):
    """Renamed, and another one has its name: told of it before, or not."""
    middle = star.middle
    middle.ip("link", "set", "p0", "down")
    probe = opened(lab, middle, "p0,mtu=1400")
    was_open = middle.link("p0")
    assert was_open["mtu"] == 1400 and "UP" in was_open["flags"]
    if middle.ip("link", "set", "p0", "name", "new0",
                 check=False).returncode != 0:
        pytest.skip("this kernel renames only what is down (before 6.2)")
    middle.ip("link", "add", "p0", "mtu", 1300, "type", "veth", "peer",
              "name", "far0")
    for name in ("p0", "far0"):
        middle.ip("link", "set", name, "up")
    if is_known:
        assert probe.do("link", 0)["events"] > 0
    probe.close()
    given_back, stranger = middle.link("new0"), middle.link("p0")
    assert given_back["ifindex"] == was_open["ifindex"]
    assert given_back["mtu"] == 1500 and "UP" not in given_back["flags"]
    assert stranger["mtu"] == 1300 and "UP" in stranger["flags"]


def test_the_mtu_changes_during_traffic(lab, star):
    source, sink = both(lab, star)
    Forwarder(lab, star.middle, *star.ports)
    for mtu in (1000, 1500, 3000, 1500):
        star.middle.ip("link", "set", "p1", "mtu", mtu)
        assert passes(source, sink, mtu)


def no_program_left(star):
    """The kernel takes the program away with the process that had it."""
    wait_until("no program is attached", lambda: not any(
        star.has_program(p) for p in star.ports), 10)


@pytest.mark.short
def test_killed_and_restarted_at_once(lab, star):
    source, sink = both(lab, star)
    namespaces = run("ip", "netns", "list").stdout.count(star.middle.name)
    times_s = []
    with Stream(source), Stream(sink):
        for round_ in range(4):
            start_s = time.monotonic()
            forwarder = Forwarder(lab, star.middle, *star.ports)
            assert passes(source, sink, round_)
            times_s.append(time.monotonic() - start_s)
            assert passes(sink, source, round_)
            if round_ < 3:
                forwarder.kill()
    # Each but the first has one that was killed before it; of these the best,
    # as this machine may be busy.
    assert min(times_s[1:]) <= limit(1.0)
    forwarder.stop()  # all of its pages came back
    assert not any(star.has_program(p) for p in star.ports)
    assert run("ip", "netns", "list").stdout.count(
        star.middle.name) == namespaces


def test_killed_leaves_nothing(lab, star):
    before = [star.middle.link(p) for p in star.ports]
    forwarder = Forwarder(lab, star.middle, *star.ports)
    forwarder.kill()
    no_program_left(star)
    for port, link in zip(star.ports, before):
        now = star.middle.link(port)
        for key in ("flags", "mtu", "promiscuity"):
            assert now[key] == link[key], (port, key)
    programs = star.middle.run("bpftool", "net", check=False)
    assert programs.returncode != 0 or "p0" not in programs.stdout


def test_a_child_of_a_process_that_has_ended_delays_nobody(lab, star):
    probe = opened(lab, star.middle, "p0")
    child = probe.do("fork", 60)["pid"]
    try:
        probe.kill()
        assert os.path.exists(f"/proc/{child}")
        start_s = time.monotonic()
        forwarder = Forwarder(lab, star.middle, *star.ports)
        assert time.monotonic() - start_s < 15
        source, sink = both(lab, star)
        assert passes(source, sink)
        forwarder.stop()
    finally:
        os.kill(child, signal.SIGKILL)


def test_two_forwarders_in_one_namespace(lab):
    star = Star(lab, n_hosts=4)
    first = Forwarder(lab, star.middle, *star.ports[:2])
    second = Forwarder(lab, star.middle, *star.ports[2:])
    Refused(lab, star.middle, star.ports[0], star.ports[2]).check(
        1, star.ports[0])
    for i in (0, 2):
        assert talk.ping(star.hosts[i], star.address(i + 1)) == 3
    first.stop()
    assert talk.ping(star.hosts[2], star.address(3)) == 3
    second.stop()


def test_systemd_is_notified_of_ready_watchdog_and_stopping(lab, star):
    """Type=notify, WatchdogSec=: the unit in config/systemd relies on it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as service:
        path = lab.tmp_path / "notify"
        service.bind(str(path))
        service.settimeout(limit(15.0))
        forwarder = Forwarder(lab, star.middle, *star.ports,
                              wrap=["env", f"NOTIFY_SOCKET={path}"])
        assert service.recv(64) == b"READY=1"
        assert service.recv(64).startswith(b"FDSTORE=1\nFDPOLL=0\nFDNAME=millrace-")
        assert service.recv(64) == b"WATCHDOG=1"
        forwarder.stop()
        while (state := service.recv(64)) == b"WATCHDOG=1":
            pass
        assert state.startswith(b"FDSTOREREMOVE=1\n")
        assert service.recv(64) == b"STOPPING=1"
