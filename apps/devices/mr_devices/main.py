# SPDX-License-Identifier: BSD-3-Clause
"""The command line of mr-devices."""

import contextlib
from collections.abc import Callable
from typing import NamedTuple

from mr_devices import bind, doctor, owner, show
from mr_devices.device import Device, read_device
from mr_devices.library import Failure
from mr_devices.machine import NOTES, Machine
from mr_support import program
from mr_support.options import Option, Wrong, parse
from mr_support.text import print_error

MAX_ADDRESSES = 64
MAX_ROOT = 127
FINDINGS = 3  # exit status of doctor, if there are any
USAGE = """\
usage: mr-devices [options] [list]
       mr-devices [options] info BDF
       mr-devices [options] bind BDF...
       mr-devices [options] unbind BDF... | --all
       mr-devices [options] doctor IFACE
List network devices, bind them to vfio-pci for vfio: ports, and
return them to their kernel driver. doctor: what makes xdp: ports fail
or run slowly on an interface, and the commands that fix it.

BDF is the address of a PCI function, 0000:03:00.0 or 03:00.0.
"""
OPTIONS = [
    Option("all", "", "list: all devices, not only NICs; unbind: all"),
    Option("json", "", "list, info, doctor: print one JSON object", letter="j"),
    Option("cores", "LIST", "doctor: the workers' cores, such as 1,3-5", letter="c"),
    Option("force", "", "bind: even if this machine uses the device"),
    Option("owner", "USER", "bind: USER or USER:GROUP may open the devices"),
    Option("root", "DIR", "look for /sys, /proc, /dev and /run below DIR"),
]
Given = dict[str, list[str]]


def _show(machine: Machine, given: Given, bdfs: list[str]) -> int:
    """One device, or all network devices, or with --all everything on the bus."""
    devices: list[Device] = []
    try:
        for bdf in [] if bdfs else machine.names("/sys/bus/pci/devices"):
            with contextlib.suppress(Failure):  # it may have gone meanwhile
                devices.append(read_device(machine, bdf))
    except OSError:
        raise Failure("this machine has no PCI bus: no /sys/bus/pci/devices") from None
    devices = [device for device in devices if device.is_nic or "all" in given]
    devices += [read_device(machine, bdf) for bdf in bdfs]
    if "json" in given:
        show.print_json(devices)
    elif bdfs:
        show.print_info(machine, devices[0])
    else:
        show.print_list(devices)
    return 0


def _bind(machine: Machine, given: Given, bdfs: list[str]) -> int:
    user = owner.parse(given["owner"][-1]) if "owner" in given else None
    machine.lock()
    bind.bind(machine, bdfs, "force" in given, user)
    return 0


def _unbind(machine: Machine, given: Given, bdfs: list[str]) -> int:
    """Return as many as possible, whatever happens to the others."""
    machine.lock()
    if "all" in given:
        bdfs = machine.names_if_any(NOTES)
        if not bdfs:
            print("mr-devices has bound no devices")
    status = 0
    for bdf in bdfs:
        try:
            bind.unbind(machine, bdf)
        except Failure as failure:
            print_error(f"mr-devices: {failure}")
            status = 1
    return status


def _doctor(machine: Machine, given: Given, names: list[str]) -> int:
    cores: set[int] = set()
    try:
        for text in given.get("cores", []):
            cores = doctor.cores_of(text)
            if not cores:
                raise ValueError
    except ValueError:
        raise Wrong(f"--cores: '{text}' is not a list of cores such as 1,3-5") from None
    shown = doctor.examine(machine, names[0], cores)
    if "json" in given:
        show.print_object(shown)
    else:
        doctor.print_findings(shown)
    return FINDINGS if shown["findings"] else 0


class Command(NamedTuple):
    """The options of a command, and how many addresses or interfaces it takes."""

    run: Callable[[Machine, Given, list[str]], int]
    options: set[str]
    n_least: int = 0
    n_most: int = 0
    noun: str = "addresses"
    example: str = "an address, such as 0000:03:00.0; see 'mr-devices list'"


COMMANDS = {
    "list": Command(_show, {"all", "json"}),
    "info": Command(_show, {"json"}, 1, 1),
    "bind": Command(_bind, {"force", "owner"}, 1, MAX_ADDRESSES),
    "unbind": Command(_unbind, {"all"}, 1, MAX_ADDRESSES),
    "doctor": Command(
        _doctor, {"cores", "json"}, 1, 1, "interface", "an interface, such as eth0; see 'ip link'"
    ),
}


def _check(word: str, given: Given, bdfs: list[str]) -> None:
    """Raises Wrong."""
    command = COMMANDS[word]
    for name in given:
        if name not in command.options | {"root"}:
            raise Wrong(f"{word} has no option --{name}")
    if len(given.get("root", [""])[-1]) > MAX_ROOT:
        raise Wrong(f"--root: more than {MAX_ROOT} characters")
    is_all = word == "unbind" and "all" in given
    if is_all and bdfs:
        raise Wrong("unbind takes either addresses or --all")
    if len(bdfs) < command.n_least and not is_all:
        raise Wrong(f"{word} requires {command.example}")
    if len(bdfs) > command.n_most:
        raise Wrong(f"{word} takes at most {command.n_most} {command.noun}")


def run(words: list[str]) -> int:
    """Run a command line without the program name. Returns the exit status."""
    try:
        parsed = parse(words, USAGE, OPTIONS, statuses="; 3 if doctor found something")
        if parsed is None:
            return 0
        given, (word, *bdfs) = parsed[0], parsed[1] or ["list"]
        if word not in COMMANDS:
            raise Wrong(f"unknown command '{word}'; valid: {' '.join(COMMANDS)}")
        _check(word, given, bdfs)
        machine = Machine(given.get("root", [""])[-1])
        return COMMANDS[word].run(machine, given, bdfs)
    except (Wrong, Failure) as error:
        print_error(f"mr-devices: {error}")
        return 2 if isinstance(error, Wrong) else 1


def main() -> None:
    """Run sys.argv to the end of the program."""
    program.start("mr-devices", run)
