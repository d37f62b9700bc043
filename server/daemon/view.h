// What a program sees of the devices without a session of its own (wire/view.h).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "server/daemon/peer.h"
#include "server/daemon/session_table.h"

namespace longwire::daemon {

// Answers an encoded wire::ViewRequest of `peer`: the devices of the session that the program has,
// or else those that a session would get now. Nothing is opened, placed or promised. The answer is
// an encoded wire::ViewReply, a refusal too.
std::vector<std::byte> EncodedView(SessionTable& table, const Peer& peer,
                                   std::span<const std::byte> request);

}  // namespace longwire::daemon
