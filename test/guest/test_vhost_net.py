# SPDX-License-Identifier: BSD-3-Clause
"""virtio-user: ports whose back end is the kernel: /dev/vhost-net and a tap."""
from conftest import CONFORMANCE, PROGRAMS, boot, check_log, forget_log, run_suite

MODULES = ["tun", "vhost_net"]


def test_suite():
    """Every test of the suite passes, on a tap as the other end."""
    with boot([], programs=[CONFORMANCE], modules=MODULES) as guest:
        assert guest.run("busybox tunctl -t far0 && "
                         "ip link set far0 mtu 9000 && ip link set far0 up")[0] == 0
        forget_log(guest)
        run_suite(guest, "virtio-user:/dev/vhost-net,tap=far0", 48, "queues")
        check_log(guest)


# Questions for an address that nobody has come back as they went.
TWO_QUEUES = "; ".join([
    "mr-l2fwd --mode macswap virtio-user:/dev/vhost-net,tap=t0,queues=2 >/tmp/log 2>&1 &"
    " for i in $(seq 600); do [ -e /sys/class/net/t0 ] && break; sleep 0.1; done",
    "ip addr add 10.9.0.1/24 dev t0 && ip link set t0 up",
    "for i in $(seq 60); do ping -c 1 -W 1 10.9.0.2 >/dev/null;"
    " [ $(cat /sys/class/net/t0/statistics/rx_packets) -gt 2 ] && break; done",
    "cat /tmp/log /sys/class/net/t0/statistics/rx_packets",
    "kill $!; wait $!",
    "[ ! -e /sys/class/net/t0 ] && [ $i -lt 60 ]"])


def test_two_queues_send_back_what_comes():
    """The tap that the port created disappears with it."""
    with boot([], programs=PROGRAMS, modules=MODULES) as guest:
        forget_log(guest)
        status, text = guest.run(TWO_QUEUES)
        assert status == 0, text
        check_log(guest)
