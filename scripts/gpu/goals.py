"""What the figures of a run are held against. A goal that is missed is slow, not red."""

FLOOR = 1.5  # times its floor, for a kernel of ours at batch 4096
SECONDS_TO_LEARN = 1.0
ACCURACY = 0.91


def rows_of(parts, name):
    return parts.get(name, {}).get("rows", [])


def fastest(rows, modes, batch, precision):
    """The row with the fewest milliseconds a step, or None."""
    chosen = [row for row in rows if row["mode"] in modes and row["batch"] == batch
              and row["precision"] == precision]
    return min(chosen, key=lambda row: row["milliseconds"], default=None)


def how(row):
    return row["mode"] + (", autotuned" if row.get("autotune") else "")


def against(parts, batch, precision, part, modes, what, times):
    """One goal: our fastest step against the peer's of the same precision."""
    ours = fastest(rows_of(parts, "timings"), ("eager", "graph"), batch, precision)
    peer = fastest(rows_of(parts, part), modes, batch, precision)
    name = f"{precision}, batch {batch}, {times} x {what}"
    if ours is None or peer is None:
        return {"goal": name, "reached": None}
    ratio = peer["milliseconds"] / ours["milliseconds"]
    return {"goal": name, "reached": ratio >= times, "wanted": times, "measured": round(ratio, 3),
            "said": f"{ratio:.2f} x ({ours['milliseconds']:.3f} ms {how(ours)}, {peer['who']} {peer['milliseconds']:.3f} ms "
                    f"{peer['mode']})"}


def learning(parts):
    goal = f"Fashion-MNIST to {ACCURACY:.0%} in {SECONDS_TO_LEARN:.0f} s, everything in"
    runs = [row for row in parts.get("demo", {}).get("runs", []) if row["test_accuracy"] >= ACCURACY]
    if not runs:
        return {"goal": goal, "reached": None}
    best = min(runs, key=lambda row: row["wall_seconds"])
    return {"goal": goal, "reached": best["wall_seconds"] <= SECONDS_TO_LEARN, "wanted": SECONDS_TO_LEARN,
            "measured": best["wall_seconds"],
            "said": f"{best['wall_seconds']:.2f} s to {best['test_accuracy']:.2%} {best['flags'] or 'f32'}"}


def floors(parts):
    goal = f"kernels within {FLOOR} x their floors at batch 4096"
    rows = [row for row in rows_of(parts, "floors") if row["batch"] == 4096 and "cuDNN" not in row["kernel"]]
    if not rows:
        return {"goal": goal, "reached": None}
    slow = sorted((row for row in rows if row["times_floor"] > FLOOR), key=lambda row: -row["times_floor"])
    said = ", ".join(f"{row['kernel']} {row['times_floor']:.1f} x" for row in slow[:4])
    return {"goal": goal, "reached": not slow, "wanted": FLOOR, "measured": max(row["times_floor"] for row in rows),
            "said": f"{len(slow)} of {len(rows)} kernels: {said}{' ...' if len(slow) > 4 else ''}" if slow else
                    f"all {len(rows)}"}


def judge(parts):
    """Every goal with whether it is reached: True, False, or None where something was not measured."""
    compiled = ("graph", "compiled", "compiled-graph")
    return [against(parts, 256, "f32", "torch", ("eager",), "PyTorch eager", 1.5),
            against(parts, 256, "tf32", "torch", ("eager",), "PyTorch eager", 3),
            against(parts, 256, "tf32", "torch-compiled", compiled, "PyTorch's best compiled with graphs", 1.2),
            against(parts, 32, "f32", "torch", ("eager",), "PyTorch eager", 4),
            against(parts, 32, "tf32", "torch", ("eager",), "PyTorch eager", 4),
            learning(parts),
            floors(parts)]
