# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench: measure. One command per kind of measurement.

A command is a module, imported if it is asked for, with main(words) -> exit
status; one with several commands has them in COMMANDS.
"""

import importlib

from mr_support import program
from mr_support.text import print_error

# name: what it does, and its module.
COMMANDS = {
    "tx": ("send frames", "trial"),
    "rx": ("receive them, and report losses", "trial"),
    "loop": ("send and receive: loss, order and latency", "trial"),
    "reflect": ("send back received frames", "relay"),
    "replay": ("send the frames of a capture, with its gaps", "relay"),
    "throughput": ("the highest rate that a device forwards", "rfc2544"),
    "frameloss": ("loss by rate", "rfc2544"),
    "back2back": ("the longest burst without loss", "rfc2544"),
    "latency": ("latency at shares of the throughput", "rfc2544"),
    "imix": ("throughput with a mix of sizes", "rfc2544"),
    "nat": ("a NAT's connections: rate, capacity (RFC 9693)", "nat"),
    "qualify": ("all figures of two ports that a cable joins", "qualify"),
    "selftest": ("the tester's own limits and accuracy", "selftest"),
    "compare": ("compare results, with a verdict", "compare"),
    "report": ("results as an HTML page with charts", "report"),
}

HELP = """\
usage: mr-bench COMMAND [options] [...]
Measure the devices between ports.

Commands (see COMMAND --help):
{commands}

  -h, --help     print this help
  -V, --version  print the version

Exit status: 0; 1 on failure or if a goal was missed; 2 on a usage error."""


def print_help() -> int:
    """Exit status."""
    print(
        HELP.format(
            commands="\n".join(f"  {name:12} {what}" for name, (what, _) in COMMANDS.items())
        )
    )
    return 0


def run(words: list[str]) -> int:
    """A command line without the program; the exit status."""
    word = words[0] if words else None
    if word in ("-h", "--help"):
        return print_help()
    if word in ("-V", "--version"):
        print("mr-bench", program.version())
        return 0
    if word not in COMMANDS:
        what = "no command" if word is None else f"unknown command '{word}'"
        print_error(f"mr-bench: {what}; valid: {' '.join(COMMANDS)}")
        return 2
    try:
        command = importlib.import_module(f"mr_bench.{COMMANDS[word][1]}")
        commands = getattr(command, "COMMANDS", None)
        run_it = commands[word].main if commands else command.main
        return int(run_it(words[1:]))
    except ModuleNotFoundError as missing:
        package = f"python3-{(missing.name or '').partition('.')[0]}"
        print_error(
            f"mr-bench {word}: Python has no module {missing.name}; install the package {package}"
        )
        return 1


def main() -> None:
    """Run sys.argv to the end of the program."""
    program.start("mr-bench", run)
