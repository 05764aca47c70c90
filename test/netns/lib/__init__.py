# SPDX-License-Identifier: BSD-3-Clause
"""What the tests on real interfaces share.

namespaces.py  network namespaces, veth pairs, processes: all taken away again
wire.py        raw frames in and out of an interface, by AF_PACKET
tap.py         a tap device: its file, read and written by the test
probe.py       the library's interface, worked by commands (probe.c)
forwarder.py   mr-l2fwd: started, read, stopped, its accounting checked
invariants.py        the accounting invariants, for probe and forwarder
"""
