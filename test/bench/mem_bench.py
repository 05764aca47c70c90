# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench mem [arguments of mr-bench mem]: the memory layer beside peers.

With root, huge pages are set aside for DPDK and for us while it runs.
"""
import os
import pathlib
import signal
import subprocess
import sys

import contestants as who

TOP = pathlib.Path(__file__).resolve().parents[2]


class HugePages(who.HugePages):
    """600 MB for rte_mempool, as much again for the pools beside it."""
    N_PAGES = 600


def main():
    command = [str(TOP / "build/apps/bench/mr-bench"), "mem", *sys.argv[1:]]
    if os.geteuid() != 0:
        print("bench mem: not root: both sides get small pages",
              file=sys.stderr)
        return subprocess.call(command)
    with HugePages() as pages:
        pages.top_up()
        # Ctrl-C is for mr-bench, which then reports what it has.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return subprocess.call(command, preexec_fn=default_signals)


def default_signals():
    """In the child: an ignored signal would stay ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
