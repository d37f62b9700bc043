// Mirrors of registered memory that lies in mappings of files (file_mappings.h). Other processes
// may write it at any time, so it is compared as a state that nobody was changing. Whoever has the
// file may shorten it, so it is read and written by calls that answer that with an error; then
// nothing of it is exchanged any more, and until it is unregistered work ends in late errors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "client-shim/mirror/mirror_table.h"

namespace longwire::shim {

// Takes the states of all such mirrors, for `NowOf`.
void TakeStates(Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex);

// What a mirror's memory has, to be compared with its shadow: the last state that was taken, or the
// memory itself.
std::span<const std::byte> NowOf(const Mirror& mirror);

// Writes what the device has changed.
void WriteMemory(Mirror& mirror, uint64_t offset, std::span<const std::byte> bytes);

// Finds out which of them can be reached no more.
void FindLost(Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex);

}  // namespace longwire::shim
