// Asks the server, through the link, to suspend this process's session or to let it go on.
#pragma once

#include <string>

#include "client-shim/session/session.h"
#include "wire/checkpoints/suspension.h"

namespace longwire::shim {

// As long as it takes; minutes, for much memory. A reply with `answered` false: what has become of
// it is not known, for the reason in its sentence.
wire::SuspensionReply AskToSuspend(const ClientSession& session, wire::SuspensionRequest request);

}  // namespace longwire::shim
