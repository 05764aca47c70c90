# SPDX-License-Identifier: BSD-3-Clause
"""The accounting invariants of the design, checked from outside.

    received = delivered + offloaded + passed_to_kernel + sum of rx drops
    accepted = completed + pending + sum of tx drops

The forwarder checks them itself and says so; this does the sums again, from
what it printed, so that a forwarder that only says so is found out.
"""


def check_queue(queue, where):
    """The two invariants for one queue; a queue may lack one side."""
    rx, tx = queue.get("rx"), queue.get("tx")
    if rx:
        assert rx["received"] == rx["delivered"] + rx["offloaded"] + \
            rx["passed_to_kernel"] + sum(rx["drops"].values()), \
            f"{where}: rx: {rx}"
    if tx:
        assert tx["accepted"] == tx["completed"] + tx["pending"] + sum(
            tx["drops"].values()), f"{where}: tx: {tx}"


def check_ports(ports):
    """Both invariants for every queue of every port."""
    for port in ports:
        for i, queue in enumerate(port["queues"]):
            check_queue(queue, f"{port['port']}/{i}")


def total(port, side, counter):
    """A counter of a port, summed over its queues."""
    return sum(queue[side][counter] for queue in port["queues"]
               if side in queue)


def drops(port, side):
    """{name: frames} of a port, summed over its queues."""
    names = {}
    for queue in port["queues"]:
        for name, n in queue.get(side, {}).get("drops", {}).items():
            names[name] = names.get(name, 0) + n
    return names


def worker_total(final, counter):
    """A counter of the workers, summed."""
    return sum(worker[counter] for worker in final["workers"])


def worker_drops(final):
    """{name: frames} that the forwarder itself dropped."""
    names = {}
    for worker in final["workers"]:
        for name, n in worker["drops"].items():
            names[name] = names.get(name, 0) + n
    return names


def check_final(final):
    """The last object of mr-l2fwd: invariants, the way through, conservation."""
    assert final.get("final") is True and final["v"] == 1, final
    check_ports(final["ports"])
    delivered = sum(total(p, "rx", "delivered") for p in final["ports"])
    accepted = sum(total(p, "tx", "accepted") for p in final["ports"])
    # A frame that is segmented on its way out is several.
    added = sum(queue["events"].get("tx_gso_added", 0)
                for port in final["ports"] for queue in port["queues"])
    merged = worker_total(final, "merged")
    assert delivered + added + worker_total(final, "cloned") == accepted + \
        merged + sum(worker_drops(final).values()), (
            f"delivered {delivered} + added {added} + cloned is not accepted "
            f"{accepted} + merged {merged} + dropped {worker_drops(final)}")
    pool = final["pool"]
    assert pool["n_free"] == pool["n_pages"], f"pages are missing: {pool}"
    assert pool["n_in_flight"] == 0 and pool["free_invalid"] == 0, pool
    assert final["invariants_hold"] and final["conserved"], final


def lost_by_name(final, port):
    """Frames from the wire of a port that did not leave: {name: frames}.

    What the device lost, what the rx side lost, what the forwarder dropped.
    """
    names = {f"device {k}": n for k, n in
             final["ports"][port]["device_drops"].items()}
    names.update((f"rx {k}", n) for k, n in
                 drops(final["ports"][port], "rx").items())
    names.update((f"worker {k}", n) for k, n in worker_drops(final).items())
    return {name: n for name, n in names.items() if n}
