/* What a policy is written against: C that clang compiles for BPF. docs/policies.md explains it.
 *
 *   clang -target bpf -mcpu=v2 -O2 -g -c policy.c -o policy.o
 *
 * Each function is a hook: it is put into the section of that name by LW_HOOK, gets a pointer to
 * one structure, and writes its answer there. It returns LW_ANSWERED, or LW_NO_OPINION: then what
 * is built in decides. Layouts never change; a later version may add fields behind the last.
 *
 * There are no loops, no calls of other functions and no globals but maps; 512 bytes of stack.
 * Times are nanoseconds of a steady clock. */
#ifndef LONGWIRE_POLICY_H_
#define LONGWIRE_POLICY_H_

#ifdef __cplusplus
#include <cstdint>
#else
typedef unsigned char uint8_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long int64_t;
#endif

#define LW_ANSWERED 0
#define LW_NO_OPINION 1
#define LW_FOREVER 0x7fffffffffffffffL

/* The number of a tenant, and that of a kernel: the FNV-1a hash of its name. `longwire policy maps`
 * takes names of both, and shows those of tenants. */

/* session_opened and session_closed. */
#define LW_LATENCY_CRITICAL 0
#define LW_BEST_EFFORT 1
struct lw_session {
  int64_t now;
  uint64_t session;
  uint64_t tenant;
  uint32_t devices; /* how many */
  /* Filled with what is configured. The answer of session_opened holds for all sessions of the
   * tenant; that of session_closed is not read. */
  uint32_t priority_class; /* LW_LATENCY_CRITICAL or LW_BEST_EFFORT */
  uint32_t weight;         /* 1 to 10000 */
  uint32_t reserved;
};

/* device_changed: sessions of the device, or whether latency-critical work is there, changed.
 * How is the device shared from now on? Latency-critical sessions are open whatever is said. */
struct lw_device {
  int64_t now;
  uint32_t device;
  uint32_t latency_critical;    /* sessions */
  uint32_t best_effort;         /* sessions */
  uint32_t best_effort_tenants; /* to whom these belong */
  int64_t busy_until;           /* latency-critical work; LW_FOREVER while there are calls */
  /* The answer, zero at first: no turns, no limits. */
  int64_t hold_until;       /* the gate of the turn stays closed until then */
  uint64_t copy_slice;      /* bytes: longer copies are cut; 0: never */
  uint32_t turns;           /* 1: best-effort sessions take turns */
  uint32_t budget_launches; /* unfinished at once; 0: any number */
  uint32_t budget_us;       /* unfinished work; 0: any */
  uint32_t reserved;
};

/* queue_changed: a session's queue became busy or idle. There is no answer. */
struct lw_queue {
  int64_t now;
  uint64_t session;
  uint64_t tenant;
  uint32_t device;
  uint32_t busy;    /* 0: idle */
  int64_t gpu_time; /* of the session on this device since it opened */
};

/* turn_next: the highest score has the next turn; equal ones as the built-in order has it. Who has
 * waited longer than scheduler.longest_wait and ten turns comes first whatever is said.
 * turn_begins: how long may it last? turn_ended: there is no answer. */
struct lw_turn {
  int64_t now;
  uint64_t session; /* one of those that take this turn together */
  uint64_t tenant;
  uint32_t device;
  uint32_t weight;
  int64_t waited;  /* since it lined up */
  int64_t charged; /* turn_ended: GPU time of this turn */
  /* Answers. */
  uint64_t score;    /* of turn_next, zero at first */
  int64_t turn_time; /* of turn_begins: 100 us to 1 s; filled with scheduler.turn */
};

/* place: the highest score gets the session among devices that have room; called for each. */
struct lw_place {
  uint32_t device;
  uint32_t sessions;
  uint64_t free_bytes;
  uint64_t total_bytes;
  uint64_t wanted_bytes;
  uint32_t busy_permille; /* of the last seconds */
  uint32_t reserved;
  uint64_t score; /* the answer, zero at first */
};

/* Memory of sessions that may be swapped to the host's, in regions as the device's keeper lends
 * them. These hooks run in the keepers, of all devices, and share the maps with those in longwired.
 * region_added, region_removed: one was lent, or given back. region_accessed: work of the session
 * ran, which may have accessed any of its regions; ten times a second at most. There is no answer.
 * session_runs: it has work, but some of its memory is in the host's and is brought back first.
 * evict_next: memory is needed; the region with the highest score leaves first. Equal ones, and all
 * for which there is no opinion (0), leave in the built-in order. What may leave at all is not
 * asked: idle best-effort sessions' memory beyond what is reserved for their tenants. */
struct lw_memory {
  int64_t now;
  uint64_t session;
  uint64_t tenant;
  uint64_t region; /* 0 in region_accessed and session_runs: all of the session's */
  uint64_t bytes;  /* of the region; of session_runs: how much is away */
  int64_t idle;    /* since the session's work was last seen, or its memory was lent */
  uint32_t device;
  uint32_t launches;  /* session_runs: kernels that are next in its log, as far as it is there; at
                       * most 64 */
  uint64_t kernel[4]; /* numbers of the first of them; 0: none */
  /* Answers. */
  uint64_t score; /* of evict_next, zero at first */
  int64_t stay;   /* of session_runs, zero at first: for so long its memory stays at least, once it
                   * is back; at most 1 s */
};

/* launch: how is a function launched? Asked when it is first launched, not for each launch. What a
 * rule of the configuration says about it goes before the answer; grid and block never change. */
#define LW_AS_THE_PROGRAM_SAYS 0xffffffffu
struct lw_launch {
  int64_t now;
  uint64_t session;
  uint64_t tenant;
  uint64_t kernel; /* the number of its name in the module */
  uint64_t module; /* the first eight bytes of its image's SHA-256; 0: not known */
  uint32_t device;
  uint32_t grid[3]; /* of the launch that asks */
  uint32_t block[3];
  uint32_t shared_bytes;
  /* Answers, LW_AS_THE_PROGRAM_SAYS at first, but for `each`. */
  uint32_t priority;      /* of the stream, 0: the device's lowest; at most 100 */
  uint32_t shared_memory; /* percent of the largest share of the first-level cache */
  uint32_t clusters;      /* 0: the driver's default, 1: spread, 2: load balancing */
  uint32_t each; /* 0: the answer is for all launches of the function; 1: for those with this grid,
                  * block and shared memory, and others are asked about */
};

/* Maps: 64-bit keys and values, zero at first, shared by the policy's hooks, `longwire policy maps`
 * and the metrics. An array has keys from 0 to entries - 1. A full hash takes no new key. */
#define LW_ARRAY 1
#define LW_HASH 2
struct lw_map {
  uint32_t type;
  uint32_t entries; /* 1 to 65536 */
};

#ifndef __cplusplus
#define LW_SECTION(name) __attribute__((section(name), used))
#define LW_HOOK(name) LW_SECTION("hook/" #name)
#define LW_MAP(name, map_type, map_entries) \
  LW_SECTION("maps") struct lw_map name = {map_type, map_entries}

/* The value, 0 if there is none. */
extern uint64_t lw_map_get(const struct lw_map* map, uint64_t key);
/* 1 if it is kept, 0 if the map has no room or no such key. */
extern uint64_t lw_map_set(const struct lw_map* map, uint64_t key, uint64_t value);
/* The new value. */
extern uint64_t lw_map_add(const struct lw_map* map, uint64_t key, uint64_t value);
#endif

#endif
