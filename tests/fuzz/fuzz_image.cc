// The worker's reader of a code image's functions: offsets, sizes, names and text are untrusted.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "server/worker/code/image_functions.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  for (const auto& [name, parameters] : longwire::worker::FunctionsOfImage({bytes, size})) {
    if (name.size() > size || parameters.size() > (1 << 16)) std::abort();
  }
  return 0;
}
