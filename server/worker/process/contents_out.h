// Writes the bytes of a session that moves, in the old worker: of its chunks, mirrors, variables
// and arrays. Device memory goes by pieces, of which the device copies some while others are
// written.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "server/worker/process/later_writes.h"
#include "server/worker/process/move_pieces.h"
#include "server/worker/process/snapshot.h"

namespace longwire::worker {

class WorkerSession;

class ContentsOut {
 public:
  // `shared`: the pieces are the new worker's, which hands them back over `stream`.
  ContentsOut(WorkerSession& session, SnapshotWriter& to, MovePieces& pieces, bool shared,
              int stream);
  ~ContentsOut() { to_.WriteThrough(nullptr); }
  ContentsOut(const ContentsOut&) = delete;
  ContentsOut& operator=(const ContentsOut&) = delete;

  // All that the session has. False with a sentence in *problem, or without one if the stream
  // broke.
  bool Write(std::string* problem);

 private:
  // Bytes in a piece.
  struct Turn {
    size_t contents = 0;  // of all_
    uint64_t offset = 0;
    size_t bytes = 0;
    size_t piece = 0;
  };
  std::string FindAll();
  bool CopyMore(std::string* problem);
  bool WriteMemory(size_t number, std::string* problem);
  bool WriteHidden(const Contents& contents, std::string* problem);
  bool WriteArray(const Contents& contents, std::string* problem);
  bool WriteShadow(const Contents& contents);
  bool WriteTurn(const Turn& turn);
  bool WriteParts(uint64_t offset, std::span<const std::byte> read, bool all);
  bool WriteAllOf(std::string* problem);
  bool FillChunks();
  bool TakeFilled(std::deque<size_t>* asked, std::vector<Contents>* rest, bool* goes);
  bool TakeBack(bool wait);
  bool TakeBackShared(bool wait);
  bool Fails(CUresult result, std::string* problem);

  WorkerSession& session_;
  SnapshotWriter& to_;
  MovePieces& pieces_;
  const bool shared_;
  const int stream_;
  LaterWrites later_;  // where the pieces are not shared
  std::vector<Contents> all_;
  std::vector<uint64_t> chunks_;  // of each of the first ones
  std::deque<Turn> copied_;
  size_t next_ = 0;       // the first of all_ of which not all is copied,
  uint64_t next_at_ = 0;  // and its first byte that is not
  std::vector<size_t> free_;
  std::vector<bool> away_;  // pieces that the new worker has
};

}  // namespace longwire::worker
