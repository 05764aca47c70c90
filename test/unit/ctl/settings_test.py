# SPDX-License-Identifier: BSD-3-Clause
"""Configurations are planned, applied and dumped: random pairs, and what is wrong with files.

usage: settings_test.py MR_L2FWD MR_NAT MRCTL      (no privileges, no interfaces)
"""
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import yaml

TOP = Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path[:0] = [str(TOP / folder) for folder in ("test/support", "apps/ctl", "apps/support")]

# pylint: disable=wrong-import-position
from host import limit, popen  # noqa: E402
from mr_ctl import client  # noqa: E402
from mr_ctl.client import Connection, Refused  # noqa: E402

try:
    import jsonschema
except ImportError:
    jsonschema = None

PROGRAMS: dict[str, str] = {}
LIMIT_S = limit(30)
client.LIMIT_S = int(LIMIT_S)  # of answers
N_PAIRS = 200  # of each program
N_STARTS = 5


def duration(rng, most_s=100000):
    """A time as people write it, and as it is dumped."""
    seconds = rng.choice([1, 59, 60, 90, 3600, 7440, 86400, rng.randint(1, most_s)])
    seconds = min(seconds, most_s)
    rest, dumped = seconds, ""
    for unit, n in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if rest >= n:
            dumped += f"{rest // n}{unit}"
            rest %= n
    return rng.choice([seconds, f"{seconds}s", dumped]), dumped


def one_or_list(rng, items):
    """A list of one may be written without brackets."""
    return items[0] if len(items) == 1 and rng.random() < 0.5 else items


def same(value):
    """A value that is dumped as it is written."""
    return value, value


class File:
    """A configuration: what is written, and what a dump of it has."""

    def __init__(self):
        self.written, self.dumped, self.fixed = {}, {}, {}

    def set(self, path, pair):
        """Set a value: as it is written (None: it is not), and as it is dumped."""
        *sections, name = path
        written, dumped = self.written, self.dumped
        for section in sections:
            written = written.setdefault(section, {})
            dumped = dumped.setdefault(section, {})
        written[name], dumped[name] = pair


def set_plane(file, rng):
    """What both programs have: what can change, and defaults."""
    for name, words, default in (
            ("idle", ["poll", "adaptive", "interrupt"], "adaptive"),
            ("log_level", ["none", "error", "warning", "info"], "warning")):
        file.set(["dataplane", name],
                 (None, default) if rng.random() < 0.3 else same(rng.choice(words)))
    for name, value in (("cores", "auto"), ("burst", 256), ("promisc", "auto"),
                        ("page_bytes", 4096), ("safety", "counts")):
        file.set(["dataplane", name], (None, value))


def of_l2fwd(rng, fixed):
    """A random configuration of mr-l2fwd; fixed: choose what cannot change, too."""
    file = File()
    file.fixed = fixed or {
        "mode": rng.choice(["patch", "learn", "macswap", "drop"]),
        "fdb_limit": rng.choice([1, 8192, 1 << 20]),
        "ports": rng.choice([["null:", "pair:a"], ["pair:a", "pair:b"]]),
    }
    fixed = dict(file.fixed)
    if rng.random() < 0.1:
        fixed |= rng.choice([{"mode": "drop"}, {"fdb_limit": 77}, {"ports": ["null:", "null:"]}])
    for name, value in fixed.items():
        file.set([name], same(value))
    file.set(["age"], (None, "5m") if rng.random() < 0.3 else duration(rng, 1000000))
    file.set(["offload"], (None, "off"))
    set_plane(file, rng)
    return file


def forwards(rng):
    """Some, whose ports do not overlap."""
    written, dumped = [], []
    for i in range(rng.choice([0, 0, 1, 3, 8])):
        first, inside, n = 100 * i + 1, rng.randint(2, 250), rng.randint(1, 9)
        protocols = rng.choice([["udp"], ["tcp"], ["udp", "tcp"]])
        outside = f"192.0.2.1:{first}" + (f"-{first + n - 1}" if n > 1 else "")
        inside_port = rng.choice([None, 1000 + 100 * i])
        one = {"outside": outside, "inside": f"10.0.0.{inside}" + (
            f":{inside_port}" if inside_port else "")}
        if protocols != ["udp", "tcp"] or rng.random() < 0.5:
            one["protocols"] = one_or_list(rng, protocols)
        written.append(one)
        dumped.append({"outside": outside, "inside": f"10.0.0.{inside}:{inside_port or first}",
                       "protocols": protocols})
    return written, dumped


NAT_TIMES = {"udp": "5m", "tcp_opening": "4m", "tcp_open": "2h4m", "tcp_closing": "4m",
             "tcp_reset": "4m", "tcp_unsolicited": "6s", "icmp": "1m", "other": "5m",
             "fragment": "2s", "hold_down": "2m"}
NAT_FLAGS = {"hairpin": True, "pairing": True, "inbound_refresh": False, "other_protocols": False,
             "ping": True, "fill_options": True}


def set_sides(file, rng, vlan):
    """Ports and addresses, and what is derived from them."""
    file.set(["inside", "port"], same("null:"))
    addresses = ["10.0.0.1/24", *rng.sample(["10.0.1.1/24", "10.0.2.1/23"], rng.randint(0, 2))]
    file.set(["inside", "addresses"], (one_or_list(rng, addresses), addresses))
    if vlan:
        file.set(["inside", "vlan"], same(vlan))
    file.set(["outside", "port"], same("null:"))
    file.set(["outside", "addresses"], ("192.0.2.1/24", ["192.0.2.1/24"]))
    if rng.random() < 0.5:
        file.set(["outside", "gateway"], same("192.0.2.254"))
    if rng.random() < 0.3:
        neighbour = f"192.0.2.7 02:00:00:00:00:0{rng.randint(1, 9)}"
        file.set(["outside", "neighbours"], (neighbour, [neighbour]))
    file.dumped["subscribers"] = [one.replace(".1/", ".0/") for one in addresses]
    file.dumped["pool"] = ["192.0.2.1"]


def set_addresses(file, rng):
    """Which are translated, and to which."""
    if rng.random() < 0.5:
        file.set(["subscribers"], same(["10.0.0.0/16"]))
    if rng.random() < 0.5:
        file.set(["pool"], rng.choice([
            same(["192.0.2.1", f"198.51.100.1-198.51.100.{rng.randint(2, 31)}"]),
            ("192.0.2.1-192.0.2.1", ["192.0.2.1"]),
            (["203.0.113.0/28", "192.0.2.1"], ["203.0.113.0-203.0.113.15", "192.0.2.1"])]))
    written, dumped = forwards(rng)
    if written:
        file.set(["forwards"], (written, dumped))
    if rng.random() < 0.3:
        file.set(["one_to_one"], same([{"outside": "192.0.2.99", "inside": "10.0.0.251"}]))
    if rng.random() < 0.3:
        file.set(["exclude"], same([{"to": "172.16.0.0/12"},
                                    {"to": "9.9.9.9/32", "protocol": "udp", "ports": "53-54"}]))


def set_behaviour(file, rng):
    """Filters, times, flags."""
    words = [rng.choice(["none", "address", "address-port"]) for _ in range(3)]
    protocols = dict(zip(("udp", "tcp", "icmp"), words, strict=True))
    file.set(["filtering"], rng.choice([(protocols, protocols),
                                        (words[0], dict.fromkeys(protocols, words[0]))]))
    for name, default in NAT_TIMES.items():
        file.set(["timeouts", name], duration(rng) if rng.random() < 0.4 else (None, default))
    for name, default in NAT_FLAGS.items():
        value = rng.random() < 0.5
        file.set([name], rng.choice([(None, default), ("yes" if value else "off", value)]))
    file.set(["mss"], rng.choice([(None, "no"), ("mtu", "mtu"), (1400, "1400")]))
    file.set(["icmp_errors"], rng.choice([(None, "lenient"), same("strict")]))
    file.set(["local"], (None, "nat"))
    file.set(["log", "sessions"], (None, False))
    file.set(["state_interval"], duration(rng))
    set_plane(file, rng)


def of_nat(rng, fixed):
    """The same for mr-nat."""
    file = File()
    file.fixed = fixed or {
        "mappings": rng.choice([1000, 65536]), "fragments": rng.choice([0, 256]),
        "vlan": rng.choice([None, 5])}
    fixed = dict(file.fixed)
    if rng.random() < 0.1:
        fixed |= rng.choice([{"mappings": 2000}, {"fragments": 7}, {"vlan": 9}])
    set_sides(file, rng, fixed["vlan"])
    set_addresses(file, rng)
    set_behaviour(file, rng)
    # Each subscriber needs a block.
    block = rng.choice([0, 16]) if file.dumped["subscribers"] == ["10.0.0.0/24"] else 0
    for name, pair in (("range", rng.choice([same("1024-65535"), same("2000-60000")])),
                       ("keep_port", same(rng.random() < 0.5)), ("keep_parity", (None, True)),
                       ("keep_class", (None, True)), ("block", same(block)),
                       ("max_blocks", same(rng.randint(1, 9))), ("deterministic", (None, False))):
        file.set(["ports", name], pair)
    for name, pair in (("mappings", same(fixed["mappings"])), ("sessions", (None, 1048576)),
                       ("per_subscriber", same(rng.choice([0, 9, 1000]))),
                       ("sessions_per_subscriber", (None, 0)),
                       ("fragments", same(fixed["fragments"]))):
        file.set(["limits", name], pair)
    return file


def pruned(value):
    """Without what is not written."""
    if isinstance(value, dict):
        found = {name: pruned(one) for name, one in value.items() if one is not None}
        return {name: one for name, one in found.items() if one != {}}
    return value


def text_of(file, rng):
    """Of the file, in one of the forms of YAML."""
    return yaml.safe_dump(pruned(file.written), sort_keys=rng.random() < 0.5,
                          default_flow_style=rng.choice([True, False, None]))


# Wrong lines, and how many errors they are.
WRONG = [("nonsense: 1\n", 1), ("a: 1\nb: 2\nc: 3\n", 3), ("- x\n", 1), ("{", 1), ("x: [\n", 1)]


def flat(value, prefix=""):
    """Leaves by name; lists as wholes."""
    if not isinstance(value, dict):
        return {prefix: value}
    found = {}
    for name, one in value.items():
        found |= flat(one, f"{prefix}: {name}" if prefix else name)
    return found


class Running:
    """A program, and a connection to it."""

    def __init__(self, test, program, text, *options):
        self.folder = tempfile.TemporaryDirectory()
        test.addCleanup(self.folder.cleanup)
        self.file = Path(self.folder.name, "first.yaml")
        self.file.write_text(text, encoding="utf-8")
        self.path = Path(self.folder.name, "control")
        self.errors = Path(self.folder.name, "stderr")
        with self.errors.open("wb") as errors:
            self.process = popen([PROGRAMS[program], "--config", str(self.file),
                                  "--control", str(self.path), *options],
                                 stdout=subprocess.DEVNULL, stderr=errors)
        test.addCleanup(self.end)
        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                self.connection = Connection(self.path)
                break
            except Refused:
                test.assertIsNone(self.process.poll(), self.said())
                test.assertLess(time.monotonic(), deadline, "it does not start")
                time.sleep(0.01)

    def said(self):
        """On standard error."""
        return self.errors.read_text(encoding="utf-8")

    def ask(self, verb, **args):
        """The objects of the answer; those before an error, and it."""
        found = []
        try:
            for one in self.connection.ask(verb, **args):
                found.append(one)
        except Refused as refused:
            return found, str(refused)
        return found[:-1], None

    def dump(self):
        """The settings in force."""
        return self.connection.ask_one("dump")["settings"]

    def end(self):
        """It ends as it should, and only once."""
        if self.process.poll() is None:
            self.connection.close()
            self.process.terminate()
            self.process.wait(LIMIT_S)
        return self.process.returncode


class Pairs(unittest.TestCase):
    """Any two configurations: the second is in force, or the first unchanged."""

    schema = None

    def check_pair(self, running, before, file, rng):
        """One step; returns what is in force after it."""
        text = text_of(file, rng)
        wrong, n_errors = rng.choice(WRONG) if rng.random() < 0.1 else ("", 0)
        planned, why_not = running.ask("plan", name="f", text=text + wrong)
        applied, refused = running.ask("apply", name="f", text=text + wrong)
        after = running.dump()
        if n_errors > 0:
            errors = [one["wrong"] for one in planned]
            self.assertEqual(why_not, refused)
            self.assertIn("nothing has changed", refused)
            self.assertEqual([one["wrong"] for one in applied], errors)
            self.assertGreaterEqual(len(errors), 1, text + wrong)
            for error in errors:
                self.assertRegex(error, r"^f:\d+: ")
            self.assertEqual(after, before)
            return after
        self.assertIsNone(why_not, text)
        if self.schema:
            self.schema.validate(pruned(file.written))
        old, new = flat(before), flat(file.dumped)
        differ = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
        self.assertEqual({one["key"] for one in planned}, differ)
        for one in planned:
            if not isinstance(old.get(one["key"]) or new.get(one["key"]), list):
                self.assertEqual((one.get("from"), one.get("to")),
                                 (old.get(one["key"]), new.get(one["key"])))
        if any(one["restart"] for one in planned):
            self.assertIn("cannot change at run time", refused)
            self.assertEqual(after, before)
        else:
            self.assertIsNone(refused)
            self.assertEqual(after, file.dumped, text)
        self.assertEqual(running.ask("apply", name="d", text=json.dumps(after)), ([], None))
        return after

    def check_program(self, program, make, options):
        """Many pairs, with several starts."""
        n_applied = 0
        self.schema = jsonschema and jsonschema.Draft7Validator(json.loads(
            subprocess.check_output([PROGRAMS[program], "--schema"], timeout=LIMIT_S)))
        for seed in range(N_STARTS):
            rng = random.Random(f"{program} {seed}")
            chosen = options[seed % len(options)]

            def made(fixed, rng=rng, chosen=chosen):
                file = make(rng, fixed)
                if "--workers" in chosen:  # in force, whatever the file says
                    file.dumped["dataplane"]["workers"] = 2
                return file

            first = made(None)
            running = Running(self, program, text_of(first, rng), *chosen)
            self.assertEqual(running.dump(), first.dumped)
            now = first.dumped
            for _ in range(N_PAIRS // N_STARTS):
                before, now = now, self.check_pair(running, now, made(first.fixed), rng)
                n_applied += now != before
            self.assertEqual(running.end(), 0, running.said())
        self.assertGreater(n_applied, N_PAIRS // 2)

    def test_of_l2fwd(self):
        self.check_program("mr-l2fwd", of_l2fwd, [[]])

    def test_of_nat(self):
        self.check_program("mr-nat", of_nat, [[], ["--workers", "2"]])


class Command(unittest.TestCase):
    """mrctl as a user sees it."""

    TEXT = "ports: ['pair:a', 'pair:b']\nmode: learn\nage: 10m\n"

    def setUp(self):
        self.running = Running(self, "mr-l2fwd", self.TEXT)
        self.folder = Path(self.running.folder.name)

    def mrctl(self, *words, program=None, **options):
        """Status, output and errors."""
        done = subprocess.run([program or PROGRAMS["mrctl"], "--control", str(self.running.path),
                               *words], capture_output=True, text=True, check=False,
                              timeout=LIMIT_S, **options)
        return done.returncode, done.stdout, done.stderr

    def write(self, text, name="next.yaml"):
        """A file; returns its path."""
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def test_a_change_is_shown_and_made(self):
        path = self.write(self.TEXT.replace("10m", "20s") + "dataplane: {idle: poll}\n")
        shown = "  age: 10m -> 20s\n  dataplane: idle: adaptive -> poll\n"
        self.assertEqual(self.mrctl("plan", path), (0, shown, ""))
        self.assertEqual(self.mrctl("apply", path), (0, "2 changed\n", ""))
        self.assertEqual(self.mrctl("plan", path), (0, "", ""))

    def test_a_dump_changes_nothing(self):
        status, dump, err = self.mrctl("dump")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(yaml.safe_load(dump), self.running.dump())
        self.assertEqual(self.mrctl("plan", "-", input=dump), (0, "", ""))
        self.assertEqual(self.mrctl("apply", self.write(dump)), (0, "0 changed\n", ""))

    def test_what_needs_a_restart_is_refused(self):
        path = self.write(self.TEXT.replace("learn", "drop") + "punt: arp\n")
        status, out, err = self.mrctl("plan", path)
        self.assertEqual((status, out), (1, ""))
        self.assertIn(":4: punt: the ports were opened without a filter", err)
        path = self.write(self.TEXT.replace("learn", "drop").replace("10m", "1m"))
        self.assertEqual(self.mrctl("plan", path), (
            1, "  mode: learn -> drop  (needs a restart)\n  age: 10m -> 1m\n",
            "mrctl: 1 of 2 changes need a restart, so apply would refuse them\n"))
        status, out, err = self.mrctl("apply", path)
        self.assertEqual((status, out), (1, ""))
        self.assertEqual(err, "mrctl: mode: cannot change at run time; restart the program; "
                              "nothing has changed\n")
        self.assertEqual(self.running.dump()["age"], "10m")

    def test_all_errors_are_listed(self):
        path = self.write("ports: [a, b, c]\nage: x\nmod: drop\ndataplane:\n  ring: 3\n")
        for verb in "plan", "apply":
            status, out, err = self.mrctl(verb, path)
            self.assertEqual((status, out), (1, ""))
            lines = [line.removeprefix(f"mrctl: {path}:") for line in err.splitlines()]
            self.assertEqual([line[:12] for line in lines[:3]],
                             ["2: age: 'x' ", "3: unknown k", "5: ring: '3'"])
            self.assertEqual(lines[3:], [" 3 errors; nothing has changed"])

    def test_more_errors_than_are_listed_are_mentioned(self):
        path = self.write("ports: [a, b]\n" + "".join(f"x{n}: 1\n" for n in range(100)))
        lines = self.mrctl("plan", path)[2].splitlines()
        self.assertIn(":64: unknown key 'x62'", lines[62])
        self.assertEqual(lines[63:], [
            "mrctl: there are more errors; correct these first",
            f"mrctl: {path}: 64 errors; nothing has changed"])

    def test_names_with_control_characters_are_dumped(self):
        """Those that JSON allows and YAML does not."""
        text = self.TEXT.replace("'pair:a'", '"pair:\\u007f\\u009f"')
        running = Running(self, "mr-l2fwd", text)
        words = [PROGRAMS["mrctl"], "--control", str(running.path)]
        dump = subprocess.run([*words, "dump"], capture_output=True, text=True, check=True,
                              timeout=LIMIT_S).stdout
        self.assertEqual(yaml.safe_load(dump), running.dump())
        self.assertIn("pair:\x7f\x9f", running.dump()["ports"])
        done = subprocess.run([*words, "plan", "-"], input=dump, capture_output=True, text=True,
                              check=False, timeout=LIMIT_S)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_a_stream_of_something_else_is_refused(self):
        path = self.folder / "else"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            connection = Connection(path)
            self.addCleanup(connection.close)
            accepted = listener.accept()[0]
            self.addCleanup(accepted.close)
            for line in b"[1]\n", b"no\xff\n":
                accepted.sendall(line)
                with self.assertRaisesRegex(Refused, "not a JSON object"):
                    next(connection.stream("trace"))

    def test_options_decide_which_messages_are_printed_where_the_file_does_not(self):
        sides = ("inside: {port: 'null:', addresses: 10.0.0.1/24}\n"
                 "outside: {port: 'null:', addresses: 192.0.2.1/24}\n")
        info = self.TEXT + "dataplane: {log_level: info}\n"
        for program, text, options, level in (
                ("mr-nat", sides, [], "warning"), ("mr-nat", sides, ["-v", "-v"], "debug"),
                ("mr-l2fwd", self.TEXT, [], "warning"), ("mr-l2fwd", info, [], "info"),
                ("mr-l2fwd", info, ["--quiet"], "info")):
            running = Running(self, program, text, *options)
            self.assertEqual(running.connection.ask_one("config")["log_level"], level)

    def test_a_program_that_hangs_is_named(self):
        path = self.write("# x\n" * (1 << 17))
        self.running.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.running.process.send_signal, signal.SIGCONT)
        before, client.LIMIT_S = client.LIMIT_S, 1
        self.addCleanup(setattr, client, "LIMIT_S", before)
        connection = Connection(self.running.path)
        self.addCleanup(connection.close)
        with self.assertRaisesRegex(Refused, "the request cannot be sent: timed out"):
            list(connection.ask("plan", text=Path(path).read_text(encoding="utf-8")))

    def test_a_hang_up_applies_the_file(self):
        file = self.running.file
        for text, said in ((self.TEXT.replace("10m", "20s"), "reload: done"),
                           ("ports: [a", "not valid YAML"),
                           (self.TEXT.replace("learn", "drop"), "mode: cannot change at run")):
            file.write_text(text, encoding="utf-8")
            self.running.process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + LIMIT_S
            while said not in self.running.said():
                self.assertLess(time.monotonic(), deadline, self.running.said())
                time.sleep(0.01)
            self.assertEqual(self.running.dump()["age"], "20s")
        file.unlink()
        os.mkfifo(file)
        self.running.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + LIMIT_S
        while "not a regular file" not in self.running.said():
            self.assertLess(time.monotonic(), deadline, self.running.said())
            time.sleep(0.01)

    def test_files_that_are_none(self):
        binary = self.write(b"ports: [a]\n\xff\n", "binary")
        large = self.write("# x\n" * (1 << 18) + "a: 1\n", "large")
        huge = self.write("# x\n" * (1 << 21), "huge")
        for path, words in ((str(self.folder), "Is a directory"),
                            (str(self.folder / "none"), "No such file"),
                            (binary, "binary:2: not UTF-8"),
                            (large, "larger than 1 MiB"),
                            (huge, "a request must be shorter than 4 MiB"),
                            (self.write("", "empty"), "empty; ports are required"),
                            (self.write("a: 1\n---\nb: 2\n"), "a second document begins")):
            status, out, err = self.mrctl("apply", path)
            self.assertEqual((status, out), (1, ""))
            self.assertIn(words, err)
        status, _, err = self.mrctl("apply")
        self.assertEqual((status, err), (2, "mrctl: apply: needs a file\n"))

    @unittest.skipIf(os.geteuid() != 0, "only root can be somebody else")
    def test_files_and_sockets_of_somebody_else(self):
        program = self.folder / "mrctl"
        shutil.copy(PROGRAMS["mrctl"], program)
        self.folder.chmod(0o755)
        path = Path(self.write(self.TEXT))
        path.chmod(0o600)
        for words in ["dump"], ["apply", "-"]:
            status, out, err = self.mrctl(*words, program=program, user=65534, input=self.TEXT)
            self.assertEqual((status, out), (1, ""))
            self.assertEqual(err, f"mrctl: {self.running.path}: Permission denied\n")
        self.running.path.chmod(0o666)
        status, out, err = self.mrctl("plan", str(path), program=program, user=65534)
        self.assertEqual((status, out), (1, ""))
        self.assertEqual(err, f"mrctl: {path}: Permission denied\n")


if __name__ == "__main__":
    PROGRAMS = dict(zip(("mr-l2fwd", "mr-nat", "mrctl"), sys.argv[1:4]))
    del sys.argv[1:4]
    unittest.main()
