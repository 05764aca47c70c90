# SPDX-License-Identifier: BSD-3-Clause
"""mr-conformance: the suite on two ports that a cable joins."""
import re

import pytest
from lib.process import BUILD

SUITE = BUILD / "test/conformance/wire/mr-conformance"
LIMIT_S = 120


@pytest.fixture
def cable(lab):
    """A namespace with a veth whose ends, v0 and v1, are both in it."""
    if not SUITE.exists():
        pytest.skip("mr-conformance is not built (package libcmocka-dev)")
    place = lab.namespace("wire")
    lab.veth(place, "v0", place, "v1")
    return place


def conform(place, *words):
    return place.run(SUITE, *words, check=False, timeout=LIMIT_S)


@pytest.mark.short
@pytest.mark.parametrize("far", ["xdp:v1", "kernel:v1"])
def test_suite_passes_with_a_port_and_with_the_kernel_as_peer(cable, far):
    done = conform(cable, "xdp:v0", far)
    assert done.returncode == 0, done.stdout
    passed = sum(int(n) for n in re.findall(r"PASSED +\] (\d+) test",
                                            done.stdout))
    assert passed >= 45, done.stdout
    for end in ("v0", "v1"):
        assert not cable.link(end).get("xdp")


def test_a_fault_of_the_cable_fails_by_name(cable):
    """The far end loses long frames."""
    cable.ip("link", "set", "v1", "mtu", 1000)
    # It waits for what never comes: a slow host is no reason to wait longer.
    done = cable.run("env", "MR_TIME_FACTOR=1", SUITE, "xdp:v0", "kernel:v1",
                     "frames_leave_intact_at_every_length", check=False,
                     timeout=LIMIT_S)
    assert done.returncode == 1
    assert "FAILED  ] frames_leave_intact_at_every_length" in done.stdout


@pytest.mark.parametrize("ports, status, words", [
    (["v0"], 2, "usage:"),
    (["null:", "v1"], 2, "'null:' is not under test: name an xdp:"),
    (["v0", "xdp:none"], 2, "xdp:none: no such network interface"),
    (["v0", "kernel:none"], 2, "none: no such network interface"),
    (["v0", "w0"], 2, "no frame from v0 reaches w0: check cable and link"),
])
def test_ports_that_cannot_be_tested_are_refused_in_one_line(
        lab, cable, ports, status, words):
    lab.veth(cable, "w0", cable, "w1")
    done = conform(cable, *ports)
    assert (done.returncode, words in done.stdout) == (status, True), done.stdout
    assert not cable.link("v0").get("xdp")
