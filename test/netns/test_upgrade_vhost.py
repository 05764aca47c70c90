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
KINDS = pytest.mark.parametrize("kind", ["vhost", "virtio-user", "server"])
# Options of the driver's port, and of both.
RINGS = pytest.mark.parametrize("ring,both", [
    ("packed=off", ""), pytest.param("packed=on", "", marks=pytest.mark.short),
    ("packed=off,in-order=off", ""),
    ("packed=on,in-order=off,csum=on", ",queues=2,mtu=9000,sg=on,tso=on")])


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


def new_line(lab, star, kind, ring, both, *options):
    """A line whose second port has a peer."""
    path = lab.tmp_path / "vm.sock"
    driver = f"virtio-user:{path},ring={RING},{ring}{both}"
    device = f"vhost:{path},unsealed{both}"
    if kind == "vhost":
        line = Line(lab, star, "--ring", RING, *options, ports=("p0", device))
        peer = Peer(lab, star, driver)
    else:
        if kind == "server":
            driver += ",server=on"
            device += ",client=on"
        peer = Peer(lab, star, device)
        line = Line(lab, star, "--ring", RING, *options, ports=("p0", driver))
    wait_until("all links are up", lambda: is_up(lab))
    return line, peer


def check_peer(peer):
    """It has noticed nothing, since its link came up."""
    text = peer.err.text()
    before, up, after = text.partition("link up")
    assert "gone" not in text, text
    assert "link down" not in (after if up else before), text


def upgrade_often(line, peer, n_upgrades, n_frames):
    line.exchange(10)
    join = line.stream(n_frames)
    gaps = []
    for _ in range(n_upgrades):
        answer = line.upgrade()
        assert isinstance(answer, dict), answer
        gaps.append(answer["gap_us"])
        time.sleep(GAP_S)
    sent, got = join()
    print(f"gap: median {sorted(gaps)[len(gaps) // 2]} us, most {max(gaps)} us, stop {line.stop_s:.3f} s")
    check_peer(peer)
    finals = [peer.stop(), line.stop_last()]
    check_all(line, sent, got, max(gaps) / 1e6, *finals)


@RINGS
@KINDS
def test_no_frame_is_lost_or_doubled(lab, star, kind, ring, both):
    upgrade_often(*new_line(lab, star, kind, ring, both), 10, 30000)


@KINDS
def test_fifty_in_a_row(lab, star, kind):
    upgrade_often(*new_line(lab, star, kind, "packed=on", ""), 50, 200000)
