// A call of a journal (journal.h), with its answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/worker/support/call_queue.h"

namespace longwire::worker {

struct JournalEntry {
  using Image = std::shared_ptr<const std::vector<std::byte>>;
  using Names = std::shared_ptr<const std::vector<std::string>>;

  QueuedCall call;
  bool answered = false;
  int32_t result = 0;  // a CUresult
  std::vector<std::byte> reply;
  Image image;             // of a module, with its padding; nullptr: none
  uint32_t knowledge = 0;  // what the load's answer said of the image
  Names variables;         // of the image, once somebody has looked for them
  // Runs again behind all calls up to this position, its own if nothing else was to be said, and
  // among several such ones in their turn.
  uint64_t behind = 0;
  uint64_t turn = 0;
};

}  // namespace longwire::worker
