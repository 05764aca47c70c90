# SPDX-License-Identifier: BSD-3-Clause
"""Today's programs take over from recordings of older ones.

usage: recorded_test.py MR_L2FWD MRCTL HELD     (no privileges, no interfaces)
       recorded_test.py --record MR_L2FWD MRCTL HELD

A release reads the format before its own. When the format changes, keep the
files of the last one in recorded/, write new ones with --record, and test both.
"""
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "support")]

# pylint: disable=wrong-import-position
import recording  # noqa: E402
from host import limit, popen  # noqa: E402

FORMAT = 1
PROGRAMS: dict[str, str] = {}
L2FWD_WORDS = ["--json", "--mode", "learn", "--idle", "adaptive", "--instance", "recorded",
               "null:", "null:len=1500"]


def path_of(name):
    return HERE / f"recorded/{name}-{FORMAT}.txt"


class Folder:
    """A folder for control sockets, which the environment names."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.env = {**os.environ, "RUNTIME_DIRECTORY": self.folder.name}

    def ctl(self, *words):
        return subprocess.run([PROGRAMS["mrctl"], "-n", "recorded", *words], env=self.env,
                              capture_output=True, text=True, check=False, timeout=limit(60))

    def show(self):
        return json.loads(self.ctl("--json", "show").stdout)


class OldL2fwd(Folder):
    """A mr-l2fwd whose successor is recording.record()."""

    def __enter__(self):
        self.process = popen([PROGRAMS["l2fwd"], *L2FWD_WORDS], env=self.env,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while "worker " not in self.process.stderr.readline():
            assert self.process.poll() is None
        return self

    def record(self, *arguments, **more):
        """As recording.record(); what mrctl says."""
        binary = self.path / "successor"
        binary.write_text(
            f"#!{sys.executable} -B\nimport sys, socket\nsys.path.insert(0, {str(HERE)!r})\n"
            f"import recording\nrecording.record(socket.socket(fileno=3), "
            f"*{list(map(str, arguments))}, **{more})\n", encoding="utf-8")
        binary.chmod(0o700)
        return self.ctl("upgrade", "--binary", binary).stderr

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(limit(10))
        self.process.stderr.close()
        self.folder.cleanup()


class Recorded(unittest.TestCase):
    def setUp(self):
        self.pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pair[0].settimeout(limit(30))
        for sock in self.pair:
            self.addCleanup(sock.close)
        self.folder = Folder()
        self.addCleanup(self.folder.folder.cleanup)
        self.listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.listener.close)
        self.listener.bind(str(self.folder.path / "recorded.sock"))
        self.listener.listen()
        self.listener.setblocking(False)

    def load(self, name):
        played = recording.Recording(path_of(name), self.listener)
        self.addCleanup(played.close)
        return played

    def start(self, *command):
        fd = self.pair[1].fileno()
        process = popen(command, pass_fds=[fd], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                        text=True, env={**self.folder.env, "MILLRACE_TAKE_OVER_FD": str(fd)})
        self.pair[1].close()
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def start_held(self):
        return self.start(PROGRAMS["held"], "new", str(self.pair[1].fileno()))

    def test_pages_counters_and_the_programs_state(self):
        process = self.start_held()
        self.assertEqual(self.load("held").play(self.pair[0]), (recording.NEW, ""))
        out = process.communicate(timeout=limit(30))[0]
        # Three pages, one of them sent twice, and a block of eight.
        self.assertEqual(out, "pages 11 accepted 9 pending 9 greeting hello\n")
        self.assertEqual(process.returncode, 0)

    def test_l2fwd_goes_on(self):
        played = self.load("l2fwd")
        process = self.start(PROGRAMS["l2fwd"], *L2FWD_WORDS)
        self.assertEqual(played.play(self.pair[0]), (recording.NEW, ""))
        now = self.folder.show()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=limit(30))
        self.assertEqual(process.returncode, 0, err)
        final = json.loads(out.splitlines()[-1])
        self.assertTrue(final["conserved"] and final["invariants_hold"], final)
        # It had forwarded for much longer than the new one can have.
        state = played.parcels["state"]
        for i, port in enumerate(now["ports"]):
            before = struct.unpack_from("=Q", state[f"port/{i}/rx/0"][1], 8)[0]
            self.assertGreater(before, 10 ** 8)
            self.assertGreaterEqual(port["queues"][0]["rx"]["received"], before)
        self.assertGreaterEqual(now["t"], recording.AGE_S)

    def check_refused(self, name, change, why):
        """The offer is; so the old process has stopped nothing."""
        played = self.load(name)
        entries = played.parcels["offer"]
        change(entries)
        del played.parcels["state"]
        command = [PROGRAMS["l2fwd"], *L2FWD_WORDS] if name == "l2fwd" else None
        process = self.start(*command) if command else self.start_held()
        self.assertEqual(played.play(self.pair[0]), (recording.OLD, why))
        self.assertEqual(process.wait(limit(30)), 1)

    def test_a_later_format_is_refused(self):
        def change(entries):
            entries["format"] = 0, struct.pack("=I", 2)
        self.check_refused("l2fwd", change, "the state has format 2, and this release reads 1 to 1")

    def test_another_layout_is_refused(self):
        def change(entries):
            entries["pool"] = 99, entries["pool"][1]
        self.check_refused("l2fwd", change,
                           "entry pool of the state has layout 99, and this release reads 1")

    def test_a_program_that_reads_other_formats_gets_nothing(self):
        with OldL2fwd() as old:
            said = old.record(old.path / "none", formats=(2, 3))
            self.assertIn("reads formats 2 to 3 of the state, and this one writes 1", said)
            self.assertFalse((old.path / "none").exists())

    def test_a_refusal_stops_no_worker(self):
        """After the offer; they would be other threads then."""
        with OldL2fwd() as old:
            old.show()  # they run
            threads = os.listdir(f"/proc/{old.process.pid}/task")
            self.assertIn("not today", old.record(old.path / "none", why="not today"))
            self.assertEqual(os.listdir(f"/proc/{old.process.pid}/task"), threads)

    def test_what_is_recorded_now_can_be_played(self):
        path = self.folder.path / "now"
        record_held(path, "")
        played = recording.Recording(path)
        self.addCleanup(played.close)
        self.start_held()
        self.assertEqual(played.play(self.pair[0]), (recording.NEW, ""))


def record_held(path, note):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        process = popen([PROGRAMS["held"], "old", str(theirs.fileno())],
                        pass_fds=[theirs.fileno()])
        recording.record(ours, path, note)
    process.wait(limit(10))


def record_all(commit):
    note = f"Format {FORMAT}, recorded from {commit}."
    record_held(path_of("held"), note)
    with OldL2fwd() as old:
        time.sleep(30)  # counters that no other process reaches so soon
        print(old.record(path_of("l2fwd"), note))


if __name__ == "__main__":
    is_record = sys.argv[1] == "--record"
    PROGRAMS.update(zip(("l2fwd", "mrctl", "held"), sys.argv[2 if is_record else 1:]))
    if is_record:
        record_all(subprocess.check_output(["git", "-C", HERE, "describe", "--always"],
                                           text=True).strip())
    else:
        unittest.main(argv=sys.argv[:1])
