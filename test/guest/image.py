# SPDX-License-Identifier: BSD-3-Clause
"""The guest's root: an initramfs of busybox, modules, and our programs."""
import lzma
import os
import re
import shutil
import stat
import subprocess
from importlib.util import cache_from_source
from pathlib import Path

from fetch import Missing

HERE = Path(__file__).resolve().parent
# Programs of the host that tests in the guest use, where there are any.
HOST_PROGRAMS = ["ip", "ss", "ethtool"]
# Commands of programs in Python whose modules they need besides.
COMMANDS = {"mr-bench": ["qualify", "throughput", "loop"]}
# Run a program in Python; which files it loaded: modules and shared objects.
LOADED = """
import os, runpy, sys
out = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
del sys.argv[0]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit:
    pass
files = {getattr(module, "__file__", None) for module in sys.modules.values()}
files |= {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
os.write(out, "\\n".join(f for f in files if f and os.path.isfile(f)).encode())
"""


class Initramfs:
    """An archive in the kernel's "newc" format, built in memory.

    Source: linux/Documentation/driver-api/early-userspace/buffer-format.rst.
    """

    def __init__(self):
        self.parts = []
        self.names = set()
        self.n_inodes = 0

    def _entry(self, name, mode, data):
        if name in self.names:
            return
        self.names.add(name)
        parent = os.path.dirname(name)
        if parent:
            self.folder(parent)
        self.n_inodes += 1
        encoded = name.encode() + b"\0"
        fields = [self.n_inodes, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0,
                  len(encoded), 0]
        head = b"070701" + b"".join(b"%08x" % field for field in fields)
        for part in (head + encoded, data):
            self.parts.append(part + b"\0" * (-len(part) % 4))

    def folder(self, name):
        """An empty folder, with those above it."""
        self._entry(name, stat.S_IFDIR | 0o755, b"")

    def link(self, name, target):
        self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def file(self, name, data, mode=0o644):
        self._entry(name, stat.S_IFREG | mode, data)

    def write(self, path):
        self._entry("TRAILER!!!", 0, b"")
        path.write_bytes(b"".join(self.parts))


def module_index(kernel):
    """Modules by name, with _ for -."""
    return {re.sub(r"\.ko(\.xz)?$", "", path.name).replace("-", "_"): path
            for path in (kernel).glob("**/*.ko*")}


def load_module(path):
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def modules_in_order(kernel, wanted):
    """(name, bytes) of wanted modules, each behind those it depends on.

    Which these are is in the module itself: packages come without the table
    that depmod makes. A module that is not there is taken for built in.
    """
    index = module_index(kernel)
    order = {}

    def add(name):
        name = name.replace("-", "_")
        if name in order or name not in index:
            return
        data = load_module(index[name])
        depends = re.search(rb"\0depends=([^\0]*)\0", data)
        for other in depends.group(1).decode().split(",") if depends else []:
            add(other)
        order[name] = data

    for name in wanted:
        add(name)
    return list(order.items())


def libraries_of(program):
    """Shared libraries of a program: (name in the image, file)."""
    done = subprocess.run(["ldd", str(program)], capture_output=True,
                          text=True, check=False)
    lost = re.findall(r"(\S+) => not found", done.stdout)
    if lost:
        raise Missing(f"{program} needs {', '.join(lost)}")
    for name, path in re.findall(r"(\S+) => (/\S+)", done.stdout):
        yield name, path
    for path in re.findall(r"^\s*(/\S+) \(", done.stdout, re.M):
        yield path, path


def add_library(image, name, path):
    """A shared library, by the name that programs ask for."""
    # The loader has its full path in each program, others are searched.
    place = name.lstrip("/") if name.startswith("/") else f"lib/{name}"
    image.file(place, Path(path).read_bytes(), 0o755)


def add_program(image, path, name=None):
    """A program, executable as /bin/name, and what it is linked with."""
    path = Path(path)
    image.file(f"bin/{name or path.name}", path.read_bytes(), 0o755)
    for library in libraries_of(path):
        add_library(image, *library)


def add_python(image, program, *arguments):
    """The interpreter of a program in Python, and what it loads with these
    arguments. What is not the system's lies beside the program as it does
    here."""
    interpreter = program.read_bytes().split()[0][2:].decode()
    add_program(image, interpreter)
    image.link(interpreter.lstrip("/"), f"/bin/{Path(interpreter).name}")
    done = subprocess.run([interpreter, "-I", "-c", LOADED, program, *arguments],
                          stdout=subprocess.PIPE, text=True, check=True)
    for file in done.stdout.splitlines():
        name = file if file.startswith(("/usr/", "/lib")) else os.path.normpath(
            "/bin/" + os.path.relpath(file, program.parent))
        compiled = Path(cache_from_source(file)) if name.endswith(".py") else None
        if compiled and compiled.exists():  # without its source: half as large
            file, name = compiled, name + "c"
        image.file(name.lstrip("/"), Path(file).read_bytes())
        for library in libraries_of(file) if ".so" in name else ():
            add_library(image, *library)


def build(path, kernel, busybox, modules, nics, programs, files):
    """Write the initramfs.

    modules: names; nics: (mac, name) pairs; programs: files of the host;
    files: (file of the host, its name in the guest), with their libraries.
    """
    image = Initramfs()
    image.file("init", (HERE / "init").read_bytes(), 0o755)
    image.file("bin/busybox", busybox.read_bytes(), 0o755)
    image.link("bin/sh", "busybox")
    image.folder("sbin")
    image.folder("usr/bin")
    order = modules_in_order(kernel, modules)
    for name, data in order:
        image.file(f"modules/{name}.ko", data)
    image.file("modules/order",
               "".join(f"{name}\n" for name, _ in order).encode())
    image.file("nics", "".join(f"{m} {n}\n" for m, n in nics).encode())
    for program in HOST_PROGRAMS:
        found = shutil.which(program, path=os.environ.get("PATH", "") +
                             ":/usr/sbin:/sbin")
        if found:
            add_program(image, found)
    for program in programs:
        add_program(image, program)
        if Path(program).read_bytes().startswith(b"#!"):
            add_python(image, Path(program))
            for command in COMMANDS.get(Path(program).name, []):
                add_python(image, Path(program), command, "--help")
    for file, name in files:
        image.file(name.lstrip("/"), Path(file).read_bytes(), 0o755)
        for library in libraries_of(file):
            add_library(image, *library)
    # Programs of the build tree look for libraries beside themselves too.
    image.write(path)
