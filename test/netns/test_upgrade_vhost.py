# SPDX-License-Identifier: BSD-3-Clause
"""Upgrades of mr-l2fwd with vhost: and virtio-user: ports. The peer notices
nothing."""
import json
import time

import pytest
from lib.forwarder import Forwarder
from lib.namespaces import wait_until
from lib.process import ask_ctl
from test_upgrade import Line, check_all, children  # noqa: F401

RING = 2048  # frames
GAP_S = 0.1  # between two upgrades
RINGS = pytest.mark.parametrize("ring", ["packed=off", "packed=on"])


class Peer(Forwarder):
    """Forwards between its end of the socket and the second host, from a
    namespace of its own."""

    def __init__(self, lab, star, spec):
        self.namespace = lab.namespace("peer")
        star.middle.ip("link", "set", "p1", "netns", self.namespace.name)
        self.namespace.ip("link", "set", "p1", "up")
        super().__init__(lab, self.namespace, spec, "p1", options=["--ring", RING])


def is_up(lab):
    """Whether the upgraded program has all links."""
    shown = ask_ctl(lab, "-n", "line", "--json", "show", "ports")
    return all(json.loads(line)["link"]["up"] for line in shown.stdout.splitlines())


def new_line(lab, star, kind, ring, *options):
    """A line whose second port has a peer."""
    path = lab.tmp_path / "vm.sock"
    driver = f"virtio-user:{path},{ring},ring={RING}"
    device = f"vhost:{path},unsealed"
    if kind == "vhost":
        line = Line(lab, star, "--ring", RING, *options, ports=("p0", device))
        peer = Peer(lab, star, driver)
    else:
        peer = Peer(lab, star, device)
        line = Line(lab, star, "--ring", RING, *options, ports=("p0", driver))
    wait_until("all links are up", lambda: is_up(lab))
    return line, peer


def check_peer(peer):
    """It has noticed nothing."""
    assert "gone" not in peer.err.text(), peer.err.text()
    assert "link down" not in peer.err.text(), peer.err.text()


@RINGS
@pytest.mark.parametrize("kind", ["vhost"])
def test_no_frame_is_lost_or_doubled(lab, star, kind, ring):
    line, peer = new_line(lab, star, kind, ring)
    line.exchange(10)
    join = line.stream(30000)
    gaps = []
    for _ in range(10):
        answer = line.upgrade()
        assert isinstance(answer, dict), answer
        gaps.append(answer["gap_us"])
        time.sleep(GAP_S)
    sent, got = join()
    print(f"gap: median {sorted(gaps)[len(gaps) // 2]} us, most {max(gaps)} us")
    check_peer(peer)
    finals = [peer.stop(), line.stop_last()]
    check_all(line, sent, got, max(gaps) / 1e6, *finals)
