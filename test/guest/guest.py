# SPDX-License-Identifier: BSD-3-Clause
"""A virtual machine for the length of a with statement.

    with Guest(nics=[Nic("nic0")], programs=["build/apps/l2fwd/mr-l2fwd"]) as g:
        code, text = g.run("mr-l2fwd --version")
        g.wires["nic0"].send(frame)

It is emulated in software: no KVM is needed, and rates mean nothing. Each NIC
is wired to this process, frame by frame, or joined with others.
Every wait has a deadline, and QEMU ends with the statement.
"""
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import image
from fetch import QEMU_MIN, Cache, qemu_major

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))

from host import (  # noqa: E402 pylint: disable=wrong-import-position
    end_with_parent,
    limit,
)

BUILD = Path(os.environ.get("MR_BUILD") or
             Path(__file__).resolve().parents[2] / "build")
# A busy host takes most of the time away for minutes.
BOOT_LIMIT_S = limit(240)
COMMAND_LIMIT_S = limit(120)
END_LIMIT_S = limit(10)
# Serial lines for programs that are talked to; a PC has four, two are ours.
N_CHANNELS = 2
# Drivers of the NICs that a guest may get, and what tests need beside them.
MODULES = ["af_packet", "veth", "igb", "e1000e", "virtio_pci", "virtio_net",
           "xsk_diag", "vfio", "vfio_virqfd", "vfio_iommu_type1", "vfio_pci"]
# Kinds of NIC: QEMU's model and options of it. virtio as our driver wants it:
# of version 1, and behind the IOMMU.
VIRTIO = ("virtio-net-pci", "disable-legacy=on,iommu_platform=on")
KINDS = {
    "igb": ("igb", ""),
    "e1000e": ("e1000e", ""),
    "virtio-net": ("virtio-net-pci", ""),
    "virtio-split": VIRTIO,
    "virtio-packed": (VIRTIO[0], VIRTIO[1] + ",packed=on"),
    "virtio-split-in-order": (VIRTIO[0], VIRTIO[1] + ",in_order=on"),
    "virtio-packed-in-order": (VIRTIO[0], VIRTIO[1] +
                               ",packed=on,in_order=on"),
    # Behind vhost-user: the back end knows no IOMMU.
    "vhost-split": ("virtio-net-pci", "disable-legacy=on"),
    "vhost-packed": ("virtio-net-pci", "disable-legacy=on,packed=on"),
}
# The QEMU that has them, where that is not all we take.
KINDS_SINCE = {"igb": QEMU_MIN, "virtio-split-in-order": 10,
               "virtio-packed-in-order": 10,
               "vhost-split": 10, "vhost-packed": 10}
# How QEMU is told of a wire, by its kind.
NETDEVS = {
    "dgram": "dgram,id={name},local.type=unix,local.path={folder}/{name}.qemu,"
             "remote.type=unix,remote.path={folder}/{name}.host",
    "stream": "stream,id={name},addr.type=unix,addr.path={folder}/{name}.host",
    # Here, frames overtake those that wait for their receiver.
    "hub": "hubport,id={name},hubid={hub}",
    "cable": "dgram,id={name},local.type=unix,local.path={folder}/{name}.qemu,"
             "remote.type=unix,remote.path={folder}/{peer}.qemu",
    "tap": "tap,id={name},ifname={name},script=no,downscript=no,"
           "queues={queues}",
    "vhost": "vhost-user,id={name},chardev={name}-peer,queues={queues}",
}
NETDEVS["tap-plain"] = NETDEVS["tap"] + ",vnet_hdr=off"
NETDEVS["vhost-server"] = NETDEVS["vhost"]
# The socket of a vhost-user back end: QEMU connects to it, or waits there.
SOCKETS = {"vhost": "reconnect-ms=100", "vhost-server": "server=on"}
# What a vhost-user back end can map.
SHARED = ["-object", "memory-backend-memfd,id=m,size={mb}M,share=on",
          "-numa", "node,memdev=m"]


class Nic:
    """An emulated NIC of the guest: what it is, and what its wire ends in.

    wire: "dgram", datagrams of a frame each; "stream", see Stream; "tap", an
    interface of this name that the caller made, with as many queues;
    "tap-plain", one that takes finished frames alone; "vhost", the socket of a
    vhost-user back end at this path, "vhost-server", one that a back end
    connects to; or a number: joined with all others that have it. peer: the
    name of the one at the other end. Only what is in a slot of its own bridge
    can be unplugged.
    """

    # pylint: disable=too-many-arguments
    n_made = 0

    def __init__(self, name, kind="igb", wire="dgram", options="", queues=1,
                 is_pluggable=False, peer=None, path=None):
        Nic.n_made += 1
        self.name = name
        self.kind = kind
        self.wire = "cable" if peer else wire
        self.peer = peer
        self.queues = queues
        self.path = path
        self.is_pluggable = is_pluggable
        self.mac = f"52:54:00:6d:72:{Nic.n_made & 0xff:02x}"
        self.bdf = None  # "0000:00:02.0", when it has a place
        self.options = ",".join(filter(None, [KINDS[kind][1], options]))

    def device(self):
        """It as QEMU's -device or device_add has it, but for its place."""
        device = {"driver": KINDS[self.kind][0], "id": f"{self.name}-nic",
                  "netdev": self.name, "mac": self.mac}
        device.update(option.split("=") for option in self.options.split(",")
                      if option)
        if self.is_pluggable:
            device["bus"] = f"{self.name}-slot"
        return device

    def device_as_json(self):
        """It as the command device_add has it."""
        words = {"on": True, "off": False}
        return {key: value if key == "disable-legacy" else
                words.get(value, value)
                for key, value in self.device().items()}

    def arguments(self, folder, place, n_bridges):
        """QEMU's options for it, the place-th one, behind n_bridges."""
        # Every second slot: the virtual functions of an igb are 16 and 17
        # slots on.
        slot = f"{2 + 2 * place:02x}"
        wire = "hub" if isinstance(self.wire, int) else self.wire
        words = ["-chardev", f"socket,id={self.name}-peer,path={self.path},"
                 + SOCKETS[wire]] if wire in SOCKETS else []
        words += ["-netdev", NETDEVS[wire].format(
            name=self.name, folder=folder, hub=self.wire, peer=self.peer,
            queues=self.queues)]
        device = self.device()
        if self.is_pluggable:
            words += ["-device", f"pcie-root-port,id={device['bus']},"
                      f"chassis={place},addr=0x{slot}"]
            self.bdf = f"0000:{1 + n_bridges:02x}:00.0"
        else:
            device["addr"] = "0x" + slot
            self.bdf = f"0000:00:{slot}.0"
        return words + ["-device", ",".join(
            f"{key}={value}" for key, value in device.items())]


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

    def close(self):
        self.socket.close()


class Stream:
    """Our end of a NIC's wire: each frame behind its length, in 4 bytes.

    Many frames go over in one piece: QEMU puts them into the NIC at once.
    """

    def __init__(self, folder, name):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{folder}/{name}.host")
        self.listener.listen(1)
        self.socket = None
        self.pending = bytearray()

    def _connect(self):
        """QEMU calls; it is there when the guest is up."""
        if self.socket is None:
            self.listener.settimeout(BOOT_LIMIT_S)
            self.socket = self.listener.accept()[0]

    def send_all(self, frames):
        """Put frames on the wire in one piece."""
        self._connect()
        self.socket.settimeout(COMMAND_LIMIT_S)
        self.socket.sendall(b"".join(
            struct.pack("!I", len(frame)) + frame for frame in frames))

    def receive(self, n, limit_s=COMMAND_LIMIT_S):
        """The next n frames from the guest; fewer if they do not come."""
        self._connect()
        frames = []
        deadline = time.monotonic() + limit_s
        while len(frames) < n:
            n_bytes = int.from_bytes(self.pending[:4], "big")
            if len(self.pending) >= 4 + n_bytes > 4:
                frames.append(bytes(self.pending[4:4 + n_bytes]))
                del self.pending[:4 + n_bytes]
                continue
            left_s = max(0, deadline - time.monotonic())
            if not select.select([self.socket], [], [], left_s)[0]:
                break
            self.pending += self.socket.recv(1 << 20)
        return frames

    def close(self):
        self.listener.close()
        if self.socket is not None:
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


def keep_folder():
    """A new folder, and the process that removes it when its input ends.

    It ends with us, however we do, and stays when our group is killed.
    """
    folder = Path(tempfile.mkdtemp(prefix="mr-guest-"))
    # pylint: disable=consider-using-with
    keeper = subprocess.Popen(
        ["sh", "-c", 'read -r _; rm -rf "$0"', str(folder)],
        stdin=subprocess.PIPE, start_new_session=True)
    return folder, keeper


WIRES = {"dgram": Wire, "stream": Stream}


class Guest:
    """The machine. See the module's text."""

    # pylint: disable=too-many-arguments
    def __init__(self, nics=(), programs=(), kernel="newest", n_cpus=1,
                 memory_mb=1024, modules=(), accel="tcg", say=print,
                 files=(), append="", options=(), prefix=(), is_shared=None):
        """files: (of the host, in the guest); append: words for the kernel;
        options: more for QEMU, {folder} in them is the machine's;
        prefix: a command that runs QEMU; is_shared: its memory is, as it is
        for a vhost-user back end."""
        self.programs = list(programs)
        self.modules = MODULES + list(modules)
        self.files = list(files)
        self.append = append
        self.options = list(options)
        self.prefix = list(prefix)
        self.n_cpus = n_cpus
        self.memory_mb = memory_mb
        self.is_shared = is_shared if is_shared is not None else any(
            nic.wire in SOCKETS for nic in nics)
        self.accel = accel
        self.say = say
        cache = Cache(say=say)
        self.kernel = cache.kernel(kernel)
        self.busybox = cache.busybox()
        self.qemu, self.env, self.qemu_options = cache.qemu()
        # Those that this QEMU can emulate.
        self.qemu_version = qemu_major(self.qemu, self.env)
        self.nics = [nic for nic in nics
                     if self.qemu_version >= KINDS_SINCE.get(nic.kind, 0)]
        self._forget_boot()

    def _forget_boot(self):
        self.folder = self.keeper = self.process = self.qmp_stream = None
        self.wires = {}
        self.channels = []
        self.pending = b""
        self.events = []

    def __enter__(self):
        # As Ctrl-C: what was made is taken away.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            self._boot()
        except TimeoutError as why:
            self.say(f"guest: booting once more: {why}")
            self._forget_boot()
            self._boot()
        return self

    def _boot(self):
        self.folder, self.keeper = keep_folder()
        try:
            for nic in self.nics:
                if nic.wire in WIRES:
                    self.wires[nic.name] = WIRES[nic.wire](self.folder,
                                                           nic.name)
            image.build(self.folder / "initramfs", self.kernel, self.busybox,
                        self.modules, [(n.mac, n.name) for n in self.nics],
                        self.programs, self.files)
            self._start()
            self._wait_for_boot()
        except BaseException:
            self.__exit__()
            raise

    def _wait_for_boot(self):
        self._read_until(b"@@ready\n", BOOT_LIMIT_S)
        for i in range(N_CHANNELS):
            self.channels.append(Channel(self.folder / f"channel{i}",
                                         f"/dev/ttyS{2 + i}"))

    def __exit__(self, *_):
        if self.process is not None:
            self.process.kill()  # it has nothing to save
            self.process.wait(END_LIMIT_S)
            self.process.stdin.close()
            self.process.stdout.close()
        if self.qmp_stream is not None:
            self.qmp_stream.close()
        for wire in self.wires.values():
            wire.close()
        for channel in self.channels:
            channel.socket.close()
        self.keeper.stdin.close()
        self.keeper.wait(END_LIMIT_S)

    def _start(self):
        vmlinuz = next(iter(sorted(self.kernel.glob("**/vmlinuz*"))))
        command = [
            *self.prefix, self.qemu, *self.qemu_options,
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
                       "iommu=nopt iommu.strict=1 no_timer_check "
                       + self.append,
            "-serial", f"file:{self.folder}/console",
            "-chardev", "stdio,id=control,signal=off",
            "-serial", "chardev:control",
            *(word for i in range(N_CHANNELS) for word in (
                "-serial", f"unix:{self.folder}/channel{i},server=on,"
                           "wait=off")),
            "-qmp", f"unix:{self.folder}/qmp,server=on,wait=off",
            *(option.format(folder=self.folder) for option in self.options),
            *(word.format(mb=self.memory_mb) for word in SHARED
              if self.is_shared),
        ]
        for place, nic in enumerate(self.nics):
            command += nic.arguments(self.folder, place, sum(
                other.is_pluggable for other in self.nics[:place]))
        with open(self.folder / "qemu", "wb") as errors:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=errors, env=self.env, bufsize=0,
                preexec_fn=end_with_parent)

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

    def _qmp_answer(self):
        while True:
            answer = json.loads(self.qmp_stream.readline())
            if "event" not in answer:
                return answer
            self.events.append(answer)

    def qmp(self, command, **arguments):
        """One command to QEMU itself, as set_link or device_del."""
        if self.qmp_stream is None:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.settimeout(END_LIMIT_S)
                sock.connect(str(self.folder / "qmp"))
                self.qmp_stream = sock.makefile("rw", encoding="utf-8")
            self.qmp_stream.readline()  # the greeting
            self.qmp("qmp_capabilities")
        self.qmp_stream.write(json.dumps(
            {"execute": command, "arguments": arguments}) + "\n")
        self.qmp_stream.flush()
        answer = self._qmp_answer()
        if "error" in answer:
            raise RuntimeError(f"{command}: {answer['error']['desc']}")
        return answer["return"]

    def wait_for_event(self, name, limit_s=END_LIMIT_S):
        """The next event of QEMU's by this name; None if it does not come."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            self.qmp("query-status")  # events come before its answer
            for event in self.events:
                if event["event"] == name:
                    self.events.remove(event)
                    return event
            time.sleep(0.1)
        return None

    def drain_wires(self, quiet_s=0.5):
        """Forget what comes on any wire until nothing does for a while.

        QEMU keeps what a socket of ours has no room for, which is ten frames.
        """
        sockets = [wire.socket for wire in self.wires.values()]
        while ready := select.select(sockets, [], [], quiet_s)[0]:
            for sock in ready:
                sock.recv(65536)

    def nic(self, name):
        return next(nic for nic in self.nics if nic.name == name)

    def restart(self):
        """Pull the reset line of the machine, and wait until it is up."""
        self.pending = b""
        self.qmp("set-action", reboot="reset")
        self.qmp("system_reset")
        self._read_until(b"@@ready\n", BOOT_LIMIT_S)
        self.qmp("set-action", reboot="shutdown")

    def bind(self, nic, driver):
        """Give a NIC to a driver of the guest's kernel, as vfio-pci."""
        device = f"/sys/bus/pci/devices/{nic.bdf}"
        status, text = self.run(
            f"echo {driver} >{device}/driver_override && "
            f"{{ [ ! -e {device}/driver ] || "
            f"echo {nic.bdf} >{device}/driver/unbind; }} && "
            f"echo {nic.bdf} >/sys/bus/pci/drivers_probe && "
            f"readlink {device}/driver")
        if status != 0 or not text.strip().endswith("/" + driver):
            raise RuntimeError(f"{nic.name} was not given to {driver}: {text}")
