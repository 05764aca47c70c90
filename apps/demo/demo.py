#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr demo: two hosts talk through mr-l2fwd, then a generator at full speed.

    host a                   forwarder                  host b
    eth0 10.77.0.1 ==== porta -- mr-l2fwd -- portb ==== eth0 10.77.0.2
               veth                                  veth

Three network namespaces; the one that the demo was started in is not touched.
Without root the same is shown on pcap: and pair: ports.
"""
import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import rootless
from forwarder import Failed, Forwarder
from hosts import Namespace, end, is_root, wire

HERE = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
ADDRESS_A, ADDRESS_B = "10.77.0.1", "10.77.0.2"
TCP_PORT = 5001
TRANSFER_BYTES = 64 << 20
LIMIT_S = 60


def make_hosts(stack):
    """Two hosts and the namespace of the forwarder between them."""
    hosts = []
    for label in ("host a", "host b", "forwarder"):
        hosts.append(Namespace(label))
        stack.callback(hosts[-1].close)
    host_a, host_b, between = hosts
    wire(host_a, "eth0", f"{ADDRESS_A}/24", between, "porta")
    wire(host_b, "eth0", f"{ADDRESS_B}/24", between, "portb")
    return host_a, host_b, between


def show_ping(host_a):
    """Ping host b from host a."""
    print(f"\nping {ADDRESS_B} from host a")
    # All at once, so that ping waits 5 s for the last answer.
    said = host_a.run("ping", "-c", "3", "-l", "3", "-i", "5", "-W", "8",
                      ADDRESS_B)
    for line in said.splitlines():
        if "bytes from" in line or "packets transmitted" in line:
            print(f"  {line}")
    lost = re.search(r"([\d.]+)% packet loss", said)
    if lost is None or float(lost.group(1)) > 0:
        raise Failed("ping lost packets")


def show_transfer(host_a, host_b):
    """A TCP transfer from host a to host b, compared by hash."""
    print(f"\nTCP, {TRANSFER_BYTES >> 20} MiB from host a to host b, the "
          "hosts' offloads as the kernel sets them")
    server = host_b.popen(PYTHON, HERE / "transfer.py", "receive", TCP_PORT,
                          stdout=subprocess.PIPE, text=True)
    try:
        if server.stdout.readline() != "ready\n":
            raise Failed("the TCP server did not start")
        sent = host_a.run(PYTHON, HERE / "transfer.py", "send", ADDRESS_B,
                          TCP_PORT, TRANSFER_BYTES, limit_s=LIMIT_S)
        received = server.communicate(timeout=LIMIT_S)[0].split()
    finally:
        end(server, signal.SIGKILL)
        server.stdout.close()
    if sent.split()[2] != received[2]:
        raise Failed("the received bytes differ from those sent")
    bits = int(received[0]) * 8 / float(received[1])
    print(f"  {int(received[0]):,} bytes in {float(received[1]):.2f} s, "
          f"{bits / 1e9:.2f} Gbit/s, the same SHA-256 at both ends")


def start_generator(host_a, build, seconds, busy_core):
    """Start the best generator that runs here; (process, what it is)."""
    cores = sorted(os.sched_getaffinity(0))
    core = next((c for c in reversed(cores) if c != busy_core), cores[-1])
    for port, what in (("live:eth0", "frames generated in the kernel"),
                       ("xdp:eth0", "frames sent by AF_XDP")):
        process = host_a.popen(build / "apps/bench/mr-bench", "tx", port,
                               "--cores", core, "--duration", seconds,
                               "--quiet", stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, text=True)
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            return process, f"{what}, core {core}"
    raise Failed(process.stderr.read().strip())


def worker_core(said):
    """The core of the forwarder's first worker, or None."""
    found = re.search(r"^worker 0: core (\d+)", "\n".join(said), re.M)
    return int(found[1]) if found else None


def n_received(host):
    """How many frames the host's interface has received."""
    link, = json.loads(host.run("ip", "-s", "-j", "link", "show", "eth0"))
    return link["stats64"]["rx"]["packets"]


def show_full_speed(stack, forwarder, hosts, build, seconds):
    """The generator, with the forwarder's reports."""
    host_a, host_b = hosts
    n_before = n_received(host_b)
    generator, what = start_generator(host_a, build, seconds + 2,
                                      worker_core(forwarder.said()))
    stack.callback(end, generator, signal.SIGKILL)
    print(f"\nfull speed for {seconds:g} s, 60-byte frames from host a: {what}")
    time.sleep(1)  # until it runs evenly
    forwarder.show(seconds)
    errors = generator.communicate(timeout=LIMIT_S)[1].strip().splitlines()
    if generator.returncode != 0:
        raise Failed(f"the generator ended with {generator.returncode}: "
                     f"{(errors or ['no output'])[-1]}")
    n = n_received(host_b) - n_before
    print(f"  host b received {n:,} frames")
    if n == 0:
        raise Failed("no frame of the generator reached host b")


def with_root(stack, build, options):
    """The demo on AF_XDP ports."""
    host_a, host_b, between = make_hosts(stack)
    forwarder = Forwarder([build / "apps/l2fwd/mr-l2fwd", *options.form,
                           "porta", "portb"], between.command)
    stack.callback(forwarder.close)
    forwarder.wait_ready()
    print(*(line for line in forwarder.said() if line.startswith("port ")),
          sep="\n")
    try:
        show_ping(host_a)
        show_transfer(host_a, host_b)
        show_full_speed(stack, forwarder, (host_a, host_b), build,
                        options.seconds)
    except (OSError, Failed, subprocess.SubprocessError):
        forwarder.check()  # if it has ended, that is the reason
        raise
    forwarder.stop()


def on_signal(number, _frame):
    """End as on Ctrl-C: by an exception, so that everything is undone."""
    raise SystemExit(128 + number)


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(prog="./mr demo")
    parser.add_argument("--seconds", type=float, default=10,
                        help="how long the generator runs (%(default)s)")
    parser.add_argument("--json", dest="form", action="store_const",
                        const=["--json"], default=[],
                        help="reports as JSON; the last line is the final one")
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not 1 <= options.seconds <= 3600:
        parser.error("--seconds is 1 to 3600")
    return options


def main():
    options = arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    show = with_root if is_root() else rootless.show
    try:
        with contextlib.ExitStack() as stack:
            show(stack, options.build.resolve(), options)
    except KeyboardInterrupt:
        print("\nstopped; everything has been removed", file=sys.stderr)
        return 130
    except (OSError, Failed, subprocess.SubprocessError) as error:
        print(f"\ndemo: {error}", file=sys.stderr)
        return 1
    if not options.form:
        print("\nEverything has been removed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
