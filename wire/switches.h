// Switches. LONGWIRE_DISABLE, a list with commas, names optimisations that a process turns off: to
// compare, or for a program that one of them harms. Each process reads its own environment; those
// of the client (program, link, command) also read client.conf. Guards that tests turn off are
// named in the same list (wire/guards.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace longwire::wire {

// Sorted: the name, the processes that read it, and the optimisation. docs/switches.md says what
// changes without it.
inline constexpr std::string_view kSwitches[] = {
    "answers-first",         // link, daemon: the next read starts after the answer was sent
    "attributes-with-load",  // program: functions' attributes come with a small module's load
    "awake",                 // link, daemon, worker: threads stay awake between requests
    "batch-rates",           // link, daemon: single messages show that a network is fast
    "bridges",               // program, daemon: copies between servers go from the one to the other
    "drain",                 // keeper: free memory of sessions is reclaimed for a lease
    "early-copies",          // program: copies to the device return when their bytes are taken
    "early-reuse",           // program: freed memory is used again before earlier work is complete
    "early-wakes",           // link, daemon, worker: who is next is woken with the first message
    "info-pages",            // worker, keeper: what is free is read from shared memory
    "joined-credits",        // worker: credit for uploads leaves with the next message
    "joined-ends",           // worker: all that a completion brings is published at once
    "kept-limits",           // program: a context's limits are requested once
    "kept-streams",          // program: copies between servers use their streams again
    "lasting-answers",       // program: what depends on its arguments alone is asked for once
    "late-comparisons",      // program: launches wait in the worker for the program's writes
    "launch-chains",         // worker: repeated sequences of launches go as one graph
    "launch-runs",           // worker: consecutive launches are decoded and issued together
    "launch-samples",        // worker: one launch of many is measured, for histograms
    "live-exchange",         // program: words are exchanged with kernels that run
    "live-pinned",           // program: on the server's host kernels reach pinned memory itself
    "live-spins",            // program: nobody sleeps while words are answered by words
    "log-beside-lanes",      // program, worker: the log carries a part of copies that use lanes
    "module-cache",          // program: images that the server knows are not sent again
    "overlapped-moves",      // worker: a stream takes a session's memory while more of it is copied
    "own-polling",           // link, daemon, command: threads poll their own gRPC connections
    "parallel-checks",       // daemon: pieces of a suspended session are checked by several threads
    "peer-moves",            // worker: a session's memory goes from device to device
    "piece-by-piece",        // program, link, daemon, worker: copies pass through in small pieces
    "predicted-spins",       // program, link, daemon, worker: threads spin as long as recent waits
    "pulls-with-waits",      // program: the device's writes come with the awaited completion
    "quiet-ends",            // worker: without printing kernels, completions need no driver wait
    "rebuilt-ahead",         // daemon: a session that moves is rebuilt before it stands still
    "remap",                 // program: a buffer that grows keeps its memory
    "shared-moves",          // worker: a session's memory goes to its new worker by shared memory
    "shared-pinned",         // program: on the server's host the worker maps pinned memory
    "shared-registered",     // program: kernels reach memory that other processes write
    "speculative-uploads",   // program: pinned bytes are sent before earlier work is complete
    "staged-copies",         // program: large pageable copies pass through shared pinned memory
    "stored-pointers",       // program: pointers to pinned memory are found in small uploads
    "striped-transfers",     // program: large copies use several connections
    "swap",                  // keeper: memory of idle sessions is moved to the host
    "timer-slack",           // link, daemon, command: gRPC's timers may be late
    "trim-rings",            // program, link, daemon, worker: idle rings return their memory
    "unasked-progress",      // program: a stream's completion is reported without a request
    "unawaited-sets",        // program: executable graphs are changed without round trips
    "whole-copies",          // program: a copy between servers is announced once, not in pieces
    "whole-states",          // program: messages of several words pass while kernels run
    "wide-moves",            // daemon: a session goes to another server by two connections
};

// A name of the table; any other name does not compile.
class SwitchName {
 public:
  consteval SwitchName(const char* name)  // NOLINT: implicit on purpose
      : place_(static_cast<size_t>(std::ranges::find(kSwitches, name) - std::begin(kSwitches))) {
    if (place_ == std::size(kSwitches)) throw "the table has no such switch";
  }
  std::string_view text() const { return kSwitches[place_]; }

 private:
  size_t place_;
};

// Code on a hot path keeps the result in a constant.
bool IsSwitchedOff(SwitchName name);

// A message for each name that is neither a switch nor a guard. A process logs them when it starts.
std::vector<std::string> UnknownSwitches();

}  // namespace longwire::wire
