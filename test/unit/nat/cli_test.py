# SPDX-License-Identifier: BSD-3-Clause
"""mr-nat as a user meets it: exit codes, one-line errors, forms of output.

usage: cli_test.py MR_NAT MRCTL      (no privileges, no interfaces)
"""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))

from host import limit, popen  # noqa: E402 pylint: disable=wrong-import-position

PROGRAM = CTL = ""
LIMIT_S = limit(30)
SIDES = ["--inside", "null:=10.0.0.1/24", "--outside",
         "null:=192.0.2.1/24,gw=192.0.2.254"]


def run(*arguments, **options):
    """Run to the end: exit code, stdout, stderr."""
    done = subprocess.run([PROGRAM, *arguments], capture_output=True,
                          text=True, check=False, timeout=LIMIT_S, **options)
    return done.returncode, done.stdout, done.stderr


class Errors(unittest.TestCase):
    """What cannot be is refused with one line that names cause and cure."""

    # (what the line says, arguments)
    CASES = [
        ("--config FILE, or --inside and --outside, is required", []),
        ("--inside and --outside, is required", SIDES[:2]),
        ("/nowhere/x: No such file", ["--config", "/nowhere/x"]),
        ("/: Is a directory", ["--config", "/"]),
        ("unknown option '--nope'", ["--nope"]),
        ("unexpected argument 'eth0'; give ports with --inside",
         [*SIDES, "eth0"]),
        ("is not a port with its address, such as eth0=192.0.2.1/24",
         ["--inside", "eth0"]),
        ("is not a port with its address", ["--inside", "=10.0.0.1/24"]),
        ("'eth0=10.0.0.1' has no IPv4 address with a prefix",
         ["--inside", "eth0=10.0.0.1"]),
        ("'eth0=2001:db8::1/64' has no IPv4 address",
         ["--inside", "eth0=2001:db8::1/64"]),
        ("'gateway=192.0.2.254': after the port, give addresses, gw=ADDRESS",
         ["--outside", "eth0=192.0.2.1/24,gateway=192.0.2.254"]),
        ("10.0.0.0 is not a host address; choose one within",
         ["--inside", "eth0=10.0.0.0/24", *SIDES[2:]]),
        ("--outside: 'gw' is not an address",
         ["--outside", "eth0=192.0.2.1/24,gw"]),
        ("--outside: 'x' is not an IPv4 address",
         ["--outside", "eth0=192.0.2.1/24,gw=x"]),
        ("--inside: '4095' is not a whole number from 1 to 4094",
         ["--inside", "eth0=10.0.0.1/24,vlan=4095"]),
        ("--outside: e is also the inside port",
         ["--inside", "e=10.0.0.1/24", "--outside", "xdp:e=192.0.2.1/24"]),
        ("--outside: gateway 10.9.9.9 is not another host on this link",
         [*SIDES[:2], "--outside", "null:=192.0.2.1/24,gw=10.9.9.9"]),
        ("--config does not go with --inside", [*SIDES, "--config", "x"]),
        ("--cores: '1,' is not a list of cores such as 1,3-5", ["-c", "1,"]),
        ("--instance: '../x' is not 1 to 32 letters",
         [*SIDES, "--instance", "../x"]),
        ("no driver 'nope'; this build has:",
         [*SIDES[:2], "--outside", "nope:=192.0.2.1/24,gw=192.0.2.254"]),
        ("is too small: the ports' rings", [*SIDES, "--pool-pages", "5"]),
    ]

    def test_one_line_and_exit_status_2(self):
        for words, arguments in self.CASES:
            status, out, err = run(*arguments)
            self.assertEqual(status, 2, (arguments, err))
            self.assertIn(words, err, arguments)
            self.assertEqual(err.count("\n"), 1, err)
            self.assertTrue(err.startswith("mr-nat: "), err)
            self.assertEqual(out, "")


class Check(unittest.TestCase):
    """--check opens nothing."""

    def check(self, text):
        """Exit status, stdout and stderr for a file with this text."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "c.yaml"
            path.write_text(text)
            return run("--check", "--config", str(path))

    SIDES = ("inside: {port: nowhere0, addresses: 10.0.0.1/24}\n"
             "outside: {port: nowhere1, addresses: 192.0.2.1/24, "
             "gateway: 192.0.2.254}\n")

    def test_a_good_one(self):
        self.assertEqual(self.check(self.SIDES),
                         (0, "the configuration is good\n", ""))

    def test_errors_in_the_data_plane_have_line_numbers(self):
        for text, words in (
                ("dataplane: {ring: 300}", ":3: dataplane: ring: 300 is not a power"),
                ("dataplane: {wokers: 2}", ":3: "),
                ("dataplane: {cores: 0, workers: 2}", ":3: dataplane: workers: 2, but"),
                ("metrics: udp:x", ":3: metrics: 'udp:x' is neither unix:PATH")):
            status, out, err = self.check(self.SIDES + text + "\n")
            self.assertEqual((status, out), (2, ""), err)
            self.assertIn(words, err)

    def test_less_than_an_rfc_asks_for_is_a_note(self):
        status, out, err = self.check(
            self.SIDES.replace("gateway: 192.0.2.254", "") +
            "timeouts: {udp: 119s, hold_down: 1}\nhairpin: no\npairing: no\n")
        self.assertEqual((status, out), (0, "the configuration is good\n"))
        self.assertEqual(
            [line.removeprefix("mr-nat: note: ") for line in err.splitlines()],
            ["timeouts: udp: 119 s is less than the 120 s of RFC 4787 REQ-5: "
             "MUST",
             "timeouts: hold_down: 1 s is less than the 120 s of RFC 6888 "
             "REQ-8: SHOULD",
             "hairpin: off; RFC 4787 REQ-9 and RFC 5382 REQ-8: MUST",
             "pairing: off; RFC 6888 REQ-2: MUST be the default",
             "outside: no gateway; only hosts on its own networks are "
             "reachable"])

    def test_addresses_that_no_host_can_have_are_refused(self):
        """What mr-nat itself has, and the first and last of a network."""
        cases = {
            "inside: {port: a, addresses: 10.0.0.1/24, gateway: 10.0.0.255}\n"
            "outside: {port: b, addresses: 192.0.2.1/24}\n":
                "gateway 10.0.0.255 is not another host",
            "inside: {port: a, addresses: 10.0.0.1/24}\n"
            "outside: {port: b, addresses: 192.0.2.1/24, gateway: 192.0.2.0}\n":
                "gateway 192.0.2.0 is not another host",
            "inside: {port: a, addresses: 10.0.0.1/24, neighbours: "
            "10.0.0.0 02:00:00:00:00:09}\n"
            "outside: {port: b, addresses: 192.0.2.1/24}\n":
                "neighbour 10.0.0.0 is not another host",
        }
        for host in ("10.0.0.0", "10.0.0.1", "10.0.0.255"):
            said = f"no inside host can have {host}"
            cases[self.SIDES + "forwards: [{outside: '192.0.2.1:80', inside: "
                  f"'{host}:80'}}]\n"] = said
            cases[self.SIDES + "one_to_one: [{outside: 192.0.2.9, inside: "
                  f"{host}}}]\n"] = said
        for outside in ("192.0.2.0", "192.0.2.255"):
            cases[self.SIDES + f"one_to_one: [{{outside: {outside}, inside: "
                  "10.0.0.9}]\n"] = f"{outside} cannot be an external address"
        for text, said in cases.items():
            status, out, err = self.check(text)
            self.assertEqual((status, out), (2, ""), text)
            self.assertIn(said, err)

    def test_check_and_start_refuse_the_same_files(self):
        """With the same line: a folder that is not there, ports of the host."""
        sides = self.SIDES.replace("nowhere0", "'null:'").replace("nowhere1",
                                                                  "'null:'")
        for text, status, said in (
                ("log: {path: /nowhere/x/log}\n", 1,
                 "log: /nowhere/x/log: there is no folder /nowhere/x; create"),
                ("state: /nowhere/state\n", 1,
                 "state: /nowhere/state: there is no folder /nowhere; create"),
                ("log: {path: /}\n", 1, "log: /: Is a directory"),
                ("local: kernel\nports: {range: 1024-65535}\n", 2,
                 "local: kernel: this host uses ports")):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "c.yaml"
                path.write_text(sides + text)
                done = [run("--config", str(path), "--control",
                            f"{folder}/control", *options)
                        for options in (["--check"], ["-d", "1"])]
            self.assertEqual(*done)
            self.assertEqual(done[0][:2], (status, ""), text)
            self.assertIn(said, done[0][2])

    def test_a_wrong_one_names_file_and_line(self):
        status, out, err = self.check(self.SIDES + "pong: yes\n")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("c.yaml:3: unknown key 'pong'; did you mean 'ping'?", err)


class Run(unittest.TestCase):
    """On ports that every machine has."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.environment = {**os.environ,
                            "RUNTIME_DIRECTORY": self.folder.name}

    def tearDown(self):
        self.folder.cleanup()

    def ask(self, *words):
        """What mrctl says: exit code, stdout, stderr."""
        done = subprocess.run([CTL, *words], capture_output=True, text=True,
                              check=False, timeout=LIMIT_S,
                              env=self.environment)
        return done.returncode, done.stdout, done.stderr

    def start(self, *arguments, sides=SIDES):
        """A running instance."""
        process = popen(
            [PROGRAM, *sides, *arguments], text=True, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        end_s = time.monotonic() + LIMIT_S
        while self.ask("show")[0] != 0:
            self.assertLess(time.monotonic(), end_s, "it does not answer")
            self.assertIsNone(process.poll(), "it has ended")
            time.sleep(0.01)
        return process

    def test_it_ends_with_a_test_that_is_killed(self):
        """As meson kills one at its time limit."""
        ours, theirs = os.pipe()
        test = os.fork()
        if test == 0:
            os.write(theirs, str(self.start().pid).encode())
            signal.pause()
        pid = int(os.read(ours, 32))
        os.kill(test, signal.SIGKILL)
        os.waitpid(test, 0)
        os.close(ours)
        os.close(theirs)
        end_s = time.monotonic() + LIMIT_S
        while time.monotonic() < end_s:
            try:
                stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
            except OSError:
                return
            if ") Z " in stat:
                return
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        self.fail("it goes on without its test")

    def finish(self, process, sig=signal.SIGINT):
        """Its output; nothing is left behind."""
        process.send_signal(sig)
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(list(Path(self.folder.name).iterdir()), [])
        return out, err

    def await_frames(self):
        """Wait until frames are counted; return the statistics."""
        end_s = time.monotonic() + LIMIT_S
        while not (shown := json.loads(self.ask("show", "--json")[1]))["received"]:
            self.assertLess(time.monotonic(), end_s, "no frame is counted")
            time.sleep(0.01)
        return shown

    def n_reloads(self):
        """Those that are over, taken up or refused."""
        shown = self.ask("show", "--json")[1]
        counts = json.loads(shown)["operation"]
        return counts["reloads"] + counts["reloads_refused"]

    def test_frames_that_are_nobodys_are_counted(self):
        process = self.start("--json")
        self.await_frames()
        out, _ = self.finish(process, signal.SIGTERM)
        final = json.loads(out.splitlines()[-1])
        self.assertTrue(final["final"] and final["invariants_hold"]
                        and final["conserved"])
        drops = final["workers"][0]["drops"]
        self.assertGreater(sum(drops.values()), 0)
        self.assertEqual(final["state"]["mappings"], 0)

    def test_questions_and_wrong_questions(self):
        process = self.start("--quiet")
        for arguments, status, words in [
                (["show"], 0, "state mappings 0"),
                (["show", "--json"], 0, '"drops":{'),
                (["nat", "sessions"], 0, ""),
                (["nat", "clear", "all"], 0, "0 ended"),
                (["nat", "clear", "port=x"], 1, "'x' is not a whole number"),
                (["nat", "sessions", "a=1"], 1, "is not one of: inside")]:
            got, out, err = self.ask(*arguments)
            self.assertEqual(got, status, err)
            self.assertIn(words, out + err)
        self.finish(process)

    def test_statistics_add_up(self):
        """At rest, as the man page says. Frames come without end, so what is
        read meanwhile is off by what is on its way."""
        process = self.start("--json")
        shown = self.await_frames()
        text = self.ask("show")[1]
        # Of ports, queues, drops and the pool, what is 0 as well.
        for words in ("null: queues 0 rx received ",
                      "null: queues 0 rx drops no_buffer 0\n",
                      "null: queues 0 tx drops ", "pool n_free ",
                      "workers 0 busy_ns ", "drops no_port 0\n"):
            self.assertIn(words, text)
        out, _ = self.finish(process, signal.SIGTERM)
        one = json.loads(out.splitlines()[-1])["workers"][0]
        self.assertGreaterEqual(one["received"], shown["received"])
        self.assertEqual(one["received"] + one["made"],
                         one["sent"] + one["held"] + one["taken"] +
                         sum(one["drops"].values()))

    def test_a_reload_that_is_refused_is_not_the_last(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / "nat.yaml"
        sides = ("inside: {port: 'null:', addresses: 10.0.0.1/24}\n"
                 "outside: {port: 'null:', addresses: 192.0.2.1/24}\n")
        forwards = ("forwards: [{outside: '192.0.2.1:1-9000', "
                    "inside: '10.0.0.9:1'}]\n")
        path.write_text(sides)
        process = self.start("--json", sides=["--config", str(path)])
        for n, more in enumerate((forwards, "ping: no\n"), 1):
            path.write_text(sides + more)
            process.send_signal(signal.SIGHUP)
            # A signal that comes before this one was handled would be lost.
            end_s = time.monotonic() + LIMIT_S
            while self.n_reloads() < n:
                self.assertLess(time.monotonic(), end_s, "it does not reload")
                time.sleep(0.01)
        out, err = self.finish(process, signal.SIGTERM)
        self.assertIn("reload: 18000 static mappings need a restart; there is "
                      "only room for 4096; nothing has changed", err)
        self.assertIn("reload: done", err)
        final = json.loads(out.splitlines()[-1])["operation"]
        self.assertEqual((final["reloads"], final["reloads_refused"]), (1, 1))

    def test_a_thousand_idle_clients_do_not_lock_the_operator_out(self):
        process = self.start("--quiet")
        idle = []
        for i in range(1000):
            idle.append(socket.socket(socket.AF_UNIX))
            idle[-1].connect(str(Path(self.folder.name) / "nat.sock"))
            if i % 3 == 0:
                idle[-1].send(b"half a line, or \0 garbage")
            if i % 200 == 0:
                self.assertEqual(self.ask("show")[0], 0)
        self.assertEqual(self.ask("nat", "sessions")[0], 0)
        self.assertIn(b"too many clients", idle[0].recv(200))
        for client in idle:
            client.close()
        self.finish(process)

    def test_clear_does_not_wait_for_a_hung_disk(self):
        """A FIFO without a reader blocks its writer, as such a disk does."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / "nat.yaml"
        state = Path(folder.name) / "state"
        path.write_text(
            "inside: {port: 'null:', addresses: 10.0.0.1/24}\n"
            "outside: {port: 'null:', addresses: 192.0.2.1/24}\n"
            f"state: {state}\n")
        process = self.start("--quiet", sides=["--config", str(path)])
        os.mkfifo(f"{state}.new")
        status, out, err = self.ask("nat", "clear", "all")
        self.assertEqual((status, out), (0, "0 ended\n"))
        self.assertIn("could not be written", err)
        os.unlink(f"{state}.new")
        process.kill()
        process.communicate(timeout=LIMIT_S)

    def test_a_socket_that_was_left_behind_is_no_hindrance(self):
        process = self.start("--quiet")
        process.kill()
        process.communicate(timeout=LIMIT_S)
        self.assertTrue(list(Path(self.folder.name).iterdir()))
        process = self.start("--quiet", "--duration", "30")
        self.assertEqual(self.ask("show")[0], 0)
        self.finish(process)


if __name__ == "__main__":
    PROGRAM, CTL = (str(Path(sys.argv.pop(1)).resolve()) for _ in range(2))
    unittest.main()
