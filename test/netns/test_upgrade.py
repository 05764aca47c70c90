# SPDX-License-Identifier: BSD-3-Clause
"""mrctl upgrade: no frame is lost, and at each moment one process forwards."""
import ctypes
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from host import limit
from lib import invariants, talk
from lib.broker import NOBODY, Broker, flags, forwarder
from lib.forwarder import Bridge, Forwarder, frames_of
from lib.namespaces import Star, run, wait_until
from lib.process import BUILD, CTL, L2FWD, Process, ask_ctl, environment
from lib.wire import TEST_TYPE, Wire, frame, mac, number_of

PR_SET_CHILD_SUBREAPER = 36
BENCH = BUILD / "apps/bench/mr-bench"
FAULT = BUILD / "test/netns/libfault.so"
GAP_S = 0.1  # between two upgrades
RATE, BATCH, RING = 20000, 64, 2048  # frames
N_UPGRADES = 50
# The messages of each side, in their order.
STEPS = [(side, call, number) for side, call, numbers in (
    ("new", "sendmsg", 3), ("new", "recvmsg", 4),
    ("old", "recvmsg", 3), ("old", "sendmsg", 4))
    for number in range(1, numbers + 1)]


@pytest.fixture(autouse=True)
def children():
    """Successors become children of this process when their parents end."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def running(star):
    """The processes of the program, in its namespace."""
    found = run("ip", "netns", "pids", star.middle.name).stdout
    return [int(word) for word in found.split()]


def status_of(pid):
    """Its state, and its parent."""
    status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    state, parent = status.rpartition(")")[2].split()[:2]
    return state, int(parent)


def is_stopped(pid):
    return status_of(pid)[0] == "T"


# Prints the longest sleep that was to take 2 ms.
METER = """
import os, sys, time
os.sched_setaffinity(0, [int(sys.argv[1])])
most = 0
while True:
    start = time.monotonic()
    time.sleep(0.002)
    if time.monotonic() - start > most:
        most = time.monotonic() - start
        print(most, flush=True)
"""


class Line(Bridge):
    """mr-l2fwd between two hosts, and whichever process follows it."""

    def __init__(self, lab, star, *options, ports=("p0", "p1")):
        star.ports = ports
        super().__init__(lab, star, "--instance", "line", *options)
        lab.checks.remove(self.check_end)
        self.lab = lab
        self.star = star
        self.pids = [self.pid]
        self.stop_s = 0.0  # the longest that a core was another's, during streams
        lab.closing(self)

    def close(self):
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def running(self):
        return running(self.star)

    def upgrade(self, *words):
        """The answer of mrctl, or its error as text."""
        done = ask_ctl(self.lab, "-n", "line", "--json", *words, "upgrade")
        if done.returncode != 0:
            return done.stderr.strip()
        answer = json.loads(done.stdout)
        self.pids.append(answer["pid"])
        return answer

    def offloaded(self):
        """Frames that rules have forwarded."""
        show = json.loads(ask_ctl(self.lab, "-n", "line", "--json", "show").stdout)
        return sum(invariants.total(port, "rx", "offloaded") for port in show["ports"])

    def ports(self):
        shown = ask_ctl(self.lab, "-n", "line", "--json", "show", "ports").stdout
        return [json.loads(line) for line in shown.splitlines()]

    def config(self):
        return json.loads(ask_ctl(self.lab, "-n", "line", "--json", "show", "config").stdout)

    def received(self):
        """Frames that the first port has received."""
        return invariants.total(self.ports()[0], "rx", "received")

    def stations(self):
        """What it has learned: MAC addresses and ports."""
        lines = ask_ctl(self.lab, "-n", "line", "--json", "l2", "fdb").stdout.splitlines()
        return {(one["mac"], one["port"]) for one in map(json.loads, lines)}

    def stop_last(self):
        """End the process that runs now; its last object, checked."""
        if len(self.pids) == 1:
            return self.stop()
        assert self.process.wait(limit(10)) == 0, self.err.text()
        # All before it have to end first.
        wait_until("it is a child", lambda: status_of(self.pids[-1])[1] == os.getpid())
        os.kill(self.pids[-1], signal.SIGINT)
        _, status = os.waitpid(self.pids[-1], 0)
        assert os.waitstatus_to_exitcode(status) == 0, self.err.text()
        final = self.snapshots()[-1]
        invariants.check_final(final)
        return final

    def stream(self, n, n_bytes=100, rate=RATE):
        """Send frames of each side from threads of their own. A function that
        waits for them, and returns what each side got."""
        got = [[], []]
        sent = [frames_of(way, n, n_bytes) for way in range(2)]

        def receive(way):
            got[way] = self.wires[1 - way].receive_until_quiet(2.0, limit(120.0))

        threads = [threading.Thread(target=receive, args=(way,)) for way in range(2)]
        threads += [threading.Thread(target=self.wires[way].send_all,
                                     args=(sent[way], BATCH, BATCH / rate)) for way in range(2)]
        meters = [self.lab.popen([sys.executable, "-c", METER, str(core)],
                                 stdout=subprocess.PIPE, text=True)
                  for core in os.sched_getaffinity(0)]
        for thread in threads:
            thread.start()

        def join():
            for thread in threads:
                thread.join()
            for meter in meters:
                meter.kill()
                words = meter.communicate()[0].split()
                self.stop_s = max([self.stop_s, *map(float, words)])
            return sent, got
        return join


def ends(final):
    """The ports with the hosts; there may be others between them."""
    return final["ports"][0], final["ports"][-1]


def dropped(final):
    """{name: frames} that a program has dropped."""
    names = invariants.worker_drops(final)
    for number, port in enumerate(final["ports"]):
        for side in ("rx", "tx"):
            for name, n in invariants.drops(port, side).items():
                names[f"port {number} {side} {name}"] = n
    return {name: n for name, n in names.items() if n > 0}


def check_all(line, sent, got, gap_s, *finals):
    """All came, once, in order. Where the machine stopped for longer than the ring lasts, frames
    are lost, and each is counted by one of the programs on the way."""
    for way in range(2):
        assert line.wires[1 - way].lost() == 0
        came = set(map(number_of, got[way]))
        assert got[way] == [data for data in sent[way] if number_of(data) in came]
    n_lost = sum(map(len, sent)) - sum(map(len, got))
    names = list(map(dropped, finals))
    assert n_lost == 0 or max(gap_s, line.stop_s) * RATE > RING / 2, \
        f"{n_lost} lost in a gap of {gap_s} s, or a stop of {line.stop_s} s: {names}"
    # The kernels' own frames (IPv6) are a few.
    assert 0 <= sum(sum(one.values()) for one in names) - n_lost < 50, (n_lost, names)


def upgrade_under_traffic(line, n_upgrades, n_frames, **more):
    line.exchange(10)
    join = line.stream(n_frames, **more)
    gaps = []
    for _ in range(n_upgrades):
        answer = line.upgrade()
        assert isinstance(answer, dict), answer
        gaps.append(answer["gap_us"])
        time.sleep(GAP_S)
    sent, got = join()
    print(f"gap: median {sorted(gaps)[len(gaps) // 2]} us, most {max(gaps)} us")
    final = line.stop_last()
    check_all(line, sent, got, max(gaps) / 1e6, final)
    # Counters go on, over all processes.
    for way, port in enumerate(ends(final)):
        assert invariants.total(port, "rx", "delivered") == len(got[way]) + 10, port
    assert line.process.wait(10) == 0
    return final


@pytest.mark.short
def test_no_frame_is_lost_or_doubled(lab, star):
    upgrade_under_traffic(Line(lab, star, "--ring", RING), 5, 20000)


def test_fifty_in_a_row(lab, star):
    upgrade_under_traffic(Line(lab, star, "--ring", RING), N_UPGRADES, 200000)


def test_frames_in_a_pair_are_not_lost(lab, star):
    """Both ends of it between the hosts."""
    upgrade_under_traffic(Line(lab, star, "--ring", RING, ports=("p0", "pair:a", "pair:a", "p1")),
                          5, 20000)


def test_each_frame_is_sent_or_counted_at_full_speed(lab, star):
    """At 100,000 frames/s the ring lasts 20 ms, so a slow machine loses some; every one has a
    named counter, over all processes."""
    line = Line(lab, star, "--ring", RING)
    sink = star.hosts[1]
    before = int(sink.run("cat", "/sys/class/net/h0/statistics/rx_packets").stdout)
    tester = Process(lab, star.hosts[0], [
        BENCH, "tx", "h0", "--rate", "100k", "--count", 200000, "--json"])
    while tester.process.poll() is None:
        assert isinstance(line.upgrade(), dict)
        time.sleep(GAP_S)
    n_sent = json.loads(tester.out.text())["trials"][0]["tx"]["sent"]
    assert n_sent > 100000 and len(line.pids) > 2
    wait_until("all are received", lambda: line.received() >= n_sent)
    final = line.stop_last()
    port, peer = final["ports"]
    n_dropped = sum(invariants.drops(port, "rx").values()) + sum(
        invariants.worker_drops(final).values()) + sum(invariants.drops(peer, "tx").values())
    after = int(sink.run("cat", "/sys/class/net/h0/statistics/rx_packets").stdout)
    # The kernels' own frames (IPv6) are a few.
    assert 0 <= after - before + n_dropped - n_sent < 50, (before, after, n_dropped, n_sent)


def test_frames_between_workers_are_not_lost(lab):
    """Two workers, each of which sends by queues of the other."""
    star = Star(lab, n_hosts=3)
    line = Line(lab, star, "--mode", "learn", "--workers", 2, "--ring", RING,
                ports=tuple(star.ports))
    for way in range(2):  # both are known
        line.wires[way].send(frames_of(way, 1)[0])
        assert len(line.wires[1 - way].receive(1)) == 1
    join = line.stream(20000)
    gaps = [line.upgrade()["gap_us"] for _ in range(5)]
    sent, got = join()
    final = line.stop_last()
    assert invariants.worker_total(final, "handed_off") > 10000
    n_dropped = sum(invariants.worker_drops(final).values()) + sum(
        sum(invariants.drops(port, "rx").values()) for port in final["ports"])
    assert sum(map(len, sent)) - sum(map(len, got)) == n_dropped
    assert n_dropped == 0 or max(gaps) > 20000, (n_dropped, gaps)
    for way in range(2):
        numbers = list(map(number_of, got[way]))
        assert numbers == sorted(set(numbers))


def test_stations_and_connections_stay(lab, star):
    line = Line(lab, star, "--mode", "learn")
    assert talk.ping(star.hosts[0], star.address(1)) == 3
    before = line.stations()
    done = threading.Event()

    def upgrade():
        while not done.is_set():
            assert isinstance(line.upgrade(), dict)
            time.sleep(GAP_S)

    thread = threading.Thread(target=upgrade)
    thread.start()
    try:
        while len(line.pids) < 4:
            talk.tcp(star.hosts[0], star.hosts[1], star.address(1), 4 << 20)
    finally:
        done.set()
        thread.join()
    assert line.stations() == before
    assert line.stop_last()["fdb"]["learned"] == 2


def test_a_tap_is_handed_over(lab, star):
    line = Line(lab, star, ports=("p0", "tap:t0,queues=2"))
    star.middle.ip("address", "add", "10.77.0.2/24", "dev", "t0")
    star.middle.ip("link", "set", "t0", "up")
    assert talk.ping(star.hosts[0], "10.77.0.2") == 3
    pings = lab.popen(star.hosts[0].command("ping", "-q", "-i", "0.002", "-c", "1000", "10.77.0.2"),
                      stdout=subprocess.PIPE, text=True)
    while pings.poll() is None:
        assert isinstance(line.upgrade(), dict)
        time.sleep(GAP_S)
    assert " 0% packet loss" in pings.stdout.read()
    assert len(line.pids) > 3
    line.stop_last()
    assert star.middle.link("t0") is None


def test_a_port_of_the_broker_is_handed_over(lab, star):
    """Without privileges: the new process has the old one's connection to the broker."""
    broker = Broker(lab, star.middle)
    before = flags(star)
    folder = broker.folder / "control"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    running = forwarder(lab, star, broker, more=["--mtu", 1400, "--control", folder / "sock"])
    lab.checks.clear()
    pids = []
    for _ in range(3):
        done = subprocess.run([CTL, "--control", folder / "sock", "--json", "upgrade"], text=True,
                              capture_output=True, check=False, timeout=limit(60))
        assert done.returncode == 0, done.stderr + running.err.text()
        pids.append(json.loads(done.stdout)["pid"])
        assert talk.udp(*star.hosts, star.address(1), n_bytes=1000) == 20
    assert star.middle.link("p0")["mtu"] == 1400
    os.kill(pids[-1], signal.SIGINT)
    broker.says(" 0 KiB left")
    assert flags(star) == before


@pytest.mark.parametrize("mode", ["patch", "learn"])
@pytest.mark.short
def test_rules_forward_meanwhile(lab, star, mode):
    """Frames that match rules do not wait: the programs stay attached."""
    for host in star.hosts:
        host.run("ethtool", "-K", "h0", "gro", "on")
    line = Line(lab, star, "--mode", mode, "--offload", "on")
    line.exchange(10)
    wait_until("rules", lambda: line.next_snapshot()["offload"]["rules"] == 2)
    before = line.offloaded()
    join = line.stream(20000)
    for _ in range(5):
        assert isinstance(line.upgrade(), dict)
        time.sleep(GAP_S)
    sent, got = join()
    assert got == sent
    assert line.offloaded() - before == 40000
    final = line.stop_last()
    assert final["offload"]["attempted"] == before + 40000
    assert final["offload"]["tx_drops_known"] == 1 and final["offload"]["tx_drops"] == 0
    for port in star.ports:
        wait_until("no program", lambda port=port: not star.has_program(port))


def check_goes_on(line):
    """The first process forwards, and is the only one."""
    line.exchange(50)
    wait_until("one process", lambda: line.running() == [line.pid])
    line.stop_last()


def test_what_cannot_be_started_is_refused(lab, star):
    line = Line(lab, star)
    missing = lab.tmp_path / "missing"
    assert "No such file" in line.upgrade("--binary", missing)
    other = lab.tmp_path / "mr-l2fwd"
    shutil.copy(L2FWD, other)
    other.chmod(0o777)
    assert "can change it" in line.upgrade("--binary", other)
    other.chmod(0o755)
    lab.tmp_path.chmod(0o777)
    assert "can change it" in line.upgrade("--binary", other)
    (lab.tmp_path / "below").mkdir()
    below = lab.tmp_path / "below/mr-l2fwd"
    shutil.copy(L2FWD, below)
    assert "can change it" in line.upgrade("--binary", below)
    lab.tmp_path.chmod(0o700)
    other.write_text("#!/bin/sh\nexit 3\n")
    assert "the other process is gone" in line.upgrade("--binary", other)
    other.write_text(f"#!/bin/sh\nexec {L2FWD} --json --mode macswap p0\n")
    assert "needs a restart" in line.upgrade("--binary", other)
    other.write_text(f"#!/bin/sh\nexec {L2FWD} --json --ring 512 p0 p1\n")
    assert "needs a restart" in line.upgrade("--binary", other)
    check_goes_on(line)


def test_a_successor_gets_all_arguments_and_only_its_socket(lab, star):
    more = ["--ring", "2048"] * 200
    line = Line(lab, star, *more)
    other = lab.tmp_path / "mr-l2fwd"
    # Before the shell starts a program: signals are unblocked then.
    other.write_text("#!/bin/sh\nwhile read -r line; do echo \"$line\"; done </proc/$$/status "
                     f">{lab.tmp_path}/status\n"
                     f'printf "%s\\n" "$@" > {lab.tmp_path}/words\n'
                     f"ls /proc/self/fd > {lab.tmp_path}/fds\n"
                     "exit 3\n")
    other.chmod(0o755)
    assert "the other process is gone" in line.upgrade("--binary", other)
    words = (lab.tmp_path / "words").read_text(encoding="utf-8").split()
    assert words == ["--json", "--instance", "line", *more, "p0", "p1"]
    # The fifth is that of ls.
    fds = (lab.tmp_path / "fds").read_text(encoding="utf-8").split()
    assert fds == ["0", "1", "2", "3", "4"]
    status = (lab.tmp_path / "status").read_text(encoding="utf-8")
    (blocked,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigBlk")]
    assert int(blocked, 16) == 0
    check_goes_on(line)


def test_a_successor_ends_with_the_program(lab, star):
    """It hangs while it starts; then the program is told to end."""
    line = Line(lab, star)
    other = lab.tmp_path / "mr-l2fwd"
    other.write_text("#!/bin/sh\nexec sleep 1000\n")
    other.chmod(0o755)
    asked = lab.popen([*environment(lab), CTL, "-n", "line", "upgrade", "--binary", other],
                      stderr=subprocess.PIPE, text=True)
    wait_until("it starts", lambda: len(line.running()) == 2)
    line.stop()
    assert "told to end" in asked.communicate(timeout=limit(10))[1]
    assert line.running() == []


def test_process_1_is_refused(lab, star):
    """The others of its PID namespace end with it."""
    control = lab.tmp_path / "sock"
    Forwarder(lab, star.middle, *star.ports, options=["--control", control],
              wrap=["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"])
    lab.checks.clear()
    done = subprocess.run([CTL, "--control", control, "upgrade"], text=True, capture_output=True,
                          check=False, timeout=limit(60))
    assert done.returncode == 1 and "process 1" in done.stderr


def test_limits_and_the_interface_go_on(lab, star):
    line = Line(lab, star, "--mtu", 1400, "--count", 200, "--duration", 1000)
    line.exchange(30)
    before = line.next_snapshot()
    assert isinstance(line.upgrade(), dict)
    assert line.next_snapshot()["t"] > before["t"]
    assert [port["mtu"] for port in line.config()["ports"]] == [1400, 1400]
    line.exchange(30)
    for wire, frames in zip(line.wires, (frames_of(0, 50), frames_of(1, 50))):
        wire.send_all(frames)
    _, status = os.waitpid(line.pids[-1], 0)
    assert os.waitstatus_to_exitcode(status) == 0, line.err.text()
    assert star.middle.link("p0")["mtu"] == 1500


def test_the_configuration_stays_meanwhile(lab, star, monkeypatch):
    """The successor has read it already. It can change again after the upgrade."""
    file, control = lab.tmp_path / "br.yaml", lab.tmp_path / "br.sock"

    def write(number):
        file.write_text(f"ports: [p0, p1]\npunt: ether src {mac(number).hex(':')}\n",
                        encoding="utf-8")

    def apply(number):
        write(number)
        return subprocess.run([CTL, "--control", control, "apply", file], capture_output=True,
                              text=True, check=False, timeout=limit(30)).stderr

    def check(*numbers):
        """The second frame comes, and not the first."""
        frames = [frame(60, number, src=mac(number)) for number in numbers]
        wires[0].send_all(frames)
        assert wires[1].receive(1) == frames[1:]

    write(9)
    monkeypatch.setenv("LD_PRELOAD", str(FAULT))
    monkeypatch.setenv("FAULT", f"new:recvmsg:1:{int(signal.SIGSTOP)}")
    first = Forwarder(lab, star.middle, options=["--config", file, "--control", control])
    monkeypatch.delenv("LD_PRELOAD")
    lab.checks.clear()
    asked = lab.popen([CTL, "--control", control, "upgrade"])
    wait_until("it starts", lambda: len(running(star)) == 2)
    (pid,) = set(running(star)) - {first.pid}
    wait_until("it has the offer", lambda: is_stopped(pid))
    assert apply(8) == "mrctl: apply: busy: an upgrade is under way\n"
    first.process.send_signal(signal.SIGHUP)
    first.says("SIGHUP: busy: an upgrade is under way; nothing has changed")
    os.kill(pid, signal.SIGCONT)
    assert asked.wait(limit(30)) == 0
    wires = [lab.closing(Wire(host, "h0", TEST_TYPE)) for host in star.hosts]
    check(9, 8)
    assert apply(7) == ""
    check(7, 9)
    os.kill(pid, signal.SIGINT)
    wait_until("no process", lambda: not running(star))


def test_another_user_may_not(lab, star):
    line = Line(lab, star)
    mode = stat.S_IMODE((lab.tmp_path / "line.sock").stat().st_mode)
    assert mode == 0o600
    check_goes_on(line)


def faulty(lab, star, monkeypatch, side, call, number, sig):
    monkeypatch.setenv("LD_PRELOAD", str(FAULT))
    monkeypatch.setenv("FAULT", f"{side}:{call}:{number}:{int(sig)}")
    line = Line(lab, star)
    monkeypatch.delenv("LD_PRELOAD")
    line.exchange(10)
    return line


@pytest.mark.parametrize("side,call,number", STEPS)
def test_killed_at_a_step(lab, star, monkeypatch, side, call, number):
    """Exactly one process forwards, or none is left and nothing is attached."""
    line = faulty(lab, star, monkeypatch, side, call, number, signal.SIGKILL)
    line.upgrade()
    if (side, call, number) == ("old", "recvmsg", 3):
        who = "new"  # it has all, and does not need an answer
    elif side == "new" and (call, number) != ("sendmsg", 3):
        who = "old"
    else:
        who = "none"  # the other one has nothing yet, or nothing any more
    n_wanted = 0 if who == "none" else 1
    wait_until(f"{who}: {n_wanted} left", lambda: len(line.running()) == n_wanted)
    if who != "none":
        line.exchange(50)
        (pid,) = line.running()
        assert (pid == line.pid) == (who == "old")
        os.kill(pid, signal.SIGINT)
    wait_until("no process", lambda: not line.running())
    for port in star.ports:
        wait_until("no program", lambda port=port: not star.has_program(port))


@pytest.mark.parametrize("number", [2, 3])
def test_stopped_too_long(lab, star, monkeypatch, number):
    """The old process goes on after two seconds; the other one, when it wakes,
    touches nothing."""
    line = faulty(lab, star, monkeypatch, "new", "recvmsg", number + 1, signal.SIGSTOP)
    answer = line.upgrade()
    if number == 2:
        assert "did not go on within 2 s" in answer
    check_goes_on(line)
