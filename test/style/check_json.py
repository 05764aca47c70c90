# SPDX-License-Identifier: BSD-3-Clause
"""What a program prints with --json is what its schema says.

usage: check_json.py PROGRAM SCHEMA ARGUMENT...    (ports that every machine has)
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import tree
from tree import limit

try:
    import jsonschema
except ImportError:
    tree.skip("python3-jsonschema is missing")

# More than a second, so that there is a line besides the final one.
OPTIONS = ["--json", "--duration", "1.5"]


@tree.check("objects")
def main(wrong):
    program, schema_path, *arguments = sys.argv[1:]
    schema = json.loads(Path(schema_path).read_text())
    # A folder of its own, for programs that can be found while they run.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, *OPTIONS, *arguments],
                              env={**os.environ, "RUNTIME_DIRECTORY": folder},
                              capture_output=True, text=True, check=False,
                              timeout=limit(30))
    if done.returncode != 0:
        wrong.add(program, f"exit status {done.returncode}: {done.stderr}")
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for number, line in enumerate(lines, 1):
        for error in validator.iter_errors(line):
            where = "/".join(map(str, error.absolute_path))
            wrong.add(f"line {number}", f"{where}: {error.message}")
    if [bool(line.get("final")) for line in lines] != \
            [False] * (len(lines) - 1) + [True]:
        wrong.add(program, "the last line, and no other, has final")
    # A schema that allows everything would have passed all of the above.
    if not list(validator.iter_errors({"v": 1})):
        wrong.add(schema_path, "accepts an object without ports")
    if len(lines) < 2:
        wrong.add(program, "no line besides the final one")
    return len(lines)
