# SPDX-License-Identifier: BSD-3-Clause
"""Run the distribution's dpdk-test and dpdk-testpmd, with or without our
mempool plug-in. Used by these tests and by ./mr bench mempool."""
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile

# Last: it has a module named command, too.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))

# pylint: disable=wrong-import-position
import huge_pages  # noqa: E402
from huge_pages import SPARE_MIB, meminfo  # noqa: E402

BUILD = pathlib.Path(os.environ.get(
    "MR_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))
PLUGIN = BUILD / "plugins" / "dpdk" / "librte_mempool_millrace.so"
SHIM = BUILD / "test" / "dpdk" / "libdpdk_shim.so"
ROW_MS = 5000  # of mempool_perf_autotest, as it is
# What a mempool of 24575 objects of 2 KiB, three of them, and EAL take.
NEEDED_MIB = 900
# What EAL says when others took the huge pages that had been free.
PAGES_GONE = "Cannot init memory"

os.environ["PATH"] += ":/usr/sbin:/sbin:/usr/local/bin"

ROW = re.compile(
    r"mempool_autotest cache=(?P<cache>\d+) cores=(?P<cores>\d+) "
    r"n_get_bulk=(?P<get>\d+) n_put_bulk=(?P<put>\d+) n_keep=(?P<keep>\d+) "
    r"(?:constant_n=(?P<constant>\d+) )?rate_persec=(?P<rate>\d+)")
SECTION = re.compile(r"^start performance test (.*)$", re.M)


class HugePages(huge_pages.HugePages):
    """What EAL gets, if it can be had."""

    def eal(self, mib):
        """The options of EAL for memory."""
        if self.are_there(mib):
            return ["--in-memory", "-m", str(mib)]
        return SmallPages().eal(mib)


class SmallPages:
    """In the place of HugePages: 4 KiB pages, which every machine has."""

    @staticmethod
    def eal(mib):
        """The options of EAL for memory."""
        return ["--no-huge", "--no-shconf", "-m", str(mib)]


def why_no_plugin():
    """Why EAL does not load our plug-in, or ''."""
    for folder in PLUGIN.resolve().parents:
        if folder.stat().st_mode & stat.S_IWOTH:
            return f"{folder} is world-writable: EAL loads no plug-in below it"
    return ""


def why_not(program):
    """What is missing for a run of program, or ''."""
    if not shutil.which(program):
        return f"{program} is missing (package dpdk-dev, on Fedora dpdk)"
    if why_no_plugin():
        return why_no_plugin()
    if meminfo("MemAvailable") // 1024 < NEEDED_MIB + SPARE_MIB:
        return f"less than {NEEDED_MIB + SPARE_MIB} MiB of memory are free"
    return ""


def lcores(n):
    """n lcores on the CPUs that there are; they share one if need be."""
    cpus = sorted(os.sched_getaffinity(0))
    return "--lcores=" + ",".join(f"{i}@{cpus[i % len(cpus)]}"
                                  for i in range(n))


def argv(program, pages, handler, *, mib=NEEDED_MIB, n_lcores=2, extra=()):
    """A command line of EAL's. handler None: the default one, no plug-in."""
    words = [program, "--no-pci", "--no-telemetry", lcores(n_lcores),
             "--file-prefix", f"mr{os.getpid()}", *pages.eal(mib), *extra]
    if handler == "millrace":  # with the others, nothing of ours is loaded
        words += ["-d", str(PLUGIN)]
    if handler is not None:
        words.append(f"--mbuf-pool-ops-name={handler}")
    return words


def environment(**more):
    """For a run that is not to find traces of others, nor to leave any."""
    return {**os.environ, "XDG_RUNTIME_DIR": tempfile.gettempdir(), **more}


def autotest(name, pages, handler, seconds, **env):
    """One test of dpdk-test: (exit status, output)."""
    done = subprocess.run(
        argv("dpdk-test", pages, handler), env=environment(DPDK_TEST=name,
                                                           **env),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace",
        timeout=seconds, check=False)
    if PAGES_GONE in done.stdout and not isinstance(pages, SmallPages):
        return autotest(name, SmallPages(), handler, seconds, **env)
    return done.returncode, done.stdout


def rows(output, row_ms=ROW_MS):
    """mempool_perf_autotest's rows: a list of dicts with "rate", objects/s,
    corrected for what the shim did to the clock, and "section"."""
    found = []
    starts = [(m.start(), m.group(1)) for m in SECTION.finditer(output)]
    for match in ROW.finditer(output):
        row = {key: int(value or 0) for key, value in
               match.groupdict().items()}
        row["rate"] = row["rate"] * ROW_MS / row_ms
        row["section"] = [title for start, title in starts
                          if start < match.start()][-1]
        found.append(row)
    return found
