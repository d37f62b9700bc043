"""What a server's processes hold of their host: to compare before and after."""
import os
import pathlib
import time


def _held(pid):
    """(descriptors, mappings of shared memory) of one process."""
    folder = pathlib.Path(f"/proc/{pid}")
    try:
        descriptors = sum(not _is_device_memory(one) for one in (folder / "fd").iterdir())
        shared = (folder / "maps").read_text(errors="replace").count("/memfd:longwire")
    except OSError:
        return 0, 0
    return descriptors, shared


def _is_device_memory(descriptor):
    """The software device's, of which a keeper has some at hand: `leased` counts what is lent."""
    try:
        return "/memfd:softgpu-chunk" in os.readlink(descriptor)
    except OSError:
        return False


def held(longwire):
    """NAME → (processes, descriptors, mappings of shared memory), and what the server says of its
    sessions and of the devices' memory."""
    state = {}
    for name, pids in longwire.processes().items():
        each = [_held(pid) for pid in pids]
        state[name] = (len(pids), *(sum(column) for column in zip(*each)))
    status = longwire.status()
    state["sessions"] = len(status["sessions"])
    state["leased"] = sum(device.get("leased", 0) for device in status["devices"])
    return state


def more(after, before):
    """What there is more of, as text; empty if there is nothing."""
    return ", ".join(f"{name}: {before.get(name)} → {value}" for name, value in after.items()
                     if _exceeds(value, before.get(name, (0, 0, 0))))


def _exceeds(value, before):
    if isinstance(value, tuple):
        return any(now > then for now, then in zip(value, before))
    return value > (before if isinstance(before, int) else 0)


def settled(longwire):
    """The state once it has stayed the same for a second."""
    state, since = held(longwire), time.monotonic()
    while time.monotonic() - since < 1:
        time.sleep(0.2)
        now = held(longwire)
        if now != state:
            state, since = now, time.monotonic()
    return state


def time_until_back(longwire, before, seconds):
    """Seconds until nothing is held beyond `before`; and what still is, if it takes longer."""
    start = time.monotonic()
    while True:
        extra = more(held(longwire), before)
        took = time.monotonic() - start
        if not extra or took > seconds:
            return took, extra
        time.sleep(0.05)
