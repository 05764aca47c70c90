# SPDX-License-Identifier: BSD-3-Clause
"""200 hosts, an inside router, gateways with mr-nat, and an outside router, by
the files of config/scale-out. docs/scale-out.md describes the site."""
import ast
import json
import re
import select
import signal
import socket
import socketserver
import threading
import time
from collections import Counter
from pathlib import Path

from host import limit

from . import servers
from .namespaces import run, wait_until
from .nat import Echo
from .process import CTL, NAT, Process, environment

SAMPLES = Path(__file__).parents[3] / "config/scale-out"
N_HOSTS = 200
SERVER = ("203.0.113.254", 7777)
VIRTUAL = ("10.255.0.100", "192.0.2.100")  # of a pair
GOAL_S = 3.0  # until a gateway that failed is left
LIMIT_S = 20.0


def host_address(i):
    return f"100.64.0.{i + 1}"


def gateway_of(address):
    """The number of the gateway whose pool has an address."""
    assert address.startswith("198.51.100."), address  # it was translated
    return int(address.rpartition(".")[2]) // 64 + 1


def sample(name, n=1, changes=()):
    """The text of a sample for gateway n, instead of gateway 1."""
    text = (SAMPLES / name).read_text()
    for one, other in ((r"\b10\.255\.0\.1\b", f"10.255.0.{n}"),
                       (r"\b192\.0\.2\.1\b", f"192.0.2.{n}"),
                       (r"\b198\.51\.100\.0/26\b",
                        f"198.51.100.{64 * (n - 1)}/26"), *changes):
        text = re.sub(one, other, text)
    return text


class Greeter(socketserver.ThreadingTCPServer):
    """Tells each client of TCP the address that it is seen with."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = N_HOSTS

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.sendall(self.client_address[0].encode())

    def __init__(self, namespace):
        with namespace:
            super().__init__(("0.0.0.0", SERVER[1]), self.Handler)
        threading.Thread(target=self.serve_forever, args=(0.05,),
                         daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()


class Site:
    """Interfaces have the names of the samples; both links have a switch.

        hosts --eth1 inside router eth0-- i1, i2, .. --eth1 gateways eth0--
        o1, o2, .. --eth1 outside router eth0-- server
    """

    def __init__(self, lab, n_gateways=2):
        self.lab = lab
        self.hosts, self.inside, self.switch, self.outside, self.server = (
            lab.namespace(label) for label in ("h", "i", "s", "o", "e"))
        self.gateways = []
        self.has_seed = True
        self.spread = None
        for bridge in "bi", "bo":
            self.switch.ip("link", "add", bridge, "type", "bridge",
                           "forward_delay", 0)
            self.switch.ip("link", "set", bridge, "up")
        lab.veth(self.hosts, "eth0", self.inside, "eth1")
        lab.veth(self.outside, "eth0", self.server, "eth0")
        self.plug(self.inside, "eth0", "bi", "i0")
        self.plug(self.outside, "eth1", "bo", "o0")
        for router, addresses in (
                (self.inside, {"eth1": "100.64.15.254/20",
                               "eth0": "10.255.0.254/24"}),
                (self.outside, {"eth1": "192.0.2.254/24",
                                "eth0": "203.0.113.1/24"}),
                (self.server, {"eth0": f"{SERVER[0]}/24"})):
            for name, address in addresses.items():
                router.ip("address", "add", address, "dev", name)
        self.server.ip("route", "add", "198.51.100.0/24", "via", "203.0.113.1")
        self.set_sysctls(self.inside, "60-inside-router.conf")
        self.outside.sysctl("net.ipv4.ip_forward", 1)
        batch = lab.tmp_path / "hosts"
        batch.write_text("".join(
            f"address add {host_address(i)}/20 dev eth0\n"
            for i in range(N_HOSTS)))
        self.hosts.ip("-batch", batch)
        self.hosts.ip("route", "add", "default", "via", "100.64.15.254")
        lab.closing(Echo(self.server, SERVER[1]))
        lab.closing(Greeter(self.server))
        for _ in range(n_gateways):
            self.add_gateway()

    def plug(self, namespace, name, bridge, port):
        """Connect an interface to one of the switches."""
        self.lab.veth(self.switch, port, namespace, name)
        self.switch.ip("link", "set", port, "master", bridge)

    def set_sysctls(self, namespace, name):
        for line in (SAMPLES / name).read_text().splitlines():
            if line and not line.startswith("#"):
                key, value = line.split(" = ")
                try:
                    namespace.sysctl(key, value)
                except FileNotFoundError:  # before Linux 6.11
                    assert key.endswith("hash_seed"), key
                    self.has_seed = False

    def add_gateway(self):
        gateway = Gateway(self, len(self.gateways) + 1)
        self.gateways.append(gateway)
        return gateway

    def write(self, name, text):
        path = self.lab.tmp_path / name
        path.write_text(text)
        return path

    def bird(self, namespace, name, text):
        servers.need("bird", "bird2")
        return Process(self.lab, namespace, [
            "bird", "-f", "-c", self.write(f"{name}.conf", text),
            "-s", self.lab.tmp_path / f"{name}.ctl"])

    def birdc(self, name, *words):
        return run("birdc", "-s", self.lab.tmp_path / f"{name}.ctl",
                   *words).stdout

    def start_routers(self, idle_s):
        """BIRD on both routers, and what spreads hosts."""
        self.bird(self.inside, "inside", sample("bird-inside.conf"))
        self.bird(self.outside, "outside", sample("bird-outside.conf"))
        self.spread = Process(self.lab, self.inside, [
            "env", f"IDLE_S={idle_s}", SAMPLES / "spread"])

    def buckets(self):
        """How many buckets of the inside router each gateway has."""
        shown = self.inside.ip("nexthop", "bucket", "list", "id", 100,
                               check=False).stdout
        return Counter(int(found) & 0xff for found in
                       re.findall(r"index .* nhid (\d+)", shown))

    def pools(self):
        """Numbers of the gateways whose pools the outside router knows."""
        shown = self.outside.ip("route", "show", "proto", "bird").stdout
        return {int(found) for found in
                re.findall(r"^198\.51\S+ via 192\.0\.2\.(\d+) ", shown,
                           re.MULTILINE)}

    def watched(self, router):
        """Numbers of the gateways that a router's BFD watches: about a second
        after their routes came."""
        shown = self.birdc(router, "show", "bfd", "sessions")
        return {int(found) for found in
                re.findall(r"^[\d.]+\.(\d+) .* Up ", shown, re.MULTILINE)}

    def has_stayed(self, n, start):
        """Whether gateway n was in use all the time since `start` lines of
        spread: on a busy machine, BFD may think otherwise for a moment."""
        return all(f"10.255.0.{n} " in line for line in
                   self.spread.out.text().splitlines()[start:])

    def wait_for(self, gateways, step=lambda: None):
        """Until each of them, and no other, has its share. step() is called
        meanwhile."""
        def is_so():
            step()
            shares = self.buckets()
            return (gateways == set(shares) == self.pools() ==
                    self.watched("inside") == self.watched("outside") and
                    max(shares.values()) - min(shares.values()) <= 1)

        wait_until(f"gateways {gateways} in use", is_so, 40.0, 0.1)


class Gateway:
    """A gateway of a site, not started."""

    def __init__(self, site, n):
        self.site, self.n = site, n
        self.namespace = namespace = site.lab.namespace(f"g{n}")
        for name, bridge, network in (("eth1", "bi", "10.255.0"),
                                      ("eth0", "bo", "192.0.2")):
            site.plug(namespace, name, bridge, f"{bridge[1]}{n}")
            namespace.ip("address", "add", f"{network}.{n}/24", "dev", name)
        site.set_sysctls(namespace, "60-gateway.conf")
        self.nat = self.router = None

    def start_nat(self, pool=None):
        text = sample("gateway.yaml", self.n)
        if pool:
            text = re.sub(r"pool: \[.*\]", f"pool: [{pool}]", text)
        config = self.site.write(f"g{self.n}.yaml", text)
        self.nat = Process(self.site.lab, self.namespace, [
            *environment(self.site.lab), NAT, "--json", "--config", config,
            "--instance", f"g{self.n}"])
        assert self.nat.err.wait(lambda line: line.startswith("worker "), 15), \
            self.nat.err.text()

    def ask(self, *words):
        """Objects that mrctl prints about its mr-nat."""
        shown = run(*environment(self.site.lab), CTL, "-n", f"g{self.n}",
                    *words, "--json").stdout
        return [json.loads(line) for line in shown.splitlines()]

    def start_in_pair(self, state):
        """With keepalived, and one pool for both gateways; until it is MASTER or
        BACKUP."""
        self.start_nat(pool="198.51.100.0/26")
        servers.need("keepalived", "keepalived")
        text = sample("keepalived.conf", self.n, (
            (r"/usr/local/sbin/serves", str(SAMPLES / "serves")),
            (r"enable_script_security", ""),  # not in a folder of anybody
            (r"(unicast_peer {\s+[\d.]+\.)\d", rf"\g<1>{3 - self.n}")))
        name = f"keepalived{self.n}"
        pid = self.site.lab.tmp_path / name
        self.router = Process(self.site.lab, self.namespace, [
            "keepalived", "--dont-fork", "--log-console", "--vrrp", "--pid",
            f"{pid}.pid", "--vrrp_pid", f"{pid}.vrrp", "--use-file",
            self.site.write(f"{name}.conf", text)])
        self.wait_for(state)

    def wait_for(self, state, start=0):
        """Until keepalived says so, after `start` lines."""
        assert self.router.err.wait(
            lambda line: line.endswith(f"(inside) Entering {state} STATE"),
            30.0, start), self.router.err.text()

    def times_master(self):
        return self.router.err.text().count("(inside) Entering MASTER STATE")

    def start(self):
        self.start_nat()
        self.router = self.site.bird(self.namespace, f"bird{self.n}",
                                     sample("bird-gateway.conf", self.n))

    def fail(self, how):
        """Returns once it has."""
        if how == "cut off":  # its cables lose all frames; no link goes down
            for port in f"i{self.n}", f"o{self.n}":
                self.site.switch.ip("link", "set", port, "nomaster")
        elif how == "link down":
            self.namespace.ip("link", "set", "eth0", "down")
        else:
            self.nat.process.send_signal(signal.Signals[how])
        if how == "SIGSTOP":
            wait_until("it stops", lambda: all(
                path.read_text().rpartition(")")[2].split()[0] == "T"
                for path in Path(f"/proc/{self.nat.pid}/task").glob("*/stat")))
        elif how == "SIGKILL":
            self.nat.wait()


class Talk:
    """Connections of hosts over UDP; the server answers with the address that
    it saw. is_kept: they stay open, and go on when asked again."""

    def __init__(self, site, hosts=range(N_HOSTS), is_kept=False):
        self.site, self.hosts, self.is_kept = site, list(hosts), is_kept
        self.sockets = {}  # by host
        self.seen = {}  # (address, port) by host
        site.lab.closing(self)

    def close(self):
        for one in self.sockets.values():
            one.close()
        self.sockets = {}

    def send(self):
        """A datagram of each host that has no answer."""
        if not self.is_kept:
            self.close()
        with self.site.hosts:
            for i in set(self.hosts) - set(self.seen):
                if i not in self.sockets:
                    self.sockets[i] = socket.socket(type=socket.SOCK_DGRAM)
                    self.sockets[i].bind((host_address(i), 0))
                self.sockets[i].sendto(b"%d" % i, SERVER)

    def receive(self, wait_s):
        """Take answers until all have one, or the time is up."""
        end_s = time.monotonic() + wait_s
        by_socket = {one: i for i, one in self.sockets.items()
                     if i not in self.seen}
        while by_socket:
            ready, _, _ = select.select(list(by_socket), [], [],
                                        max(end_s - time.monotonic(), 0))
            if not ready:
                return
            for one in ready:
                i = by_socket.pop(one)
                seen, _, text = one.recv(1 << 16).rpartition(b" ")
                assert int(text) == i, (text, i)
                self.seen[i] = ast.literal_eval(seen.decode())

    def ask(self, wait_s=0.5):
        """Ask until all have an answer; the gateway of each host."""
        self.seen = {}
        end_s = time.monotonic() + limit(LIMIT_S)
        while len(self.seen) < len(self.hosts):
            assert time.monotonic() < end_s, \
                f"{len(self.hosts) - len(self.seen)} hosts without an answer"
            self.send()
            self.receive(wait_s)
        return {i: gateway_of(seen[0]) for i, seen in self.seen.items()}


def connect_all(site):
    """A TCP connection of each host; the gateway of each."""
    found, open_ones = {}, {}
    with site.hosts:
        for i in range(N_HOSTS):
            one = socket.socket()
            one.setblocking(False)
            one.bind((host_address(i), 0))
            one.connect_ex(SERVER)
            open_ones[one] = i
    try:
        while open_ones:
            ready, _, _ = select.select(list(open_ones), [], [],
                                        limit(LIMIT_S))
            assert ready, f"{len(open_ones)} hosts without a connection"
            for one in ready:
                found[open_ones.pop(one)] = gateway_of(one.recv(99).decode())
                one.close()
    finally:
        for one in open_ones:
            one.close()
    return found


def hosts_of(seen, n):
    return {i for i, gateway in seen.items() if gateway == n}


def seconds_until_left(site, hosts, begin_s):
    """From begin_s until new connections of hosts work again; and the longest
    time for which this program did not run, which may be the host's doing. Also
    the gateways that they use then."""
    talk, wait_s, pause_s = Talk(site, hosts), 0.05, 0.0
    last_s = time.monotonic()
    while len(talk.seen) < len(talk.hosts):
        talk.send()
        talk.receive(wait_s)
        now_s = time.monotonic()
        pause_s = max(pause_s, now_s - last_s - wait_s)
        last_s = now_s
        assert now_s - begin_s < limit(LIMIT_S), \
            f"{len(talk.hosts) - len(talk.seen)} hosts without an answer"
    return last_s - begin_s, pause_s, {
        gateway_of(address) for address, _ in talk.seen.values()}
