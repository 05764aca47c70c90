# SPDX-License-Identifier: BSD-3-Clause
"""The samples in config/ are listed, commented, and mean something today.

usage: check_config.py [MR_L2FWD]
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import tree


def check_unit(wrong, path):
    """systemd finds nothing wrong in a unit. Whether it was asked."""
    if not shutil.which("systemd-analyze"):
        return False
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name.replace("@", "@check")
        # The program is not installed where tests run, nor is its page.
        unit = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true",
                      tree.text(path), flags=re.M)
        unit = re.sub(r"^Documentation=.*\n", "", unit, flags=re.M)
        copy.write_text(unit)
        done = subprocess.run(["systemd-analyze", "verify", str(copy)],
                              capture_output=True, text=True, check=False,
                              timeout=60)
        for line in (done.stdout + done.stderr).splitlines():
            if copy.name in line or done.returncode != 0:
                wrong.add(path, line)
    return True


def main():
    wrong = tree.Complaints()
    readme = tree.text("config/README.md")
    paths = [path for path in tree.files() if path.parts[0] == "config"
             and path.name not in ("README.md", "meson.build")]
    for path in paths:
        if f"`{path}`" not in readme:
            wrong.add(path, "is not in config/README.md")
        if not re.search(r"^# .* .* ", tree.text(path), re.M):
            wrong.add(path, "no comment says why")
        if path.suffix == ".service" and not check_unit(wrong, path):
            print("systemd-analyze is missing: units were not verified")
    if len(sys.argv) > 1:
        said = subprocess.run([sys.argv[1], "--help"], capture_output=True,
                              text=True, check=True, timeout=20).stdout
        for path in paths:
            for option in re.findall(r"^(?:OPTIONS|ExecStart)=.*", tree.text(
                    path), re.M):
                for name in re.findall(r"--[\w-]+", option):
                    if not re.search(rf"{name}\b", said):
                        wrong.add(path, f"mr-l2fwd has no option {name}")
    wrong.end(len(paths), "samples")


main()
