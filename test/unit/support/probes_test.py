# SPDX-License-Identifier: BSD-3-Clause
"""Static probes: those that docs/operations.md lists are in the programs, and
no others; the scripts in examples/bpftrace use no others either.

usage: probes_test.py L2FWD NAT
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[3]
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", re.M)
NOTE = re.compile(r"Provider: (\w+)\n +Name: (\w+)\n.*\n +Arguments: (.*)")


def documented():
    """{name: (number of arguments, where)}"""
    text = (TREE / "docs" / "operations.md").read_text(encoding="utf-8")
    rows = text.partition("| probe of `millrace` |")[2].partition("\n\n")[0]
    return {name: (arguments, where)
            for name, arguments, where in ROW.findall(rows)}


def probes(program):
    """{name: set of numbers of arguments}"""
    done = subprocess.run(["readelf", "--notes", "--wide", program],
                          capture_output=True, text=True, check=True)
    found = {}
    for provider, name, arguments in NOTE.findall(done.stdout):
        if provider == "millrace":
            found.setdefault(name, set()).add(len(arguments.split()))
    return found


def main():
    if not shutil.which("readelf"):
        print("readelf is missing (package binutils)")
        return 77
    listed = documented()
    assert len(listed) == 6, listed
    n_arguments = {"burst": 3, "refill": 2, "completion": 2, "drop": 2,
                   "mapping_created": 5, "mapping_ended": 5}
    assert set(n_arguments) == set(listed)
    has_xdp = sys.argv[3] == "xdp"
    for program, name in zip(sys.argv[1:3], ("mr-l2fwd", "mr-nat")):
        wanted = {probe for probe, (_, where) in listed.items()
                  if f"`{name}`" in where or (has_xdp and "xdp:" in where)}
        assert probes(program) == {
            probe: {n_arguments[probe]} for probe in wanted}, program
    used = set()
    for script in (TREE / "examples" / "bpftrace").glob("*.bt"):
        used |= set(re.findall(r"usdt:\*:millrace:(\w+)",
                               script.read_text(encoding="utf-8")))
    assert used == set(listed), used
    return 0


if __name__ == "__main__":
    sys.exit(main())
