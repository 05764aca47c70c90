# SPDX-License-Identifier: BSD-3-Clause
"""Where DPDK, or our module for it, is not there or of another version.

A copy of a program that looks for libraries in a folder where a module of ours
is like the one that would be installed: the port is refused in one line, and
the rest works.
"""
import os
import subprocess
from pathlib import Path

import pytest
from host import limit

BUILD = Path(os.environ["MR_BUILD"])
L2FWD = BUILD / "apps" / "l2fwd" / "mr-l2fwd"
MODULE = "libmillrace-dpdk.so"
HEADERS = Path(__file__).resolve().parents[2] / "drivers" / "dpdk"


@pytest.fixture
def folder(tmp_path):
    """With the program alone, whose RUNPATH is nowhere."""
    if not L2FWD.exists():
        pytest.skip("mr-l2fwd is not built")
    runpath = os.fsencode(BUILD / "lib" / "link")
    program = tmp_path / L2FWD.name
    program.write_bytes(L2FWD.read_bytes().replace(
        runpath, b"/nowhere".ljust(len(runpath), b"_")))
    program.chmod(0o755)
    return tmp_path


def cc(source, *arguments):
    """A shared object out of a line of C."""
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none",
                    *arguments],
                   input=source, text=True, check=True)


def l2fwd(folder, port):
    """What mr-l2fwd says there: (status, lines)."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    done = subprocess.run([folder / L2FWD.name, "--duration", "1", port, "null:"], env=env,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, timeout=limit(30), check=False)
    return done.returncode, done.stderr.splitlines()


def test_argv_does_not_choose_the_module(folder):
    """A program with capabilities must not load what its caller names."""
    cc("", "-o", folder / MODULE)
    # meson names the build's libraries there if the test depends on one.
    env = {name: value for name, value in os.environ.items()
           if name != "LD_LIBRARY_PATH"}
    done = subprocess.run([folder / "chosen", "--duration", "1",
                           "dpdk:net_null0", "null:"], text=True, env=env,
                          executable=folder / L2FWD.name, timeout=limit(30),
                          capture_output=True, check=False)
    assert f"{MODULE}: cannot open shared object" in done.stderr, done.stderr


def refused(folder, *words):
    """A dpdk: port is refused by one line with these words; null: is not."""
    status, lines = l2fwd(folder, "dpdk:net_null0")
    said = [line for line in lines if "dpdk" in line]
    assert status == 1, lines
    assert len(said) == 1 and all(word in said[0] for word in words), lines
    assert l2fwd(folder, "null:")[0] == 0


def test_module_is_not_installed(folder):
    refused(folder, "cannot load the module", "libdpdk")


def test_dpdk_is_not_installed_or_another(folder):
    """The module wants libraries of the DPDK that it was built with."""
    library = folder / "librte_ethdev.so.99"
    cc("int rte_nothing;", f"-Wl,-soname,{library.name}", "-o", library)
    cc("", "-Wl,--no-as-needed", library, "-o", folder / MODULE)
    library.unlink()
    refused(folder, "the DPDK libraries are missing",
            "of another version than", library.name)


@pytest.mark.parametrize("version, size", [(1, 0), (0, -8), (0, 8)])
def test_module_is_of_another_millrace(folder, version, size):
    """By its version, or since its table has fewer or more members."""
    cc('#include "dpdk_module.h"\n'
       "static const struct mr_driver driver = {\n"
       "    .version = MR_DRIVER_VERSION,\n"
       f"    .size = sizeof(struct mr_driver) + {size},\n"
       "    .port_bytes = sizeof(struct mri_dpdk_room) };\n"
       "const struct mri_dpdk_module mri_dpdk_module = {\n"
       f"    .version = MRI_DPDK_VERSION + {version}, .driver = &driver }};\n",
       f"-I{HEADERS}", f"-I{HEADERS.parents[1] / 'lib' / 'include'}", "-o",
       folder / MODULE)
    refused(folder, "belongs to another version of Millrace")
