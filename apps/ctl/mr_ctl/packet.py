# SPDX-License-Identifier: BSD-3-Clause
"""The headers that forwarding and translation change, as text."""

import ipaddress
import struct

PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp"}
TAGS = (0x8100, 0x88A8)


def _mac(data: bytes) -> str:
    return data.hex(":")


def fields(data: bytes) -> dict[str, str]:
    """What the headers say; a truncated frame has fewer."""
    if len(data) < 14:
        return {}
    found = {"dst mac": _mac(data[:6]), "src mac": _mac(data[6:12])}
    at, kind = 14, int.from_bytes(data[12:14], "big")
    while kind in TAGS and len(data) >= at + 4:
        tag, kind = struct.unpack_from("!HH", data, at)
        found["vlan"] = f"{found['vlan']}.{tag & 0xFFF}" if "vlan" in found else str(tag & 0xFFF)
        at += 4
    found["type"] = f"{kind:#06x}"
    if kind == 0x0800 and len(data) >= at + 20:
        found |= _ipv4(data[at:])
    return found


def _ipv4(data: bytes) -> dict[str, str]:
    ttl, proto = data[8], data[9]
    source, target = (str(ipaddress.IPv4Address(data[i : i + 4])) for i in (12, 16))
    found = {"proto": PROTOCOLS.get(proto, str(proto)), "ttl": str(ttl)}
    layer4 = data[4 * (data[0] & 15) :]
    is_first = int.from_bytes(data[6:8], "big") & 0x1FFF == 0
    if is_first and proto in (6, 17) and len(layer4) >= 4:
        sport, dport = struct.unpack_from("!HH", layer4)
        source, target = f"{source}:{sport}", f"{target}:{dport}"
    elif is_first and proto == 1 and len(layer4) >= 6:
        found["icmp"] = f"{layer4[0]}/{layer4[1]}"
        if layer4[0] in (0, 8, 13, 14):
            found["id"] = str(int.from_bytes(layer4[4:6], "big"))
    return found | {"src": source, "dst": target}


def summary(data: bytes) -> str:
    """One line."""
    of = fields(data)
    if "src" in of:
        extra = "".join(f" {name} {of[name]}" for name in ("icmp", "id") if name in of)
        return f"{of['proto']} {of['src']} > {of['dst']}{extra}"
    if of:
        return f"{of['src mac']} > {of['dst mac']} type {of['type']}"
    return "no Ethernet header"


def changes(before: bytes, after: bytes) -> str:
    """What a rewrite changed; "" if nothing."""
    old, new = fields(before), fields(after)
    return ", ".join(
        f"{name} {old.get(name, 'none')} -> {new.get(name, 'none')}"
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    )
