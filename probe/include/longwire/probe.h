/* What a probe is written against: C that clang compiles for BPF. docs/probes.md explains it.
 *
 *   clang -target bpf -mcpu=v2 -O2 -g -c probe.c -o probe.o
 *
 * Each function is put at a point of kernels by LW_PROBE(point). It runs on the device, once for
 * each warp that gets there: one of the lanes that are there together runs it. It reads its
 * argument and writes maps; it cannot change what the kernel does. Its result is not read.
 *
 * There are no loops, no calls of other functions and no globals but maps; 512 bytes of stack. */
#ifndef LONGWIRE_PROBE_H_
#define LONGWIRE_PROBE_H_

#ifdef __cplusplus
#include <cstdint>
#else
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
#endif

/* The points: kernel_entry, kernel_exit; block_enter, block_exit (the same of a block's first
 * thread only); function_entry, function_exit (of functions of the device that are called);
 * memory_access (loads, stores and atomics of global memory); fence (membar, fence). */

/* A field that a point has nothing for is zero. Layouts never change; a later version may add
 * fields behind the last. */
struct lw_point {
  uint64_t began;        /* lw_clock when this thread entered the kernel; kernel_exit, block_exit */
  uint64_t began_cycles; /* the same by lw_cycles */
  uint64_t address;      /* memory_access: of this lane */
  uint64_t thread;       /* this lane's number in the grid, x first */
  uint64_t warp;         /* the warp's number in the grid; blocks begin with a new one */
  uint64_t block;        /* the block's number in the grid, x first */
  uint32_t kernel;       /* which: the FNV-1a hash of its name; what is shown has the name */
  uint32_t sm;           /* the multiprocessor's number */
  uint32_t lane;         /* 0 to 31 */
  uint32_t active;       /* the lanes that are here together, a bit for each */
  uint32_t lanes;        /* how many these are */
  uint32_t bytes;        /* memory_access: of one lane */
  uint32_t access;       /* memory_access: LW_LOAD, LW_STORE or LW_ATOMIC */
  uint32_t line;         /* of the PTX, memory_access and fence */
};
#define LW_LOAD 1
#define LW_STORE 2
#define LW_ATOMIC 3

/* Maps lie in the device's memory, zero at first. Array: keys from 0 to entries - 1. Histogram:
 * how many values had how many bits, up to 63; entries says nothing, give 64. Ring: the first
 * `entries` records of four values; how many more there were is counted. Spans: the same, of what
 * began and ended; where the program is traced they are in the trace, too. */
#define LW_ARRAY 1
#define LW_HISTOGRAM 3
#define LW_RING 4
#define LW_SPANS 5
struct lw_map {
  uint32_t type;
  uint32_t entries; /* 1 to 65536 */
};

#ifndef __cplusplus
#define LW_SECTION(name) __attribute__((section(name), used))
#define LW_PROBE(point) LW_SECTION("probe/" #point)
#define LW_MAP(name, map_type, map_entries) \
  LW_SECTION("maps") struct lw_map name = {map_type, map_entries}

/* Nanoseconds of the device's clock, and cycles of this multiprocessor's. */
extern uint64_t lw_clock(void);
extern uint64_t lw_cycles(void);
/* Nanoseconds since the launch's first call of this, which gets 0; up to nine minutes. */
extern uint64_t lw_since_first(void);
/* Of arrays. The value, 0 if there is no such key. */
extern uint64_t lw_map_get(const struct lw_map* map, uint64_t key);
/* 1, or 0 if there is no such key. */
extern uint64_t lw_map_set(const struct lw_map* map, uint64_t key, uint64_t value);
/* The new value, 0 if there is no such key. */
extern uint64_t lw_map_add(const struct lw_map* map, uint64_t key, uint64_t value);
/* Of a histogram: one more of the value's size. */
extern uint64_t lw_histogram_add(const struct lw_map* map, uint64_t value);
/* Of a ring: a record. What is shown takes the first value for a kernel if it is one. 1, or 0 if it
 * is full. */
extern uint64_t lw_ring_put(const struct lw_map* map, uint64_t a, uint64_t b, uint64_t c,
                            uint64_t d);
/* Of spans: of this kernel, by lw_clock; `number` is that of the warp, the block or what else it is
 * a span of, which has a track of its own in the trace. 1, or 0 if there is no room. */
extern uint64_t lw_span_put(const struct lw_map* map, uint64_t number, uint64_t began,
                            uint64_t ended);
#endif

#endif
