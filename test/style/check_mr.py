#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr on a machine without our packages: --help works, and a misspelt command
is reported."""
import os
import re
import subprocess
import sys

from tree import TOP, limit


def mr(*arguments):
    """Run it; dpkg finds no package installed."""
    return subprocess.run(
        [TOP / "mr", *arguments], capture_output=True, text=True,
        timeout=limit(60), check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "DPKG_ADMINDIR": "/nonexistent",
             "MR_INSTALL": "no", "PYTHONDONTWRITEBYTECODE": "1"})


def main():
    usage = mr("help").stdout
    commands = re.findall(r"^  ([a-z]+) ", usage, re.M)
    assert {"build", "test", "bench"} <= set(commands), usage
    benches = [["bench", path.name[:-len("_bench.py")]] for path in
               (TOP / "test" / "bench").glob("*_bench.py")]
    wrong = []
    for words in [[c] for c in commands] + benches + [["guest", "run"],
                                                      ["guest", "shell"]]:
        done = mr(*words, "--help")
        said = done.stdout + done.stderr
        if done.returncode != 0 or "missing packages" in said \
                or "mr " not in said:
            wrong.append(f"mr {' '.join(words)} --help: {said[:400]}")
    done = mr("hlep")
    if done.returncode != 2 or done.stdout or \
            done.stderr.count("\n") != 1 or "'hlep'" not in done.stderr:
        wrong.append(f"mr hlep: {done}")
    print(*wrong, f"{len(commands)} commands, {len(wrong)} complaints",
          sep="\n")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
