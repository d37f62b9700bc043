// Messages whose descriptors did not fit into this process.
#pragma once

#include "wire/socket.h"

namespace longwire::wire {

// True of a received message that had descriptors for which this process has no room (EMFILE): it
// then holds one, which is invalid.
inline bool LostDescriptors(const Message& message) {
  return message.descriptors.size() == 1 && !message.descriptors.front().valid();
}

}  // namespace longwire::wire
