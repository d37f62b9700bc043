"""What probes cost: kernels with PTX (probe_load.cu), run and probed by each tool in turn; medians
and their ratio to the run without. What they compute must be the same: its hash is compared."""
import statistics

import server
from tenants_beside import say

TOOLS = ["threadhist", "kernelretsnoop", "launchlate", "smload", "memhist"]
KERNELS = ["matmul", "attention", "vector_add"]
SECONDS = 200


def figures(text):
    """{name: value} of "name value unit" lines; hashes stay whole."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3:
            found[words[0]] = int(words[1]) if words[2] == "hash" else float(words[1])
    return found


def measure(longwire, program, tool, raw):
    start = [longwire.dist / "bin" / "longwire"]
    start += ["probe", tool] if tool else ["run"]
    result = server.run([*start, "--server", longwire.address, "--", program],
                        longwire.environment(), SECONDS)
    raw.write(f"$ {tool or 'run'}\n{result.out}{result.err[:6000]}\n")
    found = figures(result.out)
    if result.code != 0 or not found:
        raise SystemExit(f"{tool or 'run'}: {result}")
    if tool and " 0 places" in result.err:
        raise SystemExit(f"{tool}: no kernel was probed: {result.err}")
    return found


def run(build, driver, raw, out, rounds, tools=None):
    tools = tools or TOOLS
    program = build / "bench" / "probe_load"
    rows = {tool: {} for tool in [None, *tools]}
    with server.Server(driver, build=build) as longwire:
        for _ in range(rounds):
            for tool, row in rows.items():
                for name, value in measure(longwire, program, tool, raw).items():
                    row.setdefault(name, []).append(value)
    plain = rows.pop(None)
    say(out, f"{'kernel':<12} {'tool':<16} {'run':>12} {'probed':>12} {'ratio':>8}  results")
    for kernel in KERNELS:
        for tool, row in rows.items():
            one, other = statistics.median(plain[kernel]), statistics.median(row[kernel])
            same = set(row[f"{kernel}_result"]) == set(plain[f"{kernel}_result"])
            say(out, f"{kernel:<12} {tool:<16} {one:12.1f} {other:12.1f} {other / one:8.3f}  "
                     f"{'equal' if same else 'DIFFERENT'}")
