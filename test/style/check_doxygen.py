# SPDX-License-Identifier: BSD-3-Clause
"""doxygen has nothing to say about the public headers.

usage: check_doxygen.py DOXYFILE
"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import tree
from tree import limit


@tree.check("pages of headers")
def main(wrong):
    if not shutil.which("doxygen"):
        tree.skip("doxygen is missing")
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(sys.argv[1]).read_text() + \
            f"\nOUTPUT_DIRECTORY = {folder}\n"
        done = subprocess.run(["doxygen", "-"], input=settings, text=True,
                              capture_output=True, check=False,
                              timeout=limit(120))
        for line in done.stderr.splitlines():
            if "warning:" in line or "error:" in line:
                wrong.add("doxygen", line)
        if done.returncode != 0 and wrong.n == 0:
            wrong.add("doxygen", f"exit status {done.returncode}: "
                      f"{done.stderr}")
        pages = list(Path(folder).glob("html/*_8h.html"))
    return len(pages)
