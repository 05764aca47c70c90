# SPDX-License-Identifier: BSD-3-Clause
"""A program under test, whose output is read while it runs."""
import os
import select
import subprocess
import threading
import time
from pathlib import Path

from host import limit

BUILD = Path(os.environ.get("MR_BUILD") or
             Path(__file__).resolve().parents[3] / "build")
L2FWD = BUILD / "apps" / "l2fwd" / "mr-l2fwd"
NAT = BUILD / "apps" / "nat" / "mr-nat"
CTL = BUILD / "apps" / "ctl" / "mrctl"
PROBE = BUILD / "test" / "netns" / "netns-probe"
PASS_OBJECT = BUILD / "test" / "netns" / "pass.bpf.o"
TAG_OBJECT = BUILD / "test" / "netns" / "tag.bpf.o"
# Virtual machines have lost wake-ups of pipes: it looks by itself, too.
LOOK_S = 0.5


def environment(lab):
    """Control sockets are in the test's own folder."""
    return ["env", f"RUNTIME_DIRECTORY={lab.tmp_path}"]


def ask_ctl(lab, *words):
    """How mrctl ended."""
    return subprocess.run(
        [*environment(lab), CTL, *words], capture_output=True, text=True,
        check=False, timeout=limit(30))


class Lines:
    """Lines of a pipe. A thread gathers them, so that the pipe never fills."""

    def __init__(self, pipe):
        os.set_blocking(pipe.fileno(), False)
        self.pipe = pipe
        self.lines = []
        self.partial = b""
        self.ended = False
        self.changed = threading.Condition()
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self):
        while not self.ended:
            try:
                select.select([self.pipe], [], [], LOOK_S)
            except (OSError, ValueError):
                pass  # closed under us, at the end of the test
            with self.changed:
                self._take()

    def _take(self):
        """Take what the program has written by now. The caller has the lock."""
        try:
            while data := os.read(self.pipe.fileno(), 65536):
                *whole, self.partial = (self.partial + data).split(b"\n")
                self.lines += [line.decode() for line in whole]
        except BlockingIOError:
            pass
        except (OSError, ValueError):
            self.ended = True
        else:
            self.ended = True
        if self.ended and self.partial:
            self.lines.append(self.partial.decode())
            self.partial = b""
        self.changed.notify_all()

    def wait(self, matches, limit_s, start=0):
        """The first line from `start` on that matches; None if none came."""
        end_s = time.monotonic() + limit(limit_s)
        with self.changed:
            while True:
                for line in self.lines[start:]:
                    if matches(line):
                        return line
                left_s = end_s - time.monotonic()
                if self.ended or left_s <= 0:
                    return None
                self.changed.wait(left_s)

    def text(self):
        """All that the program has written by now."""
        with self.changed:
            self._take()
            return "\n".join(self.lines)

    def count(self):
        """How many lines the program has written by now."""
        with self.changed:
            self._take()
            return len(self.lines)


class Process:
    """A program in a namespace of a lab; its pid is the program's."""

    def __init__(self, lab, namespace, command, stdin=None, fds=()):
        self.process = lab.popen(
            namespace.command(*command), stdin=stdin, text=True, pass_fds=fds,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.pid = self.process.pid
        self.out = Lines(self.process.stdout)
        self.err = Lines(self.process.stderr)

    def child(self):
        """The pid of the program that it runs, as mr-bench its engine; None:
        not yet."""
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                if int(path.read_text().rpartition(")")[2].split()[1]) == self.pid:
                    return int(path.parent.name)
            except OSError:
                continue  # it has ended
        return None

    def says(self, text, limit_s=20.0):
        """Wait for a line on stderr that has `text` in it; the line."""
        line = self.err.wait(lambda line: text in line, limit_s)
        assert line is not None, (
            f"no line with {text!r} within {limit_s} s; stderr:\n"
            f"{self.err.text()}")
        return line

    def wait(self, limit_s=10.0):
        """Wait for its end; the exit status."""
        status = self.process.wait(limit(limit_s))
        for lines in (self.out, self.err):
            lines.wait(lambda line: False, limit_s)
        return status

    def kill(self):
        """SIGKILL: nothing in it gets a chance to clean up."""
        self.process.kill()
        self.process.wait(limit(10.0))
