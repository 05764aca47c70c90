# SPDX-License-Identifier: BSD-3-Clause
"""The samples in config/ are listed, commented, and mean something today.

usage: check_config.py [MR_L2FWD MR_NAT MR_DEVICES]
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import tree
from tree import limit

try:
    import jsonschema
    import yaml
except ImportError:
    jsonschema = yaml = None

# What a program waits for, one after the other, after SIGTERM: a constant in
# ms, and how often. Two xdp: ports are closed.
FORWARDER_WAITS = (
    ("apps/support/dataplane.h", "DATAPLANE_JOIN_MS", 1),
    ("apps/support/dataplane.h", "DATAPLANE_DRAIN_MS", 1),
    ("apps/support/run.c", "STDOUT_MS", 2),
    ("apps/support/background.c", "CANCEL_MS", 1),
    ("drivers/xdp/socket/sockets.c", "CLOSE_WAIT_MS", 2),
    ("drivers/xdp/device/record.c", "UNDO_WAIT_MS", 2),
)
NAT_WAITS = (
    *FORWARDER_WAITS,
    ("apps/nat/**/keep.c", "DISK_MS", 2),
    ("apps/nat/**/log.c", "LOG_MS", 2),
    ("apps/support/background.c", "CANCEL_MS", 2),
)
STOP_WAITS = {"mr-l2fwd@.service": FORWARDER_WAITS,
              "mr-nat@.service": NAT_WAITS}


def check_stop(wrong, path):
    """systemd does not kill a program that still has time to stop."""
    limit = re.search(r"^TimeoutStopSec=(\d+)$", tree.text(path), re.M)
    if path.name not in STOP_WAITS or limit is None:
        return
    need_ms = 0
    for pattern, name, n in STOP_WAITS[path.name]:
        source, = tree.TOP.glob(pattern)
        need_ms += n * int(re.search(rf"\b{name} = (\d+)",
                                     source.read_text()).group(1))
    if int(limit.group(1)) * 1000 <= need_ms:
        wrong.add(path, f"TimeoutStopSec={limit.group(1)}, but the program's "
                        f"own deadlines add up to {need_ms / 1000:g} s")


def check_unit(wrong, path):
    """systemd finds nothing wrong in a unit. Whether it was asked."""
    if not shutil.which("systemd-analyze"):
        return False
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name.replace("@", "@check")
        # The program is not installed where tests run, nor is its page.
        unit = re.sub(r"^(Exec\w+)=\S+", r"\1=/bin/true",
                      tree.text(path), flags=re.M)
        unit = re.sub(r"^Documentation=.*\n", "", unit, flags=re.M)
        copy.write_text(unit)
        sockets = [shutil.copy(socket, folder) for socket in
                   (tree.TOP / path.parent).glob(f"{path.stem}.socket")]
        done = subprocess.run(["systemd-analyze", "verify", str(copy),
                               *sockets],
                              capture_output=True, text=True, check=False,
                              timeout=limit(60))
        for line in (done.stdout + done.stderr).splitlines():
            if copy.name in line or done.returncode != 0:
                wrong.add(path, line)
    return True


def check_options(wrong, paths, program):
    """The options in samples of a program are options that it has."""
    name = Path(program).name
    said = subprocess.run([program, "--help"], capture_output=True, text=True,
                          check=True, timeout=limit(20)).stdout
    for path in paths:
        if not re.search(rf"\b{name}\b", tree.text(path)):
            continue
        for line in re.findall(r"^(?:OPTIONS|Exec\w+)=.*", tree.text(path),
                               re.M):
            if line.startswith("Exec") and name not in line:
                continue
            for option in re.findall(r"--[\w-]+", line):
                if not re.search(rf"{option}\b", said):
                    wrong.add(path, f"{name} has no option {option}")


def keys_of(schema):
    """Each key of a configuration file: its name, default, and whether it is fixed."""
    for name, key in schema["properties"].items():
        forms = [key, *key.get("anyOf", [])]
        for form in [*forms, *(form["items"] for form in forms if "items" in form)]:
            if "properties" in form:
                yield from keys_of(form)
        said = key.get("description", "")
        default = re.search(r"default: ([^;]*)", said)
        yield name, default and default[1], "fixed" in said


def fixed_of(page):
    """The keys that its page calls fixed at run time: in a sentence, or in a column."""
    section = page.partition("## What a reload cannot change\n")[2]
    if section:
        return set(re.findall(r"`(\w+)`", section.partition(". ")[0]))
    rows = re.findall(r"^\| (`.*?) \|.*\| ([^|]*) \|$|^\| (`.*?) \|.*\| \|$", page, re.M)
    return {name for _, _, names in rows for name in re.findall(r"`(\w+)`", names)}


def check_keys(wrong, path, schema):
    """docs/ has each key, its default, and whether it is fixed."""
    page, fixed = tree.text(path), set()
    for name, default, is_fixed in keys_of(schema):
        cells = re.findall(rf"^\|[^|]*`{name}`[^|]* \|.*?\| ([^|]*) \|(?: [^|]*\|)?$", page, re.M)
        if not cells and not re.search(rf"\b{name}: |`{name}`", page):
            wrong.add(path, f"says nothing about {name}")
        if cells and default and default != "none" and not any(
                cell.strip("`").startswith(default) for cell in cells):
            wrong.add(path, f"{name} is {default} by default")
        if is_fixed:
            fixed.add(name)
    for name in fixed ^ fixed_of(page):
        wrong.add(path, f"whether a reload can change {name}")


def check_program(wrong, paths, program):
    """It takes its samples, as its schema does, and has the keys that docs/ describes."""
    name = Path(program).name.removeprefix("mr-")
    schema = json.loads(subprocess.run([program, "--schema"], capture_output=True, check=True,
                                       timeout=limit(20)).stdout)
    samples = [path for path in paths if path.parts[1] == name]
    for path in samples:
        # Its folders are those of a machine that has the packages.
        with tempfile.TemporaryDirectory() as folder:
            sample = Path(folder, path.name)
            sample.write_text(re.sub(r"/var/(lib|log)/millrace", folder, tree.text(path)),
                              encoding="utf-8")
            done = subprocess.run([program, "--check", "--config", sample], capture_output=True,
                                  text=True, check=False, timeout=limit(20))
        if done.returncode != 0 or done.stderr:
            wrong.add(path, done.stderr.strip())
        if jsonschema is None or yaml is None:
            continue
        for error in jsonschema.Draft7Validator(schema).iter_errors(
                yaml.safe_load(tree.text(path))):
            wrong.add(path, f"--schema of {program}: {error.message}")
    check_keys(wrong, f"docs/{name}-config.md", schema)
    if not samples:
        wrong.add(f"config/{name}", "no samples")


@tree.check("samples")
def main(wrong):
    readme = tree.text("config/README.md")
    paths = [path for path in tree.files() if path.parts[0] == "config"
             and path.parts[1] != "package"
             and path.name not in ("README.md", "meson.build")]
    for path in paths:
        if f"`{path}`" not in readme:
            wrong.add(path, "is not in config/README.md")
        if path.suffix != ".json" and not re.search(
                r"^# .* .* ", tree.text(path), re.M):
            wrong.add(path, "no comment says why")
        check_stop(wrong, path)
        if path.suffix == ".service" and not check_unit(wrong, path):
            print("systemd-analyze is missing: units were not verified")
    for program in sys.argv[1:]:
        check_options(wrong, paths, program)
    for program in sys.argv[1:3]:
        check_program(wrong, paths, program)
    return len(paths)
