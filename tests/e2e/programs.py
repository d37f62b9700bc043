#!/usr/bin/env python3
"""Runs one group of the test programs through Longwire and compares what they print.

    programs.py GROUP      runs it: one line for each program, exit code 1 if any is wrong
    programs.py --groups   lists the groups and checks that every program has one
    programs.py --native   runs those that need no more than the software device has on it alone:
                           what they expect holds without Longwire, too
"""
import os
import pathlib
import sys

import server

GROUPS = {
    "kernels": ["vector_add", "matmul", "reduce_shuffle", "scan", "histogram", "transpose",
                "black_scholes", "nbody", "device_launches", "tensor_copies", "cluster_blocks"],
    "arithmetic": ["double_math", "half_math", "cooperative_grid_sync", "occupancy_attributes",
                   "constant_symbols", "device_printf"],
    "streams": ["streams_events", "graph_capture", "graph_nodes", "capture_threads",
                "host_functions", "event_threads", "unified_query", "launch_attributes",
                "repeated_rows", "legacy_borders"],
    "threads": ["block_each_other", "default_stream_per_thread", "threads_launching",
                "small_stacks", "exactly_once"],
    "memory": ["oom_reuse", "grow_buffer", "grow_reservation"],
    "copies": ["async_allocation", "copy_2d", "pinned_order", "default_copy", "batch_copies",
               "batch_first_forms", "texture_kernel", "texture_cubes", "large_copies",
               "mixed_copies",
               "pinned_copies", "pinned_graphs", "legacy_order", "pool_kinds"],
    "uploads": ["held_uploads", "early_uploads", "freed_early", "upload_weights"],
    "process": ["fork_child", "exit_without_teardown", "error_codes", "illegal_address", "steady",
                "hello", "visible_devices", "allocate", "error_log", "failed_assert",
                "device_reset"],
    "sharing": ["ipc_memory", "ipc_descriptors", "driver_external_memory"],
    "managed": ["managed_memory", "managed_streams", "managed_hints", "managed_files",
                "managed_threads", "managed_end", "mapped_memory", "mapped_flags",
                "mapped_turns", "mapped_bursts", "exposed_beside", "freed_registered"],
    "driver": ["separate_parts", "one_part", "driver_link", "driver_ptx", "driver_fatbin",
               "driver_cubin", "driver_older_launch", "driver_context_events", "driver_narrow",
               "driver_texture_references", "driver_older_contexts", "driver_libraries",
               "driver_tensor_maps", "driver_older_memory", "driver_texture_views",
               "driver_green", "driver_settings", "driver_jit", "driver_pinned_codes",
               "driver_recycled", "driver_memory_random"],
    "graphs": ["graph_runtime_nodes", "graph_memory", "graph_conditional", "graph_orders",
               "driver_graph_copies", "driver_graph_host", "driver_graph_events",
               "driver_graph_kinds",
               "driver_graph_capture", "driver_graph_picture", "driver_graph_structure",
               "driver_graph_changes", "driver_graph_random", "driver_older_graphs"],
}
# What the software device lacks is in the other programs: old 32-bit and launch forms, texture
# references, several processes, pictures of graphs, prefetches.
NATIVE = ["driver_link", "driver_ptx", "driver_fatbin", "driver_cubin", "driver_older_contexts",
          "driver_older_graphs", "driver_older_memory", "driver_libraries", "driver_tensor_maps",
          "driver_graph_copies", "driver_graph_host", "driver_graph_events", "driver_graph_kinds",
          "driver_graph_capture", "driver_graph_structure", "driver_graph_changes",
          "driver_texture_views", "driver_peers", "driver_jit"]
# Programs built for older architectures form a group of their own, "older", whatever they compute;
# another one, "long", are those that are built and run with --long alone.
OLDER_VARIANTS = {"ptx75", "sm80"}
MOST_TIMEOUTS = 3


def list_programs(build):
    """(name, variant, kind) of every program built."""
    listing = build / "tests" / "apps" / "programs.txt"
    return [tuple(line.split()) for line in listing.read_text().splitlines()]


def group_has(group, name, variant, kind):
    if kind == "long":
        return group == "long"
    if variant in OLDER_VARIANTS:
        return group == "older"
    return kind == "any" and name in GROUPS.get(group, ())


def programs_of(group, build):
    for name, variant, kind in list_programs(build):
        if group_has(group, name, variant, kind):
            yield name, variant


def expected_text(name):
    path = pathlib.Path(__file__).resolve().parents[1] / "apps" / f"{name}.expected"
    return path.read_text() if path.exists() else None


def what_is_wrong(name, result):
    """A sentence, or None if the program did what it must."""
    said = " / ".join((result.out + result.err).strip().splitlines()[-4:])
    if result.code != 0:
        return f"exit code {result.code}: {said}"
    if (result.out.splitlines() or [""])[-1] != f"PASS {name}":
        return f"no verdict: {said}"
    if expected_text(name) not in (None, result.out):
        return f"other text than {name}.expected: {result.out!r}"
    if result.err:
        return f"on stderr: {result.err.strip()}"
    return None


def run_on(longwire, group, variants=None):
    """How many of the group's programs are wrong on this server; of all variants, or of some."""
    bad = timeouts = 0
    for name, variant in programs_of(group, longwire.build):
        if variants and variant not in variants:
            continue
        result = longwire.run(f"{name}.{variant}", timeout=60)
        wrong = what_is_wrong(name, result)
        bad += wrong is not None
        timeouts += result.code is None
        print(f"{'BAD' if wrong else 'ok':3} {name}.{variant} {result.seconds:.2f} s"
              f"{': ' + wrong if wrong else ''}", flush=True)
        if timeouts >= MOST_TIMEOUTS:
            print("BAD too many programs did not end: the rest is left out")
            break
    if bad:
        print(longwire.log_tail())
    return bad


def run_group(group):
    with server.Server() as longwire:
        longwire.builds_long = group == "long"
        return 1 if run_on(longwire, group) else 0


def check_groups():
    grouped = [name for names in GROUPS.values() for name in names]
    built = {name for name, _, kind in list_programs(server.build_folder()) if kind == "any"}
    for name in built.symmetric_difference(grouped):
        print(f"{name} is in no group or is not built")
    return 0 if built == set(grouped) and len(grouped) == len(set(grouped)) else 1


def run_native():
    build = server.build_folder()
    environment = {**os.environ, "LD_LIBRARY_PATH": str(build / "dist/lib/longwire/softgpu"),
                   "LONGWIRE_SOFTWARE_DEVICES": "2"}
    bad = 0
    for name in NATIVE:
        result = server.run([build / "tests" / "apps" / f"{name}.driver"], environment)
        # The software device says there what it refuses.
        said = [line for line in result.err.splitlines() if not line.startswith("softgpu: ")]
        wrong = what_is_wrong(name, result._replace(err="\n".join(said)))
        bad += wrong is not None
        print(f"{'BAD' if wrong else 'ok':3} {name}{': ' + wrong if wrong else ''}", flush=True)
    return 1 if bad else 0


def main(what):
    if what == "--groups":
        return check_groups()
    return run_native() if what == "--native" else run_group(what)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
