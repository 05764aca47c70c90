# SPDX-License-Identifier: BSD-3-Clause
"""Fail on an #include that violates the layer order of the design, and on a
program that uses a member reserved for drivers."""
import re

import tree

LAYERS = [
    {"base"}, {"mem", "net", "ring"}, {"pages"}, {"pci", "pool"}, {"answer", "object"},
    {"port"}, {"flow", "worker"}, {"dataplane"},
]
RANK = {module: rank for rank, row in enumerate(LAYERS) for module in row}
# The layer that each public header but millrace.h belongs to.
HEADERS = {header: module for module, headers in {
    "base": "api ctx driver_base error experimental/parcel",
    "mem": "driver_mem region",
    "net": "net pcapng wire",
    "ring": "frame ring",
    "pci": "experimental/pci experimental/pci_bar experimental/pci_info",
    "pool": "driver_frame experimental/driver_hand_over experimental/frag experimental/page "
            "experimental/posted pool pool_inline",
    "answer": "answer neighbours",
    "object": "experimental/objpool",
    "port": "driver driver_spec experimental/driver_offload "
            "experimental/flow_way experimental/gro experimental/netdev "
            "experimental/netlink experimental/offload "
            "experimental/port_queues port port_device port_events",
    "flow": "experimental/flow_hand_over flow lpm",
    "worker": "worker worker_loop",
    "dataplane": "dataplane experimental/hand_over",
}.items() for header in headers.split()}
# Folders of lib/pool that know no pool.
NO_POOL = {"depot"}
# Of mr-nat: data flows one way. What is not in a folder includes any.
NAT = ["config", "ports", "mapping", "datapath", "control"]
INCLUDE = re.compile(r'^\s*#\s*include\s+(<[^>]+>|"[^"]+")', re.M)

# Of struct mr_queue, mr_rxq and mr_txq.
FOR_DRIVERS_ONLY = re.compile(r"\bqueue(?:->|\.)(?:port|arm|fd|idx)\b"
                              r"|\b[rt]xq->(?:burst|n_min|stats)\b")


def is_program(path):
    """Whether it shows what others may use."""
    return path.parts[0] == "examples" or \
        path.parts[:2] == ("test", "conformance")


def objection_to_public(path, header):
    """The same, of a public header."""
    top = path.parts[0]
    if top in ("apps", "bindings", "examples", "plugins"):
        return "for driver authors" if header in tree.FOR_DRIVERS else ""
    if top != "lib" or path.name == "millrace.h" or path.parts[1] == "link":
        return ""
    module = path.parts[1]
    if module == "include":
        name = str(path.relative_to(tree.PUBLIC))
        module = HEADERS[name[:-2]]
        if "/" in header and "/" not in name:
            return "a stable header needs no experimental one"
    other = HEADERS.get(header[:-2])
    if other is None:
        return "not in HEADERS"
    if RANK[other] > RANK[module]:
        return f"{other} is above {module}"
    return ""


def objection(path, target):
    """Why `path` may not include `target`, or '' if it may."""
    top, module = path.parts[0], path.parts[1] if len(path.parts) > 2 else ""
    name = target[1:-1]
    if ".." in name.split("/"):
        return "no '..' in includes"
    if target.startswith("<millrace/"):
        return objection_to_public(path, name.partition("/")[2])
    if target.startswith("<") or "/" not in name:
        return ""  # system, public interface, or same folder
    if top == "test" and module == "conformance":
        if name.startswith("support/"):
            return ""
        if name.startswith("model/") and path.name.startswith("fixture_"):
            return ""  # a fixture knows its driver; the suite does not
        return "conformance tests see the public headers alone"
    if top == "test":
        return ""
    if top == "apps" and module != "support" and name.startswith("support/"):
        return ""  # what the applications share; it knows none of them
    if (top, module) == ("apps", "brokerd") and name == "xdp/lease/broker.h":
        return ""  # the driver's own code, in the process that may run it
    if top == "apps" and (tree.TOP / top / module / name).exists():
        other = name.split("/")[0]
        if module == "nat" and path.parts[2] in NAT and \
                NAT.index(other) > NAT.index(path.parts[2]):
            return f"{path.parts[2]} may not look at {other}"
        return ""  # a folder of its own folder
    if top == "drivers" and (tree.TOP / top / module / name).exists():
        return ""  # a folder of its own folder
    if top != "lib":
        return f"{top}/ sees only <millrace/...> and its own folder"
    if module == "include":
        return "public headers include <millrace/...> only"
    other, folder = name.split("/")[:2]
    if other not in RANK or module not in RANK:
        return "module is not in LAYERS"
    if other == module == "pool" and path.parts[2] in NO_POOL - {folder}:
        return f"lib/pool/{path.parts[2]} knows no pool"
    if other != module and RANK[other] >= RANK[module]:
        return f"lib/{module} may not look at lib/{other}"
    return ""


@tree.check("includes")
def main(wrong):
    n = 0
    for path in tree.files("*.c", "*.h"):
        for match in INCLUDE.finditer(tree.text(path)):
            n += 1
            why = objection(path, match.group(1))
            if why:
                wrong.add(path, f"{match.group(1)}: {why}")
        for match in FOR_DRIVERS_ONLY.finditer(tree.text(path)):
            if is_program(path):
                wrong.add(path, f"{match.group(0)} is for drivers only")
    return n
