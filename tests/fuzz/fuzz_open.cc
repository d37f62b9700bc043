// The messages that open a session or ask what there is: the first byte picks one of the four.
#include <cstdlib>
#include <span>

#include "wire/open.h"
#include "wire/view.h"

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
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  switch (data[0] & 3) {
    case 0:
      RoundTrip<longwire::wire::OpenRequest>(bytes);
      break;
    case 1:
      RoundTrip<longwire::wire::OpenReply>(bytes);
      break;
    case 2:
      RoundTrip<longwire::wire::ViewRequest>(bytes);
      break;
    default:
      RoundTrip<longwire::wire::ViewReply>(bytes);
  }
  return 0;
}
