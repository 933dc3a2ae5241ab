"""The report as text: at its top, in ten lines, what is green, what is red and what is slow; then the figures."""

LINES = 10
WIDTH = 160
TESTS_SHOWN = 40


def cut(line):
    return line if len(line) <= WIDTH else line[:WIDTH - 4] + " ..."


def first_line(part):
    return (part.get("why") or "").split("\n", maxsplit=1)[0]


def with_count(name, part):
    counts = part.get("counts", {})
    passed = sum(of_room.get("passed", 0) for of_room in counts.values())
    return f"{name} ({passed} tests)" if counts else name


def head(data):
    machine = data["machine"]
    gpu = machine["gpu"].get("name")
    where = f"{gpu}, driver {machine['gpu'].get('driver')}" if gpu else "a machine without a GPU"
    what = "Rehearsal" if data["rehearsal"] else "Ringlet"
    return f"{what} on {where}, commit {data['commit'] or 'unknown'}, {data['date']}: {data['seconds']:.0f} s of " \
           f"{data['budget']:.0f} s{', stopped from outside' if data.get('stopped') else ''}"


def group(data, *verdicts):
    return [(name, part) for name, part in data["parts"].items() if part["verdict"] in verdicts]


def top(data):
    """At most ten lines. Where there is more that is red or slow than fits, the last line of each says how much."""
    red = [f"RED      {name}: {first_line(part)}" for name, part in group(data, "RED")]
    slow = [f"SLOW     {goal['goal']}: {goal['said']}" for goal in data["goals"] if goal["reached"] is False]
    reached = [f"{goal['goal']}: {goal['said']}" for goal in data["goals"] if goal["reached"]]
    open_goals = [goal["goal"] for goal in data["goals"] if goal["reached"] is None]
    rest = [f"{name} ({part['verdict']}{': ' if first_line(part) else ''}{first_line(part)})"
            for name, part in group(data, "skipped", "not run", "running")]
    others = ["GREEN    " + (", ".join(with_count(name, part) for name, part in group(data, "green")) or "nothing")]
    others += ["REACHED  " + "; ".join(reached)] if reached else []
    others += ["UNKNOWN  " + "; ".join(open_goals)] if open_goals and not data["rehearsal"] else []
    others += ["NOT RUN  " + "; ".join(rest)] if rest else []
    room = LINES - 1 - len(others)
    share = max(room - min(len(slow), room // 2), 1)
    lines = [head(data), others[0], *shortened(red, share, "RED")]
    lines += shortened(slow, LINES - len(lines) - len(others) + 1, "SLOW")
    return [cut(line) for line in lines + others[1:]][:LINES]


def shortened(lines, room, word):
    if len(lines) <= room:
        return lines
    left = lines[max(room - 1, 0):]
    return lines[:max(room - 1, 0)] + [f"{word:8} and {len(left)} more: " + "; ".join(line[9:].split(":")[0] for line in left)]


# ---------------------------------------------------------------- below the ten lines

def steps(data):
    rows = data["parts"].get("timings", {}).get("rows", [])
    rows = rows + data["parts"].get("torch", {}).get("rows", []) + data["parts"].get("torch-compiled", {}).get("rows", [])
    if not rows:
        return []
    lines = ["", "Training steps of lenet-d2l", f"  {'who':14} {'mode':15} {'autotune':8} {'batch':>6} {'type':>5} "
             f"{'ms a step':>10} {'samples/s':>12}"]
    for row in sorted(rows, key=lambda row: (row["batch"], row["precision"], row["milliseconds"])):
        lines.append(f"  {row['who']:14} {row['mode']:15} {'on' if row.get('autotune', 'torch' in row['who']) else 'off':8} "
                     f"{row['batch']:>6} {row['precision']:>5} {row['milliseconds']:>10.4f} "
                     f"{row['samples_per_second']:>12,.0f}")
    return lines


def kernel_floors(data):
    rows = data["parts"].get("floors", {}).get("rows", [])
    if not rows:
        return []
    lines = ["", "Kernels and their floors", f"  {'kernel':42} {'batch':>6} {'us':>10} {'floor us':>10} {'x floor':>8}"]
    return lines + [f"  {row['kernel']:42} {row['batch']:>6} {1e6 * row['seconds']:>10.2f} {1e6 * row['floor_seconds']:>10.2f} "
                    f"{row['times_floor']:>8.2f}" for row in rows]


def profile(data):
    lines = []
    for name in ("f32", "tf32"):
        table = data["parts"].get("profile", {}).get(name)
        if not table:
            continue
        lines += ["", f"Kernels of {table['steps']} steps at batch 256, {name}, by Nsight Compute",
                  f"  {'sum us':>9} {'launches':>8} {'mean us':>9}  kernel"]
        lines += [f"  {row['sum_us']:>9.1f} {row['launches']:>8} {row['mean_us']:>9.2f}  {row['kernel'][:100]}"
                  for row in table["kernels"]]
    return lines


def bad_tests(data):
    lines = []
    for name, part in data["parts"].items():
        for room, results in part.get("tests", {}).items():
            bad = [(test, result) for test, result in results.items() if result["verdict"] not in ("passed", "skipped")]
            for test, result in bad[:TESTS_SHOWN]:
                lines += ["", f"{name}: {room}_tests: {test} {result['verdict']}"]
                lines += ["    " + line for line in result.get("message", "").splitlines()]
    return lines


def text(data):
    lines = list(data["summary"]) + ["", f"{'part':16} {'verdict':8} {'seconds':>8}"]
    for name, part in data["parts"].items():
        lines.append(f"{name:16} {part['verdict']:8} {part.get('seconds', 0):>8.1f}")
    for name, part in group(data, "RED"):
        lines += ["", f"{name} is red:", *("    " + line for line in part["why"].splitlines())]
    lines += ["", "Goals"] + [f"  {'reached' if goal['reached'] else 'SLOW' if goal['reached'] is False else 'unknown':8} "
                              f"{goal['goal']}{': ' if goal.get('said') else ''}{goal.get('said', '')}" for goal in data["goals"]]
    return lines + bad_tests(data) + steps(data) + profile(data) + kernel_floors(data)
