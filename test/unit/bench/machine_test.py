# SPDX-License-Identifier: BSD-3-Clause
"""machine.py of mr-bench, on a sysfs of its own: the governor of the cores that work, and the NIC
of a port, its slot and its distance."""
import pytest

from mr_bench import machine

PCI = "bus/pci/devices/0000:41:00.0"
# Two nodes with a core each; a NIC on the second, in a slot of half width; and a virtio
# interface, whose PCI function is one folder above. cpu3 has no governor, as in most guests.
FILES = {
    **{f"devices/system/cpu/cpu{i}/cpufreq/scaling_governor": f"{word}\n"
       for i, word in enumerate(("powersave", "performance", "performance"))},
    **{f"devices/system/cpu/cpu{i}/node{i}/x": "" for i in range(2)},
    "devices/system/node/node0/distance": "10 21\n",
    "devices/system/node/node1/distance": "21 10\n",
    f"{PCI}/vendor": "0x8086\n",
    f"{PCI}/device": "0x1592\n",
    f"{PCI}/numa_node": "1\n",
    f"{PCI}/current_link_width": "8\n",
    f"{PCI}/max_link_width": "16\n",
    "devices/pci0/virtio3/vendor": "0x1af4\n",
    "devices/pci0/vendor": "0x1af4\n",
    "devices/pci0/current_link_width": "1\n",
    "class/net/none0/speed": "25000\n",
    "class/net/none0/napi_defer_hard_irqs": "2\n",
    "class/net/lo/speed": "-1\n",
}
LINKS = {f"{PCI}/driver": "../../../bus/pci/drivers/vfio-pci",
         "class/net/none0/device": "../../../devices/pci0/virtio3"}


@pytest.fixture(scope="module")
def sysfs(tmp_path_factory):
    root = tmp_path_factory.mktemp("sys")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    return str(root)


@pytest.mark.parametrize("cores,governor", [
    ([0], "powersave"), ([1, 2], "performance"), ([1, 0, 2], "performance, powersave"),
    ([0, 1, 2, 3], "powersave, performance, unknown"), ([3], "unknown"), ([], ""),
])
def test_the_governor_is_that_of_the_cores_that_work(sysfs, cores, governor):
    assert machine.governor(cores, sysfs) == governor


def test_a_machine_has_what_its_program_was_built_with():
    found = machine.look({"compiler": "cc 1", "dpdk": "23.11"}, "mr-bench x")
    assert (found["compiler"], found["dpdk"], found["command"]) == ("cc 1", "23.11", "mr-bench x")
    assert found["cores"] > 0 and found["governor"] and found["cpu"]


@pytest.mark.parametrize("cores,distance", [([1, 0], 21), ([1], 10), ([7], 0), ([], 0)])
def test_a_pci_address_has_its_slot_and_distance(sysfs, cores, distance):
    nic = machine.nic("0000:41:00.0", cores, sysfs)
    assert {key: nic["pci"][key] for key in ("device", "driver", "link_width", "max_link_width")} \
        == {"device": "0x1592", "driver": "vfio-pci", "link_width": "8", "max_link_width": "16"}
    assert (nic["numa_node"], nic["numa_distance"]) == (1, distance)


def test_an_interface_of_virtio_has_the_slot_above_it(sysfs):
    nic = machine.nic("none0", [], sysfs)
    assert nic["pci"]["link_width"] == "1"
    assert (nic["link_mbps"], nic["napi_defer_hard_irqs"], nic["numa_node"]) == (25000, 2, -1)


def test_a_software_interface_has_no_slot(sysfs):
    """What the kernel does not know is left out or 0, never made up."""
    nic = machine.nic("lo", [], sysfs)
    assert (nic["pci"], nic["link_mbps"]) == (None, 0)


@pytest.mark.parametrize("name", ["", "a", "../../etc", "x/y"])
def test_a_port_in_memory_has_no_nic(sysfs, name):
    assert machine.nic(name, [], sysfs) is None
