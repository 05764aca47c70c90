# SPDX-License-Identifier: BSD-3-Clause
"""progress.py: what a log has of a long measurement."""
import time

from mr_bench.progress import LOG_S, Progress


def test_a_log_has_a_line_now_and_then(capfd, monkeypatch):
    now_s = 1e5
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    progress = Progress(False)
    for _ in range(2 * LOG_S + 1):
        progress.show(9, "trial")
        progress.clear()
        now_s += 1
    assert capfd.readouterr().err == 2 * "mr-bench: trial, about 9 s left\n"
    Progress(True).show(9, "trial")
    assert capfd.readouterr().err == ""
