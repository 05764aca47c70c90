# SPDX-License-Identifier: BSD-3-Clause
"""Instructions per frame of vhost-user drivers, counted by callgrind in
dpdk_cost.c: our driver and DPDK's have the same peer, which is DPDK's."""
import re
import subprocess

from topology import BenchError
from vhost_lab import LAYOUTS, device_vdevs, driver_vdevs

RING, N_BYTES = 512, 60


def programs(part, layout, path):
    """(DPDK's, ours, their peer) as dpdk_cost takes them."""
    device = device_vdevs([path])[0]
    driver = driver_vdevs([path], layout, RING)[0]
    packed = "on" if layout == "packed" else "off"
    return {
        "device": (device, f"mr:vhost:{path},unsealed,packed={packed}",
                   driver),
        "driver": (driver, f"mr:virtio-user:{path},ring={RING},"
                   f"packed={packed}", device),
    }[part]


def count(where, name, peer, way, burst, n_frames):
    """Instructions per frame of one direction: rx or tx."""
    where.clear()
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--collect-atstart=no",
         f"--callgrind-out-file={where.folder.name}/out",
         f"--toggle-collect=measured_{way}",
         str(where.build / "test/bench/dpdk_cost"), "-l", "0", "--no-huge",
         "--no-shconf", "-m", "256", "--no-pci", "--no-telemetry", "--",
         name, peer, str(N_BYTES), str(burst), str(n_frames)],
        capture_output=True, text=True, check=False, timeout=300)
    frames = re.search(r"^frames (\d+)$", done.stdout, re.M)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not frames or not counted:
        raise BenchError(f"{name} {way} {burst}: {done.stderr[-2000:]}")
    return int(counted.group(1)) / int(frames.group(1))


def measure(where, parts, layouts, bursts, n_frames):
    """Rows with the costs of DPDK's driver and of ours."""
    rows = []
    for part in parts:
        for layout in layouts:
            *both, peer = programs(part, layout, where.sockets[0])
            for burst in bursts:
                row = {"part": part, "layout": layout, "burst": burst}
                for who, name in zip(("dpdk", "ours"), both):
                    row[who] = {way: count(where, name, peer, way, burst,
                                           n_frames) for way in ("rx", "tx")}
                row["ratio"] = sum(row["ours"].values()) / \
                    sum(row["dpdk"].values())
                rows.append(row)
    return rows


def show(rows):
    print(f"\ninstructions per frame: {N_BYTES} bytes\n"
          f"{'part, ring, burst':20} {'DPDK rx':>8} {'tx':>8} {'both':>8} "
          f"{'ours rx':>8} {'tx':>8} {'both':>8} {'ratio':>6}")
    for row in rows:
        costs = [cost for who in ("dpdk", "ours")
                 for cost in (*row[who].values(), sum(row[who].values()))]
        print(f"{row['part']:7} {row['layout']:6} {row['burst']:5} " +
              " ".join(f"{cost:8.1f}" for cost in costs) +
              f" {row['ratio']:6.2f}")
