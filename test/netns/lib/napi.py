# SPDX-License-Identifier: BSD-3-Clause
"""What the NAPIs of an interface are set to: generic netlink, netdev.yaml."""
import socket
import struct

CONTROL, GET_FAMILY, FAMILY_ID, FAMILY_NAME = 16, 3, 1, 2
NAPI_GET, IFINDEX, NAPI_ID, DEFER, FLUSH = 11, 1, 2, 5, 6
REQUEST, DUMP, ERROR, DONE = 1, 0x300, 2, 3


def pieces(data, head):
    """(type, body) of each message or attribute in a row of them."""
    size = struct.calcsize(head)
    while len(data) >= size:
        n_bytes, kind = struct.unpack_from(head, data)
        yield kind, data[size:n_bytes]
        data = data[(n_bytes + 3) & ~3:]


def ask(family, command, kind, value, flags=0):
    """The answers: {attribute: value} of each."""
    body = struct.pack("=BBHHH", command, 1, 0, 4 + len(value), kind) + value
    body += bytes(-len(body) % 4)
    answers = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16) as asker:
        asker.settimeout(5)
        asker.send(struct.pack("=IHHII", 16 + len(body), family,
                               REQUEST | flags, 1, 0) + body)
        while True:
            for what, message in pieces(asker.recv(1 << 16), "=IH10x"):
                if what == ERROR:
                    raise OSError(-struct.unpack_from("=i", message)[0], "")
                if what == DONE:
                    return answers
                answers.append({k: int.from_bytes(v, "little") for k, v in
                                pieces(message[4:], "=HH")})
            if not flags:
                return answers


def deferrals(namespace, name):
    """{NAPI: (napi_defer_hard_irqs, gro_flush_timeout)}."""
    with namespace:
        family = ask(CONTROL, GET_FAMILY, FAMILY_NAME, b"netdev\0")[0]
        index = struct.pack("=I", socket.if_nametoindex(name))
        return {answer[NAPI_ID]: (answer[DEFER], answer[FLUSH]) for answer in
                ask(family[FAMILY_ID], NAPI_GET, IFINDEX, index, DUMP)}
