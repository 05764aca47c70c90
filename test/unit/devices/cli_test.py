# SPDX-License-Identifier: BSD-3-Clause
"""mr-devices on a machine of files: what it shows, does, undoes and refuses.

usage: cli_test.py MR_DEVICES SCHEMA      (no privileges, no devices)
"""
import contextlib
import getpass
import grp
import json
import os
import pwd
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from fake_sysfs import VFIO, Function, Machine

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))

from host import limit  # noqa: E402 pylint: disable=wrong-import-position

try:
    import jsonschema
except ImportError:
    jsonschema = None

PROGRAM = SCHEMA = ""
LIMIT_S = limit(60)
A, B, C = "0000:03:00.0", "0000:03:00.1", "0000:05:00.0"
DISK, PORT = "0000:00:1f.2", "0000:00:1c.0"
IGB = "8086:10c9"


def functions(**more):
    """Two ports of a NIC, each in a group of its own, and a virtio NIC."""
    return [Function(A, IGB, "igb", "eth1", 7, **more),
            Function(B, IGB, "igb", "eth2", 8),
            Function(C, "1af4:1041", "virtio-pci", "eth0", 9,
                     has_virtio=True, node=-1),
            Function(DISK, "8086:2922", "ahci", "", 3, class_code=0x010601)]


class Case(unittest.TestCase):
    """A machine, and mr-devices on it."""

    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def machine(self, made_of=None, **more):
        """A machine that ends with the test."""
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        more.setdefault("drivers", ("igb", "virtio-pci", "ahci", VFIO))
        return self.stack.enter_context(
            Machine(folder, made_of or functions(), **more))

    def run_it(self, machine, *arguments, env=None):
        """Run to the end: exit status, stdout, stderr."""
        done = subprocess.run(
            [PROGRAM, "--root", machine.root, *arguments], text=True,
            capture_output=True, check=False, timeout=LIMIT_S,
            env={**os.environ, **(env or {})})
        return done.returncode, done.stdout, done.stderr

    def do(self, machine, *arguments, env=None):
        status, out, err = self.run_it(machine, *arguments, env=env)
        self.assertEqual((status, err), (0, ""))
        return out

    def refused(self, machine, *arguments, status=1):
        """One that is refused, by one line, and changes nothing: the line."""
        before = machine.state()
        got, out, err = self.run_it(machine, *arguments)
        self.assertEqual((got, out), (status, ""), err)
        self.assertTrue(err.startswith("mr-devices: "), err)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertEqual(machine.state(), before)
        return err

    def listed(self, machine, *arguments):
        """{address: device} of --json; the schema holds."""
        text = self.do(machine, *arguments, "--json")
        shown = json.loads(text)
        if jsonschema:
            schema = json.loads(Path(SCHEMA).read_text("utf-8"))
            jsonschema.Draft7Validator.check_schema(schema)
            jsonschema.validate(shown, schema)
            with self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate({"v": 1}, schema)
        return {d["address"]: d for d in shown["devices"]}


class Listing(Case):
    """list and info."""

    def test_network_devices_are_listed(self):
        machine = self.machine()
        out = self.do(machine)
        self.assertEqual(out, self.do(machine, "list"))
        rows = out.splitlines()
        self.assertEqual(rows[0].split(), [
            "ADDRESS", "IDS", "VFIO", "KERNEL", "INTERFACE", "GROUP", "NODE",
            "LINK"])
        self.assertEqual([row.split()[0] for row in rows[1:]], [A, B, C])
        for word in (IGB, "igb", "eth1", "7", "1000 Mb/s"):
            self.assertIn(word, rows[1])
        self.assertNotIn(DISK, out)
        self.assertIn(DISK, self.do(machine, "--all"))

    def test_json_has_what_is_known(self):
        machine = self.machine()
        machine.default_route("eth0")
        devices = self.listed(machine, "list")
        self.assertEqual(sorted(devices), [A, B, C])
        a = devices[A]
        self.assertEqual(
            (a["vendor"], a["device"], a["class"], a["kernel_driver"],
             a["interface"], a["iommu_group"], a["numa_node"], a["link"],
             a["spec"], a["former_kernel_driver"], a["default_route"]),
            ("8086", "10c9", "020000", "igb", "eth1", 7, 0,
             {"up": True, "mbps": 1000}, "xdp:eth1", None, False))
        c = devices[C]
        self.assertEqual((c["interface"], c["numa_node"], c["default_route"]),
                         ("eth0", None, True))
        self.assertIn(DISK, self.listed(machine, "--all"))

    def test_a_link_that_is_down_or_has_no_speed(self):
        machine = self.machine()
        machine.write("sys/class/net/eth1/carrier", "0\n")
        machine.write("sys/class/net/eth2/speed", "-1\n")
        devices = self.listed(machine)
        self.assertEqual(devices[A]["link"], {"up": False, "mbps": 0})
        self.assertEqual(devices[B]["link"], {"up": True, "mbps": 0})
        self.assertIn("down", self.do(machine).splitlines()[1])

    def test_info_names_the_group_and_who_spoils_it(self):
        machine = self.machine([
            Function(A, IGB, "igb", "eth1", 7),
            Function(DISK, "8086:2922", "ahci", "", 7, class_code=0x010601),
            Function(PORT, "8086:1c10", "pcieport", "", 7, is_bridge=True,
                     class_code=0x060400)],
            drivers=("igb", "ahci", "pcieport", VFIO))
        out = self.do(machine, "info", A)
        self.assertIn(f"{DISK}, ahci: not viable", out)
        self.assertIn(f"{PORT}, pcieport\n", out)
        self.assertIn("xdp:eth1", out)
        self.assertEqual(self.listed(machine, "info", A)[A]
                         ["group_shared_with"], [PORT, DISK])

    def test_no_pci_bus(self):
        machine = self.machine()
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run([PROGRAM, "--root", empty],
                                  capture_output=True, text=True, check=False,
                                  timeout=LIMIT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no PCI bus", done.stderr)
        self.assertIn("no PCI device", self.refused(machine, "info",
                                                  "0000:0a:00.0"))


class Binding(Case):
    """bind and unbind."""

    def test_bound_and_given_back(self):
        machine = self.machine()
        before = machine.state()
        out = self.do(machine, "bind", A)
        self.assertIn("was igb, interface eth1", out)
        self.assertEqual(machine.driver(A), VFIO)
        self.assertEqual(machine.driver(B), "igb")
        a = self.listed(machine)[A]
        self.assertEqual((a["kernel_driver"], a["interface"], a["link"],
                          a["former_kernel_driver"]),
                         (VFIO, None, None, "igb"))
        self.assertIn("was igb", self.do(machine).splitlines()[1])
        self.assertIn("already bound", self.do(machine, "bind", A))
        out = self.do(machine, "unbind", A)
        self.assertIn("returned to igb, interface eth1", out)
        self.assertEqual(machine.state(), before)
        # Once more does no harm.
        self.assertIn("not bound", self.do(machine, "unbind", A))
        self.assertEqual(machine.state(), before)

    def test_all_are_given_back(self):
        machine = self.machine()
        before = machine.state()
        self.do(machine, "bind", A, B, C)
        self.assertEqual({machine.driver(b) for b in (A, B, C)}, {VFIO})
        out = self.do(machine, "unbind", "--all")
        self.assertIn("virtio-pci, interface eth0", out)
        self.assertEqual(machine.state(), before)
        self.assertIn("bound no devices", self.do(machine, "unbind", "--all"))

    def test_a_short_address(self):
        machine = self.machine()
        self.do(machine, "bind", "03:00.0")
        self.assertEqual(machine.driver(A), VFIO)
        self.do(machine, "unbind", "03:00.0")
        self.assertEqual(machine.driver(A), "igb")

    def test_the_interface_s_last_name_is_told(self):
        machine = self.machine(functions(early_netdev="eth9"))
        self.do(machine, "bind", A)
        self.assertIn("interface eth1\n", self.do(machine, "unbind", A))

    def test_without_a_driver_before_it_has_none_after(self):
        machine = self.machine(functions(driver=""))
        before = machine.state()
        self.assertIn("was without a driver", self.do(machine, "bind", A))
        self.assertIn("no driver, as before", self.do(machine, "unbind", A))
        self.assertEqual(machine.state(), before)

    def test_bound_by_somebody_else(self):
        """Nothing is remembered: the kernel finds the driver by the ids."""
        machine = self.machine(functions(driver=VFIO))
        self.assertIn("returned to igb", self.do(machine, "unbind", A))
        self.assertEqual(machine.driver(A), "igb")

    def test_a_device_that_was_pulled_is_forgotten(self):
        machine = self.machine()
        self.do(machine, "bind", A)
        machine.folder(A).rename(machine.root / "pulled")
        del machine.functions[A]
        self.assertIn("no longer present",
                      self.do(machine, "unbind", "--all"))
        self.assertEqual(machine.state()[1], [])

    def test_the_owner_and_what_it_may_lock(self):
        machine = self.machine()
        user = getpass.getuser()
        # Root may give it to any group, others to one of their own.
        others = [g.gr_gid for g in grp.getgrall()
                  if g.gr_gid != os.getgid() and
                  (os.getuid() == 0 or g.gr_gid in os.getgroups())]
        gid = others[0] if others else os.getgid()
        group = grp.getgrgid(gid).gr_name
        tools = machine.root / "tools"
        tools.mkdir()
        su = tools / "su"
        for says, words in (("echo 8192", "may lock 8192 KiB"),
                            ("echo unlimited", "any amount"),
                            ("exit 1", "'ulimit -l'"),
                            # As a PAM module that blocks the signal
                            ("trap '' TERM && sleep 100", "'ulimit -l'"),
                            ("echo nonsense", "'ulimit -l'")):
            su.write_text(f'#!/bin/sh\n[ "$5" = {user} ] && {says}\n', "ascii")
            su.chmod(0o755)
            out = self.do(machine, "bind", A, "--owner", f"{user}:{group}",
                          env={"PATH": f"{tools}:{os.environ['PATH']}"})
            self.assertIn(f"/dev/vfio/7 now belongs to {user}", out)
            self.assertIn(words, out)
        node = (machine.root / "dev/vfio/7").stat()
        self.assertEqual((node.st_uid, node.st_gid),
                         (os.getuid(), gid))
        # By number; 4711 need not be anybody.
        out = self.do(machine, "bind", A, "--owner",
                      f"{os.getuid()}:{os.getgid()}",
                      env={"PATH": f"{tools}:{os.environ['PATH']}"})
        self.assertIn(f"now belongs to {user}", out)
        self.assertEqual((machine.root / "dev/vfio/7").stat().st_gid,
                         os.getgid())
        status, out, err = self.run_it(machine, "bind", A, "--owner", "4711")
        if os.getuid() == 0:
            self.assertIn("now belongs to 4711", out)
            self.assertEqual((machine.root / "dev/vfio/7").stat().st_uid, 4711)
            (machine.root / "dev/vfio/7").chmod(0o666)
        else:
            self.assertEqual(status, 1)
            self.assertIn("run as root", err)
        # The group of the user, if none is said.
        self.do(machine, "bind", A, "--owner", user,
                env={"PATH": f"{tools}:{os.environ['PATH']}"})
        self.assertEqual((machine.root / "dev/vfio/7").stat().st_gid,
                         pwd.getpwnam(user).pw_gid)


class Refusing(Case):
    """Each by one line that names cause and cure; nothing is changed."""

    def test_usage(self):
        machine = self.machine()
        for words, arguments in (
                ("unknown command 'frob'", ["frob"]),
                ("requires an address", ["bind"]),
                ("requires an address", ["info"]),
                ("requires an address", ["unbind"]),
                ("at most", ["info", A, B]),
                ("at most", ["list", A]),
                ("either addresses or --all", ["unbind", "--all", A]),
                ("bind has no option --all", ["bind", "--all"]),
                ("unbind has no option --json", ["unbind", "--json", A]),
                ("list has no option --force", ["--force"]),
                ("unbind has no option --owner",
                 ["unbind", "--owner", getpass.getuser(), A]),
                ("no user 'nobody-here'",
                 ["bind", "--owner", "nobody-here", A]),
                ("no user ':x'", ["bind", "--owner", ":x", A]),
                ("no group 'nogroup-here'",
                 ["bind", "--owner", f"{getpass.getuser()}:nogroup-here", A]),
                ("no user '12x'", ["bind", "--owner", "12x", A]),
                ("unknown option '--frob'", ["--frob"])):
            with self.subTest(arguments=arguments):
                self.assertIn(words, self.refused(machine, *arguments,
                                                  status=2))

    def test_notes_need_root(self):
        if not all(folder.stat().st_mode & 1
                   for folder in Path(PROGRAM).resolve().parents):
            self.skipTest("other users cannot enter the build folder")
        machine = self.machine()
        (machine.root / "run").chmod(0o555)
        machine.root.chmod(0o755)
        nobody = pwd.getpwnam("nobody").pw_uid if os.getuid() == 0 else None
        done = subprocess.run(
            [PROGRAM, "--root", machine.root, "bind", A], text=True,
            capture_output=True, check=False, timeout=LIMIT_S, user=nobody)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Permission denied: run as root", done.stderr)

    def test_the_default_route_needs_force(self):
        for version in (4, 6):
            machine = self.machine()
            machine.default_route("eth1", mask="00000080")  # 0.0.0.0/1
            self.assertIs(self.listed(machine)[A]["default_route"], False)
            machine.default_route("eth1", version)
            error = self.refused(machine, "bind", B, A)
            for word in (A, "eth1", "default route", "--force"):
                self.assertIn(word, error)
            self.do(machine, "bind", "--force", A)
            self.assertEqual(machine.driver(A), VFIO)

    def test_any_interface_of_it_may_carry_the_default_route(self):
        """Also one below its virtio device."""
        for bdf in (A, C):
            machine = self.machine()
            net = machine.folder(bdf) / ("virtio0" if bdf == C else "") / "net"
            (net / "eth5").mkdir()
            (net / "wan0").mkdir()
            self.assertIs(self.listed(machine)[bdf]["default_route"], False)
            machine.default_route("eth5")
            self.assertIs(self.listed(machine)[bdf]["default_route"], True)
            self.assertIn("its interface eth5 carries the default route",
                          self.refused(machine, "bind", bdf))

    def test_a_bridge_or_vlan_over_it_carries_the_default_route(self):
        machine = self.machine()
        (machine.root / "sys/class/net/eth1/upper_br0").mkdir()
        (machine.root / "sys/class/net/br0/upper_br0.5").mkdir(parents=True)
        # Two that sit on each other end somewhere, too.
        (machine.root / "sys/class/net/br0.5/upper_br0").mkdir(parents=True)
        self.assertIs(self.listed(machine)[A]["default_route"], False)
        machine.default_route("br0.5")
        self.assertIn("default route", self.refused(machine, "bind", A))

    def test_a_group_that_is_not_viable(self):
        machine = self.machine([
            Function(A, IGB, "igb", "eth1", 7),
            Function(B, IGB, "igb", "eth2", 7),
            Function(DISK, "8086:2922", "ahci", "", 7, class_code=0x010601)],
            drivers=("igb", "ahci", VFIO))
        error = self.refused(machine, "bind", A)
        for word in ("group 7", f"{B} (igb)", f"{DISK} (ahci)"):
            self.assertIn(word, error)
        error = self.refused(machine, "bind", A, B)
        self.assertNotIn(B, error)
        self.assertIn(DISK, error)

    def test_both_of_a_group_together(self):
        machine = self.machine([
            Function(A, IGB, "igb", "eth1", 7),
            Function(B, IGB, "igb", "eth2", 7),
            Function(C, "1af4:1041", driver="pci-stub", group=7),
            Function(PORT, "8086:1c10", "pcieport", "", 7, is_bridge=True,
                     class_code=0x060400)],
            drivers=("igb", "pcieport", "pci-stub", VFIO))
        self.assertIn(B, self.refused(machine, "bind", A))
        self.do(machine, "bind", A, B)
        self.assertEqual({machine.driver(A), machine.driver(B)}, {VFIO})
        # One after the other, too, where the first is out of the way.
        self.do(machine, "unbind", B)
        self.do(machine, "bind", B)
        self.assertEqual(machine.driver(B), VFIO)

    def test_no_network_device(self):
        machine = self.machine()
        self.assertIn("not a network device (class 010601)",
                      self.refused(machine, "bind", DISK))

    def test_vfio_pci_is_not_loaded(self):
        machine = self.machine(drivers=("igb", "virtio-pci", "ahci"))
        self.assertIn("modprobe vfio-pci", self.refused(machine, "bind", A))

    def test_no_iommu(self):
        machine = self.machine([Function(A, IGB, "igb", "eth1")])
        self.assertIn("intel_iommu=on", self.refused(machine, "bind", A))
        switch = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
        machine.write(switch, "N\n")
        self.assertIn("IOMMU", self.refused(machine, "bind", A))
        machine.write(switch, "Y\n")
        # The node without an IOMMU stays root's: known before it is bound.
        owned = ("bind", A, "--owner", getpass.getuser())
        self.assertIn("only root", self.refused(machine, *owned))
        self.do(machine, "bind", A)
        self.assertEqual(machine.driver(A), VFIO)
        self.assertIn("only root", self.refused(machine, *owned))

    def test_the_former_driver_is_not_loaded(self):
        machine = self.machine()
        self.do(machine, "bind", A)
        self.do(machine, "bind", B)
        machine.unload("igb")
        status, _, err = self.run_it(machine, "unbind", A)
        self.assertEqual(status, 1)
        self.assertIn("modprobe igb", err)
        machine.load("igb")
        self.assertIn("returned to igb", self.do(machine, "unbind", A))
        self.do(machine, "unbind", "--all")
        self.assertEqual(machine.state()[1], [])

    def test_in_use(self):
        for target in ("/dev/vfio/7", "/dev/vfio/noiommu-7",
                       "/dev/vfio/devices/vfio3"):
            machine = self.machine()
            self.do(machine, "bind", A)
            if "noiommu" in target:
                machine.write("dev/vfio/noiommu-7", "")
            (machine.folder(A) / "vfio-dev/vfio3").mkdir(parents=True)
            (machine.folder(A) / "vfio-dev/vfio3/dev").write_text("511:3\n",
                                                                  "ascii")
            machine.hold(4712, "mr-nat", "/dev/vfio/8")
            machine.hold(4711, "mr-l2fwd", target)
            error = self.refused(machine, "unbind", A)
            self.assertIn("in use by process 4711 (mr-l2fwd)", error)

    def test_two_at_once(self):
        machine = self.machine()
        self.do(machine, "bind", A)
        notes = machine.root / "run/millrace/devices"
        fd = os.open(notes, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        # A child has the lock, as another mr-devices would.
        subprocess.run(["flock", "--shared", "--nonblock", str(fd)], pass_fds=[fd],
                       check=True, timeout=LIMIT_S)
        self.assertIn("another mr-devices", self.refused(machine, "unbind", A))
        self.assertIn(A, self.do(machine))  # to look is allowed

    def test_notes_in_a_folder_of_others_are_not_used(self):
        """The group of /run/millrace could create it first."""
        machine = self.machine()
        self.do(machine, "bind", A)
        notes = machine.root / "run/millrace/devices"
        before = machine.state()
        notes.chmod(0o777)
        self.assertIn("others can write to it",
                      self.refused(machine, "unbind", A))
        self.assertEqual(machine.state(), before)
        notes.rename(notes.with_name("elsewhere"))
        notes.symlink_to("elsewhere")
        self.assertIn("cannot write", self.refused(machine, "unbind", A))
        self.assertEqual(machine.state(), before)

    def test_a_failed_step_is_undone(self):
        """The second one cannot be bound: the first is given back."""
        machine = self.machine()
        before = machine.state()
        (machine.folder(B) / "driver_override").unlink()
        (machine.folder(B) / "driver_override").mkdir()
        status, out, err = self.run_it(machine, "bind", A, B)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("driver_override", err)
        (machine.folder(B) / "driver_override").rmdir()
        (machine.folder(B) / "driver_override").write_text("", "ascii")
        self.assertEqual(machine.state(), before)

    def test_a_node_that_cannot_be_given_undoes_the_binding(self):
        machine = self.machine()
        cdev = machine.folder(B) / "vfio-dev/vfio3"
        cdev.mkdir(parents=True)
        (cdev / "dev").write_text("511:3\n", "ascii")
        # A link to itself is no node: ELOOP, whoever asks.
        (machine.root / "dev/vfio/devices/vfio3").symlink_to("vfio3")
        self.assertIn("vfio3", self.refused(machine, "bind", A, B, "--owner",
                                            str(os.getuid())))

    def test_what_cannot_be_undone_is_remembered(self):
        machine = self.machine()
        machine.leaves = "igb"
        (machine.folder(C) / "driver_override").unlink()
        (machine.folder(C) / "driver_override").mkdir()
        status, out, err = self.run_it(machine, "bind", A, C)
        self.assertEqual((status, out, err.count("\n")), (1, "", 1))
        self.assertIn("driver_override", err)
        self.assertIn(f"{A} could not be returned; run mr-devices unbind {A}",
                      err)
        machine.load("igb")
        self.assertIn("returned to igb, interface eth1",
                      self.do(machine, "unbind", A))
        self.assertIn("bound no devices", self.do(machine, "unbind", "--all"))

    def test_each_wait_ends(self):
        """vfio-pci takes nothing; an interface does not come back."""
        stubborn, lossy = self.machine(), self.machine()
        before = stubborn.state()
        stubborn.refuses.add(VFIO)
        self.do(lossy, "bind", A)
        lossy.functions[A].native = "other"
        answers = {}

        def ask(name, machine, *arguments):
            answers[name] = self.run_it(machine, *arguments)

        threads = [threading.Thread(target=ask, args=arguments)
                   for arguments in (("bind", stubborn, "bind", A),
                                     ("unbind", lossy, "unbind", A))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers["bind"][0], 1)
        self.assertIn("vfio-pci did not bind", answers["bind"][2])
        self.assertEqual(stubborn.state(), before)
        self.assertEqual(answers["unbind"][0], 1)
        self.assertIn("interface eth1 did not come back",
                      answers["unbind"][2])


if __name__ == "__main__":
    SCHEMA = sys.argv.pop()
    PROGRAM = sys.argv.pop()
    unittest.main()
