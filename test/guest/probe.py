# SPDX-License-Identifier: BSD-3-Clause
"""netns-probe in a guest: the library's interface, worked by commands.

See test/netns/probe.c for the commands. It listens on a serial line, so the
test can feed wires while it works.
"""
import json
import time

from guest import COMMAND_LIMIT_S
from host import limit
from lib.probe import Asked

START_LIMIT_S = LINK_LIMIT_S = limit(60)


class Probe(Asked):
    """A running probe. close(), which the end of a with statement calls, checks
    that no page is missing."""

    def __init__(self, guest, channel=0, command="netns-probe"):
        self.guest = guest
        self.channel = guest.channels[channel]
        self.channel.drain()
        device = self.channel.device
        self.log = f"/tmp/probe{channel}.log"
        status, text = guest.run(
            # A serial line has no end of input: the word "quit" makes one.
            f"stty -F {device} raw -echo; setsid sh -c 'echo ready; "
            "while read -r l; do "
            f'[ "$l" = quit ] && break; echo "$l"; done | {{ {command}; }}\' '
            f"<{device} >{device} 2>{self.log} & echo $!")
        assert status == 0, text
        self.group = int(text)
        self.is_killed = False
        # What is sent before the line is open is lost.
        assert self.channel.try_line(START_LIMIT_S) == "ready"

    def do(self, *words, **options):
        """What is sent to a NIC before its link is up is lost: "open" ends when
        it is."""
        answer = super().do(*words, **options)
        if words[0] == "open":
            wait_for_link(self, True, port=answer["port"])
        return answer

    def begin(self, *words):
        """Give a command and do not wait for its answer."""
        self.channel.write_line(self.line_of(words))

    def answer(self, limit_s=COMMAND_LIMIT_S, meanwhile=None):
        """Wait for the next answer; `meanwhile` is called again and again."""
        deadline = time.monotonic() + limit_s
        while True:
            if meanwhile is not None:
                meanwhile()
            line = self.channel.try_line(0 if meanwhile else 0.5)
            if line is not None:
                return json.loads(line)
            assert time.monotonic() < deadline, (
                "no answer; the probe's log: "
                f"{self.guest.run('cat ' + self.log)[1]}\n{self.guest.log()}")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None and not self.is_killed:
                self.close()
        finally:
            self.kill()

    def kill(self):
        """SIGKILL, and wait until it is gone."""
        self.is_killed = True
        self.guest.run(f"kill -9 -{self.group}; "
                       f"while kill -0 -{self.group} 2>/dev/null; "
                       "do usleep 1000; done")
        self.channel.drain()

    def close(self):
        """End of input: it closes all and tells what is left in flight."""
        last = self.ask("quit")
        assert last["ok"], f"pages in flight at the end: {last}"


def opened(guest, *specs, pool=8192, **options):
    """A probe with these ports open, on one pool."""
    probe = Probe(guest, **options)
    try:
        probe.do("pool", pool)
        for spec in specs:
            probe.do("open", spec)
    except BaseException:
        probe.kill()
        raise
    return probe


def check_idle(probe, port=0, pool=0):
    """The invariants, and that only the port's own buffers are in flight."""
    stats = probe.stats(port)
    pool_stats = probe.do("pool-stats", pool)
    assert pool_stats["free"] + pool_stats["in_flight"] == \
        pool_stats["population"]
    return stats


def wait_for_link(probe, is_up, limit_s=LINK_LIMIT_S, port=0):
    deadline = time.monotonic() + limit_s
    while probe.do("link", port)["up"] != is_up:
        assert time.monotonic() < deadline, f"no link event: {is_up}"
        time.sleep(0.1)
