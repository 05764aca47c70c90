# SPDX-License-Identifier: BSD-3-Clause
"""The demo without root: the same forwarder on pcap: and pair: ports.

mr-bench makes the frames of two hosts, in capture files, which are forwarded
and compared. What is missing is the kernel: nobody answers.
"""
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from forwarder import Failed, Forwarder

# What hosts a and b send: data, and acknowledgements.
STREAMS = {
    "a": "ip.src=10.77.0.1 ip.dst=10.77.0.2 tcp.dst=5001 tcp.seq=0-999999",
    "b": "ip.src=10.77.0.2 ip.dst=10.77.0.1 tcp.src=5001 tcp.ack=0-999999",
}
FRAME_BYTES = {"a": 1518, "b": 76}  # with FCS
N_FRAMES = 1000
LIMIT_S = 30


def read_pcap(path):
    """The frames of a capture file; those that are complete."""
    data, frames, at = path.read_bytes() if path.exists() else b"", [], 24
    while at + 16 <= len(data):
        _, _, length, _ = struct.unpack_from("=IIII", data, at)
        if at + 16 + length > len(data):
            break
        frames.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return frames


def show_conversation(stack, apps):
    """Forward what hosts a and b send; what arrives is what was sent."""
    folder = Path(tempfile.mkdtemp(prefix="mr-demo-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    print(f"\nTCP, {N_FRAMES} frames of mr-bench each way, from capture files, "
          "between pcap: ports")
    for host, stream in STREAMS.items():
        subprocess.run([
            apps / "bench/mr-bench", "tx", "--quiet", "--count", str(N_FRAMES),
            "--size", str(FRAME_BYTES[host]), "--stream", stream,
            f"pcap:tx={folder}/{host}-sends.pcap"],
            stdout=subprocess.DEVNULL, check=True, timeout=LIMIT_S)
    ports = [f"pcap:rx={folder}/{host}-sends.pcap,tx={folder}/{host}-gets.pcap"
             for host in STREAMS]
    forwarder = Forwarder([apps / "l2fwd/mr-l2fwd", *ports])
    stack.callback(forwarder.close)
    forwarder.wait(LIMIT_S)
    for to, source in (("a", "b"), ("b", "a")):
        sent = read_pcap(folder / f"{source}-sends.pcap")
        got = read_pcap(folder / f"{to}-gets.pcap")
        if len(sent) != N_FRAMES or got != sent:
            raise Failed(f"host {to} got {len(got)} frames, not the "
                         f"{N_FRAMES} that host {source} sent")
        print(f"  host {to} got all {len(got)} frames of host {source}, "
              "byte for byte")


def show_full_speed(stack, apps, options):
    """null: makes frames, a pair carries them, null: takes them."""
    forwarder = Forwarder([apps / "l2fwd/mr-l2fwd", *options.form, "null:",
                           "pair:demo", "pair:demo", "null:"])
    stack.callback(forwarder.close)
    forwarder.wait_ready()
    seconds = options.seconds
    print(f"\nfull speed for {seconds:g} s, 60-byte frames: null: -> pair: "
          "-> null:, all in memory")
    forwarder.show(seconds)
    forwarder.stop()


def show(stack, build, options):
    """The demo."""
    print("Without root there are no network namespaces and no AF_XDP sockets. "
          "Differences:\n"
          "  - the ports are pcap: (capture files) and pair: (memory), not "
          "xdp:\n"
          "  - mr-bench makes the hosts' frames beforehand: nobody answers\n"
          "  - the rates are those of memory, not of a device\n"
          "With root, or sudo, ./mr demo uses real interfaces.")
    show_conversation(stack, build / "apps")
    show_full_speed(stack, build / "apps", options)
