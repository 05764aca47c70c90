# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests on real interfaces, and what they need to run."""
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

# Tests leave nothing in the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).parent),
                str(Path(__file__).parents[1] / "support")]

# pylint: disable=wrong-import-position
from lib import namespaces  # noqa: E402
from lib.process import BUILD, L2FWD, PASS_OBJECT, PROBE, TAG_OBJECT  # noqa: E402

NEEDED = {"ip": "iproute2", "ethtool": "ethtool", "tc": "iproute2"}
os.environ["PATH"] += ":/usr/sbin:/sbin"
# Ignored, as under nohup, it would be ignored by programs that tests start.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config):
    """./mr test runs what is marked so; ./mr test all runs everything."""
    config.addinivalue_line("markers", "short: a scenario of a feature")


def why_not():
    """What this machine lacks for any of these tests, or ''."""
    if os.geteuid() != 0:
        return "not root: namespaces, veth and XDP programs need it"
    for tool, package in NEEDED.items():
        if not shutil.which(tool):
            return f"{tool} is missing (package {package})"
    for program in (L2FWD, PROBE):
        if not program.exists():
            return f"{program} is not built (is the xdp driver?)"
    try:
        lab = namespaces.Lab("/tmp")
        try:
            one, other = lab.namespace("x"), lab.namespace("y")
            lab.veth(one, "v0", other, "v0")
        finally:
            lab.close()
    except (AssertionError, OSError) as error:
        return f"no namespaces with veth pairs here: {error}"
    return ""


@pytest.fixture(scope="session", autouse=True)
def machine():
    """Skip everything where the machine cannot do it."""
    why = why_not()
    if why:
        pytest.skip(why)
    namespaces.sweep()


@pytest.fixture
def lab(tmp_path, request):
    """Namespaces and processes of one test; all gone after it."""
    a_lab = namespaces.Lab(tmp_path)
    try:
        n_failed = request.session.testsfailed
        yield a_lab
        if request.session.testsfailed == n_failed:
            a_lab.check()
    finally:
        a_lab.close()


@pytest.fixture
def star(lab):
    """Two hosts and the forwarder's namespace between them."""
    return namespaces.Star(lab)


@pytest.fixture
def python_path(monkeypatch):
    """Where millrace is, for this process and those it starts; "": nowhere."""
    path = BUILD / "bindings/python"
    if not (path / "millrace/__init__.py").exists():
        return ""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(
        [str(path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(path)
    return path


@pytest.fixture
def rust_path(monkeypatch):
    """Where examples in Rust are, if cargo built them; they find the library."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(BUILD / "lib/link"))
    return BUILD / "bindings/rust/debug/examples"


@pytest.fixture
def end(lab, python_path):
    """A function that opens the end of a wire: lib.end.End."""
    if not python_path:
        pytest.skip("the package for Python is not built")
    from lib.end import End  # pylint: disable=import-outside-toplevel
    return lambda *place, **more: lab.closing(End(*place, **more))


@pytest.fixture
def pass_object():
    """Somebody else's XDP program, compiled."""
    if not PASS_OBJECT.exists():
        pytest.skip("no clang: the foreign XDP program is not built")
    return PASS_OBJECT


@pytest.fixture
def on_vlan():
    """A function that puts hosts on VLAN 5, as if with a VLAN device on h0."""
    if not TAG_OBJECT.exists():
        pytest.skip("no clang: the program that tags frames is not built")
    commands = " && ".join(["tc qdisc add dev h0 clsact"] + [
        f"tc filter add dev h0 {way} bpf direct-action obj {TAG_OBJECT} sec "
        f"{section}" for way, section in (("egress", "tc"),
                                          ("ingress", "classifier"))])

    def put(*hosts):
        for host in hosts:
            done = host.run("sh", "-c", commands, check=False)
            if done.returncode != 0:
                pytest.skip(f"no tc programs here: {done.stdout.strip()}")
    return put
