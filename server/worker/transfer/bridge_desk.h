// What the worker asks its daemon about bridges to other servers (server/protocol/bridges.h).
// Helpers ask and wait; the thread that reads the control socket brings the answers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/protocol/bridges.h"
#include "server/protocol/message.h"
#include "wire/socket.h"

namespace longwire::worker {

class BridgeDesk {
 public:
  // `control`: the daemon's socket; -1 if there is none.
  explicit BridgeDesk(int control) : control_(control) {}

  // The answer; one that is not done, with a sentence, if none comes.
  bridges::Answer Ask(bridges::Ask ask);
  // True if it was an answer to this desk.
  bool Arrived(const wire::Message& message);
  // Another daemon has taken the session over: it knows of no request.
  void Forget();

 private:
  const int control_;
  base::Mutex mutex_{base::ranks::kBridgeDesk};
  base::CondVar answered_;
  uint64_t next_request_ LONGWIRE_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, std::optional<bridges::Answer>> waiting_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::worker
