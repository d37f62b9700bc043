// Copies up whose bytes the server keeps, on demand (LONGWIRE_KEEP_UPLOADS): weights that each
// start of a program brings again cross the wire once for each tenant. A copy is offered by digests
// of its pieces, as module images are (image_upload.h).
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace longwire::shim {

struct Stream;

// Whether a copy of so many bytes of the program's memory, one run of them, is made so.
bool KeepsUploads(uint64_t bytes);

// Copies to device memory, after the stream's earlier work; returns when it is done.
CUresult UploadKept(Stream* stream, uint64_t destination, std::span<const std::byte> bytes);

}  // namespace longwire::shim
