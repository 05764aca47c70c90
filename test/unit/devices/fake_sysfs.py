# SPDX-License-Identifier: BSD-3-Clause
"""A machine of files: /sys, /proc, /dev and /run below a folder, and a kernel
that does what is written to sysfs, in a thread of its own."""
import os
import threading
import time
from pathlib import Path

VFIO = "vfio-pci"
STEP_S = 0.001


class Function:
    """What a PCI function is made with."""

    def __init__(self, bdf, ids, native="", netdev="", group=None, **more):
        self.bdf = bdf
        self.vendor, self.device = ids.split(":")
        self.native = native  # the kernel driver that knows its ids
        self.netdev = netdev
        self.group = group
        self.class_code = more.get("class_code", 0x020000)
        self.node = more.get("node", 0)
        self.driver = more.get("driver", native)  # bound to begin with
        self.is_bridge = more.get("is_bridge", False)
        # Renamed so by udev, a moment after it appears.
        self.early_netdev = more.get("early_netdev", netdev)
        self.has_virtio = more.get("has_virtio", False)


class Machine:
    """The files, and the kernel behind them. As a context manager."""

    def __init__(self, folder, functions, drivers=("igb", VFIO)):
        self.root = Path(folder)
        self.functions = {f.bdf: f for f in functions}
        self.refuses = set()  # drivers that take nothing
        self.leaves = ""  # one that is unloaded when vfio-pci has taken one
        self.is_ended = False
        self.thread = threading.Thread(target=self._work, daemon=True)
        for name in ("sys/bus/pci/devices", "sys/bus/pci/drivers",
                     "sys/kernel/iommu_groups", "sys/class/net",
                     "proc/net", "dev/vfio/devices", "run"):
            (self.root / name).mkdir(parents=True)
        self.write("proc/net/route", "Iface\tDestination\tGateway\n")
        self.write("proc/net/ipv6_route", "")
        self.write("sys/bus/pci/drivers_probe", "")
        for driver in drivers:
            self.load(driver)
        for function in functions:
            self._make(function)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.is_ended = True
        self.thread.join()

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")

    def load(self, driver):
        for name in ("bind", "unbind"):
            self.write(f"sys/bus/pci/drivers/{driver}/{name}", "")

    def unload(self, driver):
        folder = self.root / "sys/bus/pci/drivers" / driver
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()

    def default_route(self, interface, version=4, mask="00000000"):
        """A route to 0.0.0.0 or :: by that interface."""
        if version == 4:
            self.write("proc/net/route", "Iface\tDestination\tGateway\n"
                       "lo\t0000007F\t00000000\t1\t0\t0\t0\t000000FF\t0\n"
                       f"{interface}\t00000000\t0100000A\t3\t0\t0\t100\t"
                       f"{mask}\t0\t0\t0\n")
        else:
            zeros = "0" * 32
            self.write("proc/net/ipv6_route",
                       f"{zeros} 00 {zeros} 00 {zeros} 400 1 0 3 "
                       f"{interface:>8}\n")

    def hold(self, pid, name, target):
        """A process that has a node open."""
        folder = self.root / "proc" / str(pid)
        (folder / "fd").mkdir(parents=True)
        self.write(f"proc/{pid}/comm", name + "\n")
        (folder / "fd" / "7").symlink_to(target)

    def folder(self, bdf):
        return self.root / "sys/bus/pci/devices" / bdf

    def driver(self, bdf):
        """The driver that has it; ''."""
        link = self.folder(bdf) / "driver"
        return os.readlink(link).rsplit("/", 1)[1] if link.is_symlink() else ""

    def override(self, bdf):
        """Its driver_override; ''."""
        text = (self.folder(bdf) / "driver_override").read_text("ascii")
        return text.split("\n")[0]

    def state(self):
        """All that binding could change."""
        notes = self.root / "run/millrace/devices"
        return ({bdf: (self.driver(bdf), self.override(bdf))
                 for bdf in self.functions},
                sorted(p.name for p in notes.iterdir())
                if notes.exists() else [])

    def _make(self, f):
        folder = self.folder(f.bdf)
        folder.mkdir()
        for name, text in (("vendor", f"0x{f.vendor}"),
                           ("device", f"0x{f.device}"),
                           ("subsystem_vendor", "0x1af4"),
                           ("subsystem_device", "0x1100"),
                           ("class", f"0x{f.class_code:06x}"),
                           ("numa_node", str(f.node))):
            (folder / name).write_text(text + "\n", encoding="ascii")
        (folder / "driver_override").write_text("", encoding="ascii")
        config = bytearray(64)
        config[14] = 0x81 if f.is_bridge else 0x80
        (folder / "config").write_bytes(config)
        if f.group is not None:
            group = self.root / "sys/kernel/iommu_groups" / str(f.group)
            (group / "devices" / f.bdf).mkdir(parents=True)
            (folder / "iommu_group").symlink_to(
                f"../../../../kernel/iommu_groups/{f.group}")
        if f.driver:
            self._bind(f, f.driver)

    def _netdev_folder(self, f):
        folder = self.folder(f.bdf)
        return (folder / "virtio0" if f.has_virtio else folder) / "net"

    def _add_netdev(self, f, name):
        (self._netdev_folder(f) / name).mkdir(parents=True)
        self.write(f"sys/class/net/{name}/carrier", "1\n")
        self.write(f"sys/class/net/{name}/speed", "1000\n")
        link = self.root / "sys/class/net" / name / "device"
        if not link.is_symlink():
            link.symlink_to(self._netdev_folder(f).parent)

    def _remove_netdev(self, f):
        net = self._netdev_folder(f)
        for entry in list(net.iterdir()) if net.exists() else []:
            entry.rmdir()
        if net.exists():
            net.rmdir()

    def _bind(self, f, driver):
        if driver in self.refuses:
            return
        if driver == VFIO and self.leaves:
            self.unload(self.leaves)
            self.leaves = ""
        (self.folder(f.bdf) / "driver").symlink_to(
            f"../../../../bus/pci/drivers/{driver}")
        if driver == VFIO:
            self.write(f"dev/vfio/{f.group}", "")
        elif f.netdev and driver == f.native:
            self._add_netdev(f, f.early_netdev)
            if f.early_netdev != f.netdev:
                time.sleep(0.05)
                self._remove_netdev(f)
                self._add_netdev(f, f.netdev)

    def _take(self, path):
        """What was written to a file, which is empty afterwards."""
        path = self.root / path
        if not path.exists() or path.is_dir():
            return ""
        text = path.read_text("ascii")
        if text:
            path.write_text("", encoding="ascii")
        return text.strip()

    def _probe(self, f):
        if self.driver(f.bdf):
            return
        driver = self.override(f.bdf) or f.native
        if (self.root / "sys/bus/pci/drivers" / driver).exists() and driver:
            self._bind(f, driver)

    def _step(self):
        bdf = self._take("sys/bus/pci/drivers_probe")
        if bdf:
            self._probe(self.functions[bdf])
        for path in (self.root / "sys/bus/pci/drivers").iterdir():
            bdf = self._take(path / "unbind")
            if bdf and self.driver(bdf) == path.name:
                self._remove_netdev(self.functions[bdf])
                (self.folder(bdf) / "driver").unlink()
            bdf = self._take(path / "bind")
            if bdf and not self.driver(bdf):
                self._bind(self.functions[bdf], path.name)

    def _work(self):
        while not self.is_ended:
            self._step()
            time.sleep(STEP_S)
