# SPDX-License-Identifier: BSD-3-Clause
"""Processes that load the library, fork and exit, with xdp: and tap: ports.

Runs the tests of test/unit/link, which use null: by default.
"""
import os

import pytest
from lib.process import BUILD

PROGRAM = BUILD / "test/unit/link/unit-link-process"


@pytest.mark.parametrize("driver", ["xdp", "tap"])
def test_process_with(lab, driver):
    if not PROGRAM.exists():
        pytest.skip("unit-link-process is not built (is cmocka installed?)")
    if driver == "tap" and not os.path.exists("/dev/net/tun"):
        pytest.skip("no /dev/net/tun")
    middle, far = lab.namespace("f"), lab.namespace("h")
    for i in range(2 if driver == "xdp" else 0):
        lab.veth(middle, f"p{i}", far, f"h{i}")
    middle.run("env", f"PORT_ONE={driver}:p0", f"PORT_OTHER={driver}:p1",
               PROGRAM, timeout=100)
    link = middle.link("p0")
    assert link is None or not link.get("xdp")
