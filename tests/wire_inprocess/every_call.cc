#include "tests/wire_inprocess/every_call.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "longwire/every_call.h"
#include "tests/wire_inprocess/neutral.h"

namespace longwire::joined {

Objects& TheObjects() {
  static Objects objects;
  return objects;
}

void* NeutralRoom() {
  static thread_local std::vector<std::byte> room;
  room.assign(size_t{64} << 10, std::byte{0});  // what the call before has written is gone
  return room.data();
}

void NeutralHostFunction(void*) {}
void NeutralCallback(CUstream, CUresult, void*) {}

// NOLINTBEGIN(bugprone-macro-parentheses): types and lists
#define ARGUMENT(type, name) Neutral<type>(__func__, name)
#define MAKE(symbol, reason, arguments)                     \
  struct Make_##symbol {                                    \
    static CUresult symbol() { return ::symbol arguments; } \
  };
LONGWIRE_EVERY_CALL(MAKE, ARGUMENT)
#define LIST(symbol, reason, arguments) {#symbol, reason, &Make_##symbol::symbol},
// NOLINTEND(bugprone-macro-parentheses)

std::span<const EveryCall> EveryCallThereIs() {
  static const EveryCall kCalls[] = {LONGWIRE_EVERY_CALL(LIST, ARGUMENT)};
  return kCalls;
}

}  // namespace longwire::joined
