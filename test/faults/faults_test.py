# SPDX-License-Identifier: BSD-3-Clause
"""Start programs while their system calls and allocations fail.

usage: faults_test.py [--all] [--only WORD] BUILD FAIL_MALLOC

Without --all, each system call fails once at each place in the code that makes
it, and so does the first allocation at each place. With --all, the first 40 calls
of each system call and the first 2,000 allocations also fail, which takes hours.

However a program ends, it must not crash or hang, and must leave no socket, no
record and no changed setting behind. If it does not start, it says why.
"""
import argparse
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

sys.dont_write_bytecode = True
TEST = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TEST / "support"), str(TEST / "netns")]

# pylint: disable=wrong-import-position
from host import limit, popen  # noqa: E402
from lib import namespaces  # noqa: E402

SKIPPED = 77
SO_NETNS_COOKIE = 71  # asm-generic/socket.h
N_AT_ONCE = 4
N_CALLS, N_ALLOCATIONS = 40, 2000  # of --all
DOCUMENT_FD = 3  # to which the traffic engine writes its results
RUN_LIMIT_S = 20
TRACE_LIMIT_S = 200  # it looks up the stack at each call
# Calls that do not fail here: those that end the process, those that glibc needs,
# and those that release something, because it would be left behind.
EXCEPT = {"execve", "brk", "exit", "exit_group", "futex", "rt_sigreturn", "munmap",
          "close", "unlink", "rmdir", "restart_syscall", "sched_yield",
          "arch_prctl", "set_tid_address", "set_robust_list", "rseq"}
ERRORS = {
    "EMFILE": ("openat socket eventfd2 epoll_create1 signalfd4 pipe2 dup dup2 "
               "dup3 timerfd_create memfd_create accept4 inotify_init1"),
    "ENOMEM": "mmap mremap clone clone3 mprotect madvise mlock",
    "EINTR": "poll ppoll epoll_wait epoll_pwait clock_nanosleep nanosleep",
    "EACCES": "access faccessat faccessat2 readlink newfstatat statx mkdir",
    "ENOSPC": "write pwrite64 ftruncate fallocate fsync",
}
ERROR_OF = {call: error for error, calls in ERRORS.items()
            for call in calls.split()}
SYSTEM = re.compile(r"/(libc|ld-linux[-\w]*|libpthread)\.so")
CRASH = re.compile(r"\+\+\+ killed by SIG(?:SEGV|ABRT|BUS|FPE|ILL|$)")
FRAME = re.compile(r" > (\S+?)\((.*?)\) \[(0x[0-9a-f]+)\]")

NAT_YAML = """
inside: {{port: 'xdp:p0', addresses: [10.0.0.1/24]}}
outside: {{port: 'xdp:p1', addresses: [192.0.2.1/24], gateway: 192.0.2.254}}
state: {folder}/state
log: {{path: {folder}/log, sessions: yes}}
"""
RULES_YAML = """
rules:
- {user: root, interface: 'p*', memory: 64M, transmit: yes, settings: yes}
"""


class Program:
    """A program that is started once per fault."""

    def __init__(self, name, path, *arguments, client=()):
        self.name, self.path, self.arguments = name, path, arguments
        self.client = client  # it serves this one, and then gets a signal

    def command(self, folder):
        return in_folder([self.path, *self.arguments], folder)


def in_folder(words, folder):
    return [str(word).replace("FOLDER", str(folder)) for word in words]


def programs(build):
    apps = build / "apps"
    pause = ["--duration", "0.03"]
    return [
        Program("mr-l2fwd", apps / "l2fwd/mr-l2fwd", *pause, "--ring", "64",
                "--mtu", "1400", "--promisc", "on", "--offload", "auto",
                "--punt", "udp port 53", "--control", "FOLDER/sock",
                "--metrics", "unix:FOLDER/metrics", "p0", "p1"),
        Program("mr-nat", apps / "nat/mr-nat", *pause, "--config",
                "FOLDER/nat.yaml", "--control", "FOLDER/sock"),
        Program("mr-bench", apps / "bench/mr-bench-engine", "reflect",
                str(DOCUMENT_FD), *pause, "p0,mtu=1400"),
        Program("mr-brokerd", apps / "brokerd/mr-brokerd", "--rules",
                "FOLDER/rules.yaml", "--socket", "FOLDER/sock",
                client=[apps / "l2fwd/mr-l2fwd", *pause, "--quiet", "--ring",
                        "64", "--mtu", "1400", "--control", "FOLDER/client",
                        "--mode", "drop", "xdp:p0,via=broker,"
                        "broker=FOLDER/sock,filter=udp port 53"]),
    ]


class Place:
    """Two interfaces and a folder, which a run must leave as they were."""

    def __init__(self, number):
        self.folder = Path(tempfile.mkdtemp(prefix="mrt-faults-"))
        self.lab = namespaces.Lab(self.folder)
        self.inside = self.lab.namespace(f"x{number}")
        outside = self.lab.namespace(f"y{number}")
        for name in "p0", "p1":
            self.lab.veth(self.inside, name, outside, name)
            outside.run("ethtool", "-K", name, "gro", "on")  # for --offload
        with self.inside, socket.socket() as asked:
            self.cookie, = struct.unpack("=Q", asked.getsockopt(
                socket.SOL_SOCKET, SO_NETNS_COOKIE, 8))
        (self.folder / "nat.yaml").write_text(
            NAT_YAML.format(folder=self.folder), "ascii")
        (self.folder / "rules.yaml").write_text(RULES_YAML, "ascii")
        self.before = self.state()

    def close(self):
        self.lab.close()
        shutil.rmtree(self.folder)

    def state(self):
        links = [self.inside.link(name) for name in ("p0", "p1")]
        return [(link["mtu"], link["address"], link["promiscuity"],
                 [flag for flag in link["flags"] if flag != "LOWER_UP"],
                 link.get("xdp")) for link in links]

    def left_behind(self):
        """What a run has left behind. This also removes it."""
        found = []
        for path in self.folder.iterdir():
            if path.is_socket() or path.suffix in (".lock", ".new"):
                found.append(path.name)
                path.unlink()
        for path in Path("/run").glob(f"millrace*/xdp-{self.cookie}-*"):
            found.append(str(path))
            path.unlink()
        state = self.state()
        if state != self.before:
            found.append(f"interfaces: {state}")
            for name, (mtu, address, *_) in zip(("p0", "p1"), self.before):
                self.inside.ip("link", "set", name, "mtu", mtu, "address",
                               address, "up")
        return found

    def run(self, program, wrap=(), environment=None, limit_s=RUN_LIMIT_S):
        """Run a program. Returns its status and what it printed."""
        process = popen(
            self.inside.command("sh", "-c",
                                f'exec "$@" {DOCUMENT_FD}>/dev/null', "sh",
                                *wrap, *program.command(self.folder)),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, errors="replace",
            env={**os.environ, **(environment or {})})
        timer = threading.Timer(limit(limit_s), process.kill)
        timer.start()
        said = []
        for line in process.stderr:
            said.append(line)
            if program.client and "listening on" in line:
                said.append(self.run_client(program))
                process.terminate()
        status = process.wait()
        is_over = not timer.is_alive()
        timer.cancel()
        if is_over or "it hangs" in said:
            return "it hangs", "".join(said)
        return status, "".join(said)

    def run_client(self, program):
        """Run the client. Returns what it printed, after its settings were restored."""
        with subprocess.Popen(self.inside.command(
                *in_folder(program.client, self.folder)),
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                text=True) as client:
            try:
                said = client.communicate(timeout=limit(RUN_LIMIT_S))[1]
            except subprocess.TimeoutExpired:
                client.kill()
                return "it hangs"
        end_s = time.monotonic() + limit(2)
        while self.state() != self.before and time.monotonic() < end_s:
            time.sleep(0.01)
        return said if client.returncode in (0, 1, 2) else "+++ killed by SIG"


def objection(program, status, said, left):
    """What is wrong with the end of a run, or ''."""
    lines = [line for line in said.splitlines()
             if re.match(r"mr-[\w-]+( reflect)?: (?!warning: )", line)]
    if not isinstance(status, int):
        return status
    if CRASH.search(said):
        return "a process crashes"
    if status < 0 or status >= 128:
        return f"status {status}"
    if left and "by hand" not in said:
        return f"left behind: {', '.join(left)}"
    if status != 0 and not lines:
        return f"{program.name} ends with {status} without a reason"
    return ""


class Faults:
    """The faults of one program."""

    def __init__(self, program, places, fail_malloc):
        self.program, self.places = program, places
        self.fail_malloc = fail_malloc
        self.of_loader = Counter()  # calls that must not fail, the first ones
        self.failures = []
        self.n = 0

    def try_once(self, place, options):
        """What is wrong, and the end of what it says."""
        trace = place.folder / "trace"
        status, said = place.run(self.program, [
            "strace", "-D", "-f", "-o", trace, *options])
        left = place.left_behind()
        said += "".join(CRASH.findall(trace.read_text("utf-8", "replace")))
        return objection(self.program, status, said, left), said

    def inject(self, label, options):
        place = self.places.get()
        try:
            why, said = self.try_once(place, options)
            if why:  # strace -D rarely hangs at its start
                why, said = self.try_once(place, options)
        finally:
            self.places.put(place)
        self.n += 1
        if why:
            last = said.splitlines()[-3:]
            self.failures.append(f"{self.program.name}: {label}: {why}: {last}")
            print(self.failures[-1], flush=True)

    def inject_call(self, call, number, where):
        error = ERROR_OF.get(call, "EIO")
        self.inject(f"{call} #{number} {error} {where}", [
            "--seccomp-bpf", "-e", f"trace={call}", "-e", "signal=none", "-e",
            f"inject={call}:error={error}:when={number}"])

    def inject_allocation(self, number):
        self.inject(f"allocation #{number}", [
            "--seccomp-bpf", "-e", "trace=exit_group", "-E",
            f"LD_PRELOAD={self.fail_malloc}", "-E", f"MR_FAIL_AT={number}"])

    def calls(self, place):
        """{(call, place of code): (number in its thread, name of the place)}
        of a run without faults."""
        found = {}
        with tempfile.TemporaryDirectory(prefix="mrt-trace-") as folder:
            status, said = place.run(self.program, [
                "strace", "-D", "-ff", "-k", "-o", f"{folder}/t", "-e",
                "signal=none"], limit_s=TRACE_LIMIT_S)
            assert status == 0, (status, said)
            # The main thread first: strace cannot tell the threads apart, and
            # what the loader does must not fail.
            for path in sorted(Path(folder).iterdir(),
                               key=lambda path: int(path.suffix[1:])):
                self.read_trace(path, found)
        return found

    def read_trace(self, path, found):
        """Add a thread's calls to found."""
        numbers, is_main = Counter(), not self.of_loader
        is_loaded = not is_main
        call, frames = "", []
        for line in path.read_text("utf-8", "replace").splitlines() + [""]:
            frame = FRAME.match(line)
            if frame:
                frames.append(frame.groups())
                continue
            ours = [f for f in frames
                    if f[0].endswith(self.program.path.name)]
            is_loaded = is_loaded or bool(ours)
            # Messages must not fail either, because they are read here.
            if not is_loaded or (is_main and ours and
                                 "print_error" in ours[0][1]):
                self.of_loader[call] = numbers[call]
            if ours and numbers[call] > self.of_loader[call]:
                self.note(call, numbers[call], frames, ours[0][1], found)
            call, frames = line.partition("(")[0], []
            numbers[call] += 1

    @staticmethod
    def note(call, number, frames, where, found):
        name, _, address = next(f for f in frames if not SYSTEM.search(f[0]))
        if call not in EXCEPT and call.isidentifier():
            found.setdefault((call, name, address), (number, where))

    def allocations(self, place):
        """The number of the first allocation of each place in the code."""
        with tempfile.NamedTemporaryFile("r") as log:
            status, said = place.run(self.program, (), {
                "LD_PRELOAD": self.fail_malloc, "MR_FAIL_LOG": log.name})
            assert status == 0, said
            return sorted({int(line) for line in log})


def jobs(faults, place, is_all):
    calls = faults.calls(place)
    if is_all:
        for call in sorted({call for call, *_ in calls}):
            first = faults.of_loader[call] + 1
            for number in range(first, first + N_CALLS):
                yield faults.inject_call, (call, number, "")
        for number in range(1, N_ALLOCATIONS + 1):
            yield faults.inject_allocation, (number,)
        return
    for (call, *_), (number, where) in calls.items():
        yield faults.inject_call, (call, number, where)
    for number in faults.allocations(place):
        yield faults.inject_allocation, (number,)


def why_not():
    if os.geteuid() != 0:
        return "not root"
    return "" if shutil.which("strace") else "strace is missing"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("build", type=Path)
    parser.add_argument("fail_malloc")
    given = parser.parse_args()
    if why_not():
        print(f"skipped: {why_not()}")
        return SKIPPED
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    places, failures = Queue(), []
    mine = [Place(number) for number in range(N_AT_ONCE)]
    try:
        for place in mine:
            places.put(place)
        for program in programs(given.build):
            if given.only not in program.name:
                continue
            faults = Faults(program, places, given.fail_malloc)
            with ThreadPoolExecutor(N_AT_ONCE) as pool:
                for done in [pool.submit(job, *words) for job, words in
                             list(jobs(faults, mine[0], given.all))]:
                    done.result()
            print(f"{program.name}: {faults.n} faults, "
                  f"{len(faults.failures)} not handled", flush=True)
            failures += faults.failures
    finally:
        for place in mine:
            place.close()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
