"""Reads a file of trace events as its format has it, and says what is wrong with it: Google's
"Trace Event Format", as chrome://tracing and Perfetto read it."""
import collections
import json

MICROSECOND = 1e-6
PROGRAM, WAY, WORKER, DEVICE = 1, 2, 3, 10
NEEDS = {"X": {"pid", "tid", "ts", "dur", "name"}, "b": {"pid", "ts", "cat", "id", "name"},
         "e": {"pid", "ts", "cat", "id", "name"}, "s": {"pid", "tid", "ts", "cat", "id", "name"},
         "f": {"pid", "tid", "ts", "cat", "id", "name", "bp"}, "C": {"pid", "ts", "name", "args"},
         "i": {"pid", "ts", "name", "s"}, "M": {"pid", "name", "args"}}


def read(path):
    """The events; a list without an end, as a killed program leaves it, may end in half a line."""
    text = path.read_text()
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(text[:text.rindex("},\n") + 1] + "]")


def nanoseconds(microseconds):
    return round(microseconds * 1000)


def bounds(event):
    begin = nanoseconds(event["ts"])
    return begin, begin + nanoseconds(event["dur"])


def spans(events, pid):
    return [event for event in events if event["ph"] == "X" and event["pid"] == pid]


def wrong_events(events):
    for event in events:
        missing = NEEDS[event["ph"]] - event.keys() if event.get("ph") in NEEDS else {"a known ph"}
        if missing:
            yield f"{event} lacks {missing}"
        elif event["ph"] != "M" and (event["ts"] < 0 or event.get("dur", 0) < 0):
            yield f"{event} is before the beginning"


def wrong_nesting(events):
    """Spans of one track lie beside each other or one within the other."""
    tracks = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append(event)
    for track in tracks.values():
        open_until = []
        for event in sorted(track, key=lambda one: (bounds(one)[0], -one["dur"])):
            begin, end = bounds(event)
            while open_until and open_until[-1][0] <= begin:
                open_until.pop()
            if open_until and end > open_until[-1][0]:
                yield f"{event} ends after {open_until[-1][1]}, within which it began"
            open_until.append((end, event))


def wrong_ways(events):
    """Each part of a way begins and ends, and the next begins where it ended."""
    parts = collections.defaultdict(list)
    for event in events:
        if event["ph"] in "be":
            parts[event["id"]].append(event)
    for way in parts.values():
        for begin, end in zip(way[::2], way[1::2]):
            pair = (begin["ph"], end["ph"], begin["name"]) == ("b", "e", end["name"])
            if not pair or end["ts"] < begin["ts"]:
                yield f"{begin} and {end} are no pair"
        for end, begin in zip(way[1::2], way[2::2]):
            if end["ts"] != begin["ts"]:
                yield f"{begin} does not begin where {end} ended"
        if len(way) % 2:
            yield f"{way} has a part without an end"


def wrong_flows(events):
    """Each arrow leads to the beginning of a span of a device, forward in time."""
    begins = {event["id"]: event for event in events if event["ph"] == "s"}
    starts = collections.Counter((event["pid"], event["tid"], event["ts"])
                                 for event in events if event["ph"] == "X")
    ends = [event for event in events if event["ph"] == "f"]
    if {event["id"] for event in ends} != begins.keys():
        yield "arrows without a beginning or an end"
    for end in ends:
        begin = begins.get(end["id"])
        if begin is None or end["ts"] < begin["ts"]:
            yield f"{end} ends before {begin}"
        if not starts[end["pid"], end["tid"], end["ts"]]:
            yield f"{end} ends at no span"


def faults(events):
    return [fault for rule in (wrong_events, wrong_nesting, wrong_ways, wrong_flows)
            for fault in rule(events)]
