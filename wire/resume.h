// What another link needs to go on with a session whose link has ended: a page of shared memory
// that the program makes and keeps, and that the link fills and keeps up to date. The program gives
// it to the next link with the session's rings (ResumeRequest). Sessions through a daemon's local
// socket have no link and no page.
//
// A link may end at any instruction. So each value is written in an order that leaves a right page:
// a token before the index that names it, an epoch before the connection that uses it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/memory_sizes.h"
#include "wire/buffer.h"
#include "wire/limits.h"

namespace longwire::wire {

inline constexpr size_t kResumeTokenBytes = 32;
using ResumeToken = std::array<std::byte, kResumeTokenBytes>;

struct ResumePage {
  static constexpr uint32_t kMagic = 0x5057574c;  // "LWWP"
  static constexpr size_t kMaxServerBytes = 512;

  struct alignas(64) Lane {
    std::atomic<uint32_t> epoch;  // of the newest connection that was tried; 0: none yet
    std::atomic<uint32_t> token;  // index of the one that counts
    // When the connection was lost, in nanoseconds of the monotonic clock; 0 while there is one.
    std::atomic<int64_t> lost_at;
    std::array<ResumeToken, 2> tokens;
  };

  std::atomic<uint32_t> magic;  // written last
  uint32_t lanes;               // beside the session's own logs
  uint64_t session;
  std::atomic<uint32_t> resume_grace_milliseconds;
  std::array<char, kMaxServerBytes> server;  // its address, with a zero behind it
  std::array<Lane, 1 + kMaxLanes> lane;
};
static_assert(sizeof(ResumePage) <= base::kPageBytes);
static_assert(std::atomic<int64_t>::is_always_lock_free);

// The first message of a program that goes on with its session. With it come the page and then for
// the session's own logs and each lane the up ring and the down ring. The answer is an OpenReply of
// which only `code` and `sentence` count, as an older link refuses in that form, too.
struct ResumeRequest {
  uint32_t lanes = 0;  // beside the session's own logs

  void Encode(Writer& writer) const;
  WireResult Decode(Reader& reader);
};

// True if the first message at a link's socket is a ResumeRequest.
bool IsResumeRequest(std::span<const std::byte> message);

}  // namespace longwire::wire
