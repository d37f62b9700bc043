// Where the bytes of an image come from: sent with the call, kept by the daemon from an earlier
// upload, or asked of the client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "server/worker/session.h"

namespace longwire::worker {

struct NamedImage {
  uint64_t transfer = 0;
  uint64_t bytes = 0;
  std::span<const std::byte> digest;
  bool on_offer = false;
};

// Fills `image` with the bytes and Transfers::kPadding zeros behind them; waits for the client if
// it has to send them. *knowledge is an ImageKnowledge. False: they are not what was announced, or
// the session is over. On a helper.
bool FetchImage(Session& session, const NamedImage& named, std::vector<std::byte>* image,
                uint32_t* knowledge);

// The same for a call with these fields.
template <class Call>
bool FetchImage(Session& session, const Call& call, std::vector<std::byte>* image,
                uint32_t* knowledge) {
  return FetchImage(session, NamedImage{call.transfer, call.bytes, call.digest, call.on_offer},
                    image, knowledge);
}

}  // namespace longwire::worker
