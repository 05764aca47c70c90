# SPDX-License-Identifier: BSD-3-Clause
"""What mrctl watch shows, from two snapshots, without a program.

usage: watch_test.py APPS_DIR   (no privileges)
"""
import copy
import io
import sys
import unittest

# A port as in --json, of one queue.
PORT = {
    "port": "xdp:outside-of-all0", "mode": "zc", "why": "", "device_drops": {},
    "link": {"up": True, "mbps": 10000, "gone": False}, "tx_offloaded": 0,
    "queues": [{
        "rx": {"received": 0, "delivered": 0, "offloaded": 0, "passed_to_kernel": 0,
               "bytes": 0, "drops": {"too_long": 0}},
        "tx": {"accepted": 0, "completed": 0, "pending": 0, "bytes": 0, "drops": {}},
        "events": {},
    }],
}
POOL = {name: 0 for name in (
    "n_pages", "n_free", "n_in_flight", "n_cached", "n_depot", "from_cache",
    "from_depot", "from_allocator")}
STATE = {"mappings": 7, "sessions": 3, "subscribers": 2, "created": 10, "expired": 1}


def snapshots(**more):
    """A second in which a million frames of 1000 bytes went each way."""
    before = {"t": 1.0, "ports": [PORT], "workers": [], "pool": POOL, **more}
    now = copy.deepcopy(before)
    now["t"] = 2.0
    queue = now["ports"][0]["queues"][0]
    queue["rx"] |= {"delivered": 1000000, "bytes": 1000000000}
    queue["tx"] |= {"accepted": 1000000, "bytes": 1000000000}
    now["pool"] |= {"from_cache": 900, "from_depot": 64, "from_allocator": 36}
    return now, before


class Watch(unittest.TestCase):
    """Rates and tables."""

    def drawn(self, n_columns, **more):
        """The lines of the screen, of a terminal with so many columns."""
        try:
            from rich.console import Console
        except ImportError:
            self.skipTest("no python3-rich")
        shown = watch.rates(*snapshots(**more))
        out = io.StringIO()
        console = Console(file=out, width=n_columns, force_terminal=False)
        console.print(watch.screen(shown, "name", [[1.0] * 40], "title", n_columns))
        return out.getvalue().splitlines()

    def test_a_narrow_terminal_has_whole_names(self):
        for more in {}, {"offload": {"rules": 1, "attempted": 0}}:
            for n_columns in 80, 100, 200:
                lines = self.drawn(n_columns, **more)
                row = next(line for line in lines if PORT["port"] in line)
                self.assertIn("1.0 M", row)
                self.assertIn("8.0 G", row)
                self.assertLessEqual(max(map(len, lines)), n_columns)
        self.assertIn("in and out", "\n".join(self.drawn(200)))

    def test_mappings_and_sessions_are_shown(self):
        now, before = snapshots(state=STATE)
        now["state"] = STATE | {"created": 30}
        shown = watch.rates(now, before)
        self.assertEqual(shown["table"], {
            "mappings": 7, "sessions": 3, "subscribers": 2, "created/s": 20.0,
            "expired/s": 0.0})
        self.assertIn("table: mappings 7, sessions 3", "\n".join(watch.lines(shown)))

    def test_pages_from_caches_are_a_share_of_all(self):
        self.assertEqual(watch.rates(*snapshots())["pool"]["cache %"], 90.0)
        _, before = snapshots()
        still = copy.deepcopy(before) | {"t": 2.0}
        self.assertEqual(watch.rates(still, before)["pool"]["cache %"], 100.0)

    def test_links_are_short(self):
        self.assertEqual([watch.short(link) for link in (
            "up 10000 Mb/s", "up 2500 Mb/s", "down 100 Mb/s", "gone", "-")],
            ["up 10G", "up 2.5G", "down 100M", "gone", "-"])


if __name__ == "__main__":
    apps = sys.argv.pop()
    sys.path[:0] = [f"{apps}/ctl", f"{apps}/support"]
    from mr_ctl import watch
    unittest.main()
