# SPDX-License-Identifier: BSD-3-Clause
"""./mr demo works, and leaves nothing behind, however it ends.

usage: demo_test.py BUILD
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "test/support"))

from host import limit  # noqa: E402 pylint: disable=wrong-import-position

PYTHON = "/usr/bin/python3"
LIMIT_S = limit(60)


class Demo:
    """A demo under way; its children are known by a word in their
    environment."""

    def __init__(self, build, *arguments, as_nobody=False):
        self.mark = f"MR_DEMO_TEST={uuid.uuid4()}"
        name, _, value = self.mark.partition("=")
        options = {"user": 65534, "group": 65534, "extra_groups": []} \
            if as_nobody else {}
        self.process = subprocess.Popen(
            [PYTHON, "-B", str(TOP / "apps/demo/demo.py"), "--build", build,
             *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env={**os.environ, name: value}, **options)
        self.said = []

    def wait_for(self, text):
        """Read until a line has the text."""
        for line in self.process.stdout:
            self.said.append(line)
            if text in line:
                return
        raise AssertionError(f"the demo never said '{text}':\n"
                             + "".join(self.said))

    def wait(self):
        """Read on to the end; the exit status."""
        self.said += self.process.stdout.readlines()
        return self.process.wait(LIMIT_S)

    def processes(self):
        """{pid: name of the program} of what the demo started."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or \
                    int(entry.name) == self.process.pid:
                continue
            with contextlib.suppress(OSError):
                if self.mark.encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = \
                        (entry / "comm").read_text().strip()
        return found

    def namespaces(self):
        """Network namespaces of what the demo started, but for our own."""
        found = set()
        for pid in self.processes():
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/ns/net"))
        return found - {os.readlink("/proc/self/ns/net")}


def check_nothing_left(demo, namespaces):
    """No process, and nobody in its namespaces; within a deadline."""
    limit_s = time.monotonic() + limit(10)
    while time.monotonic() < limit_s:
        left = demo.processes()
        alive = set()
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                alive.add(os.readlink(entry / "ns/net"))
        if not left and not alive & namespaces:
            return
        time.sleep(0.1)
    raise AssertionError(f"left over: {left}, {alive & namespaces}")


def check_final(said):
    """The last line is the forwarder's final object, and it is in order."""
    final = json.loads(said[-1])
    assert final["v"] == 1 and final["final"] is True, final
    assert final["invariants_hold"] and final["conserved"], final
    assert final["pool"]["n_in_flight"] == 0, final["pool"]
    received = sum(queue["rx"]["received"] for port in final["ports"]
                   for queue in port["queues"] if "rx" in queue)
    assert received > 1000, received


def test_to_the_end(build, **options):
    """It ends well, says what it should, and leaves nothing."""
    demo = Demo(build, "--seconds", "2", "--json", **options)
    demo.wait_for("full speed")
    namespaces = demo.namespaces()
    status = demo.wait()
    assert status == 0, (status, "".join(demo.said))
    check_final(demo.said)
    check_nothing_left(demo, namespaces)
    return demo.said, namespaces


def test_with_root(build):
    """Ping and TCP pass, in namespaces of the demo's own."""
    said, namespaces = test_to_the_end(build)
    text = "".join(said)
    assert "3 packets transmitted, 3 received" in text, text
    assert "the same SHA-256 at both ends" in text, text
    assert "xdp:porta" in text and "Gbit/s" in text, text
    assert len(namespaces) == 3, namespaces


def test_without_root(build):
    """The same on files and in memory, and it says what is different."""
    program = Path(build) / "apps/l2fwd/mr-l2fwd"
    if os.geteuid() == 0 and subprocess.run(
            ["test", "-x", program], user=65534, group=65534,
            extra_groups=[], check=False).returncode != 0:
        print(f"nobody may not run {program}: not tested without root")
        return
    said, namespaces = test_to_the_end(build, as_nobody=os.geteuid() == 0)
    text = "".join(said)
    assert "Differences:" in text, text
    assert "byte for byte" in text, text
    assert not namespaces, namespaces


def test_signal(build, number):
    """Ended from outside, in the middle: nothing is left."""
    demo = Demo(build, "--seconds", "30")
    demo.wait_for("full speed")
    namespaces = demo.namespaces()
    demo.process.send_signal(number)
    status = demo.wait()
    assert status != 0, status
    check_nothing_left(demo, namespaces)


def test_forwarder_killed(build):
    """kill -9 of the forwarder: the demo says so, fails, leaves nothing."""
    demo = Demo(build, "--seconds", "30")
    demo.wait_for("full speed")
    namespaces = demo.namespaces()
    pids = [pid for pid, name in demo.processes().items()
            if name == "mr-l2fwd"]
    assert len(pids) == 1, demo.processes()
    os.kill(pids[0], signal.SIGKILL)
    status = demo.wait()
    assert status == 1, status
    assert "SIGKILL" in "".join(demo.said), demo.said
    check_nothing_left(demo, namespaces)


def test_failure(build):
    """A demo that cannot start its forwarder says so and leaves nothing."""
    demo = Demo(str(TOP / "docs"), "--seconds", "2")
    status = demo.wait()
    assert status == 1, status
    assert "demo: " in demo.said[-1], demo.said
    check_nothing_left(demo, set())


def main():
    build = sys.argv[1]
    if not (Path(build) / "apps/l2fwd/mr-l2fwd").exists():
        print("mr-l2fwd was not built")
        return 77
    tests = [(test_without_root, ()), (test_failure, ()),
             (test_forwarder_killed, ()), (test_signal, (signal.SIGINT,)),
             (test_signal, (signal.SIGTERM,)), (test_signal,
                                                (signal.SIGKILL,))]
    if os.geteuid() == 0:
        tests.insert(0, (test_with_root, ()))
    else:
        print("not root: only the demo without root is tested")
    for test, arguments in tests:
        test(build, *arguments)
        print("ok", test.__name__, *arguments, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
