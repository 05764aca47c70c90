# SPDX-License-Identifier: BSD-3-Clause
"""The machine itself: a run that is killed leaves nothing behind."""
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import boot
from guest import BOOT_LIMIT_S, END_LIMIT_S, Guest

HERE = Path(__file__).resolve().parent


def processes_of(folder):
    """Those whose command line has this folder in it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(folder) in path.read_bytes():
                found.append(path.parent.name)
        except OSError:  # it has just ended
            pass
    return found


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_killed(tmp_path, how):
    """No process and no file is left, and nobody has to take them away."""
    boot(())  # skips where there can be none
    with subprocess.Popen(
            [sys.executable, HERE / "run.py", "--limit", "100", "--",
             "sleep 100"], env=dict(os.environ, TMPDIR=str(tmp_path)),
            stderr=subprocess.PIPE, start_new_session=True,
            text=True) as run:
        line = run.stderr.readline()
        assert line.startswith("guest: up"), line
        assert processes_of(tmp_path) and list(tmp_path.iterdir())
        os.killpg(run.pid, how)
        run.wait(BOOT_LIMIT_S)
    deadline = time.monotonic() + END_LIMIT_S
    while processes_of(tmp_path) or list(tmp_path.iterdir()):
        assert time.monotonic() < deadline, (processes_of(tmp_path),
                                             list(tmp_path.iterdir()))
        time.sleep(0.1)


def test_an_orphan_that_ends_takes_no_words_away():
    """It ends when half of the next command has come."""
    with boot(()) as guest:
        guest.run("sleep 0.5 &")
        guest.process.stdin.write(b"echo all ")
        time.sleep(2)
        guest.start("of it")
        assert guest.finish() == (0, "all of it\n")


def test_a_boot_that_hangs_is_tried_again(monkeypatch):
    """Once; the first has no time here."""
    limits_s = iter([0.1, BOOT_LIMIT_S])
    read = Guest._read_until
    monkeypatch.setattr(Guest, "_read_until", lambda self, mark, limit_s: read(
        self, mark, next(limits_s) if mark == b"@@ready\n" else limit_s))
    with boot(()) as guest:
        assert guest.run("true") == (0, "")
    assert next(limits_s, None) is None
