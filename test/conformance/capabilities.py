#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/capabilities.md, from what caps_test.c finds on each port.

usage: capabilities.py [--write] CONFORMANCE [CONFORMANCE-DPDK]

Without --write, fails if the page is not what the tests find. What cannot run
here keeps its row; on another kernel than the page's nothing is compared.
"""
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/capabilities.md"
# Port, fixture with the options that turn on what is off by default.
ROWS = (
    ("`xdp:` on veth, `meta`", "xdp,meta"),
    ("`tap:`", "tap"),
    ("`vfio:` virtio-net, a model, `csum=on,hash=on`",
     "virtio,csum=on,hash=on"),
    ("`vfio:` virtio-net without offloads, a model", "virtio-plain"),
    ("`vfio:` Intel 82576, a model, `vlan`", "igb,vlan=on"),
    ("`vfio:` Intel 82574L, a model, `vlan`", "e1000e,vlan=on"),
    ("`dpdk:` net_tap", "dpdk-tap"),
    ("`dpdk:` net_af_packet", "dpdk-af_packet"),
    ("`dpdk:` net_ring", "dpdk-ring"),
    ("`dpdk:` net_pcap", "dpdk-pcap"),
    ("`pcap:`", "pcap"),
    ("`pair:`", "pair"),
    ("`null:`", "null"),
)
HARDWARE = "any NIC itself"
COLUMNS = ("checksum tx", "TSO, IPv4", "TSO, IPv6", "USO", "VLAN insert",
           "launch time", "checksum rx", "VLAN strip", "hash", "timestamp")
TEXT = """# Capabilities

What ports do for frames. *device*: the device, or for `xdp:` and `tap:` the kernel behind it, does it. *software*: the
driver or the library does it, with the same result. *none*: nobody does; a partial checksum, for instance, stays partial
for the receiver. *not tested*: there is no test here. A device is used only as far as it says that it can
(`mr_port_info.offloads`); other devices of the same driver can have more or less.

Written by `test/conformance/capabilities.py --write`: each cell is the result of a test in
`test/conformance/caps_test.c`, on Linux {kernel}. *A model*: registers and rings of the device in software, which verifies
what the driver does. Segments that arrive merged are an option, `tso`, of `tap:` and virtio-net.

"""


def found(programs, fixture):
    """{capability: who} of a fixture; None: it cannot run here."""
    program = programs[1 if fixture.startswith("dpdk-") else 0]
    if program is None:
        return None
    with tempfile.NamedTemporaryFile("r") as file:
        done = subprocess.run(
            [program, fixture, "capabilities*"], check=False, text=True,
            env={**os.environ, "MR_CAPABILITIES": file.name},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        if done.returncode == 77:
            return None
        if done.returncode != 0:
            sys.exit(f"{fixture}: {done.stdout}")
        return dict(line.strip().split("|")[1:] for line in file)


def row(label, cells):
    return f"| {label} | {' | '.join(cells)} |"


def main(arguments):
    write = "--write" in arguments
    programs = [word for word in arguments if word != "--write"] + [None]
    kernel = ".".join(platform.release().split(".")[:2])
    text = TEXT.format(kernel=kernel)
    before = PAGE.read_text() if PAGE.exists() else ""
    if not write and f"Linux {kernel}." not in before:
        print(f"the page is of another kernel than Linux {kernel}")
        return 77
    rows = [row("port", COLUMNS), "|---" * (len(COLUMNS) + 1) + "|"]
    for label, fixture in ROWS:
        cells = found(programs, fixture)
        old = [line for line in before.splitlines()
               if line.startswith(f"| {label} |")]
        if cells is not None:
            rows.append(row(label, [cells[name] for name in COLUMNS]))
        else:
            print(f"{fixture} cannot run here")
            rows += old or [row(label, ["not tested"] * len(COLUMNS))]
    rows.append(row(HARDWARE, ["not tested"] * len(COLUMNS)))
    text += "\n".join(rows) + "\n"
    if write:
        PAGE.write_text(text)
    elif text != before:
        old = set(before.splitlines())
        print(f"{PAGE} is out of date; run {' '.join(sys.argv[:1])} --write "
              f"{' '.join(arguments)}. What differs:")
        print("\n".join(line for line in text.splitlines()
                        if line not in old))
        return 1
    return 0


sys.exit(main(sys.argv[1:]))
