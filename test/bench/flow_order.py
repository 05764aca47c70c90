# SPDX-License-Identifier: BSD-3-Clause
"""Whether frames of a flow keep their order while rules are added for it.

mr-bench numbers the frames that it sends. Behind mr-nat --offload, mr-l2fwd
writes the frames that arrive into a capture. The numbers of each flow must
increase there.
"""
import json
import pathlib
import struct
import subprocess
import time

import contestants as who
import nat_wire
from topology import ROUTER_MAC, BenchError

FLOWS = 60000
RATE = "200k"
SECONDS = 3
FILE_HEADER, RECORD_HEADER = 24, 16
ETHER_TYPE, SOURCE, PORT = slice(12, 14), slice(26, 30), slice(34, 36)
NUMBER = slice(-12, -6)  # of mr-bench's stamp


def frames_of(capture):
    """The (source, number) of each IPv4 packet, in the order of the capture."""
    at = FILE_HEADER
    while at < len(capture):
        n_bytes, = struct.unpack_from("<I", capture, at + 8)
        at += RECORD_HEADER
        frame = capture[at:at + n_bytes]
        at += n_bytes
        if frame[ETHER_TYPE] == b"\x08\x00":
            yield (frame[SOURCE] + frame[PORT],
                   int.from_bytes(frame[NUMBER], "big"))


def count(capture):
    """The number of flows, and of frames that a later one overtook."""
    last, n_late = {}, 0
    for source, number in frames_of(capture):
        n_late += number < last.get(source, -1)
        last[source] = max(number, last.get(source, -1))
    return len(last), n_late


def send(topology, bench):
    sender = topology.start(
        "g", [bench, "tx", "xdp:g0", "--cores", str(who.GENERATOR_CORE),
              "--size", "68", "--quiet", "--rate", RATE, "-d", str(SECONDS),
              "--dst-mac", ROUTER_MAC,
              "--stream", who.live_streams(FLOWS, 0x0800)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = sender.communicate(timeout=20 * SECONDS)[1]
    if sender.returncode != 0:
        raise BenchError(f"mr-bench tx: {said.strip()}")


def sample(topology, build, folder):
    """All flows are new to mr-nat, so it adds as many rules."""
    capture = pathlib.Path(folder) / "arrived.pcap"
    nat = nat_wire.millrace_nat(build, folder, "--offload", "on").start(
        topology)
    sink = topology.start(
        "s", [str(build / "apps/l2fwd/mr-l2fwd"), "--quiet", "--cores",
              str(who.GENERATOR_CORE), "xdp:s0", f"pcap:tx={capture}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    who.wait_until_attached(topology, nat)
    send(topology, str(build / "apps/bench/mr-bench"))
    time.sleep(0.5)  # frames that are still on their way
    who.end(sink)
    final = json.loads(nat.stop()[1].strip().splitlines()[-1])
    n_flows, n_late = count(capture.read_bytes())
    if final["offload"]["attempted"] < n_flows:
        raise BenchError(f"rules forwarded only {final['offload']['attempted']} "
                         f"frames of {n_flows} flows")
    return {"flows": n_flows, "late": n_late}
