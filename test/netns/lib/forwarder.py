# SPDX-License-Identifier: BSD-3-Clause
"""mr-l2fwd: started in a namespace, read while it runs, stopped, checked."""
import json
import signal

from . import invariants
from .process import L2FWD, Process, environment
from .wire import TEST_TYPE, Wire, frame, mac


class Forwarder(Process):
    """A running mr-l2fwd. stop(), which the test's end calls if nobody has,
    checks invariants and conservation."""

    def __init__(self, lab, namespace, *ports, options=(), wrap=(),
                 program=L2FWD):
        super().__init__(lab, namespace,
                         [*wrap, program, "--json", *options, *ports])
        ready = self.err.wait(lambda line: line.startswith("worker "), 15)
        assert ready is not None, f"it did not start:\n{self.err.text()}"
        lab.checks.append(self.check_end)

    def check_end(self):
        if self.process.poll() is None:
            self.stop()

    def snapshots(self):
        """The objects that it has printed, one per second."""
        return [json.loads(line) for line in self.out.text().splitlines()]

    def next_snapshot(self, limit_s=15.0):
        line = self.out.wait(lambda line: True, limit_s, self.out.count())
        assert line is not None, f"no JSON in {limit_s} s"
        return json.loads(line)

    def stop(self, sig=signal.SIGINT, status=0, pending=False):
        """End it as a person would; its final object, checked.

        pending: frames may be left in a tx queue, for its device is down.
        """
        self.process.send_signal(sig)
        got = self.wait()
        assert got == status, (f"exit status {got}, not {status}; stderr:\n"
                               f"{self.err.text()}")
        final = self.snapshots()[-1]
        invariants.check_final(final)
        if not pending:
            for port in final["ports"]:
                assert invariants.total(port, "tx", "pending") == 0, port
        return final


def frames_of(way, n, n_bytes=100):
    """Numbers tell the ways apart."""
    return [frame(n_bytes, number + (way << 16), src=mac(way),
                  dst=mac(1 - way)) for number in range(n)]


class Bridge(Forwarder):
    """Between the hosts of a star, with a control socket."""

    def __init__(self, lab, star, *options):
        super().__init__(lab, star.middle, *star.ports, options=options,
                         wrap=environment(lab))
        self.wires = [lab.closing(Wire(host, "h0", TEST_TYPE))
                      for host in star.hosts]

    def exchange(self, n, n_bytes=100):
        """Frames both ways, none of which is lost; all of them."""
        sent = []
        for way, (here, there) in enumerate((self.wires, self.wires[::-1])):
            frames = frames_of(way, n, n_bytes)
            here.send_all(frames)
            assert there.receive(n) == frames
            sent += frames
        return sent


class Refused:
    """mr-l2fwd that must not start: its one line and its exit status."""

    def __init__(self, lab, namespace, *arguments, wrap=(), limit_s=15,
                 program=L2FWD):
        process = Process(lab, namespace, [*wrap, program, *arguments])
        self.status = process.wait(limit_s)
        # A fall-back is said, too, and who else polls on the core: how busy
        # the machine is decides of both.
        self.lines = [line for line in process.err.text().splitlines()
                      if not line.startswith(("mr-l2fwd: warning: segment",
                                              "mr-l2fwd: warning: worker"))]
        self.out = process.out.text()

    @property
    def text(self):
        return self.lines[-1] if self.lines else ""

    def check(self, status, *parts):
        """One line that has all parts in it, and this exit status."""
        assert self.status == status, (self.status, self.lines)
        assert len(self.lines) == 1, f"not one line: {self.lines}"
        assert self.out == "", self.out
        for part in parts:
            assert part in self.text, f"{part!r} is not in: {self.text}"
        assert self.text.startswith("mr-l2fwd: "), self.text
