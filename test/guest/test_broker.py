# SPDX-License-Identifier: BSD-3-Clause
"""The broker on an old kernel: Linux 6.1, which maps no rings of a socket that
is bound, and checks programs more strictly without CAP_PERFMON."""
import pytest

from conftest import boot
from guest import Nic
from probe import opened
from traffic import WINDOW, Traffic, own_flow

XDP = "xdp:nic0,ring=256,promisc,via=broker,broker=/tmp/b/sock"
N_FRAMES = 500
RULES = ("rules: [{{user: 0, interface: nic0, memory: 1G, settings: yes, "
         "transmit: {transmit}}}]")


@pytest.fixture(scope="module")
def guest():
    with boot([Nic("nic0", "igb")], kernel="6.1") as machine:
        yield machine


@pytest.fixture
def broker(guest):
    """A function that starts one with a rule; it ends with the test."""
    pids = []

    def start(transmit):
        rules = RULES.format(transmit=transmit)
        status, pid = guest.run(
            f"mkdir -p /tmp/b; echo '{rules}' >/tmp/b/rules.yaml; "
            "mr-brokerd --rules /tmp/b/rules.yaml --socket /tmp/b/sock "
            ">/dev/null 2>&1 & echo $!; until [ -S /tmp/b/sock ]; do "
            "usleep 10000; done")
        assert status == 0, pid
        pids.append(int(pid))

    yield start
    for pid in pids:
        guest.run(f"kill {pid}; while kill -0 {pid} 2>/dev/null; do "
                  "usleep 10000; done")


def test_client_receives_and_sends(guest, broker):
    """It maps the rings before the sockets are bound; twice in a row."""
    broker("yes")
    wire = guest.wires["nic0"]
    for options in "", ",meta":
        frames = [own_flow(i, 60 + i) for i in range(N_FRAMES)]
        with opened(guest, XDP + options, pool=4096) as probe:
            probe.begin("forward", 0)
            got = Traffic(wire, wire, frames, WINDOW).run(len(frames))
            probe.end_forward()
            assert sorted(got) == sorted(frames)
            probe.do("close", 0)


def test_rule_that_is_narrower_than_a_socket_is_refused(guest, broker):
    """A socket that is not bound could send, whatever the rule says."""
    broker("no")
    with opened(guest, pool=4096) as probe:
        why = probe.refused("open", XDP)
        assert "before Linux 6.4" in why and "transmit: yes" in why
