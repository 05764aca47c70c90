# SPDX-License-Identifier: BSD-3-Clause
"""Random packets, reloads, restarts and time, checked against an oracle: a plain
list of what was opened, and when it was last used."""
import random

import pytest

from harness import STATIC, text_of
from rfc import Flow

PROTOS = {"udp": 17, "tcp": 6, "icmp": 1}
HOSTS = [f"10.0.0.{i}" for i in range(16, 32)]
FLAGS = ["A", "S", "SA", "FA", "R", "RA", "S", "S"]
OURS, FAR = "192.0.2.2", "192.0.2.40"
FORWARDS = [("udp+tcp", OURS, 1050, 1059, HOSTS[1], 2),
            ("tcp", FAR, 80, 80, HOSTS[2], 3)]
# How long a mapping lasts at least after its last use; for TCP, after a reset.
LEAST_S = {"udp": 30, "tcp": 10, "icmp": 6}
TIMEOUTS = {"timeouts_udp": 30, "timeouts_tcp_opening": 24,
            "timeouts_tcp_open": 100, "timeouts_tcp_closing": 20,
            "timeouts_tcp_reset": 10, "timeouts_icmp": 6}
N_SEEDS, N_STEPS = 40, 120


class Oracle:
    """A translator, and what must be in it."""

    def __init__(self, nat_of, seed):
        self.nat_of, self.rng = nat_of, random.Random(seed)
        rng = self.rng
        self.now_s = 2 ** 32 - 60  # it wraps on the way
        self.fixed = {"subscribers": ["10.0.0.16/28"], **TIMEOUTS,
                      "limits_mappings": rng.choice((100, 768)),
                      "limits_sessions": rng.choice((10, 2048))}
        n_shards = rng.randrange(1, 4)
        self.shard = {"n_shards": n_shards, "shard": rng.randrange(n_shards)}
        self.opened = {}  # (last use, external end) by protocol, host and port
        self.nat = None
        while self.nat is None:
            self.options = self.choose()
            try:
                self.nat = self.start()
            except ValueError:  # does not make sense together
                pass

    def choose(self):
        """A configuration."""
        rng, bools = self.rng, (False, True)
        first = rng.choice((1, 1024))
        filtering = rng.choice(("none", "address", "address-port"))
        block = rng.choice((0, 8, 16, 64))
        return {
            **self.fixed,
            **{f"filtering_{proto}": filtering for proto in PROTOS},
            "pool": [OURS] + rng.choice(([], ["192.0.2.4-192.0.2.14"])),
            "forwards": FORWARDS[:rng.randrange(3)],
            "ports_range": f"{first}-{first + rng.choice((1023, 2047))}",
            "ports_block": block, "ports_max_blocks": rng.randrange(1, 5),
            "ports_deterministic": block == 64 and rng.choice(bools),
            **{f"ports_keep_{what}": rng.choice(bools)
               for what in ("port", "parity", "class")},
            "pairing": rng.choice(bools), "inbound_refresh": rng.choice(bools),
            "limits_per_subscriber": rng.choice((0, 0, 5)),
            "timeouts_hold_down": rng.choice((0, 20))}

    def start(self):
        return self.nat_of(file=text_of(self.options), start_s=self.now_s,
                           **self.shard)

    def must_be(self, key):
        """Whether it must still exist."""
        return key in self.opened and \
            self.now_s - self.opened[key][0] < LEAST_S[key[0]]

    def packet(self):
        """A packet to the outside, whose answer is let in."""
        rng = self.rng
        key = rng.choice(list(PROTOS)), rng.choice(HOSTS), rng.randrange(16)
        flow = Flow(self.nat, *key)
        peer = (f"198.51.100.{rng.randrange(1, 5)}", rng.randrange(1, 5))
        more = {"flags": rng.choice(FLAGS)} if key[0] == "tcp" else {}
        full = self.nat.counter("table_full")
        if not flow.out(*peer, **more).outside:
            assert key[0] == "tcp" or not self.must_be(key) or \
                self.nat.counter("table_full") > full
            return
        end = flow.addr, flow.ident
        if self.must_be(key) and end[0] != FAR:
            assert end == self.opened[key][1] or self.is_forward(end)
        last_s = self.now_s
        if key[0] == "tcp":
            last_s = self.opened[key][0] if key in self.opened else last_s
        elif rng.randrange(2):
            assert flow.is_open(*peer)
        self.opened[key] = last_s, end
        if not self.is_forward(end):
            assert flow.ident // 64 % self.shard["n_shards"] == \
                self.shard["shard"]

    def unsolicited(self):
        """A packet to an address where there may have been a mapping."""
        if self.opened:
            key = self.rng.choice(list(self.opened))
            flow = Flow(self.nat, *key)
            flow.addr, flow.ident = self.opened[key][1]
            out = flow.back(f"198.51.100.{self.rng.randrange(1, 5)}",
                            self.rng.randrange(1, 5))
            assert not out.outside or key[0] == "tcp"

    def is_forward(self, end):
        return any(end[0] == addr and first <= end[1] <= last for
                   _, addr, first, last, *_ in self.options["forwards"])

    def wait(self):
        seconds = self.rng.choice((1, 5, self.rng.randrange(256)))
        self.now_s += seconds
        self.nat.advance(seconds)

    def close(self):
        """On request."""
        if self.opened:
            proto, host, port = self.rng.choice(list(self.opened))
            self.nat.clear(f"proto={proto},inside={host}" +
                           (f",port={port}" if port else ""),
                           now=self.rng.choice((False, True)))
            self.forget()

    def reload(self):
        """Reload. If it is refused, nothing changes."""
        options = self.choose()
        try:
            self.nat.reload(file=text_of(options))
        except ValueError:
            return
        self.options = options
        self.wait()  # what is no longer allowed ends in parts
        self.forget()

    def restart(self):
        """Restart; the new instance restores the listed sessions."""
        listed = self.nat.list()
        self.nat.close()
        self.nat = self.start()
        limited = self.options["limits_per_subscriber"] > 0
        for one in listed:
            error = self.nat.restore(one)
            assert error == 0 or one.flags & STATIC or (limited and error == 28)
        if limited:
            self.forget()

    def rows(self):
        """Listed sessions by protocol, host and port."""
        names = {number: name for name, number in PROTOS.items()}
        return [((names[row["proto"]], row["inside"], row["inside_port"]), row)
                for row in self.nat.sessions]

    def forget(self):
        """Forget what is not there now."""
        there = {key for key, _ in self.rows()}
        self.opened = {key: was for key, was in self.opened.items()
                       if key in there}

    def check(self):
        """Everything that must exist does; what exists was opened; no two have
        the same external end."""
        ends, static = {}, set()
        for key, row in self.rows():
            end = row["outside"], row["outside_port"]
            assert ends.setdefault((key[0], *end), key) == key
            if row["flags"] & STATIC:
                static.add(key)
                continue
            assert self.opened[key][1] == end
        there = set(ends.values())
        for key in list(self.opened):
            assert key in there or not self.must_be(key), key
            if key not in there:
                del self.opened[key]
        counters = self.nat.counters
        assert counters["mappings"] == len(there)
        # Of static ones, those are counted that others could have had.
        assert 0 <= counters["ports_used"] - len(there) + len(static) <= \
            len(static)
        return len(static)

    def end(self):
        """All ends, and all ports are free again."""
        for _ in range(2):
            self.now_s += 150
            self.nat.advance(150)
        n_static = self.check()
        counters = self.nat.counters
        assert counters["mappings"] == n_static
        for name in ("sessions", "hold_down"):
            assert counters[name] == 0, name
        assert counters["subscribers"] <= 2
        names = [event["what"] for event in self.nat.events]
        assert names.count("block_begin") == names.count("block_end")


@pytest.mark.parametrize("seed", range(N_SEEDS))
def test_random_traffic_agrees_with_the_model(nat_of, seed):
    oracle = Oracle(nat_of, seed)
    steps = 14 * [oracle.packet] + 3 * [oracle.unsolicited] + [
        oracle.wait, oracle.wait, oracle.close, oracle.reload, oracle.restart]
    for _ in range(N_STEPS):
        oracle.rng.choice(steps)()
        oracle.check()
    oracle.end()
