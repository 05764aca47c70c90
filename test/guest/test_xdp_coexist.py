# SPDX-License-Identifier: BSD-3-Clause
"""AF_XDP together with bonds, VLANs and libxdp's dispatcher, on veths of a
distribution's kernel; other kernels may lack these."""
from pathlib import Path

import pytest

from conftest import PROGRAMS, boot
from guest import BUILD, Nic
from probe import opened

DISPATCH = BUILD / "test" / "guest" / "guest-dispatch"
NETNS = BUILD / "test" / "netns"
DISPATCHER = Path("/usr/lib/x86_64-linux-gnu/bpf/xdp-dispatcher.o")
N_FRAMES = 100
# What virtio's driver must not have negotiated for native XDP.
NO_LRO = "guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off"


@pytest.fixture(name="guest", scope="module")
def fixture_guest():
    files = [(NETNS / "pass.bpf.o", "/pass.o"),
             (NETNS / "users.bpf.o", "/users.o"), (DISPATCHER, DISPATCHER)]
    for file, _ in files:
        if not file.exists():
            pytest.skip(f"{file} is missing")
    nic = Nic("nic0", "virtio-split", options=NO_LRO)
    with boot([nic], [*PROGRAMS, DISPATCH], modules=["bonding", "8021q"],
              files=[(file, str(name)) for file, name in files]) as guest:
        for words in ("link add v0 type veth peer name w0",
                      "link add v1 type veth peer name w1",
                      "link add v2 type veth peer name w2",
                      "link set w0 up", "link set v1 up", "link set w1 up",
                      "link set v2 up", "link set w2 up",
                      "link add bond9 type bond",
                      "link set v0 master bond9", "link set v0 up",
                      "link add link v1 name v1.5 type vlan id 5"):
            run(guest, f"/bin/ip {words}")
        yield guest


def run(guest, command):
    status, text = guest.run(command)
    assert status == 0, text
    return text


@pytest.mark.parametrize("name, parts", [
    ("bond9", ["is a bond", "instead: xdp:v0,force"]),
    ("v1.5", ["is a VLAN", "instead: xdp:v1;", "have a tag"]),
])
def test_bonds_and_vlans_are_refused(guest, name, parts):
    """Even with force; the devices that the message names can be opened."""
    with opened(guest, pool=16384) as probe:
        for options in ("", ",force"):
            reason = probe.refused("open", f"xdp:{name}{options}")
            assert all(part in reason for part in parts), reason
        lower = reason.partition("instead: ")[2].partition(";")[0]
        probe.do("open", lower)


def programs(guest):
    """The programs in the dispatcher of v2, from its pinned links."""
    return run(guest, "ls /sys/fs/bpf/xdp/dispatch-*/ | grep -c -- -link")


@pytest.mark.parametrize("options", ["", ",sg=on", ",prog=/users.o:all"])
def test_a_port_joins_a_dispatcher(guest, options):
    """The program that was attached first stays."""
    run(guest, "guest-dispatch v2 /pass.o")
    assert programs(guest).strip() == "1"
    for _ in range(2):
        with opened(guest, f"xdp:v2{options}", "xdp:w2",
                    pool=32768) as probe:
            assert programs(guest).strip() == "2"
            for port, other in ((0, 1), (1, 0)):
                probe.do("send", other, 0, N_FRAMES, 60)
                assert probe.do("hold", port, N_FRAMES,
                                10000)["n"] == N_FRAMES
                probe.do("release")
        assert programs(guest).strip() == "1"
    run(guest, "/bin/ip link set dev v2 xdp off; rm -r /sys/fs/bpf/xdp")


def test_a_killed_port_leaves_a_program_that_passes_all(guest):
    """Another port can join and still receives all its frames."""
    run(guest, "guest-dispatch v2 /pass.o")
    with opened(guest, "xdp:v2", pool=16384) as killed:
        killed.kill()
    assert programs(guest).strip() == "2"
    with opened(guest, "xdp:v2", "xdp:w2", pool=32768) as probe:
        probe.do("send", 1, 0, N_FRAMES, 60)
        assert probe.do("hold", 0, N_FRAMES, 10000)["n"] == N_FRAMES
        probe.do("release")
    assert programs(guest).strip() == "2"
    run(guest, "/bin/ip link set dev v2 xdp off; rm -r /sys/fs/bpf/xdp")


def test_a_dispatcher_refuses_a_filter(guest):
    run(guest, "guest-dispatch v2 /pass.o")
    with opened(guest, pool=16384) as probe:
        reason = probe.refused("open", "xdp:v2,ports=53/udp")
        assert "xdp_dispatcher" in reason and "filter" in reason, reason
    assert programs(guest).strip() == "1"
    run(guest, "/bin/ip link set dev v2 xdp off; rm -r /sys/fs/bpf/xdp")


def test_a_driver_is_known_by_its_kernel(guest):
    """virtio_net has zero-copy since 6.13; before, the reason quotes the table."""
    release = run(guest, "uname -r").split(".")
    with opened(guest, "xdp:nic0", pool=16384) as probe:
        info = probe.do("info", 0)
        if (int(release[0]), int(release[1])) >= (6, 13):
            assert (info["mode"], info["why"]) == ("zc", "")
        else:
            assert info["mode"] == "copy"
            assert "zero-copy since Linux 6.13" in info["why"], info
        probe.do("send", 0, 0, 1, 60)
        assert guest.wires["nic0"].receive(10)
