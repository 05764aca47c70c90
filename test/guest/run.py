#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
r"""Boot a guest and run a command in it; without one, a shell for a person.

    ./mr guest run --nic igb -- mr-l2fwd --duration 3 vfio:0000:00:02.0 null:
    ./mr guest shell --nic igb --nic virtio-packed
    ./mr guest run --nic e1000e --vfio --dpdk -- mr-l2fwd --duration 3 \
        dpdk:0000:00:02.0 null:

NICs are nic0, nic1, ... . --wire hub joins all of them on one hub, so that
what nic0 sends comes in on nic1; --wire peer gives each a second NIC at the
other end of its cable, peer0, peer1, ..., which the guest's kernel drives.
--vfio gives nic0, nic1, ... to vfio-pci: our drivers have them then.
--dpdk takes DPDK's drivers along, and ours for dpdk: ports, with huge pages.
Exit status: the command's; 77 if there is no QEMU or kernel to be had.
"""
import argparse
import os
import select
import sys
import termios
import time
import tty

import dpdk
from fetch import Missing
from guest import BUILD, COMMAND_LIMIT_S, KINDS, Guest, Nic


def make_nics(kinds, wiring):
    nics = []
    for i, kind in enumerate(kinds):
        if wiring == "hub":
            nics.append(Nic(f"nic{i}", kind, wire=0))
            continue
        nics.append(Nic(f"nic{i}", kind, peer=f"peer{i}"))
        nics.append(Nic(f"peer{i}", "virtio-net", peer=f"nic{i}"))
    return nics


def our_programs():
    """What was built and is of use in a guest."""
    names = ["apps/l2fwd/mr-l2fwd", "apps/nat/mr-nat",
             "apps/devices/mr-devices", "test/netns/netns-probe",
             "test/conformance/conformance"]
    return [BUILD / name for name in names if (BUILD / name).exists()]


def talk(guest):
    """Join our terminal with a shell on a serial line until it ends."""
    line = guest.channels[0]
    guest.start(f"setsid sh -c 'exec sh -i <>{line.device} >&0 2>&1'")
    print("guest: ends with 'exit' or Ctrl-]", file=sys.stderr)
    saved = None
    if sys.stdin.isatty():
        saved = termios.tcgetattr(sys.stdin)
        tty.setraw(sys.stdin)
    inputs = [line.socket, guest.process.stdout]
    try:
        while True:
            ready, _, _ = select.select(inputs, [], [])
            if line.socket in ready:
                os.write(sys.stdout.fileno(), line.socket.recv(65536))
                if sys.stdin not in inputs:  # the shell hears us now
                    inputs.append(sys.stdin)
            if guest.process.stdout in ready:
                break  # the shell ended
            if sys.stdin in ready:
                data = os.read(sys.stdin.fileno(), 1024)
                if not data or b"\x1d" in data:
                    break
                line.socket.sendall(data)
    finally:
        if saved is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)


def parse():
    parser = argparse.ArgumentParser(
        prog="./mr guest run", description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kernel", default="newest", metavar="VERSION",
                        help="6.1, 6.12, 7.2, ... (default: newest)")
    parser.add_argument("--nic", action="append", default=[], metavar="KIND",
                        choices=KINDS,
                        help=f"{', '.join(KINDS)}; may be repeated")
    parser.add_argument("--wire", choices=["hub", "peer"], default="peer",
                        help="what the NICs are joined with (default: peer)")
    parser.add_argument("--vfio", action="store_true",
                        help="give the NICs to vfio-pci")
    parser.add_argument("--dpdk", action="store_true",
                        help="take DPDK and our driver for it along")
    parser.add_argument("--program", action="append", default=[],
                        metavar="FILE", help="to take along, as /bin/NAME, "
                        "beside our own")
    parser.add_argument("--module", action="append", default=[],
                        help="a kernel module to load")
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("--accel", default="tcg",
                        help="kvm, where there is one (default: tcg)")
    parser.add_argument("--limit", type=float, default=COMMAND_LIMIT_S,
                        metavar="S", help="longest time for the command")
    parser.add_argument("command", nargs="*", help="for the guest's shell")
    return parser.parse_args()


def main():
    args = parse()
    nics = make_nics(args.nic, args.wire)
    began_s = time.monotonic()
    files, memory = [], {}
    try:
        if args.dpdk:
            files, memory = dpdk.files_of_ours(), dpdk.MEMORY
        with Guest(nics=nics, kernel=args.kernel,
                   programs=[*args.program, *our_programs()], files=files,
                   modules=args.module, n_cpus=args.cpus,
                   accel=args.accel, **memory) as guest:
            print(f"guest: up in {time.monotonic() - began_s:.1f} s, "
                  f"{guest.kernel.name}", file=sys.stderr)
            if args.dpdk:
                dpdk.prepare(guest)
            for nic in nics:
                if args.vfio and nic.name.startswith("nic"):
                    guest.bind(nic, "vfio-pci")
                print(f"guest: {nic.name} is {nic.bdf}, {nic.kind}",
                      file=sys.stderr)
            if not args.command:
                talk(guest)
                return 0
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
