#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Boot a guest and run a command in it.

    run.py [--kernel 7.2] [--nic igb --nic igb] [--program FILE]... -- COMMAND

NICs are nic0, nic1, ... . --wire hub joins all of them on one hub, so that
what nic0 sends comes in on nic1; --wire peer gives each a second NIC at the
other end of its cable, peer0, peer1, ..., which the guest's kernel drives.
Exit status: the command's; 77 if there is no QEMU or kernel to be had.
"""
import argparse
import sys
import time

from fetch import Missing
from guest import COMMAND_LIMIT_S, Guest, Nic


def make_nics(models, wiring):
    """The NICs of the command line."""
    nics = []
    for i, model in enumerate(models):
        hub = {"hub": 0, "peer": i}.get(wiring)
        nics.append(Nic(f"nic{i}", model, hub))
        if wiring == "peer":
            nics.append(Nic(f"peer{i}", "virtio-net-pci", hub))
    return nics


def main():
    """Boot, run, print, end."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kernel", default="newest", metavar="VERSION",
                        help="6.1, 6.12, 7.2, ... (default: newest)")
    parser.add_argument("--nic", action="append", default=[], metavar="MODEL",
                        help="igb, e1000e, virtio-net-pci; may be repeated")
    parser.add_argument("--wire", choices=["hub", "peer"], default="peer",
                        help="what the NICs are joined with (default: peer)")
    parser.add_argument("--program", action="append", default=[],
                        metavar="FILE", help="to take along, as /bin/NAME")
    parser.add_argument("--module", action="append", default=[],
                        help="a kernel module to load")
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("--accel", default="tcg",
                        help="kvm, where there is one (default: tcg)")
    parser.add_argument("--limit", type=float, default=COMMAND_LIMIT_S,
                        metavar="S", help="longest time for the command")
    parser.add_argument("command", nargs="+", help="for the guest's shell")
    args = parser.parse_args()
    began_s = time.monotonic()
    try:
        with Guest(nics=make_nics(args.nic, args.wire), kernel=args.kernel,
                   programs=args.program, modules=args.module,
                   n_cpus=args.cpus, accel=args.accel) as guest:
            print(f"guest: up in {time.monotonic() - began_s:.1f} s, "
                  f"{guest.kernel.name}", file=sys.stderr)
            status, text = guest.run(" ".join(args.command), args.limit)
            print(text, end="")
            return status
    except Missing as why:
        print(f"guest: {why}", file=sys.stderr)
        return 77
    except TimeoutError as why:
        print(f"guest: {why}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
