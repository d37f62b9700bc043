// How much device memory the variables of an image take: known before the driver loads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace longwire::worker {

// A bound from above, for PTX, cubins and fat binaries of them; 0 for what is none of these, which
// the driver refuses. With `whole` all code is searched, else what takes little time to unpack.
uint64_t VariableBytes(std::span<const std::byte> image, bool whole);

}  // namespace longwire::worker
