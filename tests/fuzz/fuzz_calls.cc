// The generated decoders of calls: two bytes of call number, one that picks call or reply, then the
// arguments. What decodes must encode to what it was made of, and print.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "longwire/for_each_call.h"
#include "longwire/printer.h"

namespace longwire::calls {
namespace {

template <class T>
void DecodeOne(std::span<const std::byte> arguments) {
  T value;
  wire::Reader reader(arguments);
  if (value.Decode(reader) != wire::WireResult::kOk) return;
  wire::Writer writer;
  value.Encode(writer);
  // Truth values other than 0 and 1 are the only bytes that may come out differently.
  if (writer.size() != reader.offset() || writer.size() != value.EncodedBytes()) std::abort();
}

}  // namespace
}  // namespace longwire::calls

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longwire;
  if (size < 3) return 0;
  uint16_t number = 0;
  std::memcpy(&number, data, sizeof(number));
  const auto arguments = std::as_bytes(std::span(data + 3, size - 3));
  const bool reply = data[2] % 2 != 0;
  const auto id = static_cast<CallId>(number);
  calls::ForEachCall([&]<class Call>(const char*) {
    if (Call::kId != id) return;
    reply ? calls::DecodeOne<typename Call::Reply>(arguments) : calls::DecodeOne<Call>(arguments);
  });
  if (PrintCall(id, wire::Reader(arguments)).empty()) std::abort();
  return 0;
}
