# SPDX-License-Identifier: BSD-3-Clause
"""The forwarders of ./mr bench guest, and how their counters are read."""
import json
import re
import shutil

START_LIMIT_S = 60
TESTPMD_LOG = "/tmp/testpmd.log"
L2FWD_LOG = "/tmp/l2fwd.json"


def testpmd_programs():
    """testpmd, if it is installed."""
    found = shutil.which("dpdk-testpmd")
    return [found] if found else []


def missing(build):
    """What is missing, or ""."""
    if not testpmd_programs():
        return "no dpdk-testpmd; install dpdk (Debian: dpdk-dev)"
    for name in ("apps/l2fwd/mr-l2fwd", "test/bench/libinsn_count.so"):
        if not (build / name).exists():
            return f"{build / name} is not built"
    return ""


class Forwarder:
    """A forwarder that can be started in a guest any number of times."""

    name = ""

    def __init__(self, command):
        self.command = command
        self.guest = None
        self.pid = None

    def _start(self, guest, log, sign):
        """Run it, with an open pipe as input, until `sign` succeeds; then stop
        it, so that it does not poll (and count) while nobody measures."""
        self.guest = guest
        status, text = guest.run(
            f"rm -f {log} /tmp/input; mkfifo /tmp/input; "
            # Opened for reading and writing, or the shell would wait for a
            # writer.
            f"taskset 3 {self.command} <>/tmp/input >{log} 2>&1 & pid=$!; "
            f"for i in $(seq {START_LIMIT_S}0); do "
            f"if {sign.format(pid='$pid', log=log)}; then "
            "kill -STOP $pid; echo $pid; exit; fi; "
            "kill -0 $pid || break; usleep 100000; done; exit 1",
            2 * START_LIMIT_S)
        if status != 0:
            raise RuntimeError(f"{self.name} did not start:\n"
                               f"{text}{guest.run(f'cat {log}')[1]}")
        self.pid = int(text)

    def begin_to_go_on(self):
        """Continue it as soon as the machine continues."""
        self.guest.start(f"kill -CONT {self.pid}")

    def _begin_to_end(self, command):
        """End it with a command as soon as the machine continues."""
        self.guest.finish()
        self.guest.start(command)

    def _output(self, log):
        """Wait until it has ended; return its output."""
        status, text = self.guest.finish()
        assert status == 0, text
        status, _ = self.guest.run(
            f"for i in $(seq {START_LIMIT_S}0); do "
            f"kill -0 {self.pid} 2>/dev/null || exit 0; usleep 100000; done; "
            "exit 1", 2 * START_LIMIT_S)
        assert status == 0, f"{self.name} does not end"
        return self.guest.run(f"cat {log}")[1]


class Testpmd(Forwarder):
    """Debian's testpmd: one forwarding core, mode io, bursts counted."""

    name = "testpmd"

    def __init__(self, devices, burst, ring):
        super().__init__(
            "dpdk-testpmd -l 0,1 --main-lcore 0 --in-memory --no-telemetry "
            f"-m 256 {devices} -- --forward-mode=io --nb-cores=1 "
            f"--record-burst-stats --burst={burst} --rxd={ring} --txd={ring} "
            "--auto-start")

    def start(self, guest):
        """Start it and wait until it forwards."""
        # It is ready when it reads its input: read(2) of descriptor 0.
        self._start(guest, TESTPMD_LOG,
                    "grep -q '^0 0x0 ' /proc/{pid}/syscall")
        return self

    def begin_to_end(self):
        """End it as soon as the machine continues."""
        self._begin_to_end("echo >/tmp/input")

    def counters(self):
        """Its counters, after it has ended.

        In mode io, a tx burst follows each rx burst that was not empty, so the
        numbers of bursts are exact, unlike those in per cent.
        """
        text = self._output(TESTPMD_LOG)
        bursts = {way: sum(int(n) for n in re.findall(
            rf"{way}-bursts *: *(\d+)", text)) for way in ("RX", "TX")}
        total = re.search(r"Accumulated forward statistics.*?"
                          r"RX-packets: *(\d+)", text, re.S)
        if not bursts["RX"] or not total:
            raise RuntimeError(f"testpmd's counters are not as known:\n{text}")
        return {"polls": bursts["RX"], "bursts": bursts["TX"],
                "frames": int(total.group(1))}


class L2fwd(Forwarder):
    """mr-l2fwd: one worker that polls, in its default mode."""

    name = "mr-l2fwd"

    def __init__(self, specs, burst):
        super().__init__("mr-l2fwd --json --idle poll --workers 1 --cores 1 "
                         f"--burst {burst} {' '.join(specs)}")

    def start(self, guest):
        """Start it and wait until it forwards."""
        self._start(guest, L2FWD_LOG, "grep -q workers {log}")
        return self

    def begin_to_end(self):
        """End it as soon as the machine continues."""
        self._begin_to_end(f"kill -INT {self.pid}")

    def counters(self):
        """Its counters, after it has ended. A round polls each port."""
        final = json.loads(self._output(L2FWD_LOG).splitlines()[-1])
        if not final["invariants_hold"] or not final["conserved"]:
            raise RuntimeError(f"mr-l2fwd: counters do not add up: {final}")
        worker = final["workers"][0]
        rx = [queue["rx"] for port in final["ports"]
              for queue in port["queues"]]
        return {"polls": worker["rounds"] * len(rx),
                "bursts": worker["bursts"],
                "frames": sum(queue["delivered"] for queue in rx)}


def contestants(machine, burst):
    """testpmd and mr-l2fwd on a machine's NICs."""
    nics, ring = machine.nics, machine.ring
    if machine.driver == "vfio-pci":
        devices = " ".join(f"-a {nic.bdf}" for nic in nics)
        specs = [f"vfio:{nic.bdf},rx-ring={ring},tx-ring={ring}"
                 for nic in nics]
    else:
        # With busy polling, its default, it sends nothing on an igb whose rx
        # and tx have separate interrupts, as with one queue.
        devices = "--no-pci " + " ".join(
            f"--vdev net_af_xdp{i},iface={nic.name},busy_budget=0"
            for i, nic in enumerate(nics))
        specs = [f"xdp:{nic.name},mode=zc,ring={ring}" for nic in nics]
    return [Testpmd(devices, burst, ring), L2fwd(specs, burst)]
