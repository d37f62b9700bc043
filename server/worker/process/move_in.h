// The new worker's side of a move (server/protocol/moving.h): rebuilds what the old one was, and
// refuses if anything differs.
#pragma once

#include <memory>

#include "server/worker/process/move_pieces.h"
#include "wire/open.h"
#include "wire/socket.h"

namespace longwire::worker {

class WorkerSession;

// Before the session starts; `reply` is what this worker has answered to the opening. The pieces
// were offered to the old worker before that answer, so an old worker of this server has the offer
// before it may write. Ends the process unless the session is this worker's in the end.
void MoveIn(WorkerSession& session, const wire::OpenReply& reply,
            std::unique_ptr<MovePieces> pieces, wire::Descriptor packets, wire::Descriptor stream);

}  // namespace longwire::worker
