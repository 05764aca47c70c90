# SPDX-License-Identifier: BSD-3-Clause
"""What people do behind a NAT, with the programs that they do it with.

One mr-nat serves all tests of the file, with one worker, then with two. Behind
the server is a link of MTU 1280, and at its end the host `far`.
"""
import errno
import json
import re
import socket

import pytest
from lib import nat, servers, talk
from lib.namespaces import Lab, wait_until
from lib.nat import House, Nat

FAR = "198.51.100.2"
FAR_MTU = 1280
IP_MTU_DISCOVER, IP_PMTUDISC_DO, IP_MTU = 10, 2, 14  # linux/in.h
N_PARALLEL = 200
CONFIG = ("forwards: [{outside: '192.0.2.1:8080', inside: '10.0.0.4:80', "
          "protocols: tcp}]\n")


def add_far(lab, house):
    """A host behind the server, over a link that is narrower. It asks for
    segments that do not fit, as a host behind a wider link of its own."""
    far = lab.namespace("r")
    lab.veth(house.server, "h1", far, "h0", mtu=FAR_MTU)
    house.server.sysctl("net.ipv4.ip_forward", 1)
    house.server.ip("address", "add", "198.51.100.254/24", "dev", "h1")
    far.ip("address", "add", f"{FAR}/24", "dev", "h0")
    far.ip("route", "add", "default", "via", "198.51.100.254", "advmss", 1460)
    return far


@pytest.fixture(scope="module", params=[1, 2], ids=["1worker", "2workers"])
def town(request, tmp_path_factory):
    """A house with a running mr-nat, which must end well."""
    lab = Lab(tmp_path_factory.mktemp("nat"))
    try:
        house = House(lab)
        house.far = add_far(lab, house)
        translator = Nat(house, "--workers", request.param, config=CONFIG)
        house.sessions = translator.sessions
        yield house
        translator.stop()
    finally:
        lab.close()


def curl(host, url, *more):
    """What curl prints: the body, if it is not told otherwise."""
    servers.need("curl", "curl")
    return host.run("curl", "--silent", "--show-error", "--fail",
                    "--max-time", 20, *more, url).stdout


@pytest.mark.parametrize("size", [56, 1472, 4000])
@pytest.mark.short
def test_ping(town, size):
    dont_fragment = ["-M", "do"] if size == 1472 else []
    assert talk.ping(town.a, nat.SERVER, size=size, more=dont_fragment) == 3


@pytest.mark.parametrize("how", ["udp", "icmp"])
def test_traceroute_shows_each_hop(town, how):
    servers.need("traceroute", "traceroute")
    # One probe at a time: kernels answer few per second.
    more = ["-I"] if how == "icmp" else []
    done = town.a.run("traceroute", "-n", "-q", 1, "-N", 1, "-w", 3, *more,
                      FAR)
    hops = re.findall(r"^ *\d+ +(\S+)", done.stdout, re.MULTILINE)
    assert hops == [nat.INSIDE, nat.SERVER, FAR], done.stdout


@pytest.mark.parametrize("way", [["--bytes", "16M"],
                                 ["--bytes", "16M", "--reverse"],
                                 ["--udp", "--time", 1, "--bitrate", "4M",
                                  "--length", 1000]],
                         ids=["up", "down", "udp"])
def test_iperf3(lab, town, way):
    servers.iperf3(lab, town.server)
    done = town.a.run("iperf3", "--client", nat.SERVER, "--json", *way)
    end = json.loads(done.stdout)["end"]
    if "--udp" in way:
        # 500 datagrams in all; a server that does not run loses some.
        assert end["sum"]["packets"] > 400
        assert end["sum"]["lost_percent"] < 10
    else:
        assert end["sum_sent"]["bytes"] >= 16 << 20
        # The rest is still in the sender's buffer when it asks.
        assert end["sum_received"]["bytes"] >= 8 << 20


def test_curl_fetches_a_file_of_the_web_server(lab, town):
    lab.closing(servers.Web(town.server, 80))
    got = lab.tmp_path / "body"
    curl(town.a, f"http://{nat.SERVER}/body", "--output", got)
    assert got.read_bytes() == servers.BODY
    assert curl(town.b, f"http://{nat.SERVER}/who").startswith(
        f"{nat.OUTSIDE}:")


def test_200_connections_at_once(lab, town):
    lab.closing(servers.Web(town.server, 80, N_PARALLEL))
    shown = curl(town.a, f"http://{nat.SERVER}/meet?[1-{N_PARALLEL}]",
                 "--parallel", "--parallel-immediate",
                 "--parallel-max", N_PARALLEL)
    # Its progress is shown among the answers, silent or not.
    seen = re.findall(re.escape(nat.OUTSIDE) + r":\d+", shown)
    assert len(seen) == len(set(seen)) == N_PARALLEL, shown
    listed = {s["outside"] for s in town.sessions("proto=tcp,port=80")}
    assert listed >= set(seen)


def test_dns_over_udp_tcp_and_in_fragments(lab, town):
    servers.need("dig", "bind9-dnsutils")
    servers.dnsmasq(lab, town.server, "--host-record=www.example,203.0.113.7",
                    "--txt-record=long.example," + ",".join(["x" * 250] * 10))

    def dig(*words):
        return town.a.run("dig", "+short", "+tries=1", "+time=5",
                          f"@{nat.SERVER}", *words).stdout

    assert dig("www.example") == "203.0.113.7\n"
    assert dig("+tcp", "www.example") == "203.0.113.7\n"
    # 2.5 KB in one datagram: it comes as fragments.
    assert dig("+bufsize=4096", "+ignore", "long.example",
               "TXT").count("x") == 2500


@pytest.mark.parametrize("how", ["--disable-epsv", "--ftp-pasv"])
def test_passive_ftp(lab, town, how):
    folder = lab.tmp_path / "ftp"
    folder.mkdir()
    (folder / "file").write_bytes(servers.BODY)
    servers.ftp(lab, town.server, folder)
    got = lab.tmp_path / "got"
    curl(town.a, f"ftp://{nat.SERVER}/file", how, "--output", got)
    assert got.read_bytes() == servers.BODY


def learned_mtu(host):
    """What a host knows of the way to far; None: nothing."""
    text = host.ip("route", "get", FAR).stdout
    match = re.search(r"mtu (\d+)", text)
    return int(match.group(1)) if match else None


def test_tcp_learns_the_mtu_of_the_path(town):
    assert learned_mtu(town.a) is None
    sender = nat.tcp_between(town.a, town.far, FAR, 9000, 9000, 1 << 18)
    assert sender[0] == nat.OUTSIDE
    assert learned_mtu(town.a) == FAR_MTU


def test_the_mtu_of_a_port_is_followed(town):
    """It changes while it is in use: a host inside is told of it at once."""
    def ping():
        done = town.a.run("ping", "-n", "-c", 1, "-W", 1, "-M", "do", "-s",
                          1400, nat.SERVER, check=False)
        town.a.ip("route", "flush", "cache")  # it learns this anew
        return done.stdout.replace(" ", "")

    for mtu, answer in ((1300, "mtu=1300"), (1200, "mtu=1200"),
                        (1500, ",0%packetloss")):
        town.middle.ip("link", "set", "p1", "mtu", mtu)
        wait_until(answer, lambda wanted=answer: wanted in ping())


def test_udp_learns_the_mtu_of_the_path(lab, town):
    assert learned_mtu(town.b) is None
    lab.closing(nat.Echo(town.far))
    talker = lab.closing(nat.Talker(town.b, FAR))
    talker.socket.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER,
                             IP_PMTUDISC_DO)
    talker.socket.connect(talker.to)
    # The error is that of the socket whose packet did not fit.
    with pytest.raises(OSError) as raised:
        talker.ask(1400)
    assert raised.value.errno == errno.EMSGSIZE
    assert talker.socket.getsockopt(socket.IPPROTO_IP, IP_MTU) == FAR_MTU
    assert talker.ask(1000)[0] == nat.OUTSIDE
    done = town.b.run("ping", "-n", "-c", 1, "-W", 20, "-M", "do", "-s", 1400,
                      FAR, check=False)
    assert f"mtu={FAR_MTU}" in done.stdout.replace(" ", ""), done.stdout


def test_a_port_forward_and_a_hairpin(lab, town):
    """From outside, and from a to b by the external address."""
    lab.closing(servers.Web(town.b, 80))
    url = f"http://{nat.OUTSIDE}:8080/who"
    assert curl(town.server, url).startswith(f"{nat.SERVER}:")
    assert curl(town.a, url).startswith(f"{nat.OUTSIDE}:")
