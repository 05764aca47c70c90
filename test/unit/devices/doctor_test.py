# SPDX-License-Identifier: BSD-3-Clause
"""mr-devices doctor on a machine of files, with tools that say what a test
wants: each fault is found, with its fix, and nothing else is.

usage: doctor_test.py MR_DEVICES SCHEMA      (no privileges, no devices)
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))

from host import limit  # noqa: E402 pylint: disable=wrong-import-position

try:
    import jsonschema
except ImportError:
    jsonschema = None

PROGRAM = SCHEMA = ""
LIMIT_S = limit(60)
NET, CPU = "sys/class/net/eth0", "sys/devices/system/cpu"
# What tools print, by the options that they get.
ETHTOOL = """#!/bin/sh
for word; do
    case $word in -[gkx]) exec /bin/cat "$0$word" ;; esac
done
exit 1
"""
BPFTOOL = '#!/bin/sh\nexec /bin/cat "$0-$2-$3-$5"\n'
SAY = '#!/bin/sh\nexec /bin/cat "$0.out"\n'


def link(**more):
    """Output of ip for a link."""
    return json.dumps([{"ifindex": 2, "ifname": "eth0", "mtu": 1500, **more}])


def program(name, mode=1):
    return {"xdp": {"mode": mode, "prog": {"id": 7, "name": name}}}


def features(*active):
    """Output of ethtool for features."""
    return json.dumps([{"ifname": "eth0", **{
        name: {"active": name in active, "fixed": False, "requested": True}
        for name in ("large-receive-offload", "rx-gro-hw", "rx-vlan-offload",
                     "tx-vlan-offload")}}])


def ring(now):
    return ("Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\n"
            "RX Mini:\tn/a\nTX:\t\t4096\nCurrent hardware settings:\n"
            f"RX:\t\t{now}\nRX Mini:\tn/a\nTX:\t\t512\n")


def rss(*queues):
    rows = "".join(f"{8 * i:5}:  " + "".join(f"{queues[j % len(queues)]:6}"
                                             for j in range(8)) + "\n"
                   for i in range(2))
    return ("RX flow hash indirection table for eth0 with 4 RX ring(s):\n"
            f"{rows}RSS hash key:\n6d:5a:56\nRSS hash function:\n    toeplitz: on\n")


def sockets(*queues):
    return "".join(f"p_raw UNCONN 0 0 eth0:q{q} *\np_raw UNCONN 0 0 veth0:q3 *\n"
                   for q in queues)


# A machine with two NUMA nodes of two cores; the workers have 0 and 1, on the
# node of the NIC, and its interrupts are handled on core 3. The driver is in no
# table. Files below the root, and of the tools.
CLEAN = {
    **{f"{NET}/queues/rx-{q}/x": "" for q in range(4)},
    f"{NET}/napi_defer_hard_irqs": "0\n", f"{NET}/gro_flush_timeout": "0\n",
    f"{NET}/device/numa_node": "0\n",
    **{f"{NET}/device/msi_irqs/{irq}": "msix\n" for irq in (30, 31)},
    **{f"proc/irq/{irq}/effective_affinity_list": "3\n" for irq in (30, 31)},
    **{f"{CPU}/cpu{i}/cpufreq/scaling_governor": "performance\n"
       for i in range(4)},
    **{f"{CPU}/cpu{i}/cpuidle/state{s}/{name}": text for i in range(4)
       for s, us in ((0, 2), (1, 133))
       for name, text in (("latency", f"{us}\n"), ("disable", f"{s}\n"))},
    "sys/devices/system/node/node0/cpulist": "0-1\n",
    "sys/devices/system/node/node1/cpulist": "2-3\n",
    "tools/ip.out": link(**program("millrace_frags")),
    "tools/ss.out": sockets(0, 1, 2, 3),
    "tools/ethtool-g": ring(2048), "tools/ethtool-k": features(),
    "tools/ethtool-x": rss(0, 1, 2, 3),
}

# Name: what differs, the check that finds it, words of the finding, the fix.
FAULTS = {
    "bond": ({"tools/ip.out": link(linkinfo={"info_kind": "bond"}),
              f"{NET}/lower_p0/x": "", f"{NET}/lower_p1/x": ""},
             "kind", "a bond", "mr-devices doctor p0; mr-devices doctor p1"),
    "vlan": ({"tools/ip.out": link(linkinfo={"info_kind": "vlan"}, mtu=9000),
              f"{NET}/lower_p0/x": ""},
             "kind", "open a device below it, xdp:p0", "mr-devices doctor p0"),
    "foreign program": ({"tools/ip.out": link(**program("cilium")),
                         "tools/ss.out": ""},
                        "program", "cilium, id 7",
                        "ip link set dev eth0 xdpdrv off"),
    "several programs": ({"tools/ip.out": link(xdp={"mode": 4, "attached": [
        program("xdp_dispatcher")["xdp"], program("other", 2)["xdp"]]}),
        "tools/ss.out": ""},
        "program", "other", "ip link set dev eth0 xdpgeneric off"),
    "generic mode": ({"tools/ip.out": link(**program("millrace", 2))},
                     "program", "in generic mode",
                     "mr-l2fwd xdp:eth0,attach=native"),
    "queues without a socket": ({"tools/ss.out": sockets(1, 2)},
                                "queues", "queues 0,3 have no AF_XDP socket",
                                "ethtool -X eth0 start 1 equal 2"),
    "and no RSS table": ({"tools/ss.out": sockets(0), "tools/ethtool-x": ""},
                         "queues", "queues 1-3 have no",
                         "ethtool -L eth0 combined 1"),
    "queues that RSS leaves out": ({"tools/ethtool-x": rss(0, 1)},
                                   "queues", "no frames to queues 2-3",
                                   "ethtool -X eth0 start 0 equal 4"),
    "and others": ({"tools/ethtool-x": rss(0), "tools/ss.out": sockets(0, 1)},
                   "queues", "no frames to queues 1,",
                   "ethtool -X eth0 start 0 equal 2"),
    "only queues without a socket": (
        {"tools/ethtool-x": rss(2, 3), "tools/ss.out": sockets(0, 1)},
        "queues", "queues 2-3 have no AF_XDP socket",
        "ethtool -X eth0 start 0 equal 2"),
    "sockets here and there": ({"tools/ss.out": sockets(0, 2)}, "queues",
                               "queues 1,3 have no AF_XDP socket",
                               "ethtool -X eth0 weight 1 0 1"),
    "queues without a place in the map": (
        {"tools/ss.out": "", "tools/bpftool": BPFTOOL,
         "tools/bpftool-prog-show-7": '{"id":7,"map_ids":[1]}',
         "tools/bpftool-map-show-1": '{"name":"sockets","max_entries":3}'},
        "queues", "queues 3 have no AF_XDP socket",
        "ethtool -X eth0 start 0 equal 3"),
    "small ring": ({"tools/ethtool-g": ring(512)}, "rings", "512 entries",
                   "ethtool -G eth0 rx 2048"),
    "LRO": ({"tools/ethtool-k": features("large-receive-offload")},
            "offloads", "LRO", "ethtool -K eth0 lro off"),
    "GRO in hardware": ({"tools/ethtool-k": features("rx-gro-hw")},
                        "offloads", "GRO", "ethtool -K eth0 rx-gro-hw off"),
    "VLAN tags": ({"tools/ethtool-k": features("rx-vlan-offload")},
                  "offloads", "VLAN tags", "ethtool -K eth0 rxvlan off"),
    "interrupts on a worker's core": (
        {"proc/irq/31/effective_affinity_list": "1\n"}, "irqs", "interrupts 31",
        "echo 2-3 > /proc/irq/31/smp_affinity_list"),
    "interrupts anywhere": (
        {"proc/irq/30/effective_affinity_list": "",
         "proc/irq/30/smp_affinity_list": "0-3\n"}, "irqs", "interrupts 30",
        "echo 2-3 > /proc/irq/30/smp_affinity_list"),
    "NUMA": ({f"{NET}/device/numa_node": "1\n"}, "numa",
             "cores 0-1 are not on NUMA node 1",
             "cat /sys/devices/system/node/node1/cpulist"),
    "governor": ({f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave\n"},
                 "frequency", "cores 1 have the governor powersave",
                 "cpupower -c 1 frequency-set -g performance"),
    "C-state": ({f"{CPU}/cpu0/cpuidle/state1/disable": "0\n"}, "c-states",
                "133 us", "cpupower -c 0 idle-set -D 20"),
    "half a deferral": ({f"{NET}/gro_flush_timeout": "20000\n"}, "deferral",
                        "napi_defer_hard_irqs is not",
                        f"echo 0 > /{NET}/napi_defer_hard_irqs; "
                        f"echo 0 > /{NET}/gro_flush_timeout"),
    "long deferral": ({f"{NET}/napi_defer_hard_irqs": "2\n",
                       f"{NET}/gro_flush_timeout": "20000000\n"}, "deferral",
                      "up to 40000 us", f"echo 0 > /{NET}/gro_flush_timeout"),
    "MTU": ({"tools/ip.out": link(mtu=9000)}, "mtu", "MTU 9000",
            "ip link set dev eth0 mtu 3498"),
    "driver": ({f"{NET}/device/driver": "->/bus/pci/drivers/ena"}, "driver",
               "driver ena in Linux", "ip link"),
}


class Case(unittest.TestCase):
    """A machine, and mr-devices doctor on it."""

    def run_it(self, *words, **differing):
        """With files that differ from a clean machine's: status and output."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            tools = {"tools/ip": SAY, "tools/ss": SAY, "tools/ethtool": ETHTOOL}
            for name, text in {**tools, **CLEAN, **differing}.items():
                if text is None:
                    continue
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                if text.startswith("->"):
                    path.symlink_to(text[2:])
                else:
                    path.write_text(text, "ascii")
                    path.chmod(0o755)
            done = subprocess.run(
                [PROGRAM, "--root", root, "doctor", "eth0", *words], text=True,
                capture_output=True, check=False, timeout=LIMIT_S,
                env={"PATH": str(root / "tools")})
        return done.returncode, done.stdout, done.stderr

    def shown(self, *words, **differing):
        """What it prints as JSON; its exit status says if that is a finding."""
        status, out, err = self.run_it("--json", *words, **differing)
        self.assertEqual(err, "")
        shown = json.loads(out)
        if jsonschema:
            schema = json.loads(Path(SCHEMA).read_text("utf-8"))
            jsonschema.Draft7Validator.check_schema(schema)
            jsonschema.validate(shown, schema)
        self.assertEqual(status, 3 if shown["findings"] else 0)
        return shown

    def test_a_clean_interface_has_no_finding(self):
        self.assertEqual(self.shown("--cores", "0-1"), {
            "v": 1, "interface": "eth0", "findings": [], "unknown": []})
        self.assertEqual(self.run_it("-c", "0,1"),
                         (0, "eth0: nothing found\n", ""))

    def test_each_fault_is_found_with_its_fix(self):
        for name, (differing, check, words, fix) in FAULTS.items():
            with self.subTest(name):
                shown = self.shown("--cores", "0-1", **differing)
                self.assertEqual([f["check"] for f in shown["findings"]], [check])
                self.assertIn(words, shown["findings"][0]["finding"])
                self.assertIn(fix, shown["findings"][0]["fix"])
                self.assertEqual(shown["unknown"], [])
        status, out, _ = self.run_it("-c", "0", **{"tools/ethtool-g": ring(256)})
        self.assertEqual((status, out.splitlines()[1].strip()),
                         (3, "ethtool -G eth0 rx 2048"))

    def test_deferred_interrupts_may_share_a_core(self):
        """With busy polling, the worker itself handles them."""
        self.assertEqual(self.shown("-c", "0-1", **{
            "proc/irq/31/effective_affinity_list": "1\n",
            f"{NET}/napi_defer_hard_irqs": "2\n",
            f"{NET}/gro_flush_timeout": "200000\n"})["findings"], [])

    def test_a_program_that_a_port_shares_is_no_finding(self):
        for name in "xdp_dispatcher", "of_a_user":
            self.assertEqual(self.shown("-c", "0-1", **{
                "tools/ip.out": link(**program(name))})["findings"], [])

    def test_vlan_tags_that_ports_see_outside_the_frame_are_no_finding(self):
        release = [int(n) for n in os.uname().release.split(".")[:2]]
        if release < [6, 8]:
            self.skipTest("an older kernel, which tells no tags")
        self.assertEqual(self.shown("-c", "0-1", **{
            f"{NET}/device/driver": "->/bus/pci/drivers/ice",
            "tools/ethtool-k": features("rx-vlan-offload")})["findings"], [])

    def test_names_of_any_bytes_are_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            tool = Path(folder) / "ip"
            tool.write_text("#!/bin/sh\nprintf '[{\"ifindex\":2,\"mtu\":60,"
                            "\"linkinfo\":{\"info_kind\":\"\\377\"}}]'\n", "ascii")
            tool.chmod(0o755)
            done = subprocess.run(
                [PROGRAM, "--root", folder, "doctor", "--json", b"\xff"],
                capture_output=True, check=False, timeout=LIMIT_S,
                env={"PATH": f"{folder}:/usr/bin:/usr/sbin"})
        self.assertEqual(done.stderr, b"")
        self.assertEqual(json.loads(done.stdout)["interface"], "\udcff")

    def test_unknown_facts_are_named(self):
        def unknown(*words, **differing):
            return {one["check"]: one["why"]
                    for one in self.shown(*words, **differing)["unknown"]}
        self.assertEqual(set(unknown()), {"irqs", "numa"})
        unlisted = {"tools/ss.out": "", "tools/bpftool": BPFTOOL,
                    "tools/bpftool-prog-show-7": '{"id":7,"map_ids":[1]}',
                    "tools/bpftool-map-show-1":
                        '{"name":"sockets","max_entries":4}'}
        for lacks in {}, {"tools/bpftool": None}:
            self.assertIn("xsk_diag", unknown("-c", "0", **unlisted | lacks)[
                "queues"])
        lost = unlisted | {
            "tools/bpftool-prog-show-7": '{"id":7,"map_ids":[1,2]}',
            "tools/bpftool-map-show-2": '{"name":"unserved","id":2}',
            "tools/bpftool-map-dump-2": json.dumps([
                {"key": ["0x00"] * 4, "value": ["0x05"] + ["0x00"] * 7}])}
        (found,) = self.shown("-c", "0", **lost)["findings"]
        self.assertIn("5 frames arrived on queues without", found["finding"])
        peer = link(linkinfo={"info_kind": "veth"}, link_netnsid=1)
        self.assertIn("gro on", unknown("-c", "0", **{"tools/ip.out": peer})[
            "offload"])
        _, out, _ = self.run_it()
        self.assertIn("irqs: not checked: the workers' cores are not given", out)
        self.assertIn("eth0: nothing found by the other 12 checks\n", out)

    def test_missing_features_are_no_finding(self):
        self.assertEqual(self.shown("-c", "0-1", **{
            name: None for name in CLEAN if name.startswith("tools/ethtool-")
            or "/device/" in name or "/cpufreq/" in name})["findings"], [])

    def test_a_missing_tool_is_named(self):
        for tool, package in (("ip", "iproute2"), ("ss", "iproute2"),
                              ("ethtool", "ethtool")):
            self.assertEqual(self.run_it(**{f"tools/{tool}": None}), (
                1, "", f"mr-devices: {tool} is not in PATH; run as root, or install "
                f"the package {package}\n"))

    def test_usage(self):
        for words, message in (
                (["eth1"], "at most 1 interface"),
                (["-c", "a"], "'a' is not a list of cores"),
                (["-c", "5-1"], "'5-1' is not a list of cores"),
                (["-c", ""], "'' is not a list of cores"),
                (["--force"], "doctor has no option --force")):
            status, out, err = self.run_it(*words)
            self.assertEqual((status, out), (2, ""))
            self.assertIn(message, err)
        self.assertIn("no interface eth0",
                      self.run_it(**{"tools/ip.out": None})[2])


if __name__ == "__main__":
    SCHEMA = sys.argv.pop()
    PROGRAM = sys.argv.pop()
    unittest.main()
