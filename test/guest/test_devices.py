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
              programs=[BUILD / "apps/devices/mr-devices",
                        BUILD / "apps/l2fwd/mr-l2fwd"],
              modules=["bonding", "8021q"]) as guest:
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


def findings(guest, name):
    """{check: (finding, fix)} of mr-devices doctor."""
    status, text = guest.run(f"mr-devices doctor --json {name}")
    found = {f["check"]: (f["finding"], f["fix"])
             for f in json.loads(text)["findings"]}
    assert status == (3 if found else 0), text
    return found


def test_the_fixes_of_doctor_work_on_a_nic(guest):
    """The defaults of igb's kernel driver: a ring of 256, VLAN tags stripped."""
    name = devices(guest)[guest.nics[0].bdf]["interface"]
    found = findings(guest, name)
    assert "256 entries" in found["rings"][0]
    assert "VLAN tags" in found["offloads"][0]
    for check in "rings", "offloads":
        status, text = guest.run(found[check][1])
        assert status == 0, text
    assert not {"rings", "offloads"} & set(findings(guest, name))


def test_the_doctor_names_the_device_below_a_bond_or_vlan(guest):
    for words in ("v0 type veth peer name w0", "v1 type veth peer name w1",
                  "bond9 type bond", "link v1 name v1.5 type vlan id 5"):
        assert guest.run(f"/bin/ip link add {words}")[0] == 0
    assert guest.run("/bin/ip link set v0 master bond9")[0] == 0
    for name, kind, lower in (("bond9", "bond", "v0"), ("v1.5", "vlan", "v1")):
        (finding, fix), = findings(guest, name).values()
        assert f"it is a {kind}" in finding and f"xdp:{lower}" in finding
        assert fix == f"mr-devices doctor {lower}"


def test_doctor_finds_queues_without_a_socket(guest):
    status, text = guest.run(
        "/bin/ip link add p0 numrxqueues 2 numtxqueues 2 type veth peer name p1 "
        "numrxqueues 2 numtxqueues 2 && ethtool -L p0 rx 2 tx 2 && "
        "ethtool -L p1 rx 2 tx 2 && /bin/ip link set p0 up && "
        "/bin/ip link set p1 up")
    assert status == 0, text
    assert "queues" not in findings(guest, "p0")
    pid = guest.run("mr-l2fwd xdp:p0,queues=1,partial null: >/dev/null 2>&1 & "
                    "echo $!")[1].strip()
    try:
        guest.run("for _ in $(seq 100); do ss -Hn --xdp | grep -q p0:q0 && "
                  "break; sleep 0.1; done")
        finding, fix = findings(guest, "p0")["queues"]
        assert finding.startswith("queues 1 have no AF_XDP socket"), finding
        assert fix == "ethtool -L p0 rx 1"
    finally:
        guest.run(f"kill {pid}; wait {pid}")
