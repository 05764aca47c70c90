# SPDX-License-Identifier: BSD-3-Clause
"""TCP between two kernels, through two ports of a probe in a guest.

    near: nic0, a tap --- virtio -- probe -- any NIC --- nic1, a tap :far

The kernels leave sums to their device, and cutting up to 64 KiB into frames.
"""
from contextlib import contextmanager

from conftest import boot, check_log, forget_log
from guest import Nic
from lib import talk
from probe import check_idle, opened
from taps import make_tap, new_lab

N_BYTES = 1 << 20
# With Ethernet's header.
MTU_BYTES = 1514


def join(near, far):
    """Addresses at both ends, one of them moved away, as QEMU has it now."""
    near.ip("link", "set", "nic1", "netns", far.name)
    for namespace, name, address in ((near, "nic0", "10.77.0.1"),
                                     (far, "nic1", "10.77.0.2")):
        namespace.ip("link", "set", name, "up")
        namespace.ip("address", "add", f"{address}/24", "dev", name)


def tcp_through(guest, near, far, specs, has_meta, is_lazy=False):
    """TCP both ways between ports of these specs; the one queue of each.

    is_lazy: what the second has sent stays pending."""
    with opened(guest, *specs) as probe:
        probe.begin("forward", 0, 1, has_meta)
        talk.tcp(near, far, "10.77.0.2", N_BYTES)
        talk.tcp(far, near, "10.77.0.1", N_BYTES)
        probe.end_forward()
        if not is_lazy:
            probe.flush(1)
        return [check_idle(probe, port)["queues"][0] for port in (0, 1)]


def check_left_to_device(first, second, counter, has_meta):
    """What the first queue had in segments, if has_meta, and without sums, the
    second's device sent as frames with sums; and what came back were frames.

    counter: of the second's tx, how many it has sent."""
    tx, rx = second["tx"], second["rx"]
    assert tx["bytes"] == first["rx"]["bytes"]
    assert (tx["bytes"] > tx[counter] * MTU_BYTES) == has_meta, tx
    assert tx["events"]["csum_device"] > tx[counter] / 2, tx
    assert tx["events"]["csum_software"] == 0, tx
    assert rx["bytes"] <= rx["delivered"] * MTU_BYTES, rx


def make_nic(name, kind):
    """On a tap. What virtio can leave to others, Intel's NICs have to do."""
    if kind.startswith("virtio"):
        return Nic(name, kind, "tap", "mq=on,vectors=6", queues=2)
    return Nic(name, kind, "tap-plain", queues=2)


@contextmanager
def two_kernels(tmp_path, kind, **options):
    """A guest with a virtio NIC and one of this kind, each on a tap."""
    lab = new_lab(tmp_path)
    try:
        near, far = lab.namespace("near"), lab.namespace("far")
        first = kind if kind.startswith("virtio") else "virtio-split"
        nics = [make_nic("nic0", first), make_nic("nic1", kind)]
        for nic in nics:
            make_tap(near, nic.name)
        with boot(nics, prefix=near.command(), **options) as guest:
            join(near, far)
            for nic in nics:
                guest.bind(nic, "vfio-pci")
            forget_log(guest)
            yield guest, near, far
            check_log(guest)
    finally:
        lab.close()
