# SPDX-License-Identifier: BSD-3-Clause
"""mr-nat --offload: sessions that the kernel forwards by rules."""
import socket
import time

import pytest
from lib import invariants, nat, talk
from lib.namespaces import wait_until
from lib.nat import Echo, House, Nat, Talker


@pytest.fixture
def house(lab):
    """Its hosts send whole checksums, and receive what is redirected."""
    made = House(lab)
    for namespace, name in ((made.a, "h0"), (made.b, "h0"),
                            (made.server, "h0")):
        namespace.run("ethtool", "-K", name, "tx", "off", "tso", "off",
                      "gso", "off")
    for namespace, name in ((made.switch, "u"), (made.server, "h0")):
        namespace.run("ethtool", "-K", name, "gro", "on")
    return made


@pytest.fixture
def echo(lab, house):
    return lab.closing(Echo(house.server))


def offloaded(snapshot):
    return sum(invariants.total(port, "rx", "offloaded")
               for port in snapshot["ports"])


def wait_for_rules(translator, n):
    wait_until(f"{n} rules", lambda:
               translator.stats()["offload"]["rules"] == n)


def test_udp_is_forwarded_in_the_kernel(lab, house, echo):
    translator = Nat(house, "--offload", "on")
    talker = lab.closing(Talker(house.a))
    seen = {talker.ask() for _ in range(5)}
    wait_for_rules(translator, 1)
    seen |= {talker.ask() for _ in range(100)}
    assert len(seen) == 1
    session, = translator.sessions()
    assert session["out"] == session["in"] == 105
    final = translator.stop()
    assert 2 * 90 < offloaded(final) <= 2 * 105
    assert final["offload"]["attempted"] == offloaded(final)
    assert final["offload"]["tx_drops"] == 0


def test_tcp_is_forwarded_in_the_kernel(lab, house):
    translator = Nat(house, "--offload", "on")
    sender = nat.tcp_between(house.a, house.server, nat.SERVER, 8080, 8080,
                             16 << 20)
    assert sender[0] == nat.OUTSIDE
    session, = translator.sessions("proto=tcp")
    assert session["state"] == "closing"
    wait_for_rules(translator, 0)
    final = translator.stop()
    assert offloaded(final) > 10000
