# SPDX-License-Identifier: BSD-3-Clause
"""Streams as they are read and sent: what is wrong with a text; and frames in a capture,
taken apart by scapy and put together again. Every field is there with the values that its text
names, no other byte differs from what scapy makes of the same fields, and that includes the
checksums. Covers stream.py and stream/*.c; stream_test.c has frames that are taken back."""
import ipaddress
import random
import re
import struct
from collections import Counter

import pytest

pytest.importorskip("scapy.all", reason="scapy is missing: apt install python3-scapy")

from scapy.all import (  # noqa: E402 pylint: disable=wrong-import-position
    Dot1AD, Dot1Q, Ether, ICMP, ICMPv6EchoRequest, IP, IPv6, Raw, RawPcapReader, TCP, UDP,
    PcapWriter)

from mr_bench.stream import read  # noqa: E402 pylint: disable=wrong-import-position
from mr_bench.values import UsageError  # noqa: E402 pylint: disable=wrong-import-position

ETHERNET, COOKED = 1, 113  # link types of captures


def rebuilt(data):
    """The same fields with sums and lengths as scapy computes them."""
    again = Ether(data)
    no_udp_sum = UDP in again and IP in again and again[UDP].chksum == 0
    for layer, names in ((IP, ("chksum", "len")), (IPv6, ("plen",)),
                         (UDP, ("len",) if no_udp_sum else ("chksum", "len")),
                         (TCP, ("chksum",)), (ICMP, ("chksum",)),
                         (ICMPv6EchoRequest, ("cksum",))):
        if layer in again:
            for name in names:
                delattr(again[layer], name)
    return bytes(again)


def check_whole(frames):
    """No byte is other than scapy would have it."""
    for data in frames:
        assert data.hex() == rebuilt(data).hex()


def stamp(data):
    """(magic, lane, seq, due) of the last 18 bytes."""
    magic, lane, seq, due = struct.unpack(">IH6s6s", data[-18:])
    return magic, lane, int.from_bytes(seq, "big"), int.from_bytes(due, "big")


def prefix(text):
    """All addresses of a prefix."""
    return [str(address) for address in ipaddress.ip_network(text)]


@pytest.fixture
def made(serve, tmp_path):
    """made(n, text...): the frames that the texts make; a list of each sender's, of several."""
    def send(n, *texts, is_stamped=False, n_senders=1):
        paths = [tmp_path / f"{i}.pcap" for i in range(n_senders)]
        # A burst is no part of a chunk.
        one = serve(tx=[f"pcap:tx={path}" for path in paths], rx=[], streams=texts,
                    is_unstamped=not is_stamped, dst_mac=0x020000000002, plane=[["burst", "37"]])
        opened = one.request("open")
        assert opened["reply"] == "open", opened
        one.trial(pps=0, frames=n * n_senders)
        one.finish()
        frames = [[data for data, _ in RawPcapReader(str(path))] for path in paths]
        assert [len(of_one) for of_one in frames] == [n] * n_senders
        return frames[0] if n_senders == 1 else frames
    return send


@pytest.fixture
def wrong(serve):
    """wrong(text...): what is wrong with it, and the exit status; "" if it is good."""
    def open_(*texts, **begin):
        try:
            one = serve(streams=texts, has_unstamped=True, **begin)
        except UsageError as error:
            return str(error), error.status
        reply = one.request("open")
        one.finish()
        return reply.get("why", ""), reply.get("status", 0)
    return open_


# Word, layer and attribute in scapy, text, values in sequence.
FIELDS = [
    ("eth.src", Ether, "src", "02:00:00:00:00:fe-02:00:00:00:01:01",
     ["02:00:00:00:00:fe", "02:00:00:00:00:ff", "02:00:00:00:01:00",
      "02:00:00:00:01:01"]),
    ("eth.dst", Ether, "dst", "06:11:00:00:00:00/46",
     [f"06:11:00:00:00:0{i}" for i in range(4)]),
    ("eth.type", Ether, "type", "0x9000-0x9003", list(range(0x9000, 0x9004))),
    ("vlan.id", Dot1Q, "vlan", "1,4094,7-9", [1, 4094, 7, 8, 9]),
    ("vlan.pcp", Dot1Q, "prio", "0-7", list(range(8))),
    ("qinq.id", Dot1AD, "vlan", "100-103 vlan.id=5", list(range(100, 104))),
    ("qinq.pcp", Dot1AD, "prio", "3,1 vlan.id=5", [3, 1]),
    ("ip.src", IP, "src", "10.1.2.0/29", prefix("10.1.2.0/29")),
    ("ip.dst", IP, "dst", "255.255.255.252/30", prefix("255.255.255.252/30")),
    ("ip.src", IPv6, "src", "2001:db8::fffe-2001:db8::1:1",
     ["2001:db8::fffe", "2001:db8::ffff", "2001:db8::1:0", "2001:db8::1:1"]),
    ("ip.dst", IPv6, "dst", "fe80::/126", prefix("fe80::/126")),
    ("ip.tos", IP, "tos", "0-255:step=51", list(range(0, 256, 51))),
    ("ip.tos", IPv6, "tc", "0-255:step=51 ip6", list(range(0, 256, 51))),
    ("ip.dscp", IP, "tos", "46,0,63", [46 << 2, 0, 63 << 2]),
    ("ip.dscp", IPv6, "tc", "46,0,63 ip6", [46 << 2, 0, 63 << 2]),
    ("ip.ttl", IP, "ttl", "1,64,255", [1, 64, 255]),
    ("ip.ttl", IPv6, "hlim", "1,64,255 ip6", [1, 64, 255]),
    ("ip.id", IP, "id", "65530-65535", list(range(65530, 65536))),
    ("ip.flow", IPv6, "fl", "0xffffe-0xfffff", [0xffffe, 0xfffff]),
    ("udp.src", UDP, "sport", "1,65535,0", [1, 65535, 0]),
    ("udp.dst", UDP, "dport", "53-55", [53, 54, 55]),
    ("udp.dst", UDP, "dport", "53-55 ip6", [53, 54, 55]),
    ("tcp.src", TCP, "sport", "1000-1002", [1000, 1001, 1002]),
    ("tcp.dst", TCP, "dport", "80,443", [80, 443]),
    ("tcp.seq", TCP, "seq", "4294967294-4294967295", [2**32 - 2, 2**32 - 1]),
    ("tcp.ack", TCP, "ack", "0,0x12345678", [0, 0x12345678]),
    ("tcp.flags", TCP, "flags", "syn,syn+ack,fin+ack,rst,psh+ack",
     [2, 18, 17, 4, 24]),
    ("tcp.window", TCP, "window", "0,65535", [0, 65535]),
    ("tcp.src", TCP, "sport", "1000-1002 ip6", [1000, 1001, 1002]),
    ("icmp.type", ICMP, "type", "0,8", [0, 8]),
    ("icmp.id", ICMP, "id", "7-9", [7, 8, 9]),
    ("icmp.seq", ICMP, "seq", "65535,0", [65535, 0]),
    ("icmp.id", ICMPv6EchoRequest, "id", "7-9 ip6", [7, 8, 9]),
]


def values_of(frames, layer, attribute, like):
    """As the table has them."""
    found = [getattr(Ether(data)[layer], attribute) for data in frames]
    return [int(value) for value in found] if isinstance(like, int) else found


@pytest.mark.parametrize("name, layer, attribute, text, values", FIELDS)
def test_a_field_has_its_values_in_their_order(made, name, layer, attribute, text, values):
    """Again and again, with right sums; and where there is but one, that is in each frame."""
    n = 2 * len(values) + 1
    frames = made(n, f"{name}={text}")
    assert values_of(frames, layer, attribute, values[0]) == [
        values[i % len(values)] for i in range(n)]
    check_whole(frames)
    words = text.split()
    if "/" in words[0] and layer is Ether:
        return  # a prefix of it is no value
    value = words[0].split(",")[0].split("-")[0].split("/")[0]
    frames = made(3, f"{name}={value} {' '.join(words[1:])}")
    assert len(set(frames)) == 1
    assert values_of(frames, layer, attribute, values[0]) == values[:1] * 3
    check_whole(frames)


@pytest.mark.parametrize("text", [
    "udp.src=1-9", "udp.src=1-9 size=61", "tcp.flags=syn", "tcp size=73",
    "ip6 udp.dst=1-5 size=81", "icmp size=61", "ip6 icmp", "udp.csum=off", "eth.type=0x88b5",
    "vlan.id=7", "ip.options=12 udp.src=5,6", "size=60x2,1514,61",
    "ip.proto=50 ip.src=10.0.0.0/24", "ip.src=10.0.0.0/16:random ip.ttl=1-255:random",
    "udp.src=0-65535 ip.id=0-65535:random size=61",
    "ip.tos=0-255 ip.dst=0.0.0.0/0:random size=67,1514,100x3",
    "udp.csum=off ip.src=10.0.0.0/8:random",
    "tcp.flags=syn,ack,fin+ack tcp.seq=0-4294967295:random",
    "tcp.window=0-65535 size=83 ip.options=8",
    "ip.src=2001:db8::/96:random udp.src=0-65535 size=83",
    "ip6 tcp.ack=0-4294967295:random ip.flow=0-1048575:random",
    "vlan.id=1-4094 ip.src=1.2.3.0/24:random size=65",
    "qinq.id=1-4094 vlan.id=3 vlan.pcp=7 udp.dst=1-9:zipf=2"])
def test_stamps_count_and_sums_are_over_them(made, text):
    """At odd lengths, too. Who receives is another program: due has the run's number."""
    frames = made(100, text, is_stamped=True)
    stamps = [stamp(data) for data in frames]
    assert len({(magic, due >> 32) for magic, _, _, due in stamps}) == 1
    assert [seq for _, _, seq, _ in stamps] == list(range(100))
    due = [due & 0xffffffff for _, lane, _, due in stamps if lane == 0]
    assert due == sorted(due) and len(due) == 100 and stamps[0][3] >> 32 > 0
    check_whole(frames)
    check_whole(made(100, text))


def test_without_words_there_is_one_stream(made):
    for data in made(2, is_stamped=True):
        frame = Ether(data)
        assert (len(data), frame[IP].src, frame[IP].dst) == (60, "198.18.0.1", "198.19.0.1")
        assert (frame.dst, frame[UDP].sport, frame[UDP].dport) == ("02:00:00:00:00:02", 1024, 9)


def test_fields_count_like_digits(made):
    for i, data in enumerate(made(200, "udp.src=10-12 udp.dst=53,80 ip.ttl=7:step=9")):
        frame = Ether(data)
        assert (frame[UDP].sport, frame[UDP].dport, frame[IP].ttl) == (
            10 + i % 3, (53, 80)[i // 3 % 2], 7)


def test_many_fields_at_once(made):
    """Drawn by the test."""
    rng = random.Random(6)
    names = {
        IP: ["ip.src=10.0.0.0/8", "ip.dst=11.0.0.0-11.0.3.7", "ip.ttl=1-9",
             "ip.id=0-65535", "ip.tos=0-255", "vlan.id=1-4094",
             "ip.options=8", "eth.src=02:00:00:00:00:00/32"],
        IPv6: ["ip6 ip.flow=0-0xfffff", "ip.src=2001:db8::/96",
               "ip.dst=2001:db8:1::1,2001:db8:1::2", "ip.ttl=1-200",
               "qinq.id=1-9 vlan.id=1-20"],
        UDP: ["udp.src=1024-65535", "udp.dst=53,80,443"],
        TCP: ["tcp.src=1024-65535", "tcp.flags=syn,ack,rst",
              "tcp.seq=0-4294967295", "tcp.window=1-65535"],
    }
    for _ in range(25):
        words = []
        for name in names[rng.choice((IP, IPv6))] + names[rng.choice((UDP, TCP))]:
            if rng.random() < 0.6:
                small = not any(text in name for text in ("/8", "/96", "/32", "4294967295"))
                order = rng.choice(["", ":random"] + (
                    ["", ":zipf=0.8"] if "-" in name and small and "fffff" not in name else []))
                words.append(name + ("" if "options" in name else order))
        check_whole(made(60, " ".join(words + [f"size={rng.randrange(130, 200)}"]),
                         is_stamped=True))


def test_no_udp_frame_is_without_a_sum(made):
    """A sum that comes out as 0 is written as 0xffff: 0 would be none (RFC 768). Stamps depend
    on the time, so a third of all rounds has no such sum."""
    for _ in range(20):
        sums = Counter(data[40:42] for data in made(65536, "udp.src=0-65535", is_stamped=True))
        assert sums[b"\0\0"] == 0
        if sums[b"\xff\xff"] > 0:
            return
    pytest.fail("no sum came out as 0")


@pytest.mark.parametrize("order, exponent", [("random", 0), ("zipf", 1), ("zipf=2.5", 2.5)])
def test_draws_are_distributed_as_asked(made, order, exponent):
    """Chi-squared, 9 degrees of freedom, 0.1 %."""
    n = 65536
    counts = Counter(int.from_bytes(data[34:36], "big")
                     for data in made(n, f"udp.src=100-109:{order}"))
    shares = [(i + 1) ** -exponent for i in range(10)]
    wanted = [n * share / sum(shares) for share in shares]
    assert set(counts) == set(range(100, 110))
    chi = sum((counts[100 + i] - want) ** 2 / want for i, want in enumerate(wanted))
    assert 0.5 < chi < 27.9  # too good is no draw either


def test_turns_follow_weights_and_lanes_count_alone(made):
    """Spread evenly: the first is every other one."""
    frames = made(1200, "weight=6 size=60", "weight=3 size=100", "size=200",
                  "weight=2 size=70", is_stamped=True, n_senders=3)[2]
    lanes = [stamp(data)[1] for data in frames]
    assert {lane % 3 for lane in lanes} == {2}
    assert [lane // 3 == 0 for lane in lanes] == [turn == "A" for turn in "ABADABCAADBA"] * 100
    for i, (n_bytes, n) in enumerate(((60, 600), (100, 300), (200, 100), (70, 200))):
        own = [data for data, lane in zip(frames, lanes, strict=True) if lane // 3 == i]
        assert [stamp(data)[2] for data in own] == list(range(n))
        assert {len(data) for data in own} == {n_bytes}


def flow(data):
    """Ports."""
    return struct.unpack(">HH", data[34:38])


@pytest.mark.parametrize("text", [
    "udp.dst=53,80 udp.src=1000-1016", "udp.src=1000-1016 udp.dst=53,80:zipf",
    "udp.dst=53-54:random udp.src=1000-1016:random"])
def test_flows_are_dealt_out(made, text):
    """All senders together have each flow, and no two have the same."""
    flows = [set(map(flow, frames)) for frames in made(1000, text, n_senders=5)]
    assert sum(map(len, flows)) == len(set().union(*flows)) == 34


def test_fewer_values_than_senders_are_shared(made):
    for i, frames in enumerate(made(10, "udp.dst=53,80", n_senders=4)):
        assert {flow(data)[1] for data in frames} == {(53, 80)[i % 2]}


def test_a_capture_is_sent_as_it_is_or_with_a_field_that_varies(made, tmp_path):
    path = tmp_path / "in.pcap"
    sent = [bytes(Ether(src="02:00:00:00:00:09", dst="02:00:00:00:00:08") /
                  IP(src="192.0.2.1", dst="192.0.2.2", ttl=i) /
                  UDP(sport=i, dport=99, chksum=0x1234) / Raw(bytes(range(40))))
            for i in range(1, 4)]
    write(path, sent)
    assert made(6, f"pcap={path}") == sent + sent
    # With an FCS, as its link type says: it is none of the frame.
    with_fcs = tmp_path / "fcs.pcap"
    write(with_fcs, [data + b"\xde\xad\xbe\xef" for data in sent])
    with with_fcs.open("r+b") as file:
        file.seek(23)
        file.write(b"\x24")
    assert made(3, f"pcap={with_fcs}") == sent
    got = made(4, f"pcap={path} ip.src=10.0.0.0/30", is_stamped=True)
    check_whole(got)
    assert [Ether(data)[IP].src for data in got] == prefix("10.0.0.0/30")
    assert [Ether(data)[IP].ttl for data in got] == [1, 2, 3, 1]
    assert got[0][42:64] == bytes(range(22)) and stamp(got[3])[1:3] == (0, 3)


NO_SIZE = "is not a size of 60 to 65535 bytes without FCS, such as 60, 60x7,1514 or imix"
NO_OPTION = "of values; valid: seq, random, zipf, zipf=EXPONENT, step=N"
MISTAKES = {
    "sice=60": "no field 'sice'; docs/streams.md and mr-bench(1) have a list",
    "sctp": "'sctp' is not a word of a stream; valid: udp, tcp, icmp, ip6 and KEY=VALUE",
    "udp.dst=1 udp.dst=2": "udp.dst is given twice; commas make a set: udp.dst=A,B-C",
    "udp.dst=65536": "udp.dst=65536 is more than 65535",
    "udp.dst=53,": "udp.dst= is not a number such as 53",
    "udp.dst=010x": "udp.dst=010x is not a number such as 53",
    "udp.dst=-1": "udp.dst= is not a number such as 53",
    "udp.dst=9-3": "udp.dst=9-3 ends before it begins; did you mean 3-9?",
    "udp.dst=0/8": "udp.dst=0/8: addresses have prefixes; a range is FROM-TO",
    "udp.dst=1-9:rnd": f"udp.dst: no option 'rnd' {NO_OPTION}",
    "udp.dst=1-9:step=0": f"udp.dst: no option 'step=0' {NO_OPTION}",
    "udp.dst=1-9:zipf=0": "udp.dst: zipf=0: the exponent is a number above 0, up to 10",
    "ip.src=10.0.0.0/8:zipf": "ip.src: zipf is for at most 65536 values",
    "ip.src=10.0.0.1/24":
        "ip.src=10.0.0.1/24: bits behind the prefix are set; a range is FROM-TO",
    "ip.src=10.0.0.0/33": "ip.src=10.0.0.0/33: the prefix has 0 to 32 bits",
    "ip.src=2001:db8::/64":
        "ip.src=2001:db8::/64 has more than 2^32 values; /96 is the shortest prefix",
    "ip.src=1.2.3": "ip.src=1.2.3 is not an IP address such as 198.18.0.1 or 2001:2::1",
    "ip.src=2001::-2002::":
        "ip.src=2001::-2002::: only the last 32 bits of an address can vary",
    "ip.src=2001::1,2002::1":
        "ip.src: only the last 32 bits of an address can vary; use several streams",
    "ip.src=10.0.0.0/12,11.0.0.1":
        "ip.src: a set has at most 1048576 values; one range alone may have 2^32",
    "ip.src=2001::1 ip.dst=10.0.0.1":
        "ip.dst is an IPv4 address in a stream of IPv6; use two streams",
    "ip6 ip.id=1": "IPv6 has no ip.id",
    "ip6 ip.options=4": "IPv6 has no ip.options",
    "ip6 udp.csum=off": "udp.csum=off is for IPv4 (RFC 8200 8.1)",
    "eth.src=02:00:00:00:00":
        "eth.src=02:00:00:00:00 is not a MAC address such as 02:00:00:00:00:01",
    "eth.type=0x88b5 ip.src=10.0.0.1":
        "ip.src: with eth.type a frame has no IP; leave one of them out",
    "tcp udp.dst=5":
        "udp.dst: a stream has one of udp, tcp, icmp and ip.proto; use several streams",
    "tcp.flags=syn+fyn": "tcp.flags=syn+fyn is not TCP flags such as syn or fin+ack",
    "ip.proto=6": "ip.proto=6 is a word of its own: udp, tcp or icmp",
    "ip.proto=50-51": "ip.proto cannot vary; use several streams",
    "qinq.id=5": "qinq is the outer tag; give vlan.id, too",
    "vlan.id=1-9 vlan.pcp=0-7":
        "vlan.id and vlan.pcp share a word; only one of them can vary",
    "size=59": f"size=59 {NO_SIZE}",
    "size=60x0": f"size=60x0 {NO_SIZE}",
    "size=60 size=70": "size is given twice; a mix is size=60x7,1514",
    "weight=0": "weight=0 is not a number from 1 to 1000",
    "ip.options=3": "ip.options=3 is not 0, 4, 8, ... 40 bytes",
    "udp.csum=no": "udp.csum=no is not on or off",
    "pcap=": "pcap= needs a file",
    "pcap=/no/such": "pcap=/no/such: No such file or directory",
    "pcap=/no/such size=60":
        "pcap and size: frames of a capture have their sizes; leave size out",
    "tcp size=71": "size=71: headers and the stamp need 72 bytes: give such sizes (size=; "
                   "--size and --sizes from 76 on), or --unstamped",
}


@pytest.mark.parametrize("text, line", MISTAKES.items())
def test_each_mistake_has_its_line(wrong, text, line):
    assert wrong(text) == (f"stream: {line}", 1 if text == "pcap=/no/such" else 2)


SEEDS = [
    "ip.src=10.0.0.0/16:random udp.dst=53,80 size=imix",
    "tcp.flags=syn,ack,fin+ack tcp.src=1024-65535 weight=3",
    "ip.src=2001:db8::/96:random ip.flow=0-0xfffff ip.ttl=1-9",
    "qinq.id=1-9:zipf=1.5 vlan.id=7 vlan.pcp=3 size=90x2,101",
    "eth.src=02:00:00:00:00:00/32 udp.csum=off ip.id=5-9:step=2",
    "icmp.id=1-9 ip.options=8 ip.tos=0-255 ip.id=7", "ip6 udp", "ip.proto=50 size=60-99"]


def changed(rng, text):
    """Some of it elsewhere, twice, or gone."""
    for _ in range(rng.randrange(1, 4)):
        a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        other = rng.choice(SEEDS)
        c = rng.randrange(len(other))
        text = rng.choice([
            text[:a] + text[b:], text[:b] + text[a:],
            text[:a] + other[c:c + rng.randrange(1, 12)] + text[a:],
            text[:a] + rng.choice("0123456789abcdefx.:,-=/ \n\0\xe4") + text[a + 1:]])
    return text[:2000]


def test_texts_from_anywhere_make_whole_frames_or_are_refused(made, wrong):
    """In a line. ASan has an eye on the engine."""
    rng = random.Random(8)
    good = []
    for _ in range(5000):
        text = changed(rng, rng.choice(SEEDS))
        try:
            read([text])
            good.append(text)
        except UsageError as error:
            assert re.fullmatch("stream: .+", str(error))
    assert 50 < len(good) < 4500
    for text in rng.sample(good, 12):
        why, status = wrong(text, is_unstamped=True)
        assert status in (0, 2)
        if not why:
            check_whole(made(40, text))


def test_the_wrong_stream_of_several_is_named(wrong):
    assert wrong("tcp", "size=imix", "size=x") == (f"stream 3: size=x {NO_SIZE}", 2)
    assert wrong(*[""] * 1025) == ("1025 streams; there are at most 1024", 2)


@pytest.mark.parametrize("text, said, raised", [
    ("size=imix udp", "size=imix udp", 0),
    ("tcp size=imix tcp.dst=1-9", "tcp size=72x7,566x4,1514x1 tcp.dst=1-9", 72),
    ("ip6 size=imix", "ip6 size=80x7,566x4,1514x1", 80)])
def test_an_imix_is_as_short_as_headers_let_it_be(serve, made, text, said, raised):
    """It says the sizes that it has; one that fits stays as it was written."""
    one = serve(streams=[text])
    opened = one.request("open")
    assert opened["document"]["streams"] == [said] and one.raised_bytes == raised
    frames = made(1200, text, is_stamped=True)
    assert Counter(map(len, frames)) == {raised or 60: 700, 566: 400, 1514: 100}


@pytest.mark.parametrize("frame_bytes, is_unstamped, n_bytes", [
    (0, False, 72), (100, False, 100), (60, False, None), (60, True, 60)])
def test_sizes_that_are_not_said_fit_the_headers(serve, frame_bytes, is_unstamped, n_bytes):
    one = serve(streams=["tcp"], frame_bytes=frame_bytes, is_unstamped=is_unstamped)
    assert one.request("open").get("max_bytes") == n_bytes


@pytest.mark.parametrize("text, n, values", [
    ("5-9:step=2", 3, [5, 7, 9]), ("0x10,5-6", 3, [16, 5, 6]), ("010-12", 3, [10, 11, 12]),
    ("9-11:random:seq", 3, [9, 10, 11]), ("20,5-9:step=2", 4, [20, 5, 7, 9])])
def test_values_are_read(made, text, n, values):
    assert [flow(data)[0] for data in made(n + 1, f"udp.src={text}")] == [*values, values[0]]


def write(path, frames, link_type=ETHERNET, n_cut=0):
    """A capture, of whose frames so many bytes are missing."""
    writer = PcapWriter(str(path), linktype=link_type)
    writer.write_header(None)
    for data in frames:
        writer.write_packet(data[:len(data) - n_cut], wirelen=len(data))
    writer.close()


UDP_FRAME = bytes(Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02") /
                  IP(src="10.0.0.1", dst="10.0.0.2", chksum=0xbeef) /
                  UDP(sport=1, dport=2, chksum=0xdead) / Raw(b"abcd"))
ARP_FRAME = bytes(Ether(dst="ff:ff:ff:ff:ff:ff", src="02:00:00:00:00:01", type=0x806)) + bytes(28)
TAGGED = bytes(Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02") /
               Dot1Q(prio=1, vlan=5, type=0x88b5)) + bytes(42)
OTHERS = "its headers are not those of frame 1, so no field can vary; use a capture of one kind " \
    "of frame"


@pytest.fixture
def capture_wrong(wrong, tmp_path):
    """capture_wrong(words, frames): what is wrong with a stream of a capture, behind its name."""
    def of_capture(words, *frames, is_unstamped=True, **more):
        path = tmp_path / "a.pcap"
        write(path, frames, **more)
        return wrong(f"pcap={path} {words}", is_unstamped=is_unstamped)[0].removeprefix(
            f"stream: pcap={path}")
    return of_capture


def test_a_capture_has_room_for_what_is_asked(made, capture_wrong, tmp_path):
    """Where nothing is to be changed, wrong sums stay, and short frames are filled up."""
    path = tmp_path / "in.pcap"
    write(path, [UDP_FRAME, ARP_FRAME])
    assert made(2, f"pcap={path}") == [frame.ljust(60, b"\0") for frame in (UDP_FRAME, ARP_FRAME)]
    assert capture_wrong("", UDP_FRAME, ARP_FRAME, is_unstamped=False) == (
        ": frame 1: the frame is longer than its packet, so a stamp would be in the padding; do "
        "without stamps")
    assert capture_wrong("ip.src=10.0.0.9", UDP_FRAME, ARP_FRAME) == (
        ": frame 2: ip.src: the frame has no such field")
    assert capture_wrong("eth.src=02:00:00:00:00:00/40", UDP_FRAME, ARP_FRAME) == (
        f": frame 2: {OTHERS}")


def test_bytes_beside_a_field_are_the_same_in_all_frames(capture_wrong):
    """VLAN tags with another id, which varies, and with another priority, in the same word."""
    assert capture_wrong("vlan.id=1-9", TAGGED, TAGGED[:15] + b"\6" + TAGGED[16:]) == ""
    other = TAGGED[:14] + b"\x40" + TAGGED[15:]
    assert capture_wrong("vlan.id=1-9", TAGGED, other) == f": frame 2: {OTHERS}"


@pytest.mark.parametrize("frames, more, why", [
    ([], {}, " has no frame"),
    ([UDP_FRAME], {"n_cut": 1},
     ": frame 1 was cut off when it was captured; capture with -s 0"),
    ([UDP_FRAME[:13]], {}, ": frame 1 has 13 bytes; there are frames of 14 to 65535"),
    ([UDP_FRAME], {"link_type": COOKED},
     " has no Ethernet frames; capture on an interface, not on 'any'")])
def test_files_that_are_no_captures_are_refused(capture_wrong, frames, more, why):
    assert capture_wrong("", *frames, **more) == why
