# SPDX-License-Identifier: BSD-3-Clause
"""Events of an interface, as the port that is open on it reports them."""
import pytest

from lib.namespaces import Star, wait_until
from lib.probe import opened

MOVED = "0a:00:00:00:00:07"


def wait_for(probe, *events):
    """Wait until the port has reported all of these events. Returns the last answer."""
    told = set()

    def has_told():
        answer = probe.do("link", 0)
        told.update(answer["changed"])
        return answer if told >= set(events) else None

    return wait_until(f"events {events}, told {told}", has_told)


@pytest.fixture
def probe(lab, star):
    probe = opened(lab, star.middle, "xdp:p0")
    probe.do("link", 0)
    return probe


def test_a_new_mac_and_name_are_reported(probe, star):
    star.middle.ip("link", "set", "p0", "address", MOVED)
    assert probe.do("wake", 0, 5000)
    wait_for(probe, "mac")
    assert bytes(probe.do("info", 0)["mac"]).hex(":") == MOVED
    star.middle.ip("link", "set", "p0", "down")
    star.middle.ip("link", "set", "p0", "name", "other")
    star.middle.ip("link", "set", "other", "up")
    wait_for(probe, "link", "name")
    info = probe.do("info", 0)
    assert info["netdev"] == "other" and info["name"] == "xdp:p0"


def test_changes_by_the_program_are_not_reported(probe):
    probe.do("mac", 0, MOVED)
    assert bytes(probe.do("info", 0)["mac"]).hex(":") == MOVED
    probe.do("mtu", 0, 1400)
    assert probe.do("link", 0)["changed"] == []


@pytest.mark.short
def test_new_channels_are_reported_at_once(lab):
    star = Star(lab, queues=4)
    star.hosts[0].run("ethtool", "-L", "h0", "rx", 1, "tx", 1)
    star.middle.run("ethtool", "-L", "p0", "rx", 1, "tx", 1)
    probe = opened(lab, star.middle, "xdp:p0")
    assert probe.do("info", 0)["channels"] == 1
    # The first one looks, events or not.
    assert probe.do("link", 0)["changed"] == []
    star.middle.run("ethtool", "-L", "p0", "rx", 4)
    assert probe.do("wake", 0, 5000)
    assert probe.do("link", 0)["changed"] == ["queues"]
    assert probe.do("info", 0)["channels"] == 4


@pytest.mark.short
def test_a_deleted_interface_and_its_return_are_reported(probe, star):
    star.middle.ip("link", "delete", "p0")
    answer = wait_for(probe, "gone", "link")
    assert answer["gone"] and not answer["up"] and not answer["returned"]
    star.middle.ip("link", "add", "p0", "type", "veth", "peer", "h9")
    answer = wait_for(probe, "returned")
    assert answer["gone"] and answer["returned"]
    star.middle.ip("link", "delete", "p0")
    wait_until("it to go again", lambda: not probe.do("link", 0)["returned"])


def test_a_moved_interface_and_its_return_are_reported(probe, star):
    star.middle.ip("link", "set", "p0", "netns", star.hosts[1].name)
    wait_for(probe, "gone")
    star.hosts[1].ip("link", "set", "p0", "netns", star.middle.name)
    # Its number may be the same: the port's sockets are dead all the same.
    answer = wait_for(probe, "returned")
    assert answer["gone"] and not answer["up"]
