// How longwired moves a session from one worker to another (docs/moving.md). On the control socket
// the old worker gets MoveOut and the new one MoveIn, each with two descriptors: a socket for the
// packets below, and one end of a stream on which the old worker writes and the new one reads what
// the session is. Whoever loses the packets' socket goes back: the old worker goes on with its
// session, the new one ends.
//
//   old:  MoveOut  -> MoveOffer       what a new worker is opened with, or why the session stays
//         MoveAhead -> MoveAnswer     what there is by now is written, and the program runs on;
//                                     CUDA_ERROR_NOT_READY: not at this moment
//         MoveHold -> MoveAnswer      reads no further call; code 0: nothing is under way
//         MoveWrite -> MoveAnswer     the stream is written
//         MoveEnd  -> no answer; the worker ends
//   new:  MoveIn   -> MoveAnswer      one for each MoveAhead, and where there was one, for the
//   calls
//                                     that MoveWrite brings: they have run again, with code 0 as
//                                     there; a last one once all is rebuilt and compared
//         MoveGo   -> no answer; the rings have the old one's positions: it runs from now on
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

namespace longwire::moving {

inline constexpr uint32_t kVersion = 4;  // of the stream

struct MoveOut {
  static constexpr uint32_t kKind = 401;
  uint32_t version = kVersion;
  std::optional<bool> knows_ahead;  // whoever says so knows MoveAhead
  auto Fields() { return std::tie(version, knows_ahead); }
};

struct MoveOffer {
  static constexpr uint32_t kKind = 402;
  int32_t code = 0;      // a CUresult; not 0: it cannot move
  std::string sentence;  // for people, why
  std::string request;   // a wire::OpenRequest for the new worker
  std::optional<bool> knows_ahead;
  auto Fields() { return std::tie(code, sentence, request, knows_ahead); }
};

struct MoveHold {
  static constexpr uint32_t kKind = 403;
  uint32_t patience = 0;  // milliseconds
  bool off = false;       // goes on instead
  auto Fields() { return std::tie(patience, off); }
};

struct MoveWrite {
  static constexpr uint32_t kKind = 404;
  uint32_t version = kVersion;
  auto Fields() { return std::tie(version); }
};

struct MoveAnswer {
  static constexpr uint32_t kKind = 405;
  int32_t code = 0;  // a CUresult
  std::string sentence;
  std::optional<uint64_t> calls;  // that were written to be run again
  auto Fields() { return std::tie(code, sentence, calls); }
};

struct MoveAhead {
  static constexpr uint32_t kKind = 409;
  uint32_t version = kVersion;
  auto Fields() { return std::tie(version); }
};

struct MoveEnd {
  static constexpr uint32_t kKind = 406;
  uint32_t version = kVersion;
  auto Fields() { return std::tie(version); }
};

struct MoveIn {
  static constexpr uint32_t kKind = 407;
  uint32_t version = kVersion;
  auto Fields() { return std::tie(version); }
};

struct MoveGo {
  static constexpr uint32_t kKind = 408;
  uint32_t version = kVersion;
  auto Fields() { return std::tie(version); }
};

}  // namespace longwire::moving
