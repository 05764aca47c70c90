# SPDX-License-Identifier: BSD-3-Clause
"""Build packages from the committed tree.

usage: ./mr package [--out DIR] [--suite NAME] [deb|rpm|image|wheel]...

Builds Debian packages, RPMs for Fedora, a container image (an archive for
`podman load`, made from the Debian packages), and a Python wheel that includes
the library and its dependencies; all of them by default. The version
is that of <millrace/api.h>; between releases, the number of commits and the
commit follow: 0.1.0~git1234.abcdef0. A commit with the tag v0.1.0 is 0.1.0.
--suite builds Debian packages for another release, such as trixie, in a bare
root of it. Packages go to build/packages, or DIR. lintian and rpmlint check them if
installed.
"""
import argparse
import datetime
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from email.utils import format_datetime
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PACKAGE = Path(__file__).parent
# In the image. Kubernetes' runAsNonRoot requires a number.
USER = "10000"
# What programs in the image do not read.
UNREAD = ("usr/share/doc", "usr/share/man", "usr/share/locale",
          "usr/share/lintian", "usr/lib/*/gconv")


def run(*command, **options):
    return subprocess.run([str(c) for c in command], check=True, text=True,
                          **options)


def git(*arguments):
    return run("git", "-C", TOP, *arguments,
               stdout=subprocess.PIPE).stdout.strip()


def version():
    header = (TOP / "lib/include/millrace/api.h").read_text()
    release = ".".join(line.split()[2] for line in header.splitlines()
                       if line.startswith("#define MR_VERSION_"))
    if f"v{release}" in git("tag", "--points-at", "HEAD").split():
        return release
    count = git("rev-list", "--count", "HEAD")
    return f"{release}~git{count}.{git('rev-parse', '--short', 'HEAD')}"


def unpack(folder):
    """The committed files of the tree."""
    folder.mkdir()
    archive = folder.with_suffix(".tar")
    git("archive", "-o", archive, "HEAD")
    run("tar", "-xf", archive, "-C", folder)
    return archive


def committed():
    return datetime.datetime.fromisoformat(git("log", "-1", "--format=%cI"))


def bare_root(suite, work, *options):
    """Make a root of a Debian release, run the hooks of the options in it, and
    remove it."""
    sources = Path("/etc/apt/sources.list.d/debian.sources")
    if sources.exists():  # else mmdebstrap has defaults
        first = sources.read_text().split("\n\n", maxsplit=1)[0]
        sources = work / "bare.sources"
        sources.write_text(re.sub(r"^Suites:.*", f"Suites: {suite}", first,
                                  flags=re.M) + "\n")
    run("mmdebstrap", "--quiet", "--variant=minbase", *options, suite,
        "/dev/null", *([sources] if sources.exists() else []),
        stdin=subprocess.DEVNULL)


def build_in_root(tree, suite):
    """Build the packages beside the tree, with the compiler and the libraries
    of a release."""
    bare_root(suite, tree.parent, "--include=build-essential",
              f"--customize-hook=cp -r {tree} $1/tmp",
              "--customize-hook=chroot $1 sh -c 'cd /tmp/millrace && "
              "apt-get -qq --no-install-recommends build-dep . && "
              "dpkg-buildpackage -us -uc -b'",
              f"--customize-hook=cp $1/tmp/*.deb {tree.parent}")


def build_deb(work, out, suite=""):
    tree = work / "millrace"
    unpack(tree)
    shutil.copytree(PACKAGE / "debian", tree / "debian")
    (tree / "debian/changelog").write_text(
        f"millrace ({version()}) unstable; urgency=medium\n\n"
        "  * See CHANGES.md.\n\n"
        " -- Millrace developers <maintainers@millrace.invalid>  "
        f"{format_datetime(committed())}\n")
    if suite:
        build_in_root(tree, suite)
    else:
        run("dpkg-buildpackage", "-us", "-uc", "-b", cwd=tree)
    packages = sorted(work.glob("*.deb"))
    if not suite and shutil.which("lintian"):
        run("lintian", "--allow-root", "--fail-on", "error,warning",
            *work.glob("*.changes"))
    # In their own folder, so that *.deb installs the other packages.
    symbols = out / "dbgsym"
    symbols.mkdir(exist_ok=True)
    return [shutil.copy(package, symbols if "-dbgsym_" in package.name else out)
            for package in packages]


def build_rpm(work, out):
    tops = work / "rpm"
    for name in ("SOURCES", "BUILD", "RPMS"):
        (tops / name).mkdir(parents=True)
    number = version()
    archive = unpack(work / "millrace")
    run("gzip", "-n", archive)
    shutil.move(f"{archive}.gz", tops / "SOURCES/millrace.tar.gz")
    run("rpmbuild", "-bb", "--nodeps", "--define", f"_topdir {tops}",
        "--define", f"millrace_version {number}",
        "--define", "debug_package %{nil}", PACKAGE / "millrace.spec")
    packages = sorted(tops.glob("RPMS/*/*.rpm"))
    if shutil.which("rpmlint"):
        run("rpmlint", *packages)
    return [shutil.copy(package, out) for package in packages]


def dependencies(debs):
    """Names of packages that debs need, except alternatives: the image needs
    no program that creates users."""
    needed = set()
    for deb in debs:
        fields = run("dpkg-deb", "-f", deb, "Depends", stdout=subprocess.PIPE)
        needed |= {word.split()[0] for word in fields.stdout.split(",")
                   if "|" not in word}
    return sorted(name for name in needed if "millrace" not in name)


def build_image(work, out):
    """One layer: the programs and the Debian 12 packages that they need."""
    name = f"{{}}_{version()}_*.deb"
    if not list(out.glob(name.format("millrace"))):
        build_deb(work, out)
    debs = [next(out.glob(name.format(package)))
            for package in ("millrace", "libmillrace0")]
    root = work / "root"
    run("mmdebstrap", "--quiet", "--variant=extract",
        f"--include={','.join(dependencies(debs))}",
        "bookworm", root, stdin=subprocess.DEVNULL)
    for deb in debs:
        run("dpkg-deb", "-x", deb, root)
    for pattern in UNREAD:
        for folder in root.glob(pattern):
            shutil.rmtree(folder)
    (root / "etc/passwd").write_text(
        f"root:x:0:0::/:\nmillrace:x:{USER}:{USER}::/:\n")
    (root / "etc/group").write_text(f"root:x:0:\nmillrace:x:{USER}:\n")
    archive = out / f"millrace-image_{version()}.tar"
    archive.unlink(missing_ok=True)
    buildah = ("buildah", "--root", work / "store", "--runroot", work / "run",
               "--storage-driver", "vfs")
    container = run(*buildah, "from", "scratch",
                    stdout=subprocess.PIPE).stdout.strip()
    run(*buildah, "copy", "--quiet", container, root, "/")
    (work / "empty").mkdir()
    run(*buildah, "copy", "--quiet", "--chown", f"{USER}:{USER}", container,
        work / "empty", "/run/millrace")
    run(*buildah, "config", "--user", f"{USER}:{USER}",
        "--env", "RUNTIME_DIRECTORY=/run/millrace",
        "--label", f"org.opencontainers.image.version={version()}", container)
    run(*buildah, "commit", "--quiet", "--disable-compression=false",
        "--timestamp", str(int(committed().timestamp())), container,
        f"oci-archive:{archive}:millrace:{version().replace('~', '-')}")
    return [archive]


def build_wheel(work, out):
    """For Python 3.11 and later, and this glibc or a later one."""
    tree, root = work / "millrace", work / "root"
    unpack(tree)
    run("meson", "setup", work / "build", tree, "--prefix", root,
        "--libdir=lib", "--buildtype=release", "-Dwerror=false",
        "-Dapps=false", "-Dtests=false", "-Ddpdk=disabled",
        "-Dpython=disabled", "-Ddrivers=xdp,virtio,intel,tap,pcap,pair,null")
    run("meson", "install", "-C", work / "build", "--quiet")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(root / "lib"),
                   "PKG_CONFIG_PATH": str(root / "lib/pkgconfig"),
                   "PYTHONPATH": os.pathsep.join(map(
                       str, cache.glob("millrace/python/auditwheel==*")))}
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps",
        "--no-build-isolation", "--wheel-dir", work,
        tree / "bindings/python", env=environment)
    glibc = platform.libc_ver()[1].replace(".", "_")
    run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", out,
        "--plat", f"manylinux_{glibc}_{platform.machine()}",
        next(work.glob("*.whl")), env=environment)
    return sorted(out.glob("*.whl"))


KINDS = {"deb": ("dpkg-buildpackage", build_deb),
         "rpm": ("rpmbuild", build_rpm),
         "image": ("buildah", build_image),
         "wheel": ("patchelf", build_wheel)}


def main():
    parser = argparse.ArgumentParser(
        prog="./mr package", description=__doc__.split("\n\n", 2)[2],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", metavar="DIR", type=Path,
                        default=TOP / "build/packages")
    parser.add_argument("--suite", metavar="NAME", default="",
                        help="the Debian release to build for")
    parser.add_argument("kinds", metavar="deb|rpm|image|wheel", nargs="*",
                        choices=[*KINDS, []])
    options = parser.parse_args()
    if options.suite and options.kinds not in ([], ["deb"]):
        parser.error("--suite is for Debian packages")
    options.out.mkdir(parents=True, exist_ok=True)
    for kind in ["deb"] if options.suite else options.kinds or KINDS:
        tool, build = KINDS[kind]
        if not shutil.which(tool):
            sys.exit(f"mr package: {kind}: {tool} is missing")
        with tempfile.TemporaryDirectory(prefix="millrace-") as work:
            try:
                suite = [options.suite] if options.suite else []
                for package in build(Path(work), options.out, *suite):
                    print(package)
            except subprocess.CalledProcessError as error:
                sys.exit(f"mr package: {kind}: {error.cmd[0]} failed")


if __name__ == "__main__":
    main()
