# SPDX-License-Identifier: BSD-3-Clause
"""Build the packages; install, use and purge them in a bare root of Debian 12; the
wheel in another; unpack the RPMs and run them against Debian's libraries; run
the container image.

usage: package_test.py [SUITE]

SUITE: only the Debian packages, built and used in bare roots of that release.
"""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "config/package"))

import package  # noqa: E402 pylint: disable=wrong-import-position
from host import limit  # noqa: E402 pylint: disable=wrong-import-position
from install_test import NEEDS  # noqa: E402 pylint: disable=wrong-import-position

TOP = Path(__file__).resolve().parents[2]
SKIPPED = 77
TOOLS = ("dpkg-buildpackage", "lintian", "mmdebstrap", "rpmbuild", "cpio",
         "buildah", "dh_python3", "patchelf")
MAX_IMAGE_BYTES = 60_000_000

USE = r"""
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get install -y --no-install-recommends /tmp/debs/*.deb >/dev/null
mr-l2fwd --version | grep -q '([0-9a-f]*)$'
mr-l2fwd --duration 0.2 --json null: null: | tail -1 | grep -q '"pool"'
mr-devices list >/dev/null
mr-bench --version
mr-brokerd --version
mrctl list
python3 /tmp/debs/use.py
getent passwd millrace
for name in home carrier; do
    mr-nat --check --config /usr/share/doc/millrace/examples/nat/$name.yaml
done
test -f /usr/include/millrace/millrace.h
test -f /usr/lib/systemd/system/mr-nat@.service
test -f /usr/lib/systemd/system/mr-brokerd.socket
if grep -r /usr/local /usr/lib/systemd/system/mr-*; then exit 1; fi
apt-get purge -y 'millrace*' 'libmillrace*' >/dev/null
apt-get autoremove --purge -y >/dev/null
! find /etc /usr /var/lib/millrace /var/log/millrace /run/millrace \
    -name '*millrace*' 2>/dev/null | grep .
"""

USE_DEV = r"""
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get install -y --no-install-recommends /tmp/debs/*.deb >/dev/null
mkdir /tmp/examples
cp /tmp/debs/*.c /tmp/examples
cd /tmp
%s
./embed null: | grep -q entries
! /usr/lib/*/millrace/mr-conformance null: null: 2>why
grep -q "not under test" why
for name in libmillrace-ffi libmillrace-flow; do
    cc -o embed examples/embed.c $(pkg-config --cflags --libs $name)
done
"""
# Of the doc package: what builds the documentation.
NO_DOCS = re.compile(r"/meson\.build$|Doxyfile|/docs/.*\.py$", re.M)

USE_PYTHON = r"""
from millrace import Pool, Port
with Pool() as pool, Port(pool, "null:") as port:
    with port.rx().receive() as burst:
        assert len(burst) == 256
"""

IN_IMAGE = r"""
import os, subprocess, time
assert os.getuid() == 10000
forwarder = subprocess.Popen(["mr-l2fwd", "--quiet", "null:", "null:"])
def answers():
    return subprocess.run(["mrctl", "show", "pool"]).returncode == 0
while not answers():
    assert forwarder.poll() is None
    time.sleep(0.1)
forwarder.terminate()
assert forwarder.wait() == 0
assert not os.listdir("/run/millrace")
"""


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=limit(1200), **options)
    if done.returncode != 0:
        print(done.stdout[-4000:])
        raise SystemExit(f"{command[0]} ended with {done.returncode}")
    return done.stdout


def in_bare_root(packages, script, files, *include, suite="bookworm"):
    """Run a script in a new root that has the files in /tmp/debs."""
    use, use_py = packages / "use", packages / "use.py"
    use.write_text(script)
    use_py.write_text(USE_PYTHON)
    copies = " ".join(str(file) for file in [*files, use_py])
    package.bare_root(
        suite, packages, *(f"--include={name}" for name in include),
        "--customize-hook=mkdir $1/tmp/debs",
        f"--customize-hook=cp {copies} $1/tmp/debs",
        f"--customize-hook=cp {use} $1/tmp/use",
        "--customize-hook=chroot $1 sh /tmp/use")


def build(packages, *arguments):
    run("/usr/bin/python3", TOP / "config/package/package.py", "--out",
        packages, *arguments)


def try_debs(packages, suite="bookworm"):
    debs = list(packages.glob("*.deb"))
    control = (TOP / "config/package/debian/control").read_text()
    assert len(debs) == control.count("\nPackage: "), debs
    doc, = packages.glob("millrace-doc_*.deb")
    assert not NO_DOCS.search(run("dpkg-deb", "--contents", doc))
    in_bare_root(packages, USE, debs, suite=suite)


def try_dev(packages):
    """The command of docs/start.md, with libmillrace-dev and a compiler; it
    compiles every example."""
    start = (TOP / "docs/start.md").read_text()
    command, = re.findall("^cc -o embed .*", start, re.M)
    debs = [next(packages.glob(f"{name}_*.deb")) for name in (
        "libmillrace-dev", "libmillrace0", "libmillrace-ffi0",
        "libmillrace-flow0")]
    examples = sorted((TOP / "examples").glob("*.c"))
    commands = [command] + [
        command.replace("embed", file.stem).replace(
            "libmillrace", f"libmillrace-flow {NEEDS.get(file.stem, '')}")
        for file in examples]
    in_bare_root(packages, USE_DEV % "\n".join(commands), [*debs, *examples],
                 "gcc", "libc6-dev", "pkgconf",
                 *(f"lib{name.removeprefix('lib')}-dev"
                   for name in NEEDS.values()))


def try_wheel(packages):
    wheel, = packages.glob("*.whl")
    in_bare_root(packages, "set -eu\npip install --quiet --no-index "
                 "--break-system-packages /tmp/debs/*.whl\n"
                 "python3 /tmp/debs/use.py\n", [wheel], "python3-pip")


def try_rpms(packages):
    root = packages / "root"
    root.mkdir()
    for rpm in packages.glob("*.rpm"):
        run("sh", "-c", f"rpm2cpio {rpm} | cpio -idm --quiet", cwd=root)
    library = next(root.rglob("libmillrace.so.0")).parent
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library)}
    for program in ("mr-l2fwd", "mr-nat"):
        said = run(root / "usr/bin" / program, "--version", env=environment)
        assert re.fullmatch(program + r" \d+\.\d+\.\d+ \([0-9a-f]{7,}\)\n", said), said
    assert '"pool"' in run(root / "usr/bin/mr-l2fwd", "--duration", "0.2",
                               "--json", "null:", "null:", env=environment)


def try_image(packages):
    archive, = packages.glob("*.tar")
    buildah = ("buildah", "--root", packages / "store", "--runroot",
               packages / "run", "--storage-driver", "vfs")
    container = run(*buildah, "from", "--quiet",
                    f"oci-archive:{archive}").split()[-1]
    in_container = (*buildah, "run", "--isolation", "chroot", container, "--")
    run(*in_container, "mr-nat", "--version")
    run(*in_container, "mr-brokerd", "--version")
    run(*in_container, "python3", "-c", IN_IMAGE)
    root = Path(run(*buildah, "mount", container).strip())
    n_bytes = sum(path.lstat().st_size for path in root.rglob("*"))
    run(*buildah, "umount", container)
    assert n_bytes <= MAX_IMAGE_BYTES, n_bytes


def main():
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if importlib.util.find_spec("auditwheel") is None:
        missing.append("auditwheel")
    if missing:
        print(f"skipped: {', '.join(missing)}: missing")
        return SKIPPED
    if "VERSION_CODENAME=bookworm" not in Path("/etc/os-release").read_text():
        print("skipped: the bare root is of Debian 12")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="millrace-") as folder:
        packages = Path(folder)
        if suite := "".join(sys.argv[1:]):
            build(packages, "--suite", suite)
            try_debs(packages, suite)
            return 0
        build(packages)
        try_rpms(packages)
        try_image(packages)
        try_debs(packages)
        try_dev(packages)
        try_wheel(packages)
    return 0


if __name__ == "__main__":
    sys.exit(main())
