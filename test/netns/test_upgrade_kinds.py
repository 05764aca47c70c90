# SPDX-License-Identifier: BSD-3-Clause
"""mrctl upgrade with other kinds of ports, frames and hosts, and many in a row."""
import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from host import limit
from lib import nat, talk
from lib.broker import NOBODY
from lib.forwarder import Forwarder, frames_of
from lib.nat import Echo, House, Talker
from lib.namespaces import Star, wait_until
from lib.process import CTL
from test_nat_upgrade import Chain
from test_upgrade import (  # noqa: F401
    RING, Line, children, upgrade_under_traffic)
from test_upgrade_vhost import Peer, check_peer, new_line

N_IN_A_ROW = 300


@pytest.mark.parametrize("options", ["attach=generic", "mode=copy,meta"])
def test_other_modes(lab, star, options):
    line = Line(lab, star, "--ring", RING, ports=(f"p0,{options}", f"p1,{options}"))
    upgrade_under_traffic(line, 5, 20000)


def test_frames_of_several_entries(lab):
    star = Star(lab, mtu=9000)
    line = Line(lab, star, "--ring", RING)
    assert all(port["segments"] for port in line.config()["ports"])
    upgrade_under_traffic(line, 5, 5000, n_bytes=9000, rate=4000)


@pytest.mark.parametrize("ring", ["packed=off", "packed=on"])
@pytest.mark.parametrize("kind", ["vhost", "virtio-user"])
def test_indices_wrap_in_flight(lab, star, kind, ring):
    """Those of a virtio ring, at 2^16."""
    line, peer = new_line(lab, star, kind, ring, "")
    for _ in range(131):
        line.exchange(500)
    line.exchange((1 << 16) - 65500 - 32)
    peer.process.send_signal(signal.SIGSTOP)
    frames = frames_of(0, 64)
    line.wires[0].send_all(frames)
    wait_until("all are in the ring", lambda: line.received() == (1 << 16) + 32)
    assert isinstance(line.upgrade(), dict)
    peer.process.send_signal(signal.SIGCONT)
    assert line.wires[1].receive(64) == frames
    line.exchange(50)
    check_peer(peer)
    line.stop_last()


def test_three_hundred_in_a_row(lab, star):
    """None has more than the one before: files, mappings, memory."""
    line = Line(lab, star)

    def upgrade(n):
        for _ in range(n):
            assert isinstance(line.upgrade(), dict)
            if len(line.pids) > 2:
                os.waitpid(line.pids[-2], 0)
        line.exchange(10)
        folder = Path(f"/proc/{line.pids[-1]}")
        (kib,) = [int(text.split()[1]) for text in (folder / "status").read_text().splitlines()
                  if text.startswith("VmRSS:")]
        return len(list((folder / "fd").iterdir())), \
            len((folder / "maps").read_text().splitlines()), kib

    n_fds, n_maps, kib = upgrade(20)
    after = upgrade(N_IN_A_ROW - 20)
    print("files, mappings, KiB:", (n_fds, n_maps, kib), after)
    assert after[0] == n_fds
    assert after[1] <= n_maps + 4  # as malloc() likes
    assert after[2] < kib * 1.1
    line.stop_last()


def test_the_interface_changes_afterwards(lab, star):
    line = Line(lab, star)
    for mtu in (1400, 1300):
        assert isinstance(line.upgrade(), dict)
        star.middle.ip("link", "set", "p0", "mtu", mtu)
        wait_until("the MTU", lambda mtu=mtu: line.config()["ports"][0]["mtu"] == mtu)
        star.middle.ip("link", "set", "p0", "down")
        wait_until("the link is down", lambda: not line.ports()[0]["link"]["up"])
        star.middle.ip("link", "set", "p0", "up")
        wait_until("the link is up", lambda: line.ports()[0]["link"]["up"])
        line.exchange(50)
    line.stop_last()


def test_the_nat_follows_a_new_mac_address_afterwards(lab):
    house = House(lab)
    lab.closing(Echo(house.server))
    chain = Chain(house)
    talker = lab.closing(Talker(house.a))
    seen = talker.ask()
    chain.upgrade()
    house.middle.ip("link", "set", "p0", "address", "02:00:00:00:aa:01")
    wait_until("it is announced", lambda: "02:00:00:00:aa:01" in
               house.a.ip("neigh", "show", nat.INSIDE, "dev", "h0").stdout)
    assert talker.ask() == seen
    assert talk.ping(house.a, nat.SERVER) == 3
    chain.stop_last()


def ask_upgrade(control, *wrap):
    """The pid of the new process."""
    done = subprocess.run([*wrap, CTL, "--control", control, "--json", "upgrade"], text=True,
                          capture_output=True, check=False, timeout=limit(60))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["pid"]


def test_where_memory_cannot_be_executed(lab, star):
    """vm.memfd_noexec is 2: the setting of a PID namespace."""
    if not Path("/proc/sys/vm/memfd_noexec").exists():
        pytest.skip("before Linux 6.3")
    control, path = lab.tmp_path / "sock", lab.tmp_path / "vm.sock"
    peer = Peer(lab, star, f"vhost:{path},unsealed")
    Forwarder(lab, star.middle, "p0", f"virtio-user:{path}", options=["--control", control], wrap=[
        "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
        # All of the namespace end with its first process: stay after the old one.
        'echo 2 >/proc/sys/vm/memfd_noexec || exit 9; "$@"; exec sleep 1000', "sh"])
    lab.checks.clear()
    peer.says("link up")
    ask_upgrade(control)
    check_peer(peer)


def test_in_a_user_namespace(lab, star):
    """Root, who owns the program's folders, is nobody there."""
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    unshare = ["unshare", "--user", "--map-root-user"]
    if subprocess.run([*user, *unshare, "true"], check=False).returncode != 0:
        pytest.skip("no user namespaces here")
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, NOBODY, NOBODY)
        control = f"{folder}/sock"
        first = Forwarder(lab, star.middle, "null:", "null:", options=["--control", control],
                          wrap=[*user, *unshare])
        lab.checks.clear()
        pid = ask_upgrade(control, *user)
        assert first.process.wait(limit(10)) == 0
        os.kill(pid, signal.SIGINT)
        os.waitpid(pid, 0)
