// The packets of keeper and worker for swapping memory to the host and back
// (docs/decisions/0017-swap.md). They come at any time, between requests and answers:
//   SwapOut -> SwapLeft
//   SwapBack -> SwapReturned × n (the last one has more = false), however long that takes
//   SwapWatch -> Ran, now and then
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "server/protocol/message.h"

namespace longwire::keeper {

inline constexpr size_t kMaxChunksPerSwap = 8192;  // of one SwapOut

// Keeper to worker: unmap these chunks, if no work of the session is queued or running.
struct SwapOut {
  static constexpr uint32_t kKind = 113;
  uint64_t request = 0;
  uint32_t patience = 0;         // milliseconds to wait for the session to become idle
  std::vector<uint64_t> chunks;  // ids
  auto Fields() { return std::tie(request, patience, chunks); }
};

enum class SwapAnswer : uint32_t {
  kLeft = 1,   // the chunks are unmapped, and their handles are closed
  kBusy = 2,   // work is queued or running
  kNever = 3,  // this session cannot be swapped
};

struct SwapLeft {
  static constexpr uint32_t kKind = 114;
  uint64_t request = 0;
  uint32_t answer = 0;  // SwapAnswer
  auto Fields() { return std::tie(request, answer); }
};

// What is known of the session's next work, for policies.
struct NextWork {
  uint32_t launches = 0;     // kernels in the log, at most 64
  uint64_t kernels[4] = {};  // numbers of the names of the first ones; 0: none
  auto Fields() { return std::tie(launches, kernels[0], kernels[1], kernels[2], kernels[3]); }
};

// Worker to keeper: the session has work and needs all of its memory.
struct SwapBack {
  static constexpr uint32_t kKind = 115;
  uint64_t request = 0;
  std::optional<NextWork> next{};  // to keepers from kReattachSince on
  auto Fields() { return std::tie(request, next); }
};

struct GrantedChunk {
  uint64_t chunk = 0;  // id, never reused, not 0
  uint64_t bytes = 0;
  auto Fields() { return std::tie(chunk, bytes); }
};

// Carries one descriptor for each chunk, as a Grant does.
struct SwapReturned {
  static constexpr uint32_t kKind = 116;
  uint64_t request = 0;
  int32_t code = 0;      // a CUresult; not 0: the memory is lost
  std::string sentence;  // for people
  bool more = false;
  std::vector<GrantedChunk> chunks;
  auto Fields() { return std::tie(request, code, sentence, more, chunks); }
};

// Keeper to worker: report the session's work (Ran), or stop reporting it.
struct SwapWatch {
  static constexpr uint32_t kKind = 117;
  bool on = false;
  auto Fields() { return std::tie(on); }
};

struct Ran {
  static constexpr uint32_t kKind = 118;
  uint32_t times = 1;
  auto Fields() { return std::tie(times); }
};

// Keeper to warden: end this worker, which blocks others.
struct EndWorker {
  static constexpr uint32_t kKind = 205;
  uint64_t worker = 0;
  std::string sentence;  // for people, about the worker
  auto Fields() { return std::tie(worker, sentence); }
};

}  // namespace longwire::keeper
