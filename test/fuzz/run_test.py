#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""test/fuzz/run fails if a failure can be reproduced, and only then."""
import subprocess
import sys
import tempfile
from pathlib import Path

RUN = Path(__file__).with_name("run")
LEAVES_INPUT = 'for a; do case $a in -artifact_prefix=*) >"${a#*=}in";; esac; done; '
CASES = [  # what the program does, exit code of run, what run says
    ("echo fine", 0, "fine"),
    (LEAVES_INPUT + "exit 1", 1, "failed-x/in"),
    ("exit 1", 1, "fails again: "),  # without an input: the whole run again
    (LEAVES_INPUT + 'test -e "$0.ran" || { >"$0.ran"; exit 1; }', 0,
     "did not happen again"),
]


def main():
    for script, code, says in CASES:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "fuzz-x"
            program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            program.chmod(0o755)
            done = subprocess.run([RUN, program, "5"], capture_output=True,
                                  text=True, timeout=60, check=False)
            assert done.returncode == code, (script, done)
            assert says in done.stdout, (script, done)
            assert "-runs=5 -seed=1" in done.stdout, done


if __name__ == "__main__":
    sys.exit(main())
