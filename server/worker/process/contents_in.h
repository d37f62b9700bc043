// Takes the bytes of a session that moves, in the new worker, as the old one writes them
// (contents_out.h). While the device copies some of them, the next are read.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/worker/memory/mirrors.h"
#include "server/worker/process/carried_arrays.h"
#include "server/worker/process/early_reads.h"
#include "server/worker/process/move_pieces.h"
#include "server/worker/process/snapshot.h"

namespace longwire::worker {

class WorkerSession;

// The stream from the old worker is cut off, or says what no old worker would.
inline constexpr const char* kBrokenStream = "the old worker's stream is broken";

// Each answers with a sentence, or with none if all is well.
class ContentsIn {
 public:
  ContentsIn(WorkerSession& session, SnapshotReader& from, MovePieces& pieces, int stream)
      : session_(session), from_(from), pieces_(pieces), stream_(stream) {}

  // What the parts belong to from now on.
  std::string Find(const Contents& contents);
  std::string Take(const Part& part);
  std::string Take(const SharedPiece& shared);
  std::string Take(const SharedChunk& shared, const wire::Descriptor& file);
  // Nothing of all that was taken is still being copied.
  bool IsWhole() const { return fills_.empty(); }

 private:
  std::string TakeIntoMemory(const Part& part);
  void ReadAhead();
  std::string TakeIntoArray(const Part& part);
  std::string Landed(CUresult result);
  bool AnswerFill();

  WorkerSession& session_;
  SnapshotReader& from_;
  MovePieces& pieces_;
  const int stream_;
  Contents contents_;
  CUdeviceptr base_ = 0;  // of device memory
  std::optional<ShownChunk> shown_;
  // That the parts go to; both nullptr: device memory.
  std::shared_ptr<Mirror> shadow_;
  CUarray array_ = nullptr;
  ArrayRows rows_;
  std::vector<std::byte> part_;  // of an array
  bool shares_ = false;          // the old worker fills the pieces itself,
  bool streams_ = false;         // or they hold what came through the stream:
  std::optional<EarlyReads> early_;
  std::deque<uint64_t> fills_;  // requests that the keeper has; 0: one that it did not take
};

}  // namespace longwire::worker
