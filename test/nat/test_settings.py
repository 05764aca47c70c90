# SPDX-License-Identifier: BSD-3-Clause
"""The configuration file: what is refused, with its line, and what follows from
what is left out. What each key does is in test_reload.py."""
import re

import pytest
from scapy.all import ARP, IP, UDP

from harness import Nat, mac_of, ping, tcp, udp
from rfc import HOST, OURS, PEER, opened

# Lines 1 to 6 of a file.
SIDES = """\
inside:
  port: eth1
  addresses: 10.0.0.1/24
outside:
  port: eth0
  addresses: 192.0.2.1/24
"""
SEVERAL = """\
inside: {port: a, addresses: [10.0.0.1/24, 10.0.0.2/24, 10.0.1.1/24]}
outside: {port: b, addresses: [192.0.2.1/24, 192.0.2.2/24],
  gateway: 192.0.2.254}
"""
NETWORK = "is not a network, such as 10.0.0.0/8"
END = "is not an address and port, such as 192.0.2.1:80"
MAC = "is not a MAC address, such as 02:00:00:00:00:01"

# What follows SIDES, and the beginning of what is said about it.
VALUES = [
    ("tiemouts: {}", "7: unknown key 'tiemouts'; did you mean 'timeouts'?"),
    ("zzz: 1", "7: unknown key 'zzz'; valid: inside, outside"),
    ("ping: perhaps", "7: ping: 'perhaps' is not yes or no"),
    ("ping: [yes]", "7: ping: must be one value, not a list"),
    ("timeouts:\n  udp: 5 min", "8: udp: '5 min' is not a time"),
    ("timeouts: 5m", "7: must be a mapping"),
    ("ping: no\nping: yes", "8: 'ping' is given twice, first on line 7"),
    ("limits: {mappings: 1e6}",
     "7: mappings: '1e6' is not a whole number from 1 to"),
    ("subscribers: 10.0.0.1/24",
     "7: subscribers: '10.0.0.1/24' has bits set beyond its prefix length; "
     "the network is 10.0.0.0/24"),
    *((f"subscribers: {net}", f"7: subscribers: '{net}' {NETWORK}")
      for net in ("10.0.0.0", "10.0.0.0/33", "10.0.0.0/", "10.0.0/8")),
    ("pool: []", "7: pool: empty; remove it"),
    ("pool: {a: b}", "7: pool: must be one value, not a mapping"),
    ("pool: 192.0.2.9-192.0.2.1", "7: pool: '192.0.2.9-192.0.2.1': the "
     "smaller address must come first"),
    ("pool: 192.0.2.1-9", "7: pool: '192.0.2.1-9' is not an address, range or "
     "network"),
    ("pool: 192.0.2.17/28", "7: pool: '192.0.2.17/28' has bits set beyond"),
    ("mss: 12", "7: mss: '12' is not one of no, mtu, or a number"),
    ("filtering: strict", "7: filtering: 'strict' is not one of: none, "
     "address, address-port"),
    ("forwards: [{outside: '192.0.2.1:80'}]", "7: 'inside' is missing"),
    ("forwards: [{outside: '192.0.2.1:80', inside: '10.0.0.5:80-81'}]",
     "7: inside: '10.0.0.5:80-81': give only the first port"),
    ("forwards: [{outside: '192.0.2.1:80', inside: 10.0.0.5, protocols: icmp}]",
     "7: protocols: 'icmp' is not one of: udp, tcp"),
    ("forwards: [{outside: 192.0.2.1}]", f"7: outside: '192.0.2.1' {END}"),
    ("forwards: [{outside: ':80'}]", "7: outside: '' is not an IPv4 address"),
    *((f"forwards: [{{outside: '192.0.2.1:{ports}'}}]",
       f"7: outside: '{ports}' is not a port or range of ports within 1-65535")
      for ports in ("0", "65536", "9-8")),
    ("exclude: [{protocol: tcp}]", "7: 'to' is missing"),
    ("exclude: [{to: 1.0.0.0/8, protocol: 256}]",
     "7: protocol: '256' is not one of udp, tcp, icmp, or a number"),
    ("state: ''", "7: state: empty, or longer than 255 bytes"),
    ("ping: [", "8: not valid YAML: "),
    ("\tping: no", "7: not valid YAML: "),
    ('ping: "\\0"', "7: ping: contains a zero byte"),
    ("&a ping: *b", "7: not valid YAML: "),
    ("---\nping: no", "8: a second document begins here"),
    ("...\n---\n[]\n...", "9: a second document begins here"),
    ("...\n---\n[", "10: not valid YAML: "),
]
TOGETHER = [
    ("pool: [192.0.2.5, 192.0.2.1-192.0.2.9]",
     "7: pool: 192.0.2.1 overlaps entry 1 of the list"),
    ("pool:\n- 198.51.100.1\n- 10.0.0.9",
     "9: pool: 10.0.0.9 overlaps the subscribers of 10.0.0.0"),
    ("pool: 127.0.0.1",
     "7: pool: 127.0.0.1 is not a host address; remove it"),
    ("pool: 192.0.2.0/24",
     "7: pool: 192.0.2.0 includes the first or last address"),
    ("pool: 198.18.0.0/19", "7: pool: more than 4096 external"),
    ("subscribers: [10.0.0.0/24, 10.0.0.0/25]",
     "7: subscribers: 10.0.0.0 overlaps entry 1"),
    ("subscribers: 192.0.2.0/24",
     "7: subscribers: 192.0.2.0 overlaps the network of 192.0.2.1 outside; "
     "list networks inside"),
    ("subscribers:\n- 10.0.0.0/24\n- 192.0.2.128/25",
     "9: subscribers: 192.0.2.128 overlaps the network of 192.0.2.1"),
    ("subscribers: 10.1.0.0/24\npool: 10.0.0.9",
     "8: pool: 10.0.0.9 overlaps the network of 10.0.0.1 inside; an address "
     "is either inside or outside"),
    ("subscribers: 10.1.0.0/24\n"
     "one_to_one: [{outside: 10.0.0.9, inside: 10.1.0.5}]",
     "8: one_to_one: 10.0.0.9 cannot be an external address; choose one that "
     "no other host has"),
    ("forwards: [{outside: '192.0.2.2:80', inside: 10.0.0.5}]",
     "7: forwards: 192.0.2.2 is not an address of mr-nat"),
    ("forwards: [{outside: '192.0.2.1:80', inside: 10.0.1.5}]",
     "7: forwards: 10.0.1.5 is not a subscriber"),
    ("forwards:\n- {outside: '192.0.2.1:80-90', inside: 10.0.0.5}\n"
     "- {outside: '192.0.2.1:90', inside: 10.0.0.6, protocols: tcp}",
     "9: forwards: outside ports overlap entry 1 of the list"),
    ("forwards:\n- {outside: '192.0.2.1:80', inside: 10.0.0.5}\n"
     "- {outside: '192.0.2.1:81', inside: '10.0.0.5:80'}",
     "9: forwards: inside ports overlap entry 1 of the list"),
    ("forwards: [{outside: '192.0.2.1:1-2', inside: '10.0.0.5:65535'}]",
     "7: forwards: ports 1-2 to 65535-65536: ports are 1 to 65535"),
    ("one_to_one: [{outside: 192.0.2.1, inside: 10.0.0.5}]",
     "7: one_to_one: 192.0.2.1 is in the pool or an address"),
    ("one_to_one: [{outside: 10.0.0.7, inside: 10.0.0.5}]",
     "7: one_to_one: 10.0.0.7 cannot be an external address"),
    ("one_to_one: [{outside: 192.0.2.7, inside: 10.0.1.5}]",
     "7: one_to_one: 10.0.1.5 is not a subscriber"),
    ("one_to_one:\n- {outside: 192.0.2.7, inside: 10.0.0.5}\n"
     "- {outside: 192.0.2.8, inside: 10.0.0.5}",
     "9: one_to_one: has an address of entry 1"),
    ("one_to_one: [{outside: 192.0.2.7, inside: 10.0.0.5}]\n"
     "forwards: [{outside: '192.0.2.1:80', inside: 10.0.0.5}]",
     "8: forwards: one_to_one entry 1 already uses all"),
    ("exclude: [{to: 1.0.0.0/8, ports: 53}]",
     "7: exclude: ports: only tcp and udp have ports"),
    ("exclude:\n- {to: 1.0.0.0/8}\n- {to: 192.0.2.0/24}",
     "9: exclude: 192.0.2.0 contains the external address 192.0.2.1"),
    ("exclude: [{to: 0.0.0.0/0}]",
     "7: exclude: 0.0.0.0 contains the external address 192.0.2.1"),
    ("pool: 198.51.100.1-198.51.100.9\nexclude: [{to: 198.51.100.8/29}]",
     "8: exclude: 198.51.100.8 contains the external address"),
    ("pool: 198.51.100.1\nexclude: [{to: 192.0.2.1/32}]",
     "8: exclude: 192.0.2.1 contains the external address 192.0.2.1"),
    ("one_to_one: [{outside: 192.0.2.7, inside: 10.0.0.5}]\n"
     "exclude: [{to: 192.0.2.4/30}]",
     "8: exclude: 192.0.2.4 contains the external address 192.0.2.7"),
    ("ports: {range: 1024-1080}",
     "7: ports: range: 57 ports are too few for 2 workers"),
    ("ports: {block: 100}", "7: ports: block: 100 is not a power of"),
    ("ports: {block: 4}", "7: ports: block: 4 is not a power of two"),
    ("ports: {block: 512}",
     "7: ports: block: 256 subscribers need a block each, but the pool has "
     "126 of 512 ports; use smaller blocks, more addresses, or fewer "
     "subscribers"),
    ("ports: {block: 32768}",
     "7: ports: block: 64512 ports are too few for 2 workers"),
    ("ports: {deterministic: yes}",
     "7: ports: deterministic: needs one worker, not 2"),
    ("limits: {sessions: 5, sessions_per_subscriber: 6}",
     "7: limits: sessions_per_subscriber: 6 is more than the limit"),
    ("limits: {mappings: 5, per_subscriber: 6}",
     "7: limits: per_subscriber: 6 is more than the limit of 5"),
    ("log: {sessions: yes}", "7: log: sessions: needs a file"),
    ("log: {path: /x}\nstate: /x", "8: state: /x is the log file"),
]


def inside(more):
    """A file with an inside that is wrong."""
    return f"inside: {{port: a, addresses: {more}}}\noutside: {{}}"


# Whole files: what is wrong with the sides.
WRONG_SIDES = [
    ("", " empty; inside and outside are required"),
    ("- a", "1: must be a mapping"),
    ("#" * (2 ** 20 + 1), "1: the file is larger than 1 MiB"),
    ("ping: no", "1: inside: no port"),
    ("inside:\n  port: a\noutside: {}", "2: inside: no address"),
    ("inside: {port: a, addresses: 10.0.0.1/24}\n"
     "outside: {port: 'xdp:a,queues=2', addresses: 192.0.2.1/24}",
     "2: outside: port: a is also the inside port"),
    ("inside: {port: a, addresses: 10.0.0.1/8}\n"
     "outside: {port: b, addresses: [192.0.2.1/24, 10.1.0.1/16]}",
     "2: outside: addresses: the network of 10.1.0.1 overlaps that of 10.0.0.1 "
     "inside"),
    ("inside:\n  port: a\n  addresses:\n  - 10.0.0.1/24\n  - 10.0.0.1/24\n"
     "outside: {}", "5: inside: addresses: 10.0.0.1 is listed twice; remove one"),
    ("inside: {port: a, addresses: [10.0.0.1/16, 10.0.3.1/24]}\n"
     "outside: {port: b, addresses: 192.0.2.1/24, gateway: 192.0.2.2}",
     "1: inside: addresses: 10.0.3.0 overlaps entry 1; remove one"),
    (inside("10.0.0.255/24"),
     "1: inside: addresses: 10.0.0.255 is not a host address"),
    (inside("10.0.0.1/24, gateway: 10.0.1.9"),
     "1: inside: gateway: gateway 10.0.1.9 is not another host"),
    *((inside(host), f"1: addresses: '{host}' is not an address with a prefix "
       "length, such as 10.0.0.1/24") for host in ("10.0.0.1", "10.0.0.1/0")),
    (inside("10.0.0.1/24, mtu: 20"),
     "1: mtu: '20' is not a whole number from 68"),
    (inside("10.0.0.1/24, neighbours: 10.0.0.2"),
     "1: neighbours: must be an address and its"),
    *((inside(f"10.0.0.1/24, neighbours: '10.0.0.2 {mac}'"),
       f"1: neighbours: '{mac}' {MAC}") for mac in (
           "02:00:00:00:00", "2:0:0:0:0:1", "02-00-00-00-00-01",
           "02:00:00:00:00:0g", "02:00:00:00:00:01:")),
    (inside("10.0.0.1/24, neighbours: 10.1.0.2 02:00:00:00:00:01"),
     "1: inside: neighbours: neighbour 10.1.0.2 is not another host"),
    (inside("10.0.0.1/24, neighbours: 10.0.0.2 01:00:00:00:00:01"),
     "1: inside: neighbours: neighbour 10.0.0.2 has a multicast MAC address; "
     "give a unicast one"),
]


@pytest.mark.parametrize("text, wanted", [
    *((f"{SIDES}{text}\n", wanted) for text, wanted in VALUES + TOGETHER),
    *((text and text + "\n", wanted) for text, wanted in WRONG_SIDES)],
    ids=lambda text: text[-50:])
def test_each_error_names_its_line(text, wanted):
    with pytest.raises(ValueError) as refused:
        Nat(file=text, n_shards=2)
    assert str(refused.value).startswith(f"harness:{wanted}")


def test_a_long_list_is_cut_after_a_whole_word():
    with pytest.raises(ValueError) as refused:
        Nat(file=SIDES + "zzz: 1\n")
    known = str(refused.value).partition("valid: ")[2]
    assert re.fullmatch(r"(\w+, )+…", known) and "fill_options, " in known


def test_deterministic_blocks_are_enough_for_all(nat_of):
    with pytest.raises(ValueError) as refused:
        Nat(file=SIDES + "ports: {deterministic: yes, block: 512}\n")
    assert str(refused.value) == (
        "harness:7: ports: deterministic: 256 subscribers need a block each, "
        "but the pool has 126 of 512 ports; use smaller blocks, more "
        "addresses, or fewer subscribers")
    assert nat_of(file=SIDES + "ports: {deterministic: yes}\n")


def test_pool_and_subscribers_follow_from_the_sides(nat_of):
    """The first address outside, and each network inside once."""
    nat = nat_of(file=SEVERAL)
    for host in (HOST[:-1] + "9", "10.0.1.9"):
        assert opened(nat, "udp", host).addr == OURS
    assert not nat.inside(udp("10.0.2.9", 1, PEER, 2)).outside
    assert nat.drops == {"spoofed": 1}


def test_addresses_have_three_forms(nat_of):
    nat = nat_of(file=SEVERAL + "pool: [192.0.2.7, 192.0.2.9-192.0.2.11, "
                 "192.0.2.16/29]\n")
    told = nat.announced.outside + nat.advance(1).outside
    assert sorted(int(p[ARP].psrc.split(".")[3]) for p in told) == [
        1, 2, 7, 9, 10, 11, *range(16, 24)]


@pytest.mark.parametrize("word, answers", [
    ("yes", 1), ("on", 1), ("true", 1), ("no", 0), ("off", 0), ("false", 0)])
def test_words_for_yes_and_no(nat_of, word, answers):
    nat = nat_of(file=SEVERAL + f"ping: {word}\n")
    assert len(nat.outside(ping(PEER, OURS))) == answers


def test_a_forward_is_of_both_protocols_and_keeps_the_port(nat_of):
    nat = nat_of(file=SEVERAL + "forwards: {outside: '192.0.2.2:80-89', "
                 "inside: 10.0.0.5}\n")
    for packet in (udp, tcp):
        got = nat.outside(packet(PEER, 1, "192.0.2.2", 83)).one
        assert (got[IP].dst, got[IP].payload.dport) == ("10.0.0.5", 83)


def test_letters_of_a_mac_address_may_be_large(nat_of):
    nat = nat_of(file=SEVERAL.replace("}\no", ", neighbours: '10.0.0.9 "
                                    "02:00:5e:00:0A:fF'}\no"))
    flow = opened(nat, "udp", "10.0.0.9")
    got = flow.back().one
    assert UDP in got and got.dst == "02:00:5e:00:0a:ff" != mac_of("10.0.0.9")
