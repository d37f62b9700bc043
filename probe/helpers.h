// The functions that probes call, as PTX; and their maps in the device's memory.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policy/engine.h"
#include "policy/object.h"

namespace longwire::probe {

extern const policy::ObjectKind kProbes;

// A histogram has a copy for each multiprocessor, up to this number: atomic operations on one
// address wait for each other.
inline constexpr uint32_t kHistogramCopies = 256;
inline constexpr uint32_t kBuckets = 64;
inline constexpr uint32_t kRecordBytes = 32;  // of a ring, behind a head of this size: its counter

// The names and arguments, for the verifier.
std::span<const policy::HelperShape> Helpers();

// The PTX of a call: arguments in %longwire_r1 to r5, the result in r0. `map`: what the first
// argument refers to; null: a number. None with what is wrong.
std::optional<std::string> CallText(const std::string& helper, const policy::MapShape* map,
                                    std::string* wrong);

// The table of lw_since_first: a word for each launch, of those that run at once.
inline constexpr char kLaunchTable[] = "longwire_launches";
inline constexpr uint32_t kLaunchWords = 4096;

// Whether it is a ring or spans.
bool HasRecords(const policy::MapShape& map);
// The variable in which a map lies, and its size.
std::string SymbolOf(const policy::MapShape& map);
uint64_t BytesOf(const policy::MapShape& map);

}  // namespace longwire::probe
