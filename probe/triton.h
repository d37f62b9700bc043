// Triton loads kernels as code of one architecture, and keeps the PTX that it was compiled from
// beside it in the user's cache: FOLDER/HASH/KERNEL.cubin and KERNEL.ptx.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace longwire::probe {

// The cache of this process: TRITON_CACHE_DIR, or .triton/cache in TRITON_HOME or HOME. Empty:
// none.
std::string TritonCache();

// The PTX of a cubin that a file in the cache equals, byte for byte, if it is for devices of that
// capability (90 is 9.0) and has the cubin's kernels; *path is its file. False: *sentence says what
// is wrong with it, and is empty where the cache does not have the cubin.
bool PtxInTritonCache(const std::string& cache, std::span<const char> cubin, int capability,
                      std::string* ptx, std::string* path, std::string* sentence);

}  // namespace longwire::probe
