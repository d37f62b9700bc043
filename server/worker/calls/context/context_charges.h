// What comes and goes with a context of the memory that the driver allocates.
#pragma once

#include <utility>
#include <vector>

#include "server/worker/process/session.h"

namespace longwire::worker {

// The variables of the session's libraries, which every context has of its own.
class ContextCharges {
 public:
  CUresult Take(WorkerSession& session, const Context& context);
  void Keep(WorkerSession& session);

 private:
  std::vector<std::pair<Charges::Key, Charge>> taken_;
};

// After the program has destroyed a context that the driver keeps: destroys its arrays, and takes
// its limits back to what they were.
void FreeWhatStays(WorkerSession& session, const Context& context);

}  // namespace longwire::worker
