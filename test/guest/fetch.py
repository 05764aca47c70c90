#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fetch what a guest is made of: QEMU, a kernel with its modules, a busybox.

    fetch.py [--kernel 7.2] [--refresh]

Distribution packages, fetched by apt into a folder of our own and unpacked
there: nothing is installed, the machine's own apt lists stay as they are, and
it needs no root. The mirror and its keyring are those that the machine's apt
uses already.

Only Debian packages kernels in a way that can be unpacked like this, so on
other distributions there is nothing to fetch: Missing says so.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

APT_LIMIT_S = 600
# Suites beside the machine's own that kernels are looked for in. A newer
# release's kernel runs with our old user space: the system calls stay.
KERNEL_SUITES = ["bookworm", "bookworm-backports", "trixie",
                 "trixie-backports"]
# Packages of a kernel; before 6.19 everything was in linux-image.
KERNEL_PACKAGES = ["linux-binary-", "linux-modules-"]
# QEMU's igb came with 8.0; the emulation this is tested with is 10's. 7.2 has
# all else: it serves where nothing newer can be fetched.
QEMU_MIN, QEMU_LEAST = 8, 7


class Missing(Exception):
    """What a guest needs is not to be had here; the text says what and why."""


def cache_folder():
    """Where fetched things stay; MR_GUEST_CACHE overrides it."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("MR_GUEST_CACHE") or
                Path(base) / "millrace" / "guest")


def os_release():
    fields = {}
    try:
        text = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        return fields
    for line in text.splitlines():
        key, _, value = line.partition("=")
        fields[key] = value.strip('"')
    return fields


def one_line_source(line):
    """(uri, suites, keyring) of a line of the old format, or None."""
    match = re.match(r"deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+main\b", line)
    if not match:
        return None
    keyring = re.search(r"signed-by=(\S+)", match.group(1) or "")
    return match.group(2), [match.group(3)], keyring and keyring.group(1)


def apt_sources():
    """(uri, suites, keyring) of each source the machine's apt has."""
    for name in ["/etc/apt/sources.list",
                 *sorted(glob.glob("/etc/apt/sources.list.d/*.list"))]:
        if os.path.exists(name):
            for line in Path(name).read_text(encoding="utf-8").splitlines():
                source = one_line_source(line)
                if source:
                    yield source
    for name in sorted(glob.glob("/etc/apt/sources.list.d/*.sources")):
        for block in Path(name).read_text(encoding="utf-8").split("\n\n"):
            fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", block, re.M))
            if "deb" in fields.get("Types", "").split() and \
                    fields.get("Enabled", "yes") != "no" and \
                    "main" in fields.get("Components", "").split():
                yield (fields["URIs"].split()[0], fields["Suites"].split(),
                       fields.get("Signed-By"))


def version_key(text):
    """To sort versions such as 6.12.95+deb12 by their numbers."""
    return [int(n) for n in re.findall(r"\d+", text)]


def matches(release, wanted):
    """Whether kernel release 7.2.12+deb13-amd64 is of the wanted 7.2."""
    return wanted == "newest" or \
        version_key(release)[:len(version_key(wanted))] == version_key(wanted)


class Cache:
    """The folder, and apt working in it."""

    def __init__(self, folder=None, say=print):
        self.folder = Path(folder or cache_folder())
        self.say = say
        self.is_updated = False

    def kernel(self, wanted="newest", refresh=False):
        """The folder of an unpacked kernel release that matches wanted."""
        have = [path for path in (self.folder / "kernel").glob("*-amd64")
                if matches(path.name, wanted)]
        if not have or refresh:
            self._fetch_kernel(wanted)
            have = [path for path in (self.folder / "kernel").glob("*-amd64")
                    if matches(path.name, wanted)]
        return max(have, key=lambda path: version_key(path.name))

    def unpacked(self, package):
        """The folder of a package that needs none of its dependencies."""
        root = self.folder / package
        if not root.exists():
            self._fetch(package, [package])
        return root

    def busybox(self):
        """A busybox that needs no libraries."""
        return next(self.unpacked("busybox-static").glob("**/bin/busybox"))

    def qemu(self):
        """(program, environment, options) of a QEMU, if possible with igb."""
        system = shutil.which("qemu-system-x86_64")
        major = qemu_major(system, os.environ) if system else 0
        if major >= QEMU_MIN:
            return system, dict(os.environ), []
        try:
            return self._own_qemu()
        except Missing:
            if major < QEMU_LEAST:
                raise
            return system, dict(os.environ), []

    def _own_qemu(self):
        """As qemu(), unpacked in the cache folder, with what libraries this
        machine does not have."""
        root = self.folder / "qemu"
        program = root / "usr" / "bin" / "qemu-system-x86_64"
        if not program.exists():
            self._update()
            self._fetch("qemu", ["qemu-system-x86"], "install",
                        "--download-only", "--no-install-recommends", "-t",
                        os_release().get("VERSION_CODENAME") + "-backports")
        libs = [str(root / part / "x86_64-linux-gnu")
                for part in ("usr/lib", "lib")]
        env = dict(os.environ, LD_LIBRARY_PATH=":".join(libs),
                   QEMU_MODULE_DIR=libs[0] + "/qemu")
        options = []
        for part in ("usr/share/qemu", "usr/share/seabios",
                     "usr/lib/ipxe/qemu"):
            options += ["-L", str(root / part)]
        if qemu_major(str(program), env) < QEMU_MIN:
            raise Missing(f"{program} does not run, or is too old")
        return str(program), env, options

    def _apt(self, tool, *args):
        """Run apt-get or apt-cache on our own lists; its output."""
        apt = self.folder / "apt"
        command = [tool,
                   "-o", f"Dir::Etc::SourceParts={apt / 'sources'}",
                   "-o", "Dir::Etc::SourceList=/dev/null",
                   "-o", f"Dir::Etc::Preferences={apt / 'preferences'}",
                   "-o", "Dir::Etc::PreferencesParts=/dev/null",
                   "-o", f"Dir::State::Lists={apt / 'lists'}",
                   "-o", f"Dir::Cache={apt}",
                   "-o", f"Dir::Log={apt}",
                   "-o", "Debug::NoLocking=1",
                   "-o", "APT::Sandbox::User=",
                   "-o", "APT::Architecture=amd64",
                   "-o", "Acquire::Languages=none", *args]
        done = subprocess.run(command, capture_output=True, text=True,
                              check=False, timeout=APT_LIMIT_S,
                              env=dict(os.environ, LC_ALL="C"))
        if done.returncode != 0:
            tail = (done.stdout + done.stderr).strip().splitlines()[-3:]
            raise Missing(f"{tool} {' '.join(args[:2])}: {' '.join(tail)}")
        return done.stdout

    def _update(self):
        if self.is_updated:
            return
        release = os_release()
        codename = release.get("VERSION_CODENAME", "")
        if release.get("ID") != "debian" or not shutil.which("apt-get"):
            raise Missing("guest kernels are unpacked from Debian's packages, "
                          "and this is not Debian")
        sources = [source for source in apt_sources()
                   if codename in source[1]]
        if not sources:
            raise Missing(f"apt has no source for {codename}")
        uri, _, keyring = sources[0]
        apt = self.folder / "apt"
        for name in ("sources", "lists/partial", "archives/partial"):
            (apt / name).mkdir(parents=True, exist_ok=True)
        suites = dict.fromkeys([codename, f"{codename}-updates",
                                f"{codename}-backports", *KERNEL_SUITES])
        text = (f"Types: deb\nURIs: {uri}\nSuites: {' '.join(suites)}\n"
                f"Components: main\n")
        if keyring:
            text += f"Signed-By: {keyring}\n"
        (apt / "sources" / "guest.sources").write_text(text, encoding="utf-8")
        # Libraries come from this release; other suites are for kernels.
        pins = [f"Package: *\nPin: release n={suite}\nPin-Priority: 50\n"
                for suite in suites if not suite.startswith(codename)]
        (apt / "preferences").write_text("\n".join(pins), encoding="utf-8")
        self._apt("apt-get", "-q", "update")
        self.is_updated = True

    def _fetch(self, folder, packages, *options):
        """Fetch packages, by name or name=version; unpack them to folder."""
        self._update()
        debs = self.folder / "apt" / "archives"
        for old in debs.glob("*.deb"):
            old.unlink()
        self.say(f"guest: fetching {' '.join(packages)}")
        if options:
            self._apt("apt-get", "-q", "-y", *options, *packages)
        else:
            before = os.getcwd()
            os.chdir(debs)  # "download" knows no other place
            try:
                self._apt("apt-get", "-q", "download", *packages)
            finally:
                os.chdir(before)
        target = self.folder / folder
        part = target.with_name(target.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        for deb in sorted(debs.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", str(deb), str(part)],
                           check=True, timeout=APT_LIMIT_S)
            deb.unlink()
        # Whole or not at all: an interrupted fetch is done again.
        shutil.rmtree(target, ignore_errors=True)
        part.rename(target)

    def _fetch_kernel(self, wanted):
        """The newest kernel of the wanted version that the suites have."""
        self._update()
        images = set(self._apt("apt-cache", "show", "linux-image-amd64")
                     .replace(",", " ").split())
        releases = [name[len("linux-image-"):] for name in images
                    if re.fullmatch(r"linux-image-\d\S*-amd64", name)]
        fit = [release for release in releases if matches(release, wanted)]
        if not fit:
            raise Missing(f"no kernel {wanted}; there are "
                          f"{', '.join(sorted(releases, key=version_key))}")
        release = max(fit, key=version_key)
        known = self._apt("apt-cache", "pkgnames", "linux-").split()
        packages = [prefix + release for prefix in KERNEL_PACKAGES]
        if not set(packages) <= set(known):
            packages = [f"linux-image-{release}"]
        self._fetch(f"kernel/{release}", packages)


def qemu_major(program, env):
    """QEMU's major version; 0 if it does not run."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True,
                              text=True, check=False, timeout=20, env=env)
    except OSError:
        return 0
    match = re.search(r"version (\d+)", done.stdout)
    return int(match.group(1)) if match else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="newest", metavar="VERSION",
                        help="as 6.1, 6.12, 7.2 (default: newest)")
    parser.add_argument("--refresh", action="store_true",
                        help="look for a newer one even if one is there")
    args = parser.parse_args()
    cache = Cache()
    try:
        print(cache.kernel(args.kernel, args.refresh))
        print(cache.busybox())
        print(cache.qemu()[0])
    except Missing as why:
        print(f"guest: {why}")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
