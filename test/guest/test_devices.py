# SPDX-License-Identifier: BSD-3-Clause
"""mr-devices on a real kernel: NICs to vfio-pci, to a user, and back."""
import json

import pytest

from conftest import boot
from guest import BUILD, Nic

KINDS = ["igb", "e1000e", "virtio-split"]
USER = 1000


@pytest.fixture(scope="module")
def machine():
    """A NIC of each kind, in the kernel's hands."""
    with boot([Nic(kind, kind) for kind in KINDS], needs_all=False,
              programs=[BUILD / "apps/devices/mr-devices"]) as guest:
        yield guest


def devices(guest):
    """{address: device}, as mr-devices lists them."""
    status, text = guest.run("mr-devices --json")
    assert status == 0, text
    return {d["address"]: d for d in json.loads(text)["devices"]}


def do(guest, *words):
    """mr-devices with these arguments, which must succeed: what it says."""
    status, text = guest.run("mr-devices " + " ".join(words) + " 2>&1")
    assert status == 0, text
    return text


def refused(guest, *words):
    """One that must fail, by one line: the line."""
    status, text = guest.run("mr-devices " + " ".join(words) + " 2>&1")
    assert status == 1 and text.startswith("mr-devices: "), text
    assert text.count("\n") == 1, text
    return text


def test_bound_given_to_a_user_and_given_back(guest):
    before = devices(guest)
    assert {nic.bdf for nic in guest.nics} <= set(before)
    bdfs = [nic.bdf for nic in guest.nics]
    said = do(guest, "bind", "--owner", str(USER), *bdfs)
    for bdf in bdfs:
        assert f"{bdf}: bound to vfio-pci" in said
        node = f"/dev/vfio/{before[bdf]['iommu_group']}"
        assert f"{node} now belongs to {USER}, " in said
        assert guest.run(f"stat -c %u {node}")[1].strip() == str(USER)
    bound = devices(guest)
    for bdf in bdfs:
        assert bound[bdf]["kernel_driver"] == "vfio-pci"
        assert bound[bdf]["interface"] is None
        assert bound[bdf]["former_kernel_driver"] == \
            before[bdf]["kernel_driver"]
    said = do(guest, "unbind", "--all")
    after = devices(guest)
    for bdf in bdfs:
        assert after[bdf]["kernel_driver"] == before[bdf]["kernel_driver"]
        # Its name is the kernel's choice, and is told.
        assert after[bdf]["interface"]
        assert f"interface {after[bdf]['interface']}\n" in said
    assert guest.run("ls /run/millrace/devices")[1] == ""


def test_in_use_it_is_not_taken(guest):
    """The kernel would wait for the user without end."""
    bdf = guest.nics[0].bdf
    group = devices(guest)[bdf]["iommu_group"]
    do(guest, "bind", bdf)
    pid = guest.run(f"sleep 1000 3<>/dev/vfio/{group} & echo $!")[1].strip()
    try:
        assert f"in use by process {pid} (sleep)" in refused(guest, "unbind",
                                                             bdf)
        assert devices(guest)[bdf]["kernel_driver"] == "vfio-pci"
    finally:
        guest.run(f"kill {pid}; wait {pid}")
    do(guest, "unbind", bdf)


def test_the_default_route_is_not_cut_off(guest):
    bdf = guest.nics[0].bdf
    name = devices(guest)[bdf]["interface"]
    guest.run(f"ip link set {name} up; ip addr add 192.0.2.1/24 dev {name}; "
              f"ip route add default via 192.0.2.2 dev {name}")
    assert devices(guest)[bdf]["default_route"] is True
    assert f"{name} carries the default route" in refused(guest, "bind", bdf)
    do(guest, "bind", "--force", bdf)
    do(guest, "unbind", bdf)
    assert devices(guest)[bdf]["default_route"] is False


def test_the_default_route_of_another_table_is_not_cut_off(guest):
    """mr_netdev_use() asks the kernel, which the list does not."""
    bdf = guest.nics[1].bdf
    name = devices(guest)[bdf]["interface"]
    status, text = guest.run(
        f"ip link set {name} up && ip addr add 192.0.3.1/24 dev {name} && "
        f"ip route add default via 192.0.3.2 dev {name} table 77 2>&1")
    assert status == 0, text
    assert f"{name} carries the default route" in refused(guest, "bind", bdf)
    # The guest has no tcp_diag: any address may be that of a session.
    guest.run(f"ip route flush table 77; ip addr flush dev {name}")
    do(guest, "bind", bdf)
    do(guest, "unbind", bdf)
