// Where the bytes of an image come from: sent with the call, kept by the daemon from an earlier
// upload, or asked of the client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace longwire::worker {

class DownWriter;
class ImageCache;
class Transfers;

struct ImageSources {
  Transfers& transfers;  // what the client sends
  ImageCache& cache;     // what the daemon keeps
  DownWriter& down;      // carries requests to the client
};

struct NamedImage {
  uint64_t transfer = 0;
  uint64_t bytes = 0;
  std::span<const std::byte> digest;
  bool on_offer = false;
};

// Fills `image` with the bytes and Transfers::kPadding zeros behind them; waits for the client if
// it has to send them. *knowledge is an ImageKnowledge. False: they are not what was announced, or
// the session is over. On a helper.
bool FetchImage(const ImageSources& from, const NamedImage& named, std::vector<std::byte>* image,
                uint32_t* knowledge);

// The same for a call with these fields.
template <class Call>
bool FetchImage(const ImageSources& from, const Call& call, std::vector<std::byte>* image,
                uint32_t* knowledge) {
  return FetchImage(from, NamedImage{call.transfer, call.bytes, call.digest, call.on_offer}, image,
                    knowledge);
}

}  // namespace longwire::worker
