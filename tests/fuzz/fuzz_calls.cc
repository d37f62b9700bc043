// Decodes any bytes as any call, or as its reply. What decodes must encode to bytes that decode
// again and encode to the same; the printer must answer whatever the bytes are.
#include <cstdlib>
#include <cstring>

#include "longwire/for_each_call.h"
#include "longwire/printer.h"

namespace {

using longwire::wire::Reader;
using longwire::wire::WireResult;
using longwire::wire::Writer;

template <class Message>
void RoundTrip(std::span<const std::byte> bytes) {
  Message message;
  Reader reader(bytes);
  if (message.Decode(reader) != WireResult::kOk) return;
  Writer first;
  message.Encode(first);
  Message again;
  Reader second_reader(first.span());
  if (again.Decode(second_reader) != WireResult::kOk) std::abort();
  Writer second;
  again.Encode(second);
  if (first.size() != second.size() ||
      std::memcmp(first.data(), second.data(), first.size()) != 0) {
    std::abort();
  }
}

struct DecodeNumber {
  template <class Call>
  void operator()(const char*) {
    if (number-- != 0) return;
    reply ? RoundTrip<typename Call::Reply>(bytes) : RoundTrip<Call>(bytes);
    longwire::PrintCall(Call::kId, Reader(bytes));
  }

  int number;
  bool reply;
  std::span<const std::byte> bytes;
};

struct Count {
  template <class Call>
  void operator()(const char*) {
    ++calls;
  }
  int calls = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  static const int calls = [] {
    Count count;
    longwire::calls::ForEachCall(count);
    return count.calls;
  }();
  // The input's own copy, exactly as long as it is, so that a read past the end is seen.
  const size_t bytes = size - 3;
  std::byte* copy = static_cast<std::byte*>(std::malloc(bytes == 0 ? 1 : bytes));
  std::memcpy(copy, data + 3, bytes);
  DecodeNumber decode{(data[0] | data[1] << 8) % calls, (data[2] & 1) != 0, {copy, bytes}};
  longwire::calls::ForEachCall(decode);
  std::free(copy);
  return 0;
}
