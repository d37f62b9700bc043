"""What PyTorch programs allocate, recorded and written as the texts that
mempool/testing/trace_test.cc repeats for a day.

The client library says what comes and goes (LONGWIRE_TRACE=allocations); marks of the programs
(traced_programs.py) say where a body begins and ends. Of several bodies the last is taken; what is
in use when it begins is allocated before it."""
import pathlib
import re
import sys

import server
from tenants_beside import say

PROGRAMS = pathlib.Path(__file__).resolve().parent / "traced_programs.py"
# Of both programs on a GPU: model and requests, as comments for who reads the texts.
RECORDED = {
    "training": ("torch_training_recorded.txt", {}, """\
Training of a GPT of 0.5 billion parameters by PyTorch {torch}, with its caching allocator:
steps with batches of several lengths, an evaluation with others, torch.cuda.empty_cache()."""),
    "caches": ("growing_caches_recorded.txt", {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, """\
Inference by PyTorch {torch} without its caching allocator: 12 requests whose key and value
caches grow, every second one's by doubling, the others' by torch.cat."""),
}
FORM = """\
Recorded through Longwire on {device}.
  take NAME COUNT SIZE…   allocates COUNT of each size     give NAME   frees them
  grow NAME SIZE          NAME's buffer moves into one of this size
  repeat DAY SECONDS … end   as often as SECONDS fit into a day"""
EVENT = re.compile(r"longwire: ([+-]) (\d+) bytes at (0x[0-9a-f]+) on device (\d+)|^mark (.*)$")
SIZES_OF_A_LINE = 12


class Buffer:
    """One of the program's, also when it moves to a larger place."""

    def __init__(self, bytes):
        self.bytes, self.name = bytes, None


def size(bytes):
    for unit, letter in ((1 << 20, "m"), (1 << 10, "k")):
        if bytes % unit == 0:
            return f"{bytes // unit}{letter}"
    return str(bytes)


def events(lines):
    """("+" or "-", place, bytes) and ("mark", words)."""
    for line in lines:
        found = EVENT.search(line)
        if found and found[5] is not None:
            yield "mark", found[5].split(), None
        elif found:
            yield found[1], (found[4], found[3]), int(found[2])


def last_body(found):
    """Indices of its first event and of the mark behind it, and its seconds: the whole of a
    recording that has no marks."""
    marks = [index for index, event in enumerate(found) if event[0] == "mark"]
    starts = [index for index in marks if found[index][1] == ["body"]]
    ends = [index for index in marks if found[index][1][0] == "end"]
    if not starts and not ends:
        return 0, len(found), 1.0
    if len(starts) != len(ends) or starts[-1] > ends[-1]:
        raise ValueError(f"{len(starts)} bodies begin, {len(ends)} end")
    return starts[-1] + 1, ends[-1], float(found[ends[-1]][1][1])


def replayed(found, live):
    """Operations of these events: (what, buffer, bytes or words). `live` is kept true: buffers by
    place, the oldest first."""
    operations = []
    growing = None  # where in `operations` a buffer began to grow
    for kind, what, bytes in found:
        if kind == "+":
            live[what] = Buffer(bytes)
            operations.append(("take", live[what], bytes))
        elif kind == "-":
            if what not in live:
                raise ValueError(f"what is freed at {what} was never allocated")
            operations.append(("give", live.pop(what), bytes))
        elif what == ["grow"]:
            growing = len(operations)
        elif what == ["grown"]:
            as_growth(operations, growing, live)
        elif what[0] not in ("body", "end"):
            operations.append(("mark", None, " ".join(what)))
    return operations


def as_growth(operations, start, live):
    """Makes one operation of the larger buffer and the free of the old one, if that is all."""
    kinds = [operation[0] for operation in operations[start:]]
    if kinds != ["take", "give"]:
        return
    (_, larger, bytes), (_, old, old_bytes) = operations[start:]
    if bytes < old_bytes:
        return
    place = next(place for place, buffer in live.items() if buffer is larger)
    live[place] = old
    operations[start:] = [("grow", old, bytes)]
    old.bytes = bytes


def name_them(before, operations, live):
    """Names for all buffers. One that stays has the name of one of its size that went before it
    came, so that the next body finds what this one found."""
    for number, buffer in enumerate(before):
        buffer.name = f"b{number}"
    stays = set(live.values())
    free, went, taken = [], [], 0
    for what, buffer, _ in operations:
        if what == "take":
            same = next((lost for lost in went if before[lost] == buffer.bytes), None)
            if buffer in stays and same:
                went.remove(same)
                buffer.name = same.name
            elif free:
                buffer.name = free.pop()
            else:
                buffer.name, taken = f"t{taken}", taken + 1
        elif what == "give" and buffer.name[0] == "t":
            free.append(buffer.name)
        elif what == "give" and buffer in before:
            went.append(buffer)


def as_at_start(before, live):
    """Lines that make what is in use at a body's end what it was at its start, and sentences on how
    they differ."""
    start = {buffer.name: bytes for buffer, bytes in before.items()}
    end = {buffer.name: buffer.bytes for buffer in live.values()}
    more = [name for name in end if start.get(name) != end[name]]
    fewer = [name for name in start if start[name] != end.get(name)]
    if not more and not fewer:
        return [], []
    lines = ["# Not recorded: what is in use is made what it was when this began.",
             *(f"give {name}" for name in more),
             *(f"take {name} 1 {size(start[name])}" for name in fewer)]
    return lines, [f"NOT THE SAME at the body's end as at its start: {len(more)} buffers of "
                   f"{sum(end[name] for name in more)} bytes instead of {len(fewer)} of "
                   f"{sum(start[name] for name in fewer)}; the last lines make it so"]


def most_in_use(before, operations):
    now = dict(before)
    all_bytes = most = sum(now.values())
    for what, buffer, value in operations:
        if what == "mark":
            continue
        bytes = 0 if what == "give" else value
        # A buffer that grows is there twice for a moment.
        most = max(most, all_bytes + bytes)
        all_bytes += bytes - now.get(buffer, 0)
        now[buffer] = bytes
    return most


def line_of(what, buffer, value):
    return {"take": lambda: f"take {buffer.name} 1 {size(value)}",
            "give": lambda: f"give {buffer.name}",
            "grow": lambda: f"grow {buffer.name} {size(value)}",
            "mark": lambda: f"# {value}"}[what]()


def converted(lines, heading):
    """The text, the most bytes in use, and a sentence for each thing that is not as it should."""
    found = list(events(lines))
    start, end, seconds = last_body(found)
    live = {}
    replayed(found[:start], live)
    before = {buffer: buffer.bytes for buffer in live.values()}
    operations = replayed(found[start:end], live)
    name_them(before, operations, live)
    touched = {buffer for _, buffer, _ in operations}
    text = [f"# {line}" for line in heading.splitlines()]
    stay = [size(bytes) for buffer, bytes in before.items() if buffer not in touched]
    for first in range(0, len(stay), SIZES_OF_A_LINE):
        text.append(f"take stays 1 {' '.join(stay[first:first + SIZES_OF_A_LINE])}")
    text += [f"take {buffer.name} 1 {size(bytes)}"
             for buffer, bytes in before.items() if buffer in touched]
    text.append(f"repeat DAY {max(seconds, 0.01):.2f}")
    text += [line_of(*operation) for operation in operations]
    closing, faults = as_at_start(before, live)
    return "\n".join([*text, *closing, "end", ""]), most_in_use(before, operations), faults


def record(longwire, which, folder, raw):
    name, environment, heading = RECORDED[which]
    done = server.run(list(map(str, longwire.command(sys.executable, PROGRAMS, which))),
                      longwire.environment(CUDA_VISIBLE_DEVICES="0", LONGWIRE_TRACE="allocations",
                                           **environment), 120)
    lines = done.err.splitlines()
    others = [line for line in lines if not EVENT.search(line)]
    raw.write("\n".join([f"{which}: {len(lines)} lines", *others, ""]))
    if done.code != 0:
        raise SystemExit(f"{which} ended with {done.code}: " + "\n".join(others[-20:]))
    torch, device = done.out.splitlines()[:2]
    text, most, faults = converted(lines, heading.format(torch=torch) + "\n" +
                                   FORM.format(device=device))
    (folder / name).write_text(text)
    say(raw, f"{name}: {len(text.encode())} bytes, {text.count(chr(10))} lines, "
             f"{text.count(chr(10) + 'grow ')} grow, {most / 2**30:.2f} GiB in use at most, "
             f"{done.seconds:.1f} s")
    for fault in faults + (["less than 8 GiB in use"] if most < 8 << 30 else []):
        say(raw, f"{name}: {fault}")


def run(build, driver, folder, raw):
    with server.Server(driver, build=build) as longwire:
        for which in RECORDED:
            record(longwire, which, folder, raw)
