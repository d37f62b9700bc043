// LONGWIRE_DISABLE, a comma list, names single optimisations that a process does without: for
// comparing, and for a program that one of them harms. Each process reads its own environment,
// those of the client (program, link, command) client.conf, too. Guards that tests switch off are
// named in the same list (wire/guards.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace longwire::wire {

// Sorted: the name, who asks for it, and what there is until it is named. docs/switches.md says
// what changes then.
inline constexpr std::string_view kSwitches[] = {
    "answers-first",         // link, daemon: the next message is asked for after the answer
    "attributes-with-load",  // program: functions' attributes come with a small module's load
    "drain",                 // keeper: a lease that lacks memory gets what sessions keep free
    "early-copies",          // program: waiting copies up return when their bytes are taken
    "early-reuse",           // program: freed memory is used again before earlier work is over
    "joined-ends",           // worker: what a stream's end brings becomes visible at once
    "kept-limits",           // program: a context's limits are asked for once
    "late-comparisons",      // program: launches wait in the worker for what the program wrote
    "launch-chains",         // worker: launches that come again and again go as one graph
    "launch-runs",           // worker: launches in a row are decoded and given in one go
    "module-cache",          // program: images that the server knows are not sent again
    "own-polling",           // link, daemon, command: threads poll their own gRPC connections
    "predicted-spins",       // program, link, daemon, worker: looks are as long as the last waits
    "pulls-with-waits",      // program: what the device wrote comes with the awaited end
    "quiet-ends",            // worker: where no kernel can print, ends are told without a wait
    "remap",                 // program: a buffer that grows takes its memory along
    "shared-mappings",       // program: kernels are kept from memory that other processes write
    "shared-pinned",         // program: on the server's host pinned memory is the worker's, too
    "speculative-uploads",   // program: pinned bytes behind work are sent before it is done
    "staged-copies",         // program: and large copies of other memory pass through such memory
    "stored-pointers",       // program: pointers to pinned memory are found in small uploads
    "striped-transfers",     // program: large copies take several connections
    "swap",                  // keeper: memory of idle sessions is moved to the host's
    "timer-slack",           // link, daemon, command: gRPC's timers may be late
    "trim-rings",            // program, link, daemon, worker: rings at rest give memory back
    "unasked-progress",      // program: a stream's end is told without being asked for
};

// A name of the table. Another one does not compile.
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

// What is met often keeps the answer in a constant.
bool IsSwitchedOff(SwitchName name);

// A sentence for each name that is neither a switch nor a guard. Whoever starts says them once.
std::vector<std::string> UnknownSwitches();

}  // namespace longwire::wire
