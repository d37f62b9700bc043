// A descriptor that travels with bytes of a stream (SCM_RIGHTS).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

#include "wire/descriptors.h"

namespace longwire::worker {

// As send and recv: how many bytes. *file: the descriptor that came with the first of them; else as
// it was.
ssize_t SendWithFile(int stream, std::span<const std::byte> bytes, int file, int flags);
ssize_t ReceiveWithFile(int stream, std::span<std::byte> bytes, wire::Descriptor* file, int flags);

}  // namespace longwire::worker
