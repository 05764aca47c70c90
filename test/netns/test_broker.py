# SPDX-License-Identifier: BSD-3-Clause
"""Ports for programs without privileges, by mr-brokerd."""
import os
import re
import signal
import socket
from pathlib import Path

import pytest
from lib import broker as brokers
from lib import talk
from lib.broker import (POWERLESS, Broker, RawClient, activated, flags,
                        forwarder, memfd, message, open_request, rule)
from lib.forwarder import Forwarder, Refused
from lib.namespaces import wait_until
from lib.probe import opened
from lib.process import Process
from lib.wire import Wire, frame, number_of

SOL_XDP, XDP_TX_RING, AF_XDP = 283, 3, 44


def refused(lab, star, broker, spec, *options):
    return Refused(lab, star.middle, "--mode", "drop", *options, spec,
                   wrap=brokers.unprivileged(), program=broker.forwarder())


@pytest.mark.parametrize("options", ["", ",via=broker"])
@pytest.mark.short
def test_a_user_without_capabilities_forwards(lab, star, options):
    broker = Broker(lab, star.middle)
    before = flags(star)
    running = forwarder(lab, star, broker, options, ["--mtu", 1400])
    status = (lambda key: next(
        line.split()[1] for line in open(f"/proc/{running.pid}/status")
        if line.startswith(key)))
    assert int(status("CapEff:"), 16) == int(status("CapPrm:"), 16) == 0
    assert int(status("Uid:")) == brokers.NOBODY
    assert "by the broker at" in running.err.text()
    assert star.middle.link("p0")["mtu"] == 1400
    assert talk.udp(*star.hosts, star.address(1), n_bytes=1000) == 20
    running.stop()
    broker.says(" 0 KiB left")
    assert flags(star) == before


def test_the_broker_keeps_only_four_capabilities(lab, star):
    """Four capabilities, and system calls filtered."""
    broker = Broker(lab, star.middle)
    status = dict(line.split(":\t", 1) for line in
                  open(f"/proc/{broker.pid}/status") if ":\t" in line)
    wanted = 1 << 12 | 1 << 13 | 1 << 14 | 1 << 39
    for key in ("CapEff", "CapPrm", "CapBnd"):
        assert int(status[key], 16) == wanted, key
    assert int(status["CapInh"], 16) == int(status["CapAmb"], 16) == 0
    assert int(status["NoNewPrivs"]) == 1
    if int(status["Seccomp"]) != 2:
        pytest.skip("built without libseccomp")


@pytest.mark.short
def test_a_killed_broker_loses_nothing(lab, star):
    """Frames before, while and after it is killed: all arrive, in order."""
    broker = Broker(lab, star.middle)
    running = forwarder(lab, star, broker, "", ["--ring", 1024])
    wires = [lab.closing(Wire(host, "h0")) for host in star.hosts]
    n = 4000
    got = []
    for first in range(0, n, 100):
        wires[0].send_all(frame(60, first + i) for i in range(100))
        if first == n // 2:
            broker.process.kill()
        got += map(number_of, wires[1].receive(100))
    assert broker.wait() == -9
    assert got == list(range(n))
    running.stop()
    assert not any(star.has_program(port) for port in star.ports)


def test_after_the_broker_was_killed_its_settings_are_the_client_s(lab, star):
    """The record is undone when the client has ended, and not before."""
    broker = Broker(lab, star.middle)
    running = forwarder(lab, star, broker, "", ["--mtu", 1400])
    broker.kill()
    again = Broker(lab, star.middle, folder=broker.folder)
    assert "in use" in refused(lab, star, again, again.spec("p0")).text or \
        "another" in refused(lab, star, again, again.spec("p0")).text
    assert star.middle.link("p0")["mtu"] == 1400
    running.stop()
    forwarder(lab, star, again).stop()
    assert star.middle.link("p0")["mtu"] == 1500


def test_a_killed_client_releases_all(lab, star):
    broker = Broker(lab, star.middle)
    before = flags(star)
    killed = forwarder(lab, star, broker, "", ["--mtu", 1400])
    lab.checks.remove(killed.check_end)
    assert all(map(star.has_program, star.ports))
    killed.kill()
    wait_until("restored", lambda: flags(star) == before)
    broker.says(" 0 KiB left")
    # Program, queues and memory: all can be had again, also without broker.
    forwarder(lab, star, broker).stop()
    Forwarder(lab, star.middle, *star.ports, options=brokers.SMALL).stop()


CONTAINER = """
set -e
mount -t tmpfs none /run
mkdir /run/millrace
touch /run/millrace/broker.sock
mount --bind {socket} /run/millrace/broker.sock
ip link >&2
ip link add p0 index {ifindex} type veth peer name x index 99
exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
"""


def test_a_container_needs_only_the_socket(lab, star):
    """Namespaces of its own, none of the interfaces, no capability. What it has
    by the name and index of its port is another interface."""
    broker = Broker(lab, star.middle)
    before = flags(star)
    container = CONTAINER.format(socket=broker.socket,
                                 ifindex=star.middle.link("p0")["ifindex"])
    wrap = ["setpriv", f"--reuid={brokers.NOBODY}", "--clear-groups", "--",
            "unshare", "--user", "--map-root-user", "--net", "--mount",
            "--ipc", "sh", "-c", container, "sh"]
    probe = Process(lab, star.middle, ["unshare", "--user", "true"])
    if probe.wait() != 0:
        pytest.skip("no user namespaces here")
    running = Forwarder(lab, star.middle, *[f"xdp:{p}" for p in star.ports],
                        options=brokers.SMALL, wrap=wrap,
                        program=broker.forwarder())
    assert "h0" not in running.err.text().split("port ")[0]
    assert talk.udp(*star.hosts, star.address(1)) == 20
    # It sees the link of its own port, and is told of changes.
    star.middle.ip("link", "set", "p0", "mtu", 1300)
    running.says("MTU is now 1300")
    star.middle.ip("link", "set", "p0", "mtu", 1500)
    stats = running.stop()["ports"][0]["device_stats"]
    assert stats["rx_packets"] > 0 and "peer_ifindex" not in stats
    wait_until("restored", lambda: flags(star) == before)


def test_a_moved_interface_of_a_client_is_left_without_a_program(lab, star):
    running = brokers.forwarder(lab, star, Broker(lab, star.middle))
    other = lab.namespace("x")
    star.middle.ip("link", "set", "p0", "netns", other.name)
    running.says("xdp:p0: the device is gone")
    assert "prog" not in other.link("p0").get("xdp", {})
    running.stop(pending=True)


REFUSALS = {
    "user": ({"user": 12345}, "", "no rule of the broker allows user 65534"),
    "interface": ({"interface": "p1"}, "", "no rule"),
    "memory": ({"memory": "1M"}, "", r"rule allows 1048576"),
    "queues": ({"queues": "1-3"}, "", "allows queues 1 to 3, not 0 to 0"),
    "force": ({}, ",force", "does not allow 'force'"),
    "settings": ({"settings": "no"}, ",mtu=1400",
                 "does not allow 'mtu': it needs 'settings: yes', or omit"),
    "generic": ({"filter": "not vlan"}, ",attach=generic",
                "cannot see VLAN tags outside"),
    "program": ({}, ",via=broker,prog=x.o", "omit 'prog'"),
}


@pytest.mark.parametrize("changes, options, text", REFUSALS.values(),
                         ids=REFUSALS.keys())
@pytest.mark.short
def test_a_rule_refuses(lab, star, changes, options, text):
    broker = Broker(lab, star.middle, rule(**changes))
    before = flags(star)
    got = refused(lab, star, broker, broker.spec("p0", options),
                  "--promisc", "off")
    got.check(got.status, text)
    assert got.status in (1, 2)
    assert flags(star) == before


def test_the_error_names_a_setting_that_the_program_added(lab, star):
    """mr-l2fwd asks for promiscuous mode, unless told not to."""
    broker = Broker(lab, star.middle, rule(settings="no"))
    Refused(lab, star.middle, broker.spec("p0"), "null:",
            wrap=brokers.unprivileged(), program=broker.forwarder()).check(
                1, "does not allow 'promisc'", "--promisc off")


def test_memory_is_counted_for_all_ports_of_a_user(lab, star):
    """Two ports of one process, and as much is free again after it."""
    broker = Broker(lab, star.middle, rule(memory="10M"))
    text = refused(lab, star, broker, broker.spec("p0"), "--pool-pages",
                   16384).text
    assert "rule allows 10485760, of which 10485760 are left" in text
    running = forwarder(lab, star, broker)
    line = broker.says("process").rsplit(":", 1)[1]
    kib = int(line.split()[0])
    assert 0 < kib <= 5120
    running.stop()
    broker.says(" 0 KiB left")


def test_without_transmit_no_frame_leaves(lab, star):
    """The socket comes bound and without a tx ring, and cannot get one."""
    broker = Broker(lab, star.middle, rule(transmit="no"))
    # mr-l2fwd needs both directions; receiving alone works.
    receiver = Forwarder(lab, star.middle, "--mode", "drop",
                         broker.spec("p0"), options=brokers.SMALL,
                         wrap=brokers.unprivileged(),
                         program=broker.forwarder())
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    wire.send_all(frame(60, i) for i in range(10))
    wait_until("10 frames", lambda: receiver.next_snapshot()["ports"][0][
        "queues"][0]["rx"]["received"] >= 10)
    receiver.stop()
    broker.process.terminate()
    broker.wait()

    broker = Broker(lab, star.middle, "rules:\n  - user: 0\n    interface: p0"
                    "\n    memory: 64M\n", folder=broker.folder)
    fd = memfd()
    with RawClient(broker) as client:
        err, n_sockets, reason, fds = client.ask(open_request(), [fd])
        assert (err, n_sockets) == (0, 1), reason
        passed = socket.socket(AF_XDP, socket.SOCK_RAW, 0, fds[0])
        with pytest.raises(OSError):
            passed.setsockopt(SOL_XDP, XDP_TX_RING, 64)
        passed.close()
        for other in fds[1:]:
            os.close(other)
    os.close(fd)


def test_a_rule_s_filter_holds_with_any_filter_of_the_client(lab, star):
    broker = Broker(lab, star.middle, rule(filter="ether proto 0x88b5 or udp"))
    for options in ("", ",filter=ether proto 0x88b5 or arp"):
        receiver = Forwarder(lab, star.middle, "--mode", "drop",
                             broker.spec("p0", options),
                             options=brokers.SMALL,
                             wrap=brokers.unprivileged(),
                             program=broker.forwarder())
        wire = lab.closing(Wire(star.hosts[0], "h0"))
        arp = frame(60)[:12] + b"\x08\x06" + bytes(46)
        wire.send_all([frame(60), arp] * 10)
        wait_until("all counted", lambda: receiver.next_snapshot()["ports"][
            0]["queues"][0]["rx"]["received"] >= 20)
        rx = receiver.stop()["ports"][0]["queues"][0]["rx"]
        assert rx["delivered"] == 10
        assert rx["passed_to_kernel"] == rx["received"] - 10


@pytest.mark.parametrize(("text", "options", "n_taken"), [
    ("not vlan", "", 0), ("vlan 5", "", 10), ("vlan 5", ",filter=vlan", 10),
    (None, ",filter=udp", 0)])
def test_a_rule_s_filter_sees_tags_outside_the_frame(lab, star, on_vlan, text,
                                                     options, n_taken):
    broker = Broker(lab, star.middle, rule(filter=text))
    on_vlan(star.hosts[0])
    receiver = Forwarder(lab, star.middle, "--mode", "drop",
                         broker.spec("p0", options), options=brokers.SMALL,
                         wrap=brokers.unprivileged(),
                         program=broker.forwarder())
    assert "VLAN tags" not in receiver.err.text()
    lab.closing(Wire(star.hosts[0], "h0")).send_all([frame(60)] * 10)
    wait_until("all counted", lambda: receiver.next_snapshot()["ports"][0][
        "queues"][0]["rx"]["received"] >= 10)
    rx = receiver.stop()["ports"][0]["queues"][0]["rx"]
    assert (rx["delivered"], rx["passed_to_kernel"]) == (n_taken, 10 - n_taken)


def test_settings_of_an_open_port(lab, star):
    """By the broker; without it, one line, and the port goes on."""
    broker = Broker(lab, star.middle, rule(user=0))
    probe = opened(lab, star.middle, broker.spec("p0"), wrap=POWERLESS)
    probe.do("promisc", 0, 1)
    assert "PROMISC" in star.middle.link("p0")["flags"]
    probe.do("mtu", 0, 1400)
    assert star.middle.link("p0")["mtu"] == 1400
    assert "not supported" in probe.refused("open-kernel", 0)
    broker.kill()
    reason = probe.refused("mtu", 0, 1300)
    assert "the broker does not answer" in reason
    assert star.middle.link("p0")["mtu"] == 1400
    probe.close()


def test_an_open_port_gets_another_filter(lab, star):
    """Within the rule's, and counted where the first one counted."""
    ours, arp, other = (frame(60)[:12] + proto + bytes(46)
                        for proto in (b"\x88\xb5", b"\x08\x06", b"\x12\x34"))
    broker = Broker(lab, star.middle,
                    rule(user=0, filter="ether proto 0x88b5 or arp"))
    before = flags(star)
    probe = opened(lab, star.middle,
                   broker.spec("p0", ",ethertype=0x88b5"),
                   wrap=POWERLESS)
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    for text, wanted in ((None, ours), ("arp", arp), ("greater 0", None),
                         ("ether proto 0x88b5", ours)):
        if text is not None:
            probe.do("take", 0, text)
        rx = probe.stats()["queues"][0]["rx"]
        wire.send_all([ours, arp, other] * 5)
        n = 5 if wanted else 10
        assert probe.do("hold", 0, n, 10000)["n"] == n
        probe.do("release")
        now = probe.stats()["queues"][0]["rx"]
        wait_until("all counted", lambda: probe.stats()["queues"][0]["rx"][
            "received"] >= rx["received"] + 15)
        assert now["delivered"] == rx["delivered"] + n
    probe.refused("take", 0, "no such word")  # and nothing changes
    n_received = probe.stats()["queues"][0]["rx"]["delivered"]
    wire.send_all([ours, arp])
    assert probe.do("hold", 0, 1, 10000)["n"] == 1
    probe.do("release")
    assert probe.stats()["queues"][0]["rx"]["delivered"] == n_received + 1
    broker.kill()
    assert "does not answer" in probe.refused("take", 0, "arp")
    probe.close()
    wait_until("restored", lambda: flags(star) == before)


QUEUES = [("rss", "rss", 0), ("steering", "steer", 0, 0, 0, 17, 53, 65535),
          ("steering", "unsteer", 0, 5)]


@pytest.mark.parametrize("key, words", [(q[0], q[1:]) for q in QUEUES])
def test_queues_are_changed_if_the_rule_says_so(lab, star, key, words):
    """What veth then cannot, the broker reports as the driver does."""
    alone = opened(lab, star.middle, "xdp:p0")
    wanted = alone.refused(*words)
    alone.close()
    broker = Broker(lab, star.middle, rule(user=0))
    probe = opened(lab, star.middle, broker.spec("p0"), wrap=POWERLESS)
    assert f"{key}: yes" in probe.refused(*words)
    probe.close()
    broker.kill()
    broker = Broker(lab, star.middle, rule(user=0, **{key: "yes"}),
                    folder=broker.folder)
    probe = opened(lab, star.middle, broker.spec("p0"), wrap=POWERLESS)
    assert probe.refused(*words) == wanted
    probe.close()


def test_other_names_of_an_interface_match_no_rule(lab, star):
    """Those that the kernel takes for the same one (ip link property)."""
    broker = Broker(lab, star.middle, "rules:\n"
                    "  - {user: 65534, interface: p0, memory: 1M}\n"
                    "  - {user: 65534, interface: '*', memory: 64M}\n")
    star.middle.ip("link", "property", "add", "dev", "p0", "altname", "other")
    assert "called p0" in refused(lab, star, broker, broker.spec("other")).text


def test_without_files_for_the_answer_one_line_says_so(lab, star):
    broker = Broker(lab, star.middle)
    for n_files in range(6, 20):
        got = Refused(lab, star.middle, "--mode", "drop", broker.spec("p0"),
                      *brokers.SMALL, wrap=[
                          "prlimit", f"--nofile={n_files}:{n_files}",
                          *brokers.unprivileged()],
                      program=broker.forwarder())
        if "what the broker sends" in got.text:
            got.check(1, "ulimit -n")
            return
    pytest.fail("no number of files is too small for the answer alone")


def test_rules_are_read_again(lab, star):
    """On SIGHUP; wrong ones are named by line, and the old ones stay."""
    broker = Broker(lab, star.middle, rule(interface="p9"))
    rules = broker.folder / "rules.yaml"
    rules.write_text("rules:\n  - user: 0\n    memory: lots\n")
    broker.process.send_signal(1)
    assert "rules.yaml:3: memory: 'lots'" in broker.says("keeping the old")
    assert "no rule" in refused(lab, star, broker, broker.spec("p0")).text
    rules.write_text(rule())
    broker.process.send_signal(1)
    wait_until("the new rules", lambda: "no rule" not in refused(
        lab, star, broker, broker.spec("p7")).text)
    forwarder(lab, star, broker).stop()


def test_open_ports_follow_the_new_rules(lab, star):
    """Each request is checked by them; the old ones no longer exist."""
    broker = Broker(lab, star.middle,
                    rule(user=0, filter="ether proto 0x88b5"))
    rules = broker.folder / "rules.yaml"
    probe = opened(lab, star.middle, broker.spec("p0"), wrap=POWERLESS)
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    rules.write_text(rule(user=0, filter="arp", settings="no"))
    broker.process.send_signal(signal.SIGHUP)
    wait_until("the new rules", lambda: not probe.ask(
        "mtu", 0, 1400)["ok"])
    probe.do("take", 0, "greater 0")
    wire.send_all([frame(60), frame(60)[:12] + b"\x08\x06" + bytes(46)] * 5)
    assert probe.do("hold", 0, 5, 10000)["n"] == 5
    probe.do("release")
    wait_until("all counted", lambda: probe.stats()["queues"][0]["rx"][
        "passed_to_kernel"] >= 5)
    assert probe.stats()["queues"][0]["rx"]["delivered"] == 5
    rules.write_text(rule(user=1))
    broker.process.send_signal(signal.SIGHUP)
    wait_until("no rule", lambda: "no rule" in probe.ask(
        "take", 0, "arp").get("reason", ""))
    probe.close()


def test_rules_that_are_wrong_when_an_open_port_needs_them(lab, star):
    """They may have been edited since they were read: the administrator learns
    what is wrong, the client does not."""
    broker = Broker(lab, star.middle, rule(user=0))
    rules = broker.folder / "rules.yaml"
    probe = opened(lab, star.middle, broker.spec("p0"), wrap=POWERLESS)
    rules.write_text(rule(user=0, interface="p0"))
    broker.process.send_signal(signal.SIGHUP)

    find_p1 = message(brokers.FIND, b"p1".ljust(16, b"\0"))

    def has_p1():
        with RawClient(broker) as client:
            return client.ask(find_p1)[0] == 0
    wait_until("the new rules", lambda: not has_p1())
    rules.write_text("rules:\n  - user: 0\n    memory: secret\n")
    reason = probe.refused("mtu", 0, 1400)
    assert "cannot read its rules" in reason and "secret" not in reason
    assert "rules.yaml:3" in broker.says("'secret'")
    rules.write_text(rule(user=0))
    assert probe.ask("mtu", 0, 1400)["ok"]
    probe.close()


def test_the_rule_of_a_renamed_interface_is_that_of_its_name(lab, star):
    broker = Broker(lab, star.middle, rule(user=0, interface="[p0, other]"))
    probe = opened(lab, star.middle, broker.spec("p0"), wrap=POWERLESS)
    star.middle.ip("link", "set", "p0", "down")
    star.middle.ip("link", "set", "p0", "name", "other")
    probe.do("mtu", 0, 1400)
    assert star.middle.link("other")["mtu"] == 1400
    star.middle.ip("link", "set", "other", "name", "third")
    assert "xdp:third: no rule" in probe.refused("mtu", 0, 1300)
    probe.close()


def test_rules_that_others_can_write_are_refused(lab, star):
    """At start and when they are read again."""
    broker = Broker(lab, star.middle)
    rules = broker.folder / "rules.yaml"
    for change in (lambda: rules.chmod(0o664), lambda: rules.chmod(0o646),
                   lambda: (rules.chmod(0o644), os.chown(rules, 1, 0))):
        change()
        broker.process.send_signal(signal.SIGHUP)
        assert "others than root can write it" in broker.says("keeping the old")
        second = Process(lab, star.middle, [
            brokers.BROKERD, "--rules", rules, "--check"])
        assert second.wait() == 2
        assert "chmod go-w" in second.err.text()


def test_the_documented_rules_are_accepted(lab, star, tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "containers.md").read_text()
    sample = next(block for block in re.findall(r"```yaml\n(.*?)```", text,
                                                re.DOTALL)
                  if block.startswith("rules:"))
    rules = tmp_path / "rules.yaml"
    rules.write_text(sample.replace("millrace-clients", "root"))
    rules.chmod(0o644)
    check = Process(lab, star.middle, [
        brokers.BROKERD, "--rules", rules, "--check"])
    assert check.wait() == 0, check.err.text()
    assert check.out.text() == "the rules are good"


def test_no_broker_and_a_second_one(lab, star, tmp_path):
    nowhere = f"xdp:p0,via=broker,broker={tmp_path}/none"
    Refused(lab, star.middle, "--mode", "drop", nowhere).check(
        1, "no broker at", "start mr-brokerd")
    broker = Broker(lab, star.middle)
    second = Process(lab, star.middle, [
        brokers.BROKERD, "--rules", broker.folder / "rules.yaml", "--socket",
        broker.socket])
    assert second.wait() == 1
    assert "another process serves it" in second.err.text()


def test_systemd_s_socket_is_used(lab, star, tmp_path):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(tmp_path / "sock"))
    listener.listen()
    activated(lab, star, tmp_path, listener, rule(user=0))
    probe = opened(lab, star.middle, f"xdp:p0,broker={tmp_path}/sock",
                   wrap=POWERLESS)
    probe.close()
    listener.close()
