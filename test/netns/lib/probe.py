# SPDX-License-Identifier: BSD-3-Clause
"""The library's interface, worked by commands; see probe.c."""
import json
import subprocess

from host import limit

from . import invariants
from .process import PROBE, Process

# Until all that was sent is completed, on a busy host too.
FLUSH_LIMIT_MS = 30000
# Commands whose last word is a limit in ms, for a quiet host.
LIMITED = {"flush", "hashes", "hold", "metas", "wake"}


class Asked:
    """What is asked of a probe, here or in a guest: begin() gives a command,
    answer() waits for what it says."""

    @staticmethod
    def line_of(words):
        if words[0] in LIMITED:
            words = (*words[:-1], int(limit(words[-1])))
        return " ".join(map(str, words))

    def ask(self, *words, **options):
        """Give a command and wait for its answer, good or bad."""
        self.begin(*words)
        return self.answer(**options)

    def do(self, *words, **options):
        answer = self.ask(*words, **options)
        assert answer["ok"], f"{' '.join(map(str, words))}: {answer}"
        return answer

    def refused(self, *words):
        """A command that must fail, with one line that says why: the line."""
        answer = self.ask(*words)
        assert not answer["ok"], f"{' '.join(map(str, words))}: {answer}"
        assert answer["errno"] > 0, answer
        reason = answer["reason"]
        assert reason and "\n" not in reason, answer
        return reason

    def flush(self, port=0):
        """Until nothing is pending in this port's tx queues."""
        return self.do("flush", port, FLUSH_LIMIT_MS)

    def end_forward(self, port=0):
        """End a "forward" that was begun, and flush this port; entries."""
        self.begin("flush", port, FLUSH_LIMIT_MS)
        forwarded, flushed = self.answer(), self.answer()
        assert forwarded["ok"] and flushed["ok"], (forwarded, flushed)
        return forwarded["entries"]

    def stats(self, port=0):
        """Counters of a port; the invariants hold in them."""
        stats = self.do("stats", port)
        invariants.check_ports([stats])
        return stats


class Probe(Asked, Process):
    """A running netns-probe. close(), which the test's end calls if nobody
    has, checks that no page is missing."""

    def __init__(self, lab, namespace, wrap=(), fds=()):
        super().__init__(lab, namespace, [*wrap, PROBE], subprocess.PIPE, fds)
        self.n_answers = 0
        lab.checks.append(self.check_end)

    def begin(self, *words):
        """Give a command and do not wait for its answer."""
        self.process.stdin.write(self.line_of(words) + "\n")
        self.process.stdin.flush()

    def answer(self, limit_s=20.0):
        line = self.out.wait(lambda line: True, limit_s, self.n_answers)
        assert line is not None, f"no answer; stderr:\n{self.err.text()}"
        self.n_answers += 1
        return json.loads(line)

    def tx_events(self, port):
        """Events of tx queue 0 of a port."""
        return self.stats(port)["queues"][0]["tx"]["events"]

    def check_end(self):
        """close(), unless it was closed or killed."""
        if self.process.poll() is None and not self.process.stdin.closed:
            self.close()

    def close(self):
        """End of input: it closes all and tells what is left in flight."""
        self.process.stdin.close()
        last = self.answer()
        assert last["ok"], f"pages in flight at the end: {last}"
        assert self.wait() == 0, self.err.text()


def opened(lab, namespace, *ports, pool=(8192,), wrap=(), fds=()):
    """A probe with these ports open, on one pool."""
    probe = Probe(lab, namespace, wrap, fds)
    probe.do("pool", *pool)
    for port in ports:
        probe.do("open", port)
    return probe
