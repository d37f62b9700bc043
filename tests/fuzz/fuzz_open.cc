// Decodes any bytes as the messages that open a session, from either side.
#include <cstdlib>
#include <cstring>

#include "wire/open.h"

namespace {

using longwire::wire::Reader;
using longwire::wire::WireResult;
using longwire::wire::Writer;

template <class Message>
void RoundTrip(std::span<const std::byte> bytes) {
  Message message;
  Reader reader(bytes);
  if (message.Decode(reader) != WireResult::kOk) return;
  Writer writer;
  message.Encode(writer);
  Message again;
  Reader second(writer.span());
  if (again.Decode(second) != WireResult::kOk) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const size_t bytes = size - 1;
  std::byte* copy = static_cast<std::byte*>(std::malloc(bytes == 0 ? 1 : bytes));
  std::memcpy(copy, data + 1, bytes);
  if ((data[0] & 1) == 0) {
    RoundTrip<longwire::wire::OpenRequest>({copy, bytes});
  } else {
    RoundTrip<longwire::wire::OpenReply>({copy, bytes});
  }
  std::free(copy);
  return 0;
}
