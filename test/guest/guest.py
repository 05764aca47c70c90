# SPDX-License-Identifier: BSD-3-Clause
"""A virtual machine for the length of a with statement.

    with Guest(nics=[Nic("nic0")], programs=["build/apps/l2fwd/mr-l2fwd"]) as g:
        code, text = g.run("mr-l2fwd --version")
        g.wires["nic0"].send(frame)

It is emulated in software: no KVM is needed, and rates mean nothing. Each NIC
is wired to this process, frame by frame, or joined with others on a hub.
Every wait has a deadline, and QEMU ends with the statement.
"""
import json
import os
import select
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import image
from fetch import Cache

BOOT_LIMIT_S = 120
COMMAND_LIMIT_S = 60
END_LIMIT_S = 10
# Serial lines for programs that are talked to; a PC has four, two are ours.
N_CHANNELS = 2
# Drivers of the NICs that a guest may get, and what tests need beside them.
MODULES = ["af_packet", "veth", "igb", "e1000e", "virtio_pci", "virtio_net",
           "xsk_diag"]


class Nic:
    """An emulated NIC of the guest: what it is, and what its wire ends in."""

    n_made = 0

    def __init__(self, name, model="igb", hub=None, options=""):
        Nic.n_made += 1
        self.name = name
        self.model = model
        self.hub = hub  # a number: joined with the others on that hub
        self.options = options
        self.mac = f"52:54:00:6d:72:{Nic.n_made & 0xff:02x}"

    def arguments(self, folder, place):
        """QEMU's options for it, the place-th one."""
        if self.hub is not None:
            netdev = f"hubport,id={self.name},hubid={self.hub}"
        else:
            netdev = (f"dgram,id={self.name},local.type=unix,"
                      f"local.path={folder}/{self.name}.qemu,"
                      f"remote.type=unix,"
                      f"remote.path={folder}/{self.name}.host")
        options = "," + self.options if self.options else ""
        return ["-netdev", netdev, "-device",
                # Every second slot: the virtual functions of an igb are 16
                # and 17 slots on.
                f"{self.model},netdev={self.name},mac={self.mac},"
                f"addr={2 + 2 * place:#x}{options}"]


class Wire:
    """Our end of a NIC's wire: one datagram is one frame."""

    def __init__(self, folder, name):
        self.name = name
        self.peer = f"{folder}/{name}.qemu"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"{folder}/{name}.host")
        self.socket.setblocking(False)

    def try_send(self, frame):
        """Put a frame on the wire; False: QEMU has not read the last ones."""
        try:
            self.socket.sendto(frame, self.peer)
            return True
        except (BlockingIOError, InterruptedError):
            return False

    def send(self, frame, limit_s=COMMAND_LIMIT_S):
        """Put a frame on the wire, waiting for room."""
        deadline = time.monotonic() + limit_s
        while not self.try_send(frame):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name}: the guest takes no frame")
            # A full peer does not make a datagram socket unwritable.
            time.sleep(0.001)

    def receive(self, limit_s=0):
        """The next frame from the guest, or None."""
        ready, _, _ = select.select([self.socket], [], [], limit_s)
        return self.socket.recv(65536) if ready else None

    def drain(self, quiet_s=0.2):
        """Forget what comes until none does for a while; how many frames.

        QEMU keeps what our socket has no room for, which is ten frames.
        """
        n = 0
        while self.receive(quiet_s) is not None:
            n += 1
        return n

    def close(self):
        """Close our end."""
        self.socket.close()


class Channel:
    """A serial line of the guest that a program there reads and writes."""

    def __init__(self, path, device):
        self.device = device
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(END_LIMIT_S)
        self.socket.connect(str(path))
        self.pending = b""

    def write_line(self, text):
        """Send a line."""
        self.socket.sendall(text.encode() + b"\n")

    def try_line(self, limit_s=0):
        """The next line without its end, or None if none is whole yet."""
        deadline = time.monotonic() + limit_s
        while b"\n" not in self.pending:
            left_s = max(0, deadline - time.monotonic())
            if not select.select([self.socket], [], [], left_s)[0]:
                return None
            data = self.socket.recv(65536)
            if not data:
                raise TimeoutError("the guest ended")
            self.pending += data
        line, self.pending = self.pending.split(b"\n", 1)
        return line.decode(errors="replace")

    def drain(self):
        """Forget what came, half a line included."""
        while select.select([self.socket], [], [], 0.05)[0]:
            self.socket.recv(65536)
        self.pending = b""


class Guest:
    """The machine. See the module's text."""

    def __init__(self, nics=(), programs=(), kernel="newest", n_cpus=1,
                 memory_mb=1024, modules=(), accel="tcg", say=print):
        self.nics = list(nics)
        self.programs = list(programs)
        self.modules = MODULES + list(modules)
        self.n_cpus = n_cpus
        self.memory_mb = memory_mb
        self.accel = accel
        cache = Cache(say=say)
        self.kernel = cache.kernel(kernel)
        self.busybox = cache.busybox()
        self.qemu, self.env, self.qemu_options = cache.qemu()
        self.folder = None
        self.process = None
        self.wires = {}
        self.channels = []
        self.pending = b""

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="mr-guest-"))
        try:
            for nic in self.nics:
                if nic.hub is None:
                    self.wires[nic.name] = Wire(self.folder, nic.name)
            image.build(self.folder / "initramfs", self.kernel, self.busybox,
                        self.modules, [(n.mac, n.name) for n in self.nics],
                        self.programs)
            self._start()
            self._read_until(b"@@ready\n", BOOT_LIMIT_S)
            for i in range(N_CHANNELS):
                self.channels.append(Channel(self.folder / f"channel{i}",
                                             f"/dev/ttyS{2 + i}"))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process is not None:
            self.process.kill()  # it has nothing to save
            self.process.wait(END_LIMIT_S)
            self.process.stdin.close()
            self.process.stdout.close()
        for wire in self.wires.values():
            wire.close()
        for channel in self.channels:
            channel.socket.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self):
        vmlinuz = next(iter(sorted(self.kernel.glob("**/vmlinuz*"))))
        command = [
            self.qemu, *self.qemu_options,
            "-machine", "q35,kernel-irqchip=split" if self.accel == "kvm"
            else "q35",
            "-accel", "tcg,thread=multi" if self.accel == "tcg"
            else self.accel,
            "-cpu", "host" if self.accel == "kvm" else "max",
            "-smp", str(self.n_cpus), "-m", str(self.memory_mb),
            "-display", "none", "-no-reboot", "-nodefaults",
            # Before the NICs, or they are not behind it.
            "-device", "intel-iommu,intremap=on,aw-bits=48",
            "-kernel", str(vmlinuz),
            "-initrd", str(self.folder / "initramfs"),
            # A NIC's write to memory that is not its own is then a fault that
            # the kernel reports, not a silent corruption.
            # On a busy host an emulated timer looks broken: no_timer_check.
            "-append", "console=ttyS0 panic=-1 quiet intel_iommu=on "
                       "iommu=nopt iommu.strict=1 no_timer_check",
            "-serial", f"file:{self.folder}/console",
            "-chardev", "stdio,id=control,signal=off",
            "-serial", "chardev:control",
            *(word for i in range(N_CHANNELS) for word in (
                "-serial", f"unix:{self.folder}/channel{i},server=on,"
                           "wait=off")),
            "-qmp", f"unix:{self.folder}/qmp,server=on,wait=off",
        ]
        for place, nic in enumerate(self.nics):
            command += nic.arguments(self.folder, place)
        with open(self.folder / "qemu", "wb") as errors:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=errors, env=self.env, bufsize=0)

    def _read_until(self, mark, limit_s):
        """What the guest says up to a mark, the mark excluded."""
        deadline = time.monotonic() + limit_s
        while mark not in self.pending:
            left_s = deadline - time.monotonic()
            ready = left_s > 0 and \
                select.select([self.process.stdout], [], [], left_s)[0]
            data = os.read(self.process.stdout.fileno(), 65536) if ready \
                else b""
            if not data:
                what = "ended" if ready else f"said nothing for {limit_s} s"
                raise TimeoutError(f"the guest {what}; it said:\n"
                                   f"{self.pending.decode(errors='replace')}\n"
                                   f"{self.log()}")
            self.pending += data
        text, self.pending = self.pending.split(mark, 1)
        return text

    def start(self, command):
        """Run a shell command; finish() has its result."""
        assert "\n" not in command
        self.process.stdin.write(command.encode() + b"\n")

    def finish(self, limit_s=COMMAND_LIMIT_S):
        """(exit status, output) of the command that start() began."""
        text = self._read_until(b"\n@@rc ", limit_s)
        status = self._read_until(b"\n", limit_s)
        return int(status), text.decode(errors="replace")

    def run(self, command, limit_s=COMMAND_LIMIT_S):
        """Run a shell command: (exit status, output)."""
        self.start(command)
        return self.finish(limit_s)

    def log(self):
        """The kernel's console and QEMU's messages, the end of them."""
        text = ""
        for name in ("console", "qemu"):
            path = self.folder / name
            if path.exists():
                text += path.read_text(errors="replace")[-4000:]
        return text

    def qmp(self, command, **arguments):
        """One command to QEMU itself, as set_link or device_del."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(END_LIMIT_S)
            sock.connect(str(self.folder / "qmp"))
            stream = sock.makefile("rw", encoding="utf-8")
            stream.readline()  # the greeting
            for request in ({"execute": "qmp_capabilities"},
                            {"execute": command, "arguments": arguments}):
                stream.write(json.dumps(request) + "\n")
                stream.flush()
                answer = json.loads(stream.readline())
                while "event" in answer:
                    answer = json.loads(stream.readline())
        if "error" in answer:
            raise RuntimeError(f"{command}: {answer['error']['desc']}")
        return answer["return"]
