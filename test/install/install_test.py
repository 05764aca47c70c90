# SPDX-License-Identifier: BSD-3-Clause
"""Install, then build and run programs with nothing but pkg-config.

usage: install_test.py BUILD
"""
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from host import limit  # noqa: E402 pylint: disable=wrong-import-position
import signals  # noqa: E402 pylint: disable=wrong-import-position

TOP = Path(__file__).resolve().parents[2]
LIMIT_S = limit(60)
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

# Examples that need another library, and its package of pkg-config.
NEEDS = {"lwip": "lwip", "uring": "liburing"}


def run(*command, **options):
    """Run a command that must succeed; what it printed."""
    done = subprocess.run([str(c) for c in command], text=True, check=False,
                          capture_output=True, timeout=LIMIT_S, **options)
    if done.returncode != 0:
        print(done.stdout, done.stderr, sep="")
        raise SystemExit(f"{command[0]} ended with {done.returncode}")
    return done.stdout


class Installed:
    """A Millrace under a folder that is nobody's prefix."""

    def __init__(self, build, folder):
        self.root = Path(folder) / "root"
        self.folder = Path(folder)
        run("meson", "install", "-C", build, "--no-rebuild", "--destdir",
            self.root)
        found = list(self.root.rglob("libmillrace.pc"))
        if len(found) != 1:
            raise SystemExit(f"{len(found)} libmillrace.pc were installed")
        self.library = found[0].parents[1]
        self.include = next(self.root.rglob("millrace/millrace.h")).parents[1]
        # Programs run as they are; what is built against the library here
        # is not where the loader looks.
        self.env = {**os.environ,
                    "PKG_CONFIG_PATH": str(found[0].parent),
                    "PKG_CONFIG_SYSROOT_DIR": str(self.root),
                    "LD_LIBRARY_PATH": str(self.library)}

    def pkg_config(self, *arguments, package="libmillrace"):
        return run("pkg-config", *arguments, package, env=self.env).split()

    def compile(self, compiler, standard, source, *libraries):
        """Build a one-file program; its path."""
        program = self.folder / (source.stem + source.suffix[1:])
        run(compiler, f"-std={standard}", "-O2", *WARNINGS, source, "-o",
            program, *libraries, *self.pkg_config(
                "--cflags", "--libs", package="libmillrace-flow"))
        return program


def check_files(installed):
    """What was installed is what the tree has."""
    here, there = ({p.relative_to(top) for p in top.rglob("*.h")}
                   for top in (TOP / "lib/include", installed.include))
    assert here == there, f"headers differ: {here ^ there}"
    version = installed.pkg_config("--modversion")[0]
    api = (TOP / "lib/include/millrace/api.h").read_text()
    for word, number in zip(("MAJOR", "MINOR", "PATCH"), version.split(".")):
        assert f"MR_VERSION_{word} {number}\n" in api, (word, version)
    links = {p.name for p in installed.library.glob("libmillrace.so*")}
    assert f"libmillrace.so.{version}" in links, links
    assert "libmillrace.so" in links, links
    share = installed.include.parent / "share"
    assert (share / "doc/millrace/port-specs.md").exists()
    assert (share / "doc/millrace/nics.md").exists()
    page = (share / "man/man7/mr-ports.7").read_text()
    assert "\\fBhead\\-wb\\fP" in page, page
    check_man(share / "man")


def check_man(folder):
    """Pages of functions have the whole docstring; millrace(7) lists them."""
    page = (folder / "man3/mr_port_open.3").read_text()
    for words in ("int mr_port_open(struct mr_ctx *ctx, const char *spec,",
                  "struct mr_port_config {", ".SH RETURN VALUE\n0, or\n",
                  ".B \\-ENODEV\nno such driver", ".TP\nOwner\nthe caller"):
        assert words in page, (words, page)
    overview = (folder / "man7/millrace.7").read_text()
    for path in (folder / "man3").iterdir():
        assert f".BR {path.stem} (3)\n" in overview, path


def check_examples(installed):
    programs = {}
    for source in sorted((TOP / "examples").glob("*.c")):
        libraries = []
        if package := NEEDS.get(source.stem):
            if subprocess.run(["pkg-config", "--exists", package],
                              check=False).returncode != 0:
                continue
            libraries = run("pkg-config", "--cflags", "--libs", package).split()
        programs[source.stem] = installed.compile("cc", "gnu11", source,
                                                  *libraries)
    said = run(programs["embed"], "null:", env=installed.env)
    assert "32 entries, 60 bytes in the first" in said, said
    interrupted(installed, programs["l2fwd"], "null:", "null:")
    if "uring" in programs:
        said = interrupted(installed, programs["uring"], "null:")
        assert int(said.removesuffix(" frames\n")) > 0, said
    if "lwip" in programs:
        interrupted(installed, programs["lwip"], "/dev/null", "192.0.2.1/24",
                    "2001:db8::1", "null:")
    in_own_loop(installed, programs["epoll"], "null:", "null:")
    count(installed, programs["count"])
    said = run(programs["flow"], f"pcap:rx={installed.folder}/three.pcap",
               env=installed.env)
    assert said == "00:00:00:00:00:00 3 frames\n", said
    said = run(programs["memory"], env=installed.env)
    assert "32 more" in said and "16 flows" in said, said
    (installed.folder / "list").write_text("192.0.2.0/24\n")
    (installed.folder / "servers").write_text("02:00:00:00:00:01\n")
    (installed.folder / "routes").write_text("192.0.2.1/24 0\n")
    for name, *words in (("dns",), ("mirror", "null:", "null:"),
                         ("l3fwd", installed.folder / "routes"),
                         ("lb", installed.folder / "servers"),
                         ("firewall", installed.folder / "list", "null:"),
                         ("sampler", "9", installed.folder / "samples")):
        interrupted(installed, programs[name], *words, "null:")
    return len(programs)


def check_programs(installed):
    """They need no library of ours, so capabilities do no harm."""
    programs = sorted(next(installed.root.rglob("bin")).glob("mr-*"))
    env = {name: value for name, value in os.environ.items()
           if name != "LD_LIBRARY_PATH"}
    for program in programs:
        assert program.name in run(program, "--version", env=env), program
    return len(programs)


# In a mount namespace: /usr/local is empty, /etc has a cache of the loader that
# knows no library of ours. $1: the build, $2: the source, $3: a folder.
BARE = """
set -e
mount --make-rprivate /
mkdir "$3/etc"
cp -a /etc/. "$3/etc"
mount --bind "$3/etc" /etc
mount -t tmpfs bare /usr/local
mount -t tmpfs bare /var/cache/ldconfig
ldconfig
meson install -C "$1" --no-rebuild --quiet
for program in /usr/local/bin/mr-*; do "$program" --version; done
cc -o "$3/embed" "$2/examples/embed.c" \
    $(pkg-config --cflags --libs libmillrace)
"$3/embed" null:
ninja -C "$1" uninstall
left=$(find /usr/local -name '*mr-*' -o -name '*millrace*' -type f)
[ -z "$left" ] || { echo "uninstall left $left"; exit 1; }
"""


def check_bare_system(build, folder):
    """The commands of docs/start.md, where nothing of ours is installed."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"],
                                           check=False).returncode != 0:
        return "not root: not checked"
    env = {name: value for name, value in os.environ.items()
           if name not in ("LD_LIBRARY_PATH", "PKG_CONFIG_PATH")}
    said = run("unshare", "-m", "sh", "-c", BARE, "sh", build, TOP, folder,
               env=env)
    assert "32 entries, 60 bytes in the first" in said, said
    return "installed, run, uninstalled"


def count(installed, program):
    """Count the frames of a capture that is made here: three of IPv4."""
    frame = bytes(12) + b"\x08\x00" + bytes(46)
    capture = installed.folder / "three.pcap"
    header = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)
    record = struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame
    capture.write_bytes(header + 3 * record)
    said = run(program, f"pcap:rx={capture}", env=installed.env)
    assert said.split() == ["0x0800", "3", "frames", "180", "bytes"], said


def cpu_s(process):
    """The CPU time that it has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2]
    return sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")


def interrupted(installed, program, *ports):
    """What an example prints that has run for a while; it ends well on SIGINT.
    Ports of null: always have work."""
    with subprocess.Popen([program, *ports], env=installed.env, text=True,
                          stdout=subprocess.PIPE) as process:
        signals.await_sigint(process)
        wanted_s, end_s = cpu_s(process) + 0.1, time.monotonic() + LIMIT_S
        while process.poll() is None and cpu_s(process) < wanted_s:
            assert time.monotonic() < end_s, "it does nothing"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, process.returncode
    return said


def in_own_loop(installed, program, *ports):
    """Another, which prints its rate each second."""
    with subprocess.Popen([program, *ports], env=installed.env, text=True,
                          stdout=subprocess.PIPE) as process:
        rate, unit = process.stdout.readline().split()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, process.returncode
    assert int(rate) > 0 and unit == "frames/s", (rate, unit)


def check_cxx(installed):
    """A C++ program; 'not checked' if there is no compiler."""
    if not shutil.which("g++"):
        return "g++ is missing: C++ was not checked"
    program = installed.compile("g++", "c++17",
                                TOP / "test/install/embed.cc")
    return run(program, env=installed.env).strip()


def check_ffi(installed):
    """A language without a C compiler loads one library and calls both."""
    program = ("import ctypes; ffi = ctypes.CDLL('libmillrace-ffi.so'); "
               "assert ffi.mr_cache_max_pages(64) == 128; "
               "ffi.mr_version.restype = ctypes.c_char_p; "
               "print(ffi.mr_version().decode())")
    said = run(sys.executable, "-c", program, env=installed.env).strip()
    assert said == installed.pkg_config("--modversion")[0], said
    assert "-lmillrace-ffi" in run("pkg-config", "--libs", "libmillrace-ffi",
                                   env=installed.env)


def main():
    if not shutil.which("pkg-config"):
        print("pkg-config is missing")
        return 77
    with tempfile.TemporaryDirectory(prefix="mr-install-") as folder:
        installed = Installed(sys.argv[1], folder)
        check_files(installed)
        print(f"{check_programs(installed)} programs ran")
        print("bare system:", check_bare_system(sys.argv[1], folder))
        n = check_examples(installed)
        print(f"{n} examples built, all ran")
        print("C++:", check_cxx(installed))
        check_ffi(installed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
