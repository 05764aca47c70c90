# SPDX-License-Identifier: BSD-3-Clause
"""Documents as the commands write them, made up, the same each time.

They let compare and report be tested on any machine and without an hour of
measuring. What is not a figure is from a trial under a virtual clock.
"""
import copy
import functools
import json
import random

from bench_program import run

SIZES = [60, 124, 252, 508, 1020, 1276, 1514]
LINE_BPS = 10e9
# Of the device: frames by second, and bits on the wire.
MOST_PPS, MOST_BPS = 9.1e6, 9.97e9
NIC = {
    "driver": "ice", "driver_version": "6.18.0",
    "firmware": "4.40 0x8001c967 1.3534.0", "rings": {"rx": 2048, "tx": 2048},
    "coalesce": {"rx_us": 50, "tx_us": 50, "rx_adaptive": True,
                 "tx_adaptive": True},
    "link_mbps": 10000, "numa_node": 0, "numa_distance": 10,
    "pci": dict.fromkeys(("vendor", "device", "subsystem_vendor",
                          "subsystem_device", "revision", "driver"), "") | {
        "link_speed": "8.0 GT/s PCIe", "link_width": "8",
        "max_link_speed": "16.0 GT/s PCIe", "max_link_width": "16"}}


def line_pps(frame_bytes):
    return LINE_BPS / ((frame_bytes + 24) * 8)


def device_pps(frame_bytes):
    return min(MOST_PPS, MOST_BPS / ((frame_bytes + 24) * 8))


@functools.cache
def measured():
    """What mr-bench wrote of frames that queue before a device."""
    done = run("loop", "--virtual", "-q", "--json", "--pace", "poisson",
               "--rate", "440k", "--count", 20000, "--device",
               "rate=500k,queue=512", "pair:a", "pair:b")
    assert done.rc == 0, done.err
    return json.loads(done.out)


def stretched(times, factor):
    """A summary of times, each of which is so much longer."""
    return {key: value if key in ("n", "n_over") else
            value * factor if key in ("mean", "stddev") else int(value * factor)
            for key, value in times.items()}


def trial(dice, frame_bytes, asked_pps, start_s, duration_s=10.0,
          most_pps=None):
    """A trial at a rate, of a device that forwards most_pps."""
    most_pps = most_pps or device_pps(frame_bytes)
    load = asked_pps / most_pps
    n_sent = int(asked_pps * duration_s)
    n_lost = max(0, int((asked_pps - most_pps) * duration_s))
    found = copy.deepcopy(measured()["trials"][0])
    factor = {
        "latency": (1 + frame_bytes / 2500 + 0.2 / max(1.02 - load, 0.02)) *
        dice.uniform(0.98, 1.02),
        "lateness": 0.02 * dice.uniform(0.9, 1.1)}
    times, points = found["latency"], found["percentiles"]["latency"]
    for key, by in factor.items():
        found[key] = stretched(times, by)
        found["percentiles"][key] = [[p, int(ns * by)] for p, ns in points]
    found["histogram"]["latency"] = [
        [int(low * factor["latency"]), int(end * factor["latency"]), n]
        for low, end, n in found["histogram"]["latency"]]
    found["tx"] |= {"due": n_sent, "sent": n_sent, "pps": asked_pps,
                    "bytes": n_sent * frame_bytes}
    found["rx"] |= dict.fromkeys(("received", "unique"), n_sent - n_lost) | {
        "lost": n_lost, "bytes": (n_sent - n_lost) * frame_bytes,
        "pps": (n_sent - n_lost) / duration_s}
    return found | {
        "frame_bytes": frame_bytes, "asked_pps": asked_pps,
        "start_s": start_s, "duration_s": duration_s,
        "whole_s": duration_s + 1, "clock_error_ns": 40, "streams": [],
        "drops": [{"port": "xdp:v1", "side": "dev", "name": "rx_missed",
                   "n": n_lost}] if n_lost else []}


def document(kind, label, rows, trials):
    root = copy.deepcopy(measured())
    for name, port in zip(("p0", "p1"), root["ports"]):
        port |= {"name": f"xdp:{name}", "mode": "zc", "mtu": 1500,
                 "link_mbps": 10000, "nic": NIC}
    return root | {
        "kind": kind, "label": label,
        "command": f"mr-bench {kind} xdp:p0 xdp:p1 --label {label}",
        "line_bps": LINE_BPS, "clock": {"source": "tsc", "error_ns": 41},
        "device": "", "config": {"resolution": 0.005, "trial_s": 10},
        "selftest": [{"frame_bytes": size, "mean_bytes": size,
                      "ceiling_pps": min(13.2e6, line_pps(size))}
                     for size in SIZES],
        "rows": rows, "trials": trials}


def row(frame_bytes, goal, value, unit, trials, width=0.0025, **more):
    return {"frame_bytes": frame_bytes, "goal": goal, "value": value,
            "unit": unit, "low": value * (1 - width),
            "high": value * (1 + width), "is_limited_by_tester": False,
            "trials": trials, "note": ""} | more


def sample_document(label="bridge", share=1.0, seed=1):
    """A throughput search over all sizes: zero loss, and half a percent."""
    dice = random.Random(seed)
    rows, trials = [], []
    for size in SIZES:
        most = device_pps(size) * share
        for goal, pps in (("ndr", most * 0.97), ("pdr", most)):
            trials.append(trial(dice, size, pps, len(trials) * 11.0,
                                most_pps=most))
            rows.append(row(size, goal, pps, "frames/s", [len(trials) - 1]))
        at_line = most >= line_pps(size) * 0.995
        rows[-1]["is_limited_by_tester"] = at_line
        rows.append(row(size, "latency-p99",
                        trials[-2]["latency"]["p99"], "ns",
                        [len(trials) - 2], 0.02))
    return document("throughput", label, rows, trials)


def frameloss_document(label="bridge", seed=2):
    """From full rate down by tenths, until two are clean."""
    dice = random.Random(seed)
    rows, trials = [], []
    for size in (60, 252, 1514):
        n_clean, percent = 0, 100
        # The path check, and a trial that was taken again.
        asked = [1000, line_pps(size)]
        before = range(len(trials), len(trials) + len(asked))
        trials += [trial(dice, size, pps, 0.0) for pps in asked]
        trials[-1]["tx"]["unsent"] = 777777
        while n_clean < 2 and percent > 0:
            pps = line_pps(size) * percent / 100
            trials.append(trial(dice, size, pps, len(trials) * 11.0))
            lost = trials[-1]["rx"]["lost"] / trials[-1]["tx"]["sent"]
            rows.append(row(size, f"loss-at-{percent}%", lost, "ratio",
                            [], 0))
            n_clean += lost == 0
            percent -= 10
        for one in rows[-(100 - percent) // 10:]:
            one["trials"] = list(range(before[0], len(trials)))
    return document("frameloss", label, rows, trials)


def latency_document(label="bridge", seed=4):
    """At shares of the throughput, behind a path check."""
    dice = random.Random(seed)
    trials, rows = [trial(dice, 60, 1000, 0.0, 0.1)], []
    for percent in (10, 50, 90):
        trials.append(trial(dice, 60, device_pps(60) * percent / 100,
                            len(trials) * 11.0))
        for point in ("p50", "p99"):
            rows.append(row(60, f"latency-{point}-at-{percent}%",
                            trials[-1]["latency"][point], "ns",
                            [len(trials) - 1], 0))
    return document("latency", label, rows, trials)
