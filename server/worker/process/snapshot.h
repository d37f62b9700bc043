// What a session that moves is, as the old worker writes it into a stream and the new one reads it:
// frames of a head and bytes, in this order: State, for each entry of the journal an EntryHead, for
// each chunk of device memory, each variable of a module and each array a Contents with its Parts,
// SharedPieces or SharedChunk, End.
//
// What is rebuilt ahead comes first, in rounds: a State (of it only what the session opened with
// and its memory count), the entries since the last round, SnapshotPause. Then the last State and
// the entries since end with a SnapshotPause, too.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "server/protocol/message.h"
#include "server/protocol/moving.h"
#include "server/worker/completion/carried_events.h"
#include "server/worker/memory/carried_memory.h"
#include "server/worker/memory/memory.h"
#include "server/worker/support/driver.h"
#include "wire/socket.h"

namespace longwire::worker {

class EarlyReads;
class LaterWrites;
class WorkerSession;

struct CarriedStream {
  uint64_t stream = 0;
  uint64_t settled = 0;
  uint64_t last_issued = 0;
  auto Fields() { return std::tie(stream, settled, last_issued); }
};

struct CarriedMirror {
  uint64_t mirror = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  auto Fields() { return std::tie(mirror, address, bytes); }
};

struct CarriedState {
  static constexpr uint32_t kKind = 421;
  uint32_t version = moving::kVersion;
  std::string opening;  // the session's wire::OpenReply, without what differs between workers
  uint64_t next_handle = 0;
  CarriedMoment moment;  // of the events
  CarriedMemory memory;
  std::vector<CarriedStream> streams;
  std::vector<CarriedEvent> events;
  std::vector<CarriedMirror> mirrors;
  auto Fields() {
    return std::tie(version, opening, next_handle, moment, memory, streams, events, mirrors);
  }
};

// Followed by the arguments, the reply and the image.
struct EntryHead {
  static constexpr uint32_t kKind = 422;
  uint64_t position = 0;
  uint16_t call = 0;
  uint16_t flags = 0;
  uint32_t thread = 0;
  uint32_t context = 0;
  uint64_t stream = 0;
  int32_t result = 0;
  uint32_t knowledge = 0;
  uint64_t arguments = 0;  // bytes
  uint64_t reply = 0;
  uint64_t image = 0;
  auto Fields() {
    return std::tie(position, call, flags, thread, context, stream, result, knowledge, arguments,
                    reply, image);
  }
};

// Followed by Parts. What no Part has is zero in a mapping or a shadow; of variables
// and arrays the Parts have all.
struct Contents {
  static constexpr uint32_t kKind = 423;
  uint64_t address = 0;  // device memory
  uint64_t bytes = 0;
  uint32_t context = 0;  // of a variable; 0: of a mapping
  uint64_t library = 0;  // likewise
  std::string name;      // likewise
  uint64_t shadow = 0;   // of this mirror, in host memory; 0: of none
  uint64_t array = 0;    // the worker's number; 0: of none
  uint32_t level = 0;    // of a mipmapped array
  uint64_t chunk = 0;    // that no mapping gives access to; 0: of none
  auto Fields() {
    return std::tie(address, bytes, context, library, name, shadow, array, level, chunk);
  }
};

// Followed by its bytes, which are at this offset of the Contents.
struct Part {
  static constexpr uint32_t kKind = 425;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  auto Fields() { return std::tie(offset, bytes); }
};

// In the place of Parts where both workers share the pieces (move_pieces.h): what is at these
// places of one of them belongs at `offset` and as far behind it. The old worker leaves the piece
// alone until the new one has sent its number back, in one byte.
struct SharedPiece {
  static constexpr uint32_t kKind = 426;
  struct Run {
    uint64_t at = 0;  // in the piece
    uint64_t bytes = 0;
    auto Fields() { return std::tie(at, bytes); }
  };
  uint32_t piece = 0;
  uint64_t offset = 0;  // of the Contents, where the piece begins
  std::vector<Run> runs;
  auto Fields() { return std::tie(piece, offset, runs); }
};

// In the place of Parts, for a whole chunk of device memory, with its descriptor: the new worker's
// keeper copies it, if it reaches that device. The new worker answers with one of these bytes.
struct SharedChunk {
  static constexpr uint32_t kKind = 428;
  uint64_t bytes = 0;
  auto Fields() { return std::tie(bytes); }
};
inline constexpr unsigned char kChunkFilled = 254;
inline constexpr unsigned char kChunkNotFilled = 255;  // its bytes follow otherwise

// The calls before it have run again when the new worker answers.
struct SnapshotPause {
  static constexpr uint32_t kKind = 427;
  uint64_t round = 0;
  auto Fields() { return std::tie(round); }
};

struct SnapshotEnd {
  static constexpr uint32_t kKind = 424;
  uint64_t frames = 0;
  auto Fields() { return std::tie(frames); }
};

class SnapshotWriter {
 public:
  explicit SnapshotWriter(int stream) : stream_(stream) {}
  template <class Head>
  bool Write(const Head& head) {
    ++frames_;
    return WriteHead(message::Pack(head));
  }
  bool WriteBytes(std::span<const std::byte> bytes);
  // They stay as they are until their piece is given back (later_writes.h).
  bool WritePiece(std::span<const std::byte> bytes);
  // A head that carries a descriptor.
  template <class Head>
  bool Write(const Head& head, const wire::Descriptor& file) {
    ++frames_;
    return WriteHead(message::Pack(head), file.get());
  }
  // From now on, all of it; nullptr: by itself again.
  void WriteThrough(LaterWrites* later) { later_ = later; }
  bool End() { return Write(SnapshotEnd{frames_}); }

 private:
  bool WriteHead(const std::vector<std::byte>& packed, int file = -1);
  const int stream_;
  LaterWrites* later_ = nullptr;
  uint64_t frames_ = 0;
};

// A chunk that is mapped beside the windows while this lives.
class ShownChunk {
 public:
  ShownChunk(Memory& memory, uint64_t chunk, uint64_t bytes)
      : memory_(memory), bytes_(bytes), result_(memory.Show(chunk, &address_)) {}
  ~ShownChunk() {
    if (result_ == CUDA_SUCCESS) memory_.Hide(address_, bytes_);
  }
  ShownChunk(const ShownChunk&) = delete;
  ShownChunk& operator=(const ShownChunk&) = delete;
  CUresult result() const { return result_; }
  CUdeviceptr address() const { return address_; }

 private:
  Memory& memory_;
  const uint64_t bytes_;
  CUdeviceptr address_ = 0;
  const CUresult result_;
};

class SnapshotReader {
 public:
  explicit SnapshotReader(int stream) : stream_(stream) {}
  // The next frame's packed head; false if the stream is broken.
  bool ReadHead(std::vector<std::byte>* packed);
  // The descriptor that came with it, if one did.
  wire::Descriptor TakeFile() { return std::move(file_); }
  bool ReadBytes(std::span<std::byte> bytes);
  uint64_t frames() const { return frames_; }
  // From now on it is read by this.
  void ReadThrough(EarlyReads* early) { early_ = early; }

 private:
  const int stream_;
  EarlyReads* early_ = nullptr;
  wire::Descriptor file_;
  uint64_t frames_ = 0;
};

// All variables of the session's modules in their contexts, by their images. A sentence if one
// cannot be found, or an image holds what cannot be carried.
// Before that: what the images of its modules say, without the driver.
std::string LookForVariables(WorkerSession& session);
std::string FindVariables(WorkerSession& session, std::vector<Contents>* variables);
CUresult PlaceOf(WorkerSession& session, uint64_t library, uint32_t context,
                 const std::string& name, CUdeviceptr* address, size_t* bytes);

}  // namespace longwire::worker
