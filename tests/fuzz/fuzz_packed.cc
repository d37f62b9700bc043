// The bodies of packed frames (link/transport/packing.h): what they unpack to lies where it says.
#include <cstdlib>

#include "link/transport/packing.h"
#include "wire/limits.h"

using namespace longwire::transport;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ReceivedFrame frame;
  frame.header.flags = kFramePacked;
  frame.body = {std::as_bytes(std::span(data, size))};
  frame.bytes = size;
  Unpacker unpacker;
  ReceivedFrame plain;
  if (unpacker.Unpack(frame, kPackAuto, &plain) != WireResult::kOk) return 0;
  if (plain.bytes > longwire::wire::kMaxBatchBytes) std::abort();
  size_t sum = 0;
  for (auto part : plain.body) {
    for (std::byte byte : part) sum += static_cast<size_t>(byte);
  }
  return sum == SIZE_MAX ? -1 : 0;
}
