// Uploads whose bytes the server caches, on request (LONGWIRE_CACHE_UPLOADS): weights that every
// run of a program uploads cross the network once for each tenant. A copy is offered by the digests
// of its pieces, as module images are (image_upload.h).
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace longwire::shim {

struct Stream;

// Whether a copy of `bytes` contiguous bytes of the program's memory is made this way.
bool IsCached(uint64_t bytes);

// Copies to device memory after the stream's earlier work. Returns when the copy has finished.
CUresult UploadCached(Stream* stream, uint64_t destination, std::span<const std::byte> bytes);

}  // namespace longwire::shim
