#include "server/daemon/moving/step_content.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>

#include "proto/transport.pb.h"

namespace longwire::daemon {
namespace {

using google::protobuf::io::CodedOutputStream;

// A field of bytes: its number, and that a length follows.
constexpr uint8_t kTag = transport::HandOverStep::kContentFieldNumber << 3 | 2;
constexpr size_t kHeadBytes = 1 + 5;

}  // namespace

std::span<const std::byte> ContentStep::Message() {
  const auto length = static_cast<uint32_t>(filled_);
  const size_t head = 1 + CodedOutputStream::VarintSize32(length);
  auto* const begin = reinterpret_cast<uint8_t*>(bytes_.get()) + kHead - head;
  *begin = kTag;
  CodedOutputStream::WriteVarint32ToArray(length, begin + 1);
  return {reinterpret_cast<const std::byte*>(begin), head + filled_};
}

bool LeaveContent(StepMessage* message) {
  std::array<std::byte, kHeadBytes> head;
  size_t got = 0, all = 0;
  for (std::span<const std::byte> part : message->parts) {
    const auto first = part.first(std::min(part.size(), head.size() - got));
    std::ranges::copy(first, head.begin() + static_cast<ptrdiff_t>(got));
    got += first.size();
    all += part.size();
  }
  if (got < 2 || head[0] != std::byte{kTag}) return false;
  google::protobuf::io::CodedInputStream lengths(reinterpret_cast<const uint8_t*>(&head[1]),
                                                 static_cast<int>(got - 1));
  uint32_t length = 0;
  if (!lengths.ReadVarint32(&length)) return false;
  size_t skipped = 1 + static_cast<size_t>(lengths.CurrentPosition());
  if (skipped + length != all) return false;  // there is more than this field
  auto& parts = message->parts;
  while (skipped != 0) {
    const size_t skips = std::min(skipped, parts.front().size());
    parts.front() = parts.front().subspan(skips);
    skipped -= skips;
    if (parts.front().empty()) parts.erase(parts.begin());
  }
  return true;
}

}  // namespace longwire::daemon
