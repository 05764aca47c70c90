# SPDX-License-Identifier: BSD-3-Clause
"""A million frames through two of our drivers: each one compared, none lost.
"""
import os

from conftest import boot, check_log, forget_log, spec_of
from forwarder import end_l2fwd, start_l2fwd
from guest import Nic
from host import limit
from lib import invariants
from traffic import Counted, run_all

# Each way.
N_FRAMES = int(os.environ.get("MR_GUEST_FRAMES", "500000"))
LIMIT_S = limit(60 + N_FRAMES / 1500)


def test_many_frames():
    """From igb to virtio and back at once; without igb it is e1000e."""
    nics = [Nic("igb", "igb"), Nic("e1000e", "e1000e"),
            Nic("virtio-packed", "virtio-packed")]
    with boot(nics, needs_all=False) as guest:
        names = [nic.name for nic in (guest.nics[0], guest.nics[-1])]
        for name in names:
            guest.bind(guest.nic(name), "vfio-pci")
        forget_log(guest)
        pid = start_l2fwd(guest, *(spec_of(guest, name) for name in names))
        one, other = (guest.wires[name] for name in names)
        ways = [Counted(one, other, N_FRAMES), Counted(other, one, N_FRAMES)]
        run_all(ways, N_FRAMES, LIMIT_S)
        final = end_l2fwd(guest, pid)
        check_log(guest)
    assert [len(way.received) for way in ways] == [N_FRAMES, N_FRAMES]
    for port in final["ports"]:
        assert invariants.total(port, "rx", "received") == N_FRAMES
        assert invariants.total(port, "tx", "completed") == N_FRAMES
