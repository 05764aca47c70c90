# SPDX-License-Identifier: BSD-3-Clause
"""mr-l2fwd as a child, and what it prints."""
import signal
import subprocess
import tempfile
import threading
import time

from hosts import end, popen

START_LIMIT_S = 20
STOP_LIMIT_S = 20


class Failed(Exception):
    """The demo cannot go on; the text is for a person."""


class Forwarder:
    """A running mr-l2fwd. Its reports of each second are shown while
    is_shown."""

    def __init__(self, command, into=lambda *words: list(words)):
        self.errors = tempfile.TemporaryFile("w+")
        self.lines = []
        self.is_shown = False
        self.process = popen(into(*command), stdout=subprocess.PIPE,
                             stderr=self.errors, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if self.is_shown:
                print(self.lines[-1], flush=True)

    def said(self):
        """The lines on its stderr."""
        self.errors.flush()
        self.errors.seek(0)
        return self.errors.read().strip().splitlines()

    def check(self):
        """Raise Failed if it is not running."""
        status = self.process.poll()
        if status is None:
            return
        if status < 0:
            raise Failed(f"the forwarder was killed by "
                         f"{signal.Signals(-status).name}")
        raise Failed(f"the forwarder ended with {status}: "
                     f"{(self.said() or ['no output'])[-1]}")

    def wait_ready(self):
        """Wait for its first report: the ports are open then."""
        limit_s = time.monotonic() + START_LIMIT_S
        while not self.lines:
            self.check()
            if time.monotonic() > limit_s:
                raise Failed("no output from the forwarder for "
                             f"{START_LIMIT_S} s: {self.said()[-1:]}")
            time.sleep(0.05)

    def show(self, seconds):
        """Show its reports for that long."""
        limit_s = time.monotonic() + seconds
        self.is_shown = True
        while time.monotonic() < limit_s:
            time.sleep(0.05)
            self.check()
        self.is_shown = False

    def stop(self):
        """Ask it to end, and show its summary."""
        self.check()
        self.is_shown = True
        self.check_end(end(self.process, signal.SIGINT, STOP_LIMIT_S))

    def wait(self, limit_s):
        """Until it has ended by itself (as captures do)."""
        try:
            self.check_end(self.process.wait(limit_s))
        except subprocess.TimeoutExpired:
            raise Failed(f"the forwarder is still running after {limit_s} s") \
                from None

    def check_end(self, status):
        """Raise Failed if an invariant of its accounting was broken, or pages
        did not come back: it says so by its status."""
        self.reader.join(STOP_LIMIT_S)
        if status != 0:
            self.check()

    def close(self):
        """End it, whatever state it is in."""
        end(self.process, signal.SIGKILL)
        self.reader.join(STOP_LIMIT_S)
        self.process.stdout.close()
        self.errors.close()
