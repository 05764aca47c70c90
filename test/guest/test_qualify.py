# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench qualify on two NICs that a cable joins: the drivers that open them,
and what is put back. What it measures of an emulated machine means nothing.
"""
import json
import re

import pytest
from conftest import boot, check_log, forget_log, need_driver
from guest import BUILD, Nic
from host import limit

PROGRAMS = [BUILD / "apps/bench/mr-bench", BUILD / "apps/bench/mr-bench-engine",
            BUILD / "apps/devices/mr-devices", BUILD / "apps/l2fwd/mr-l2fwd"]
NAMES = ["one", "other"]
# Its Python needs a second to start, and QEMU's clock stands still meanwhile.
LIMIT_S = limit(600)


def settings(guest):
    """What it may change: driver, link, MTU and channels of each NIC."""
    status, text = guest.run("mr-devices --json")
    assert status == 0, text
    drivers = {d["address"]: d["kernel_driver"]
               for d in json.loads(text)["devices"]}
    return [(drivers[guest.nic(name).bdf],
             guest.run(f"cat /sys/class/net/{name}/flags")[1],
             guest.run(f"cat /sys/class/net/{name}/mtu")[1],
             guest.run(f"ethtool -l {name} | grep Combined")[1])
            for name in NAMES]


def test_two_igb_that_a_cable_joins(tmp_path):
    need_driver("igb")
    nics = [Nic(NAMES[i], "igb", peer=NAMES[1 - i]) for i in range(2)]
    with boot(nics, programs=PROGRAMS, n_cpus=3, memory_mb=2048) as guest:
        guest.run("ip link set one down")
        guest.run("ip link set other mtu 1400")
        before = settings(guest)
        forget_log(guest)
        _, said = guest.run(
            "mr-bench qualify --quiet --quick --seconds 1 --sizes 64 "
            "--drivers xdp-zc,vfio --devices mr-l2fwd --label 'igb, in QEMU' "
            "--out /tmp/nic.json one other 2>&1", LIMIT_S)
        assert settings(guest) == before, said
        check_log(guest)
        text = guest.run("cat /tmp/nic.json")[1]
    (tmp_path / "nic.json").write_text(text)
    root = json.loads(text)
    assert root["complete"], said
    drivers = {driver["name"]: driver for driver in root["drivers"]}
    failed = {step["name"]: step["why"] for step in root["steps"] if step["why"]}
    # Where the host takes the time away.
    late = [why for why in (*failed.values(), *(d["why"] for d in drivers.values()))
            if re.search("did not end within|not ready within", why)]
    if late:
        pytest.skip(f"the host is too busy: {late[0]}")
    for name, port in (("xdp-zc", "xdp:other"), ("vfio", "vfio:")):
        assert not drivers[name]["why"], said
        assert drivers[name]["ports"][1]["name"].startswith(port)
    assert drivers["xdp-zc"]["ports"][1]["mode"] == "zc"
    for port in root["ports"]:
        assert port["emulated"] == "emulated by QEMU"
        assert port["nic"]["pci"]["device"] == "0x10c9"
    assert not [name for name in failed if name.endswith("cable")], failed
    # Where the host takes the time away, a search may find no rate.
    assert {run["name"] for run in root["runs"]} >= {
        "xdp-zc-mr-l2fwd cost", "vfio-mr-l2fwd cost"}, (failed, said)
