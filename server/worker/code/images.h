// Gets the bytes of an image: sent with the call, from the daemon's cache, or requested from the
// client.
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
  Transfers& transfers;  // bytes that the client sends
  ImageCache& cache;     // images that the daemon keeps
  DownWriter& down;      // for requests to the client
};

struct NamedImage {
  uint64_t transfer = 0;
  uint64_t bytes = 0;
  std::span<const std::byte> digest;
  bool on_offer = false;
};

// Fills `image` with the bytes and Transfers::kPadding zeros; waits for the client if it has to
// send them. *knowledge is an ImageKnowledge. False if the bytes do not match the announced size
// and digest, or the session is over. Called on a helper.
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
