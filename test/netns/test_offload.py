# SPDX-License-Identifier: BSD-3-Clause
"""mr-l2fwd --offload: frames that the kernel forwards by rules."""
import json
import math
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from host import limit
from lib import invariants, talk
from lib.forwarder import Forwarder, Refused
from lib.namespaces import Star, wait_until
from lib.process import CTL, L2FWD, Process, ask_ctl, environment
from lib.wire import BROADCAST, TEST_TYPE, Wire, frame, mac

UNITS = Path(__file__).resolve().parents[2] / "config" / "systemd"


class Kernel:
    """Hosts around mr-l2fwd --offload on, each with a raw socket."""

    def __init__(self, lab, mode, *options, n_hosts=2, gro="on",
                 offload="on"):
        self.star = Star(lab, n_hosts)
        for i in range(n_hosts):
            self.set_gro(i, gro)
        self.wires = [lab.closing(Wire(host, "h0", TEST_TYPE))
                      for host in self.star.hosts]
        self.forwarder = Forwarder(
            lab, self.star.middle, *self.star.ports,
            options=["--mode", mode, "--offload", offload, *options])

    def set_gro(self, i, state):
        """Whether host i's end receives what is redirected to it."""
        self.star.hosts[i].run("ethtool", "-K", "h0", "gro", state)

    def send(self, i, to, n=1, size=100, dst=BROADCAST, src=mac(1)):
        """Send n frames from host i; hosts `to` get all of them, in order."""
        sent = [frame(size, number, dst=dst, src=src) for number in range(n)]
        self.wires[i].send_all(sent)
        for k in to:
            assert self.wires[k].receive(n) == sent, f"host {k}"

    def introduce(self):
        """Each host is known, and its rule is active."""
        for i in range(len(self.wires)):
            self.send(i, [k for k in range(len(self.wires)) if k != i],
                      src=mac(i))
        self.wait_for("rules", len(self.wires))

    def wait_for(self, name, n):
        wait_until(f"offload {name}", lambda:
                   self.forwarder.next_snapshot()["offload"][name] == n)

    def stop(self, **options):
        """The last object."""
        final = self.forwarder.stop(**options)
        assert final["offload"]["tx_drops_known"] == 1
        return final

    @staticmethod
    def offloaded(final):
        return sum(invariants.total(port, "rx", "offloaded")
                   for port in final["ports"])

    @staticmethod
    def event(final, name):
        return sum(queue["events"][f"rx_offload_{name}"]
                   for port in final["ports"] for queue in port["queues"])


@pytest.mark.parametrize("offload", ["on", "auto"])
@pytest.mark.short
def test_patch_forwards_all_in_the_kernel(lab, offload):
    kernel = Kernel(lab, "patch", offload=offload)
    kernel.send(0, [1], 200)
    kernel.send(1, [0], 100)
    final = kernel.stop()
    assert kernel.offloaded(final) == 300 == final["offload"]["attempted"]
    assert final["offload"]["tx_drops"] == 0
    assert [port["tx_offloaded"] for port in final["ports"]] == [100, 200]
    assert sum(invariants.total(port, "rx", "delivered")
               for port in final["ports"]) == 0


def test_displays_show_frames_forwarded_by_rules(lab):
    star = Star(lab)
    for host in star.hosts:
        host.run("ethtool", "-K", "h0", "gro", "on")
    running = Process(lab, star.middle, [
        *environment(lab), L2FWD, "--offload", "on", *star.ports])
    running.says("worker 0")
    wires = [lab.closing(Wire(host, "h0", TEST_TYPE)) for host in star.hosts]
    sent = [frame(100, number, dst=BROADCAST) for number in range(100)]
    seen = []

    def is_in_a_line():
        wires[0].send_all(sent)
        assert wires[1].receive(100) == sent
        seen.append(100)
        return "offloaded rx " in running.out.text() and any(
            "offloaded rx 0 " not in line and " rx 0 " not in line
            for line in running.out.text().splitlines())

    look = subprocess.Popen(
        [*environment(lab), CTL, "watch", "--json", "--interval", "1",
         "--count", "1"], stdout=subprocess.PIPE, text=True)
    wait_until("the live line has them", is_in_a_line)
    shown = json.loads(look.communicate(timeout=limit(20))[0])
    ports = {port["port"]: port for port in shown["ports"]}
    assert ports["xdp:p0"]["rx_offloaded"] > 0
    assert ports["xdp:p1"]["tx_offloaded"] > 0
    assert shown["offload"]["frames"] > 0 and shown["offload"]["rules"] == 2
    n_sent = sum(seen)

    def in_the_table():
        """How many frames went by rules, once the counters of rules, which a
        worker reads from time to time, add up with the others."""
        head, *rows = ask_ctl(lab, "show", "ports").stdout.splitlines()
        assert head.split()[-4:] == ["rx", "offloaded", "tx", "offloaded"]
        (*_, rx, _, _, _, _, _, _, rx_by_rules, _), (
            *_, tx, _, _, _, _, tx_by_rules) = (
                row.replace(",", "").split() for row in rows)
        assert rx == tx
        return rx_by_rules == tx_by_rules and int(rx_by_rules) == (
            n_sent - int(rx)) and int(rx_by_rules)

    # Frames before the link of the target is up take the other way.
    n_by_rules = wait_until("the table has them", in_the_table)
    running.process.send_signal(signal.SIGINT)
    assert running.wait() == 0
    assert f"forwarded {n_sent} frames in" in running.out.text()
    assert f"{n_by_rules} of them by rules" in running.out.text()


@pytest.mark.parametrize("is_tagged", [False, True])
@pytest.mark.parametrize("mode", ["patch", "learn"])
@pytest.mark.short
def test_kernels_talk(lab, mode, is_tagged, on_vlan):
    """Their partial checksums go through user space, which finishes them."""
    kernel = Kernel(lab, mode)
    star = kernel.star
    if is_tagged:
        on_vlan(*star.hosts)
    assert talk.ping(star.hosts[0], star.address(1)) == 3
    if mode == "learn":
        kernel.wait_for("rules", 2)
    assert talk.ping(star.hosts[0], star.address(1), 20) == 20
    talk.tcp(star.hosts[0], star.hosts[1], star.address(1), 1 << 20)
    final = kernel.stop()
    assert kernel.offloaded(final) >= 40
    assert kernel.event(final, "csum_partial") > 0


def test_an_address_that_only_rules_see_is_not_forgotten(lab):
    age_s = math.ceil(limit(2))
    kernel = Kernel(lab, "learn", "--age", age_s)
    kernel.introduce()
    end_s = time.monotonic() + 1.5 * age_s
    n_rounds = 0
    while time.monotonic() < end_s:
        kernel.send(0, [1], dst=mac(1), src=mac(0))
        kernel.send(1, [0], dst=mac(0), src=mac(1))
        n_rounds += 1
        time.sleep(age_s / 8)
    busy = kernel.forwarder.next_snapshot()
    assert busy["fdb"]["aged"] == 0
    assert kernel.offloaded(busy) == 2 * n_rounds
    kernel.wait_for("rules", 0)
    assert kernel.stop()["fdb"]["aged"] == 2


def test_a_full_table_leaves_the_rest_to_user_space(lab):
    kernel = Kernel(lab, "learn", "--fdb-limit", 2)
    kernel.introduce()
    kernel.send(0, [1], 5, dst=mac(1), src=mac(8))
    final = kernel.stop()
    assert final["fdb"]["full"] == 5 and kernel.offloaded(final) == 0


def test_a_target_that_cannot_send_is_done_without(lab):
    """Its peer's GRO goes off and on again: user space, then rules."""
    kernel = Kernel(lab, "patch", "--verbose")
    kernel.send(0, [1], 10)
    kernel.set_gro(1, "off")
    assert kernel.forwarder.err.wait(
        lambda line: "no longer sends" in line, 15), kernel.forwarder.err.text()
    kernel.send(0, [1], 10)
    kernel.send(1, [0], 10)
    n_lines = kernel.forwarder.err.count()
    kernel.set_gro(1, "on")
    assert kernel.forwarder.err.wait(
        lambda line: "p1: rules can send" in line, 15, n_lines)
    kernel.send(0, [1], 10)
    final = kernel.stop()
    assert kernel.offloaded(final) == 30
    assert kernel.event(final, "no_target") == 10


def test_it_starts_without_a_target_and_prints_the_remedy(lab):
    kernel = Kernel(lab, "patch", gro="off")
    assert "ethtool -K PEER gro on" in kernel.forwarder.err.text()
    kernel.send(0, [1], 10)
    final = kernel.stop()
    assert kernel.offloaded(final) == 0
    assert kernel.event(final, "no_target") == 10


def test_a_long_frame_is_left_to_user_space(lab):
    kernel = Kernel(lab, "patch")
    kernel.star.hosts[1].ip("link", "set", "h0", "mtu", 1000)
    kernel.star.middle.ip("link", "set", "p1", "mtu", 1000)
    assert kernel.forwarder.err.wait(
        lambda line: "MTU is now 1000" in line, 15)
    kernel.forwarder.next_snapshot()
    kernel.send(0, [1], 5, size=1014)
    kernel.send(0, [], 5, size=1400)
    wait_until("they are dropped", lambda: invariants.drops(
        kernel.forwarder.next_snapshot()["ports"][1], "tx")["too_long"] == 5)
    final = kernel.stop()
    assert kernel.offloaded(final) == 5
    assert kernel.event(final, "too_long") == 5
    assert invariants.drops(final["ports"][1], "tx")["too_long"] == 5


def test_every_frame_is_counted_while_the_target_goes_up_and_down(lab):
    """Sent = arrived + lost by a name, whichever way each frame took."""
    kernel = Kernel(lab, "patch")
    done = threading.Event()

    def toggle():
        while not done.is_set():
            kernel.set_gro(1, "off")
            kernel.set_gro(1, "on")

    thread = threading.Thread(target=toggle, daemon=True)
    thread.start()
    n = 20000
    try:
        kernel.wires[0].send_all(frame(60, i, src=mac(1)) for i in range(n))
    finally:
        done.set()
        thread.join()
    final = kernel.stop()
    arrived = kernel.wires[1].receive(n, 1)
    source, sink = final["ports"]
    assert kernel.wires[1].lost() == 0
    received = invariants.total(source, "rx", "received")
    before_us = sum(source["device_drops"].values())
    tx_drops = sum(invariants.drops(sink, "tx").values())
    workers = sum(invariants.worker_drops(final).values())
    rx_drops = sum(invariants.drops(source, "rx").values())
    lost = final["offload"]["tx_drops"] + tx_drops + workers + rx_drops
    assert received + before_us >= n
    assert kernel.offloaded(final) > 0 and kernel.event(final, "no_target") > 0
    assert len(arrived) == received - lost, (len(arrived), final["offload"])
    assert len({data[14:18] for data in arrived}) == len(arrived)


def test_frames_that_a_full_ring_loses_are_counted(lab, pass_object):
    """A redirect only queues a frame; its target may have no room."""
    kernel = Kernel(lab, "patch")
    sink = kernel.star.hosts[1]
    sink.ip("link", "set", "h0", "xdpdrv", "object",
            pass_object.with_name("slow.bpf.o"), "section", "xdp")
    # A thread of its own: the sender does not wait for it.
    sink.run("sh", "-c", "echo 1 > /sys/class/net/h0/threaded")
    sent, arrived = [], []

    def lost():
        return kernel.forwarder.next_snapshot()["offload"]["tx_drops"]

    def is_full():
        sent.extend(frame(60, len(sent) + i, src=mac(1)) for i in range(2000))
        kernel.wires[0].send_all(sent[-2000:])
        return lost() > 0

    def is_known():
        arrived.extend(kernel.wires[1].receive(2000, 0.1))
        return len(arrived) + lost() == len(sent)
    wait_until("frames are lost", is_full)
    wait_until("each frame is lost or has arrived", is_known)
    assert kernel.offloaded(kernel.stop()) == len(sent)


def test_killed_it_leaves_no_rule_and_starts_again(lab):
    kernel = Kernel(lab, "patch")
    kernel.send(0, [1], 5)
    kernel.forwarder.process.send_signal(signal.SIGKILL)
    kernel.forwarder.wait()
    again = Forwarder(lab, kernel.star.middle, *kernel.star.ports,
                      options=["--offload", "on"])
    kernel.send(0, [1], 5)
    assert Kernel.offloaded(again.stop()) == 5
    assert not kernel.star.has_program("p0")


def test_a_detached_program_of_a_port_is_reported(lab):
    """Frames of that port go to the kernel's stack, those of others to it."""
    kernel = Kernel(lab, "patch", "--verbose")
    program = kernel.star.middle.link("p0")["xdp"]["prog"]["id"]
    ours, = [link["id"] for link in json.loads(kernel.star.middle.run(
        "bpftool", "--json", "link", "show").stdout)
             if link.get("prog_id") == program]
    kernel.star.middle.run("bpftool", "link", "detach", "id", ours)
    assert kernel.forwarder.err.wait(
        lambda line: "detached the XDP program" in line, 15)
    kernel.send(0, [], 3)
    kernel.send(1, [0], 3)
    final = kernel.stop()
    assert invariants.total(final["ports"][0], "rx", "received") == 0
    assert invariants.total(final["ports"][1], "rx", "received") == 3


def test_auto_prints_why_offload_is_off(lab, star):
    forwarder = Forwarder(lab, star.middle, "xdp:p0,attach=generic",
                          "xdp:p1,attach=generic",
                          options=["--offload", "auto"])
    assert "--offload auto: off: xdp:p0: no rules with generic attach" in \
        forwarder.err.text()
    assert "offload" not in forwarder.stop()


def test_a_missing_capability_is_named(lab, star):
    for host in star.hosts:
        host.run("ethtool", "-K", "h0", "gro", "on")
    Refused(lab, star.middle, "--offload", "on", *star.ports,
            wrap=["setpriv", "--bounding-set=-perfmon,-sys_admin"]).check(
                1, "capability CAP_PERFMON is missing", "cap_perfmon",
                "AmbientCapabilities= of its unit")


@pytest.mark.parametrize("unit", ["mr-l2fwd@.service", "mr-nat@.service"])
def test_the_units_grant_what_offload_needs(lab, star, unit):
    for host in star.hosts:
        host.run("ethtool", "-K", "h0", "gro", "on")
    keys = dict(line.split("=", 1) for line in (
        UNITS / unit).read_text().splitlines() if line.startswith("Cap") or
        line.startswith("Amb"))
    granted = keys["CapabilityBoundingSet"]
    assert keys["AmbientCapabilities"] == granted
    names = ["+" + name[len("CAP_"):].lower() for name in granted.split()]
    Forwarder(lab, star.middle, "--offload", "on", *star.ports,
              wrap=["setpriv", "--bounding-set=-all," + ",".join(names),
                    "--inh-caps=-all"]).stop()


def test_a_port_in_another_namespace_is_left_alone(lab):
    """Its program stays there; no frame may come from there any more."""
    kernel = Kernel(lab, "patch")
    kernel.send(0, [1], 10)
    other = lab.namespace("x")
    kernel.star.middle.ip("link", "set", "p0", "netns", other.name)
    assert kernel.forwarder.err.wait(
        lambda line: "device is gone" in line, 15)
    other.ip("link", "set", "p0", "up")
    kernel.send(0, [], 10)
    assert not kernel.wires[1].receive(1, 0.2)
    assert "detached" not in kernel.forwarder.err.text()
    assert kernel.offloaded(kernel.stop(pending=True)) == 10
