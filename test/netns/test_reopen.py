# SPDX-License-Identifier: BSD-3-Clause
"""A device disappears and returns, and its port is opened again."""
import json

import pytest
from lib import talk
from lib.forwarder import Bridge, Forwarder
from lib.namespaces import wait_until
from lib.nat import SERVER, House, Nat
from lib.probe import opened
from lib.wire import TEST_TYPE, Wire, frame

NEVER_S = 30


def delete(star, i=0):
    star.middle.ip("link", "delete", star.ports[i])


def create(lab, star, i=0):
    lab.veth(star.hosts[i], "h0", star.middle, star.ports[i])


def wait_for(probe, event):
    wait_until(event, lambda: event in probe.do("link", 0)["changed"])


def test_a_port_is_opened_again_and_its_counters_go_on(lab, star):
    probe = opened(lab, star.middle, "xdp:p0")
    probe.do("send", 0, 0, 3, 100)
    probe.flush()
    before = probe.stats()["queues"][0]["tx"]["accepted"]
    assert before == 3
    delete(star)
    wait_for(probe, "gone")
    # Until there is a device again, nothing changes.
    assert "no such network interface" in probe.refused("reopen", 0)
    create(lab, star)
    wait_for(probe, "returned")
    probe.do("reopen", 0)
    answer = probe.do("link", 0)
    assert not answer["gone"] and not answer["returned"]
    wire = lab.closing(Wire(star.hosts[0], "h0", TEST_TYPE))
    probe.do("send", 0, 0, 2, 100)
    assert len(wire.receive(2)) == 2
    assert probe.stats()["queues"][0]["tx"]["accepted"] == 5
    wire.send(frame(100))
    assert probe.do("hold", 0, 1, 5000)["n"] == 1
    probe.do("release")


def test_a_port_that_cannot_be_opened_again_has_no_device(lab, star):
    probe = opened(lab, star.middle, "xdp:p0")
    delete(star)
    wait_for(probe, "gone")
    create(lab, star)
    other = opened(lab, star.middle, "xdp:p0")
    assert "another program that uses Millrace" in probe.refused("reopen", 0)
    info = probe.do("info", 0)
    assert info["mode"] == "absent" and info["rxqs"] == info["txqs"] == 1
    assert probe.do("link", 0)["gone"]
    probe.do("send", 0, 0, 2, 100)
    tx = probe.stats()["queues"][0]["tx"]
    assert tx["accepted"] == tx["drops"]["port_gone"] == 2
    assert probe.do("hold", 0, 1, 0)["n"] == 0
    other.close()
    probe.do("reopen", 0)
    assert not probe.do("link", 0)["gone"]
    assert probe.stats()["queues"][0]["tx"]["drops"]["port_gone"] == 2


def test_a_moved_interface_is_left_without_a_program(lab, star):
    probe = opened(lab, star.middle, "xdp:p0")
    other = lab.namespace("x")
    star.middle.ip("link", "set", "p0", "netns", other.name)
    wait_for(probe, "gone")
    assert "prog" not in other.link("p0").get("xdp", {})
    other.ip("link", "set", "p0", "up")
    wire = lab.closing(Wire(other, "p0", TEST_TYPE))
    far = lab.closing(Wire(star.hosts[0], "h0", TEST_TYPE))
    far.send(frame(100))
    assert len(wire.receive(1)) == 1


def lines(forwarder):
    return [line for line in forwarder.err.text().splitlines()
            if line.startswith("mr-l2fwd: xdp:p0: ")]


@pytest.mark.short
def test_a_forwarder_opens_a_returned_port_again(lab, star):
    bridge = Bridge(lab, star)
    bridge.exchange(20)
    delete(star)
    assert bridge.err.wait(lambda line: line ==
                           "mr-l2fwd: xdp:p0: the device is gone", 15)
    create(lab, star)
    assert bridge.err.wait(
        lambda line: line.startswith("mr-l2fwd: xdp:p0: opened again"), 15)
    bridge.wires[0] = lab.closing(Wire(star.hosts[0], "h0", TEST_TYPE))
    bridge.exchange(20)
    final = bridge.stop(pending=True)
    assert [port["reopened"] for port in final["ports"]] == [1, 0]
    assert not final["ports"][0]["link"]["gone"]
    # One line each way; the link may be said to come up.
    said = [line for line in lines(bridge) if "link up" not in line[-8:]]
    assert len(said) <= 2, said


def test_rules_of_a_port_that_went_end_silently(lab, star):
    bridge = Bridge(lab, star, "--offload", "on")
    delete(star)
    assert bridge.err.wait(lambda line: line ==
                           "mr-l2fwd: xdp:p0: the device is gone", 15)
    bridge.stop(pending=True)
    assert "the program for rules stays" not in bridge.err.text()


def test_a_device_that_cannot_be_reopened_is_reported_once(lab, star):
    delete(star)
    lab.veth(star.hosts[0], "h0", star.middle, "p0", queues=2)
    forwarder = Forwarder(lab, star.middle, "p0,queues=2", "p1")
    delete(star)
    create(lab, star)  # with one channel
    forwarder.says("xdp:p0: cannot be opened again yet: xdp:p0: queues=2: ")
    delete(star)
    lab.veth(star.hosts[0], "h0", star.middle, "p0", queues=2)
    forwarder.says("xdp:p0: opened again")
    assert forwarder.err.text().count("cannot be opened again") == 1
    assert forwarder.stop(pending=True)["ports"][0]["reopened"] == 1


def detach(star, port):
    """As somebody else would: 'bpftool link detach'."""
    program = star.middle.link(port)["xdp"]["prog"]["id"]
    links = json.loads(star.middle.run("bpftool", "--json", "link",
                                       "show").stdout)
    ours, = [link["id"] for link in links if link.get("prog_id") == program]
    star.middle.run("bpftool", "link", "detach", "id", ours)


def test_a_detached_program_is_reported_and_its_losses_counted(lab, star):
    probe = opened(lab, star.middle, "xdp:p0")
    wire = lab.closing(Wire(star.hosts[0], "h0", TEST_TYPE))
    detach(star, "p0")
    wait_for(probe, "detached")
    assert probe.do("link", 0)["detached"]
    wire.send_all([frame(100, i) for i in range(5)])
    wait_until("the loss to be counted", lambda: probe.stats()[
        "device_drops"]["program_detached"] == 5)
    probe.do("reopen", 0)
    assert not probe.do("link", 0)["detached"]
    wire.send(frame(100))
    assert probe.do("hold", 0, 1, 5000)["n"] == 1
    assert probe.stats()["device_drops"]["program_detached"] == 5
    probe.do("release")


def test_a_forwarder_attaches_its_program_again(lab, star):
    bridge = Bridge(lab, star)
    bridge.exchange(5)
    detach(star, "p0")
    assert bridge.err.wait(
        lambda line: line ==
        "mr-l2fwd: xdp:p0: another program took its frames", 15)
    assert bridge.err.wait(
        lambda line: line == "mr-l2fwd: xdp:p0: opened again, link up", 15)
    bridge.exchange(5)
    assert bridge.stop()["ports"][0]["reopened"] == 1


@pytest.mark.parametrize("how, text", [
    (detach, "another program took its frames"),
    (lambda star, port: star.middle.ip("link", "delete", port),
     "the device is gone"),
    (lambda star, port: star.middle.ip("link", "set", port, "down"),
     "the link is down"),
])
def test_exit_on_port_loss_names_the_kind_of_loss(lab, star, how, text):
    ends = Forwarder(lab, star.middle, *star.ports,
                     options=["--exit-on-port-loss"])
    how(star, "p0")
    assert ends.wait(20) == 1
    assert (f"mr-l2fwd: xdp:p0: {text}: stopping ("
            "--exit-on-port-loss") in ends.err.text()


def test_a_port_that_is_down_from_the_start_is_lost(lab, star):
    star.middle.ip("link", "set", "p0", "down")
    star.hosts[0].ip("link", "set", "h0", "down")
    ends = Forwarder(lab, star.middle, *star.ports,
                     options=["--exit-on-port-loss"])
    assert "mr-l2fwd: xdp:p0: link down" in ends.err.text() or \
        ends.err.wait(lambda line: line.endswith("p0: link down"), 5)
    assert ends.wait(NEVER_S) == 1
    assert "the link is down: stopping" in ends.err.text()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_translator_opens_its_port_again(lab, workers):
    house = House(lab)
    nat = Nat(house, "--workers", workers)
    assert talk.ping(house.a, SERVER) == 3
    house.middle.ip("link", "delete", "p1")
    nat.says("xdp:p1: the device is gone")
    lab.veth(house.server, "h0", house.middle, "p1")
    house.server.ip("address", "add", f"{SERVER}/24", "dev", "h0")
    nat.says("xdp:p1: opened again")
    # The new interfaces have other MAC addresses.
    wait_until("an answer", lambda: house.a.run(
        "ping", "-c", 1, "-W", 1, SERVER, check=False).returncode == 0)
    assert talk.ping(house.b, SERVER) == 3
    assert nat.stop()["ports"][1]["reopened"] == 1
