// Answers programs that ask about devices without opening a session (wire/view.h).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "server/daemon/sessions/session_table.h"
#include "server/daemon/settings/peer.h"

namespace longwire::daemon {

// Answers an encoded wire::ViewRequest of `peer`: the devices of the program's session, or, if it
// has none, those that a session would get now. Nothing is opened or placed. The answer is an
// encoded wire::ViewReply; so is a refusal.
std::vector<std::byte> EncodedView(SessionTable& table, const Peer& peer,
                                   std::span<const std::byte> request);

}  // namespace longwire::daemon
