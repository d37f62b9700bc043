// What a worker asks the daemon about module images, over its control socket once the session is
// open. The daemon never reads what is in an image: it knows its digest and whose upload it was.
//
//   Find -> Found    with one descriptor of sealed memory if known and with_bytes
//   Keep -> nothing  with one descriptor of sealed memory, whose digest the daemon computes
//   Forgotten        from a daemon that has taken the session over: requests from before get no
//                    answer. A worker of an earlier release ignores it
//
// Packets are made by message::Pack and read by message::Unpack.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "server/protocol/message.h"

namespace longwire::images {

struct Find {
  static constexpr uint32_t kKind = 101;
  uint64_t request = 0;
  std::string digest;  // as wire::Hexadecimal makes it
  uint64_t bytes = 0;
  bool with_bytes = false;
  auto Fields() { return std::tie(request, digest, bytes, with_bytes); }
};

struct Found {
  static constexpr uint32_t kKind = 102;
  uint64_t request = 0;
  bool known = false;  // to the session's tenant, which uploaded these bytes itself
  bool keeps = false;  // images are kept here at all
  auto Fields() { return std::tie(request, known, keeps); }
};

struct Keep {
  static constexpr uint32_t kKind = 103;
  std::string digest;
  uint64_t bytes = 0;
  auto Fields() { return std::tie(digest, bytes); }
};

struct Forgotten {
  static constexpr uint32_t kKind = 104;
  auto Fields() { return std::tie(); }
};

}  // namespace longwire::images
