#include "server/worker/support/same_answer.h"

#include <algorithm>

#include "longwire/for_each_call.h"

namespace longwire::worker {
namespace {

template <class Reply>
bool ReadBare(std::span<const std::byte> bytes, wire::Writer* bare) {
  Reply reply;
  wire::Reader reader(bytes);
  if (reply.Decode(reader) != wire::WireResult::kOk) return false;
  reply.info_log = {};
  reply.error_log = {};
  reply.outputs = {};
  reply.Encode(*bare);
  return true;
}

template <class Reply>
bool SameButForWords(std::span<const std::byte> before, std::span<const std::byte> now) {
  wire::Writer one, other;
  return ReadBare<Reply>(before, &one) && ReadBare<Reply>(now, &other) &&
         std::ranges::equal(one.span(), other.span());
}

}  // namespace

bool IsSameAnswer(CallId call, std::span<const std::byte> before, std::span<const std::byte> now) {
  if (call == CallId::lwContextCreate || std::ranges::equal(before, now)) return true;
  bool same = false;
  calls::ForEachCall([&]<class Call>(const char*) {
    if constexpr (requires(Call::Reply reply) {
                    reply.info_log;
                    reply.outputs;
                  }) {
      if (Call::kId == call) same = SameButForWords<typename Call::Reply>(before, now);
    }
  });
  return same;
}

}  // namespace longwire::worker
