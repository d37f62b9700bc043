// The messages of Execute and Transfer: a fixed header, then bytes of a log or, for the flags that
// say so, a small body. Little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "wire/limits.h"
#include "wire/result.h"

namespace longwire::transport {

using wire::WireResult;

enum FrameFlags : uint32_t {
  kFrameAttach = 1,    // first frame from the client; body: Attach
  kFrameAttached = 2,  // first frame from the daemon; body: Attached; position = how much of the up
                       // log it has received, ack = how much of that it has consumed
  kFrameClosed = 4,    // last frame; body: Closed
  kFramePing = 8,      // answered with kFramePong, the same body
  kFramePong = 16,
  kFramePacked = 32,  // compressed bytes of the log (link/transport/packing.h)
  kFrameTerms =
      64,  // from the daemon, if the client understands it; body: Terms, in force from here on
  kFrameMoved = 128,  // the daemon's answer in place of kFrameAttached; body: Moved
};

struct FrameHeader {
  uint64_t position = 0;  // in the sender's log, of the first byte that follows
  uint64_t ack = 0;       // how much of the receiver's log the sender has consumed
  uint32_t epoch = 0;     // of the connection, from 1; each resume raises it
  uint32_t flags = 0;     // FrameFlags, 0 = bytes of the log
};
static_assert(sizeof(FrameHeader) == 24);

inline constexpr size_t kTokenBytes = 32;
using Token = std::array<std::byte, kTokenBytes>;

// Names a session and one of its lanes, and proves the right to it by a token.
//
// Neither end sends more unacknowledged bytes than the other has room for. So the receiver can
// store every frame at once, and an acknowledgement never waits behind bytes that do not fit.
struct Attach {
  uint64_t session = 0;
  Token token{};
  uint64_t resume_position = 0;  // how much of the down log the client has received
  uint64_t consumed = 0;         // and how much of that it has consumed
  uint64_t kept_bytes = 0;       // how much of the up log the client can keep
  uint64_t room_bytes = 0;       // how much of the down log the client can take
  uint32_t lane = 0;             // of the session; 0: its own logs
  uint32_t packing = 0;          // PackingFlags that the client can take and wants
  // 1: kFrameTerms may be sent; kUnderstandsMoves: kFrameMoved, too. Older clients have no such
  // field.
  uint32_t understands_terms = 0;
  // Of another server, whose session builds a bridge to this one: the token is a ticket, and this
  // proves which session it was made for (server/daemon/bridges/rights.h). Others have none.
  std::optional<Token> offer;
};

// As an attach's resume_position: program and link of the session have ended, and nobody comes back
// for it. The daemon ends it at once.
inline constexpr uint64_t kAbandoned = UINT64_MAX;

// The daemon's answer.
struct Attached {
  Token token{};            // for the next attach
  uint64_t kept_bytes = 0;  // how much of the down log the daemon can keep
  uint64_t room_bytes = 0;  // how much of the up log the daemon can take
  uint32_t packing = 0;  // of the flags that the client wants; both ends may use these from now on
};

// What a reload of the daemon's configuration changes for existing connections; sent at their
// start, too, where the link is to stay awake.
struct Terms {
  uint32_t resume_grace_milliseconds = 0;
  uint32_t packing = 0;  // as in Attached; bytes that were packed before are still accepted
  // How long the link stays awake after a message, if its host has cores to spare; older daemons
  // have no such field, and 0 is left out.
  uint32_t awake_microseconds = 0;
};

inline constexpr uint32_t kUnderstandsMoves = 2;

// Where the session is now: at another server, under another number, with the same tokens.
struct Moved {
  uint64_t session = 0;
  std::string server;  // HOST:PORT
};

// Why a session ended.
struct Closed {
  uint32_t code = 0;  // CUresult for the client's later calls, 0 = orderly
  std::string sentence;
};

inline constexpr size_t kMaxSentenceBytes = 4096;
inline constexpr size_t kMaxServerBytes = 512;
inline constexpr size_t kMaxControlBytes = 8192;  // body of a frame with flags
inline constexpr size_t kMaxFrameBytes = sizeof(FrameHeader) + wire::kMaxBatchBytes;

std::string EncodeAttach(const Attach& attach);
WireResult DecodeAttach(std::span<const std::byte> body, Attach* attach);
std::string EncodeAttached(const Attached& attached);
WireResult DecodeAttached(std::span<const std::byte> body, Attached* attached);
std::string EncodeTerms(const Terms& terms);
WireResult DecodeTerms(std::span<const std::byte> body, Terms* terms);
std::string EncodeMoved(const Moved& moved);
WireResult DecodeMoved(std::span<const std::byte> body, Moved* moved);
std::string EncodeClosed(const Closed& closed);
WireResult DecodeClosed(std::span<const std::byte> body, Closed* closed);

}  // namespace longwire::transport
