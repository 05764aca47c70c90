# SPDX-License-Identifier: BSD-3-Clause
"""mrctl beside sockets whose owners do not follow the protocol.

usage: peers_test.py MR_L2FWD MRCTL      (no privileges, no interfaces)
"""
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))

from host import limit, popen  # noqa: E402 pylint: disable=wrong-import-position

PROGRAMS: dict[str, str] = {}
HELLO = b'{"program":"p","version":"1","instance":"bad","pid":1,"verbs":[]}\n'


def forever(piece, pause_s=0.0):
    """Send it until the client goes."""
    def send(client):
        while True:
            client.sendall(piece)
            time.sleep(pause_s)
    return send


def once(data):
    return lambda client: client.sendall(data)


PEERS = {
    "deep": once(b"[" * 1_000_000 + b"\n"),
    "endless": forever(b"x" * 65536),
    "slow": forever(b"x", 0.1),
    "silent": lambda client: client.recv(1 << 20),
    "list": once(b"[]\n"),
    "empty": once(b'{"end":true}\n'),
    "lacking": once(b'{"instance":"lacking"}\n{"end":true}\n'),
    "wrong": once(HELLO.replace(b'"bad"', b"7") + b'{"end":true}\n'),
    "more": forever(HELLO),
    "garbage": once(b"\xff\xfe\n"),
    "shut": lambda client: client.close(),
}


class Peers:
    """Sockets in a folder, each served as badly as its name says."""

    def __init__(self, folder, names):
        self.listeners = [self.listen(folder, name) for name in names]

    def listen(self, folder, name):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{folder}/{name}.sock")
        listener.listen()
        threading.Thread(target=self.serve, args=(listener, PEERS[name]),
                         daemon=True).start()
        return listener

    @staticmethod
    def serve(listener, behave):
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client, contextlib.suppress(OSError):
                    client.recv(4096)
                    behave(client)
                    client.recv(1)  # until it goes

    def close(self):
        for listener in self.listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()


class BesideBadPeers(unittest.TestCase):
    """An instance runs; others only seem to."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mr-peers-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {**os.environ, "RUNTIME_DIRECTORY": self.folder}
        process = popen([PROGRAMS["l2fwd"], "--quiet", "--instance", "good",
                         "pair:a", "pair:b"], env=self.environment,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        end_s = time.monotonic() + limit(20)
        while "good" not in self.run_it("list", "--names")[1].split():
            self.assertLess(time.monotonic(), end_s)

    def run_it(self, *words):
        done = subprocess.run([PROGRAMS["ctl"], *words], env=self.environment,
                              capture_output=True, text=True, check=False,
                              timeout=limit(60))
        return done.returncode, done.stdout, done.stderr

    def beside(self, *names):
        peers = Peers(self.folder, names)
        self.addCleanup(peers.close)

    def test_bad_sockets_are_named_and_good_ones_listed(self):
        quick = [name for name in PEERS if name not in ("slow", "silent")]
        self.beside(*quick)
        status, out, err = self.run_it("list", "--names")
        self.assertEqual((status, out), (0, "good\n"))
        for name in quick:
            self.assertEqual(err.count(f"{self.folder}/{name}.sock: "), 1, err)
        self.assertNotIn("Traceback", err)

    def test_slow_sockets_delay_the_list_only_briefly(self):
        self.beside("slow", "silent")
        begin_s = time.monotonic()
        status, out, err = self.run_it("list", "--names")
        self.assertLess(time.monotonic() - begin_s, limit(12))
        self.assertEqual((status, out), (0, "good\n"))
        self.assertEqual(err.count("no answer: timed out"), 2, err)

    def test_one_that_accepts_nobody_leaves_time_for_others(self):
        full = socket.socket(socket.AF_UNIX)
        self.addCleanup(full.close)
        full.bind(f"{self.folder}/a.sock")
        full.listen(0)
        waiting = socket.socket(socket.AF_UNIX)
        self.addCleanup(waiting.close)
        waiting.connect(f"{self.folder}/a.sock")
        begin_s = time.monotonic()
        status, out, err = self.run_it("list", "--names")
        self.assertLess(time.monotonic() - begin_s, limit(9))
        self.assertEqual((status, out), (0, "good\n"), err)

    def test_the_only_good_instance_needs_no_name(self):
        self.beside("deep", "lacking")
        status, out, _ = self.run_it("show", "pool")
        self.assertEqual(status, 0)
        self.assertIn("n_pages", out)

    def test_asking_a_bad_socket_fails(self):
        self.beside("deep", "garbage", "empty")
        for name in "deep", "garbage":
            status, _, err = self.run_it("-n", name, "show", "stats")
            self.assertEqual(status, 1)
            self.assertIn("is not a JSON object", err)
        status, _, err = self.run_it("-n", "empty", "show", "pool")
        self.assertEqual((status, err.count("\n")), (1, 1), err)
        self.assertNotIn("Traceback", err)


if __name__ == "__main__":
    PROGRAMS.update(zip(("l2fwd", "ctl"), sys.argv[1:]))
    unittest.main(argv=sys.argv[:1])
