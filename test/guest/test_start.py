# SPDX-License-Identifier: BSD-3-Clause
"""The commands of docs/start.md that connect two virtual machines, run as they
are written, with the QEMU and the programs of this tree."""
import os
import re
import shlex
import sys
import time
from pathlib import Path

import pytest

from fetch import Cache, Missing
from guest import BOOT_LIMIT_S, BUILD, COMMAND_LIMIT_S
from host import popen
from vhost import lab  # noqa: F401 pylint: disable=unused-import
from lib.process import Process

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs/start.md"
FENCE = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)


def blocks():
    """The section's commands: for the host, two machines, and inside each."""
    text = PAGE.read_text("utf-8")
    section = text[text.index("\n## 4. "):text.index("\n## 5. ")]
    return FENCE.findall(section)


class Machine:
    """QEMU, whose console is its input and output."""

    def __init__(self, lab, command):
        program, env, options = Cache().qemu()
        # This /dev/kvm may be of no use.
        words = shlex.split(command.replace("\\\n", " ").replace(
            "-accel kvm ", ""))
        assert words[0] == "qemu-system-x86_64", command
        self.path = lab.tmp_path / f"console{os.urandom(4).hex()}"
        with open(self.path, "wb") as output:
            self.process = popen([program, *options, *words[1:]], env=env,
                                 cwd=lab.tmp_path, stdin=-1, stdout=output,
                                 stderr=output, bufsize=0)
        lab.processes.append(self.process)

    def says(self, text, limit_s=COMMAND_LIMIT_S):
        deadline = time.monotonic() + limit_s
        while text not in (said := self.path.read_text(errors="replace")):
            assert time.monotonic() < deadline, f"no {text!r} in:\n{said}"
            assert self.process.poll() is None, said
            time.sleep(0.1)

    def type(self, line):
        self.process.stdin.write(line.encode())


def test_two_machines(lab):
    host, one, other, *typed = blocks()
    try:
        Cache().qemu()
    except Missing as why:
        pytest.skip(str(why))
    build, files, switch = host.splitlines()
    assert build == "./mr build"
    assert files.startswith("./mr guest ")
    Process(lab, lab.namespace("x"), [
        sys.executable, HERE / "main.py", *files.split()[2:-1],
        lab.tmp_path / files.split()[-1]]).wait(COMMAND_LIMIT_S)
    switch = switch.replace("build/", f"{BUILD}/", 1)
    running = Process(lab, lab.namespace("f"), [
        "sh", "-c", f"cd {lab.tmp_path}; export RUNTIME_DIRECTORY=$PWD; "
        f"exec {switch} --json"])
    running.says("worker ")
    machines = [Machine(lab, command) for command in (one, other)]
    for machine, line in zip(machines, typed):
        machine.says("/ # ", BOOT_LIMIT_S)
        machine.type(line)
    machines[1].says("3 packets received")
