# SPDX-License-Identifier: BSD-3-Clause
"""Documents as the commands write them, made up, the same each time.

They let compare and report be tested on any machine and without an hour of
measuring. They are held against the schema like real ones.
"""
import math
import random

SIZES = [60, 124, 252, 508, 1020, 1276, 1514]
LINE_BPS = 10e9
# Of the device: frames by second, and bits on the wire.
MOST_PPS, MOST_BPS = 9.1e6, 9.97e9


def line_pps(frame_bytes):
    return LINE_BPS / ((frame_bytes + 24) * 8)


def device_pps(frame_bytes):
    return min(MOST_PPS, MOST_BPS / ((frame_bytes + 24) * 8))


def machine(label):
    return {
        "cpu": "Example CPU 3.0 GHz", "cores": 16, "microcode": "0x1",
        "governor": "performance", "smt": False, "numa_nodes": 2,
        "isolated": "2-15", "nohz_full": "2-15",
        "vulnerabilities": ["spectre_v1: Mitigation: usercopy/swapgs"],
        "guest": "", "kernel": "Linux 6.18.0",
        "kernel_words": "isolcpus=2-15 nohz_full=2-15 mitigations=auto",
        "clock_source": "tsc", "thp": "madvise", "huge_pages": 2048,
        "huge_pages_free": 1024, "load": "0.10 0.10 0.10 1/200 999",
        "compiler": "12.2.0", "flags": "-O3", "millrace": "0.1.0",
        "dpdk": "none", "command": f"mr-bench throughput --label {label}",
        "date": "2026-11-21T20:00:00Z"}


def port(name, **more):
    pci = {key: "" for key in (
        "vendor", "device", "subsystem_vendor", "subsystem_device",
        "revision", "driver", "link_speed", "link_width", "max_link_speed",
        "max_link_width")}
    pci |= {"link_speed": "8.0 GT/s PCIe", "link_width": "8",
            "max_link_speed": "16.0 GT/s PCIe", "max_link_width": "8"}
    return {
        "name": f"xdp:{name}", "sends": True, "receives": True, "mode": "zc",
        "why": "", "rx_queues": 1, "tx_queues": 1, "mtu": 1500, "offloads": 0,
        "numa_node": 0, "locked_bytes": 1 << 24, "link_mbps": 10000,
        "nic": {"driver": "ice", "driver_version": "6.18.0",
                "firmware": "4.40 0x8001c967 1.3534.0",
                "rings": {"rx": 2048, "tx": 2048}, "coalesce": {
                    "rx_us": 50, "tx_us": 50, "rx_adaptive": True,
                    "tx_adaptive": True},
                "link_mbps": 10000, "napi_defer_hard_irqs": 0,
                "gro_flush_timeout_ns": 0, "pci": pci, "numa_node": 0,
                "numa_distance": 10}} | more


def step_end(ns):
    """Where the histogram's bucket of a value ends: 32 per power of two."""
    step = 1
    while ns // step >= 64:
        step *= 2
    return (ns // step) * step, (ns // step + 1) * step


def times(values):
    """Summary, percentiles and histogram of some times."""
    values = sorted(max(int(v), 0) for v in values)

    def at(percentile):
        return values[max(math.ceil(percentile / 100 * len(values)), 1) - 1]

    mean = sum(values) / len(values)
    summary = {
        "n": len(values), "n_over": 0, "min": values[0], "mean": mean,
        "stddev": math.sqrt(sum((v - mean) ** 2 for v in values) /
                            len(values)),
        "p50": at(50), "p90": at(90), "p99": at(99), "p999": at(99.9),
        "p9999": at(99.99), "max": values[-1]}
    points, p = [], 0.0
    while p < 100 and (100 - p) / 100 * len(values) >= 0.5:
        points.append([p, at(p)])
        p += 100 / (5 * 2 ** (math.floor(math.log2(100 / (100 - p))) + 1))
    points.append([100, values[-1]])
    buckets = {}
    for value in values:
        buckets[step_end(value)] = buckets.get(step_end(value), 0) + 1
    return summary, points, [[low, high, n] for (low, high), n in
                             sorted(buckets.items())]


def trial(dice, frame_bytes, asked_pps, start_s, duration_s=10.0,
          most_pps=None):
    """A trial at a rate, of a device that forwards most_pps."""
    most_pps = most_pps or device_pps(frame_bytes)
    load = asked_pps / most_pps
    n_sent = int(asked_pps * duration_s)
    n_lost = max(0, int((asked_pps - most_pps) * duration_s))
    base_ns = 4000 + frame_bytes * 1.6 + 4000 / max(1.02 - load, 0.02)
    latency = [base_ns * dice.lognormvariate(0, 0.18) +
               (dice.random() < 0.002) * dice.uniform(2e4, 2e5)
               for _ in range(4000)]
    lateness = [abs(dice.gauss(60, 25)) +
                (dice.random() < 0.001) * dice.uniform(1e3, 3e4)
                for _ in range(4000)]
    late, latency = times(lateness), times(latency)
    return {
        "frame_bytes": frame_bytes, "asked_pps": asked_pps,
        "start_s": start_s, "duration_s": duration_s,
        "whole_s": duration_s + 1,
        "tx": {"due": n_sent, "sent": n_sent, "unsent": 0,
               "bytes": n_sent * frame_bytes, "pps": asked_pps},
        "rx": {"received": n_sent - n_lost, "unique": n_sent - n_lost,
               "lost": n_lost, "duplicates": 0, "reordered": 0, "too_old": 0,
               "foreign": 0, "bytes": (n_sent - n_lost) * frame_bytes,
               "pps": (n_sent - n_lost) / duration_s},
        "lateness": late[0], "latency": latency[0],
        "percentiles": {"lateness": late[1], "latency": latency[1]},
        "histogram": {"latency": latency[2]},
        "clock_error_ns": 40, "streams": [], "directions": [],
        "cpu_share": 0.8,
        "complete": True, "why_stopped": "",
        "drops": [{"port": "xdp:v1", "side": "dev", "name": "rx_missed",
                   "n": n_lost}] if n_lost else []}


def document(kind, label, rows, trials, series=()):
    return {
        "schema": "mr-bench-net", "v": 1, "kind": kind, "label": label,
        "date": "2026-11-21T20:00:00Z",
        "command": f"mr-bench {kind} xdp:p0 xdp:p1 --label {label}",
        "millrace": "0.1.0", "complete": True, "why_incomplete": "",
        "machine": machine(label), "ports": [port("p0"), port("p1")],
        "line_bps": LINE_BPS, "clock": {"source": "tsc", "error_ns": 41},
        "device": "", "streams": ["size=60"], "cores": [2, 3],
        "config": {"resolution": 0.005, "trial_s": 10},
        "measured": {},
        "selftest": [{"frame_bytes": size, "mean_bytes": size,
                      "ceiling_pps": min(13.2e6, line_pps(size))}
                     for size in SIZES],
        "rows": rows, "trials": trials, "series": list(series)}


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


def soak_document(label="bridge", seed=3, n=600):
    """Ten minutes at one rate, with a disturbance in the middle."""
    dice = random.Random(seed)
    pps, series = 4e6, []
    for second in range(n):
        lost = int(dice.uniform(2e3, 9e4)) if 300 <= second < 304 else 0
        p50 = 9000 * dice.lognormvariate(0, 0.03)
        p99 = p50 * dice.uniform(1.5, 1.8) + (lost > 0) * 9e4
        series.append({
            "frame_bytes": 60, "start_s": float(second), "duration_s": 1.0,
            "tx_pps": pps * dice.uniform(0.9995, 1), "rx_pps": pps - lost,
            "sent": int(pps), "unsent": 0, "lost": lost,
            "lateness": {"p50": 60, "p99": 140, "max": 9000},
            "latency": {"p50": int(p50), "p99": int(p99),
                        "max": int(p99 * dice.uniform(1.5, 4))}})
    n_lost = sum(interval["lost"] for interval in series)
    # The path check is the only trial: no row rests on it.
    return document("soak", label, [
        row(60, "loss", n_lost / (pps * n), "ratio", [], 0)],
        [trial(dice, 60, 1000, 0.0, 0.1)], series)


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
