# SPDX-License-Identifier: BSD-3-Clause
"""A program is killed, and systemd starts it again: frames wait in the rings meanwhile."""
import json
import os
import random
import signal
import socket
import threading
import time

import pytest
from host import limit
from keeper import Keeper
from lib import nat, talk
from lib.broker import SMALL, Broker, flags, unprivileged
from lib.forwarder import Bridge
from lib.namespaces import Star, wait_until
from lib.nat import Download, Echo, House, Nat, Talker, ask_all, tcp_between
from lib.process import BUILD, L2FWD, NAT, Process, ask_ctl, environment
from lib.wire import TEST_TYPE, Wire, frame, mac, number_of
from test_upgrade import children  # noqa: F401

BENCH = BUILD / "apps/bench/mr-bench"
N_KILLS = 20
RATE, RING, BURST = 5000, 2048, 64
RECOVERED = "its ports go on"


class Service(Bridge):
    """mr-l2fwd between two hosts, started again whenever it is killed."""

    def __init__(self, lab, star, *options, broker=None):
        self.lab, self.star = lab, star
        self.options = options
        self.ports = star.ports
        self.program = [*environment(lab), L2FWD, "--instance", "line"]
        if broker is not None:  # without privileges
            self.ports = [broker.spec(port) for port in star.ports]
            self.program = [*unprivileged(), broker.forwarder(), *SMALL]
        self.keeper = lab.closing(Keeper(broker.folder if broker else lab.tmp_path))
        self.keeper.path.chmod(0o666)
        self.start()
        self.wait_until_kept()
        self.wires = [lab.closing(Wire(host, "h0", TEST_TYPE)) for host in star.hosts]

    def start(self):
        before, fds = self.keeper.start()
        Process.__init__(self, self.lab, self.star.middle,
                         [*before, *self.program, "--json", *self.options, *self.ports], fds=fds)

    def wait_until_kept(self):
        self.keeper.wait_for(self.pid, limit(20))

    def ask(self, *words):
        done = ask_ctl(self.lab, "-n", "line", "--json", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def crash(self):
        """Kill it and start it again; whether the next one has its ports."""
        self.wait_until_kept()
        self.kill()
        return self.restart()

    def restart(self):
        self.start()
        line = self.err.wait(lambda line: "process before" in line or line.startswith("worker "), 20)
        assert line is not None, self.err.text()
        return RECOVERED in line


class Gateway(Nat):
    """A mr-nat that is started again whenever it is killed."""

    def __init__(self, house, config, *options):
        self.house = house
        self.options = options
        self.keeper = house.lab.closing(Keeper(house.lab.tmp_path))
        self.config = house.write(config)
        self.start()

    def start(self):
        before, fds = self.keeper.start()
        Process.__init__(self, self.house.lab, self.house.middle,
                         [*before, *environment(self.house.lab), NAT, "--json", "--config",
                          self.config, *self.options], fds=fds)
        assert self.err.wait(lambda line: line.startswith("worker "), 20), self.err.text()
        self.keeper.wait_for(self.pid, limit(20))

    def crash(self):
        self.kill()
        self.start()
        assert RECOVERED in self.err.text()


class Stream:
    """Numbered frames both ways, until it is told to stop."""

    def __init__(self, wires):
        self.wires = wires
        self.is_done = False
        self.sent, self.got = [[], []], [[], []]
        self.threads = [threading.Thread(target=work, args=(way,))
                        for way in range(2) for work in (self.send, self.receive)]
        for thread in self.threads:
            thread.start()

    def send(self, way):
        while not self.is_done:
            number = len(self.sent[way])
            data = frame(100, number + (way << 20), src=mac(way), dst=mac(1 - way))
            self.wires[way].send(data)
            self.sent[way].append(data)
            if number % 16 == 15:
                time.sleep(16 / RATE)

    def receive(self, way):
        wire = self.wires[1 - way]
        while not self.is_done:
            self.got[way] += wire.receive_until_quiet(0.5)
        self.got[way] += wire.receive_until_quiet(2.0)

    def advance(self, n):
        """Until it has sent n more frames each way."""
        until = [len(sent) + n for sent in self.sent]
        wait_until(f"{n} frames are sent",
                   lambda: all(len(sent) >= n for sent, n in zip(self.sent, until)))

    def end(self):
        self.is_done = True
        for thread in self.threads:
            thread.join()
        return self.sent, self.got


def check_stream(sent, got, n_kills):
    """In order, none twice; a crash loses what is in a burst."""
    for way in range(2):
        came = set(map(number_of, got[way]))
        assert got[way] == [data for data in sent[way] if number_of(data) in came]
        n_lost = len(sent[way]) - len(got[way])
        print(f"{n_lost} of {len(sent[way])} lost in {n_kills} crashes")
        assert n_lost <= n_kills * BURST


def crash_under_traffic(lab, star, n_kills, *options):
    service = Service(lab, star, "--ring", RING, *options)
    stream = Stream(service.wires)
    for _ in range(n_kills):
        stream.advance(random.randrange(200, 1000))
        assert service.crash(), service.err.text()
    stream.advance(500)
    check_stream(*stream.end(), n_kills)
    service.stop()  # pages are conserved
    for port in star.ports:
        assert not star.has_program(port)


@pytest.mark.short
def test_frames_wait_for_the_next_process(lab, star):
    crash_under_traffic(lab, star, 3)


def test_killed_at_random(lab, star):
    crash_under_traffic(lab, star, N_KILLS)


def test_killed_at_full_speed(lab, star):
    """Most kills are within a burst: the rings still tell what the kernel has."""
    service = Service(lab, star, "--ring", RING)
    testers = [Process(lab, host, [BENCH, "tx", "h0", "--count", 1 << 30, "--json"])
               for host in star.hosts]
    for _ in range(N_KILLS):
        time.sleep(random.random() / 10)
        assert service.crash(), service.err.text()
    for tester in testers:
        tester.process.send_signal(signal.SIGINT)
        tester.wait()
    service.wires[0].receive_until_quiet(1.0, limit(30.0))
    service.exchange(50)
    service.stop()


def test_sessions_go_on(lab):
    """Those of the last snapshot; a download, too."""
    house = House(lab)
    lab.closing(Echo(house.server))
    state = lab.tmp_path / "state"
    gateway = Gateway(house, f"state: {state}\nstate_interval: 1s\nports: {{keep_port: no}}\n")
    talkers = [lab.closing(Talker(host)) for host in (house.a, house.b) for _ in range(20)]
    seen = ask_all(talkers, gateway)
    download = Download(house)
    for _ in range(3):
        size = state.stat().st_mtime_ns if state.exists() else 0
        wait_until("a snapshot", lambda: state.exists() and state.stat().st_mtime_ns > size)
        gateway.crash()
        assert ask_all(talkers, gateway) == seen
    download.check()
    gateway.stop()


def has_offer(keeper):
    """Whether the socket of the last process has something to read."""
    with socket.socket(fileno=os.dup(next(iter(keeper.store.values())))) as kept:
        try:
            return kept.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return False


def test_what_ends_leaves_nothing(lab, star):
    """What cannot be recovered is opened anew."""
    service = Service(lab, star)
    service.stop()
    assert not service.keeper.store
    service.start()
    service.wait_until_kept()
    service.kill()
    service.options = ("--ring", 512)
    service.start()
    service.says("opened anew")
    service.wait_until_kept()
    service.exchange(20)
    service.kill()
    for port in star.ports:  # systemd has copies
        assert star.has_program(port)
    service.keeper.forget()
    for port in star.ports:
        wait_until("no program", lambda port=port: not star.has_program(port))


def test_a_change_is_kept(lab, star):
    """The next process has the MTU and the filter of the last one, and restores the first."""
    service = Service(lab, star, "--mtu", 1400)
    for _ in range(2):
        assert service.crash(), service.err.text()
        service.exchange(20)
    assert star.middle.link("p0")["mtu"] == 1400
    service.wait_until_kept()
    service.stop()
    assert star.middle.link("p0")["mtu"] == 1500


def test_a_port_of_the_broker_goes_on(lab, star):
    """The broker does not notice: the keeper has the connection to it."""
    broker = Broker(lab, star.middle)
    before = flags(star)
    service = Service(lab, star, "--ring", RING, "--mtu", 1400, broker=broker)
    for _ in range(3):
        assert service.crash(), service.err.text()
        service.exchange(20)
    assert star.middle.link("p0")["mtu"] == 1400
    service.stop()
    broker.says(" 0 KiB left")
    assert flags(star) == before


@pytest.mark.parametrize("options", [
    ("--mode", "learn"), ("--workers", 2), ("--mode", "learn", "--workers", 2)])
def test_other_ways_to_forward(lab, options):
    crash_under_traffic(lab, Star(lab, queues=2), 3, *options)


@pytest.mark.parametrize("spec", ["attach=generic", "mode=copy,meta", "busy=64", "sg=off"])
def test_other_modes(lab, star, spec):
    star.ports = [f"{port},{spec}" for port in star.ports]
    service = Service(lab, star)
    for _ in range(3):
        assert service.crash(), service.err.text()
        service.exchange(100)
    service.stop()


def test_frames_of_several_entries(lab):
    service = Service(lab, Star(lab, mtu=9000), "--ring", RING)
    tester = Process(lab, service.star.hosts[0], [
        BENCH, "tx", "h0", "--size", 9000, "--count", 1 << 30, "--json"])
    for _ in range(5):
        time.sleep(random.random() / 10)
        assert service.crash(), service.err.text()
    tester.process.send_signal(signal.SIGINT)
    tester.wait()
    service.wires[1].receive_until_quiet(1.0, limit(30.0))
    service.exchange(50, 9000)
    service.stop()


def test_a_tap_goes_on(lab, star):
    star.ports = ["p0", "tap:t0,queues=2"]
    service = Service(lab, star, "--workers", 2)
    star.middle.ip("address", "add", "10.77.0.2/24", "dev", "t0")
    star.middle.ip("link", "set", "t0", "up")
    for _ in range(3):
        assert talk.ping(star.hosts[0], "10.77.0.2") == 3
        assert service.crash(), service.err.text()
    assert talk.ping(star.hosts[0], "10.77.0.2") == 3
    service.stop()
    wait_until("no tap", lambda: star.middle.link("t0") is None)


def test_nothing_is_left_over(lab, star):
    """Neither by processes, nor by what each left for the next one and took back."""
    service = Service(lab, star)

    def n_fds():
        return len(os.listdir(f"/proc/{service.pid}/fd"))

    before = n_fds()  # that of sd_notify() may be there
    for mtu in range(1400, 1405):
        star.middle.ip("link", "set", "p0", "mtu", mtu)
        wait_until("the MTU", lambda mtu=mtu: json.loads(
            service.ask("show", "config"))["ports"][0]["mtu"] == mtu)
        wait_until("it is kept again", lambda: has_offer(service.keeper))
        wait_until("no more files than before", lambda: n_fds() <= before)
    for _ in range(5):
        assert service.crash(), service.err.text()
        service.wait_until_kept()
        wait_until("no more files than before", lambda: n_fds() <= before)
    service.stop()


def test_a_device_that_returns_is_kept(lab, star):
    """Copies of the sockets of the one that is gone do not hinder it."""
    service = Service(lab, star)
    for _ in range(2):
        star.middle.ip("link", "delete", "p0")
        lab.veth(star.hosts[0], "h0", star.middle, "p0")
        service.says("opened again")
        wait_until("it is kept", lambda: has_offer(service.keeper))
        assert service.crash(), service.err.text()
        service.wires[0] = lab.closing(Wire(star.hosts[0], "h0", TEST_TYPE))
        service.exchange(50)
    other = lab.namespace("x")
    star.middle.ip("link", "set", "p0", "netns", other.name)
    service.says("the device is gone")
    wait_until("no program", lambda: not other.link("p0").get("xdp"))
    service.kill()


def test_added_queues_are_kept(lab):
    star = Star(lab, queues=4)
    for host, port in zip(star.hosts, star.ports):
        host.run("ethtool", "-L", "h0", "tx", 1)
        star.middle.run("ethtool", "-L", port, "rx", 1)
    service = Service(lab, star, "--ring", 1024)
    for host, port in zip(star.hosts, star.ports):
        star.middle.run("ethtool", "-L", port, "rx", 4)
        host.run("ethtool", "-L", "h0", "tx", 4)
        service.says(f"xdp:{port}: 3 rx queues added")
    wait_until("it is kept", lambda: has_offer(service.keeper))
    for _ in range(3):
        assert service.crash(), service.err.text()
        ports = map(json.loads, service.ask("show", "ports").splitlines())
        assert [len(port["queues"]) for port in ports] == [4, 4]
        service.exchange(100)
    service.stop()


def test_a_socket_of_no_use_is_passed_over(lab, star):
    """An upgrade whose old process was killed has left its own."""
    service = Service(lab, star)
    for i in range(2):
        service.wait_until_kept()
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        other.close()
        ends, store = {"millrace-1": one.detach()}, service.keeper.store
        service.keeper.store = {**ends, **store} if i == 0 else {**store, **ends}
        assert service.crash(), service.err.text()
        service.exchange(20)
    service.stop()


def test_killed_before_the_next_one_is_kept(lab, star):
    """Then it is as without a keeper."""
    service = Service(lab, star, "--mtu", 1400)
    service.kill()
    service.start()
    service.says(RECOVERED)
    service.kill()
    with service.keeper.changed:
        assert service.keeper.changed.wait_for(lambda: len(service.keeper.store) < 2, limit(20))
    service.start()
    service.wait_until_kept()
    service.exchange(20)
    service.stop()
    assert star.middle.link("p0")["mtu"] == 1500


def test_upgrades_and_crashes_take_turns(lab, star):
    service = Service(lab, star, "--ring", RING)
    for _ in range(2):
        assert service.crash(), service.err.text()
        service.wait_until_kept()
        pid = json.loads(service.ask("upgrade"))["pid"]
        assert service.process.wait(limit(10)) == 0
        service.keeper.wait_for(pid, limit(20))
        assert list(service.keeper.store) == [f"millrace-{pid}"]
        service.exchange(50)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert service.restart(), service.err.text()
        service.exchange(50)
    service.stop()


def test_the_next_process_has_its_own_filter(lab, star):
    """That of its file, whatever mrctl applied, after a crash and an upgrade."""
    file = lab.tmp_path / "br.yaml"

    def write(number):
        file.write_text(f"ports: [p0, p1]\npunt: ether src {mac(number).hex(':')}\n",
                        encoding="utf-8")

    def check(number):
        """The port leaves frames of this station to the kernel, and not the next one's."""
        frames = [frame(60, number + i, src=mac(number + i)) for i in range(2)]
        service.wires[0].send_all(frames)
        assert service.wires[1].receive(1) == frames[1:]

    write(4)
    star.ports = []
    service = Service(lab, star, "--config", file)
    for number in (6, 8):
        write(number)
        service.ask("apply", file)
        check(number)
        wait_until("it is kept", lambda: has_offer(service.keeper))
        assert service.crash(), service.err.text()
        check(number)
        write(number + 1)
        pid = json.loads(service.ask("upgrade"))["pid"]
        check(number + 1)
        assert service.process.wait(limit(10)) == 0
        service.keeper.wait_for(pid, limit(20))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert service.restart(), service.err.text()
        check(number + 1)
    service.stop()


def test_settings_are_restored_after_all(lab, star):
    """Where its ports are opened anew."""
    service = Service(lab, star, "--mtu", 1400, "--promisc", "on")
    service.wait_until_kept()
    service.kill()
    service.options += ("--ring", 512)
    assert not service.restart()
    service.wait_until_kept()
    assert star.middle.link("p0")["promiscuity"] == 1
    service.exchange(20)
    service.stop()
    assert star.middle.link("p0")["mtu"] == 1500
    assert star.middle.link("p0")["promiscuity"] == 0


def test_two_workers_of_the_nat_go_on(lab):
    """The device chooses none of them, before and after."""
    house = House(lab, queues=2)
    lab.closing(Echo(house.server))
    gateway = Gateway(house, "", "--workers", 2)
    talkers = [lab.closing(Talker(house.a)) for _ in range(10)]
    ask_all(talkers, gateway)
    before = gateway.stats()["not_steered"]
    for _ in range(2):
        gateway.crash()
        ask_all(talkers, gateway)
        assert gateway.stats()["not_steered"] == before
    gateway.stop()


def test_the_kernel_is_still_reached(lab):
    """local: kernel."""
    house = House(lab)
    for port, address in ("p0", nat.INSIDE), ("p1", nat.OUTSIDE):
        house.middle.ip("address", "add", f"{address}/24", "dev", port)
    lab.closing(Echo(house.server))
    gateway = Gateway(house, "local: kernel\nports: {range: 1024-32767}\n")
    talker = lab.closing(Talker(house.a))
    for _ in range(3):
        assert talk.ping(house.a, nat.INSIDE) == 3
        assert talker.ask()[0] == nat.OUTSIDE
        tcp_between(house.server, house.middle, nat.OUTSIDE, 22, 22)
        gateway.crash()
    gateway.stop()
    assert "mrk" not in house.middle.ip("link").stdout
