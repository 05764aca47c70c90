# SPDX-License-Identifier: BSD-3-Clause
"""shellcheck finds nothing in any shell script of the tree."""
import re
import shutil
import subprocess

import tree


def is_shell(path):
    """Whether a file is a shell script, by its first line."""
    with open(tree.TOP / path, "rb") as file:
        return re.match(rb"#!\s*/\S*(?:/|\s)(?:ba|da)?sh\b",
                        file.readline()) is not None


def main():
    if not shutil.which("shellcheck"):
        tree.skip("shellcheck is missing")
    wrong = tree.Complaints()
    scripts = [path for path in tree.files()
               if path.suffix == ".sh" or is_shell(path)]
    for path in scripts:
        done = subprocess.run(["shellcheck", str(path)], cwd=tree.TOP,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            wrong.add(path, done.stdout.strip())
    wrong.end(len(scripts), "shell scripts")


main()
