// Collects the seats that an event may have concerned and, at its end, tells what really changed.
#pragma once

#include <vector>

#include "scheduler/state.h"

namespace longwire::scheduler {

class Changes {
 public:
  void Mark(Seat& seat);
  void Mark(Gang& gang);
  // The seat's session ends: nothing more about it.
  void Forget(Seat& seat);

  // One decision for each seat whose decision is another than before. What closes stands before
  // what opens, so that who sends them in order never has two gangs' gates open.
  std::vector<Decision> Take();

 private:
  std::vector<Seat*> marked_;
};

}  // namespace longwire::scheduler
