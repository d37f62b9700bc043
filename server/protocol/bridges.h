// Bridges between sessions of several servers that one program has: lanes of the one session are
// joined to lanes of the other. What a worker asks its daemon for, over its control socket:
//
//   Ask -> Answer    Step::kOffer    a digest of a secret that the daemon keeps for the session
//                    Step::kTicket   the right to connect to the session's lanes, for the one whose
//                                    secret has the digest
//                    Step::kConnect  connects to another server's session; answered when it is done
//                    Step::kState    whether the lanes are connected
//
// A worker speaks for its own session only. Packets are made by message::Pack and read by
// message::Unpack.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

namespace longwire::bridges {

enum class Step : uint32_t { kOffer = 1, kTicket = 2, kConnect = 3, kState = 4 };

struct Ask {
  static constexpr uint32_t kKind = 151;
  uint64_t request = 0;
  uint32_t step = 0;
  uint32_t first_lane = 0;  // of the session, from 1
  uint32_t lanes = 0;
  std::string secret;     // the digest or the ticket
  std::string address;    // of the other server
  uint64_t session = 0;   // there
  uint32_t far_lane = 0;  // the first one there
  uint32_t epoch = 0;     // of the lanes' newest connection there
  auto Fields() {
    return std::tie(request, step, first_lane, lanes, secret, address, session, far_lane, epoch);
  }
};

struct Answer {
  static constexpr uint32_t kKind = 152;
  uint64_t request = 0;
  bool done = false;
  std::string secret;    // the digest or the ticket
  uint32_t epoch = 0;    // with a ticket
  std::string sentence;  // why it is not done
  auto Fields() { return std::tie(request, done, secret, epoch, sentence); }
};

}  // namespace longwire::bridges
