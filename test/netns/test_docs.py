# SPDX-License-Identifier: BSD-3-Clause
"""The commands in README and docs/start.md work as written.

./mr demo has a test of its own, test/demo.
"""
import re
import socket
from pathlib import Path

import pytest
from lib.process import BUILD, Process

TOP = Path(__file__).parents[2]
PAGES = ["README.md", "docs/start.md"]
FENCE = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)
STARTED = re.compile(r"^worker ")


def blocks():
    return [block for page in PAGES
            for block in FENCE.findall((TOP / page).read_text("utf-8"))]


def commands():
    """Those that open eth1 and eth2, without sudo."""
    lines = {line for block in blocks() for line in block.splitlines()
             if re.match(r"sudo build/apps/.* eth1", line)}
    return sorted(line.removeprefix("sudo ") for line in lines)


def script():
    """The block that makes namespaces for a NAT."""
    return next(block for block in blocks() if "ip netns add" in block)


def started(process):
    """The program says which workers it has once its ports are open."""
    line = process.err.wait(STARTED.match, 30)
    assert line is not None, process.err.text()
    process.process.terminate()
    process.wait(20)


def test_there_are_such_commands():
    assert {re.search(r"mr-\w+", line).group() for line in commands()} == \
        {"mr-l2fwd", "mr-nat"}


@pytest.fixture
def router(lab):
    """eth0 has the way out and a session; eth1 and eth2 have addresses."""
    middle, outside = lab.namespace("f"), lab.namespace("o")
    for i in range(3):
        lab.veth(middle, f"eth{i}", outside, f"h{i}")
        middle.ip("address", "add", f"10.{80 + i}.0.1/24", "dev", f"eth{i}")
        outside.ip("address", "add", f"10.{80 + i}.0.2/24", "dev", f"h{i}")
    middle.ip("route", "add", "default", "via", "10.80.0.2")
    with middle:
        server = lab.closing(socket.create_server(("", 22)))
    with outside:
        lab.closing(socket.create_connection(("10.80.0.1", 22), 10))
    lab.closing(server.accept()[0])
    return middle


@pytest.mark.parametrize("line", commands())
@pytest.mark.short
def test_a_command_starts_without_force(lab, router, line):
    words = line.replace("build/", f"{BUILD}/", 1).split()
    started(Process(lab, router, ["env", f"RUNTIME_DIRECTORY={lab.tmp_path}",
                                  *words, "--json"]))


def test_the_nat_in_five_minutes_starts(lab):
    """ip netns exec has its own mounts, so no one else sees these names."""
    lines = [line.replace("sudo ", "").replace("build/", f"{BUILD}/")
             for line in script().splitlines()
             if not line.startswith("./mr ")]
    assert lines[-1].startswith("ip netns exec nat ")
    lines[-1] = f"exec {lines[-1]} --json"
    text = "\n".join(["set -e", "mount -t tmpfs none /run/netns", *lines])
    started(Process(lab, lab.namespace("x"),
                    ["env", f"RUNTIME_DIRECTORY={lab.tmp_path}", "bash", "-c",
                     text]))
