// Memory files that nobody can change any more: how images pass between worker and daemon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/read_write.h"
#include "wire/socket.h"

namespace longwire::images {

// An empty memory file, to be filled and sealed. Invalid when there is no memory or descriptor.
wire::Descriptor NewMemory();
using base::WriteAll;  // into it
// Its bytes and its size cannot change afterwards.
bool Seal(const wire::Descriptor& memory);
// True only for sealed memory of exactly `bytes`: reading it neither waits nor changes anything.
bool IsSealed(const wire::Descriptor& memory, uint64_t bytes);
// bytes->size() bytes from the start on; false if there are fewer.
bool ReadAll(const wire::Descriptor& memory, std::span<std::byte> bytes);

}  // namespace longwire::images
