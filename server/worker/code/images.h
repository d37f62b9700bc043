// Gets the bytes of an image: sent with the call, from the daemon's cache, or requested from the
// client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "server/worker/transfer/transfers.h"

namespace longwire::worker {

class DownWriter;
class ImageCache;

struct ImageSources {
  Transfers& transfers;  // bytes that the client sends
  ImageCache& cache;     // images that the daemon keeps
  DownWriter& down;      // for requests to the client
  HostMemory& memory;
};

struct NamedImage {
  uint64_t transfer = 0;
  uint64_t bytes = 0;
  std::span<const std::byte> digest;
  bool on_offer = false;
};

// Fills `image` with the bytes and Transfers::kPadding zeros; waits for the client if it has to
// send them. *knowledge is an ImageKnowledge. CUDA_ERROR_INVALID_IMAGE if the bytes do not match
// the announced size and digest, or the session is over; CUDA_ERROR_OUT_OF_MEMORY if the host's
// memory does not suffice. Called on a helper.
CUresult FetchImage(const ImageSources& from, const NamedImage& named, Transfers::Image* image,
                    uint32_t* knowledge);

// The same for a call with these fields.
template <class Call>
CUresult FetchImage(const ImageSources& from, const Call& call, Transfers::Image* image,
                    uint32_t* knowledge) {
  return FetchImage(from, NamedImage{call.transfer, call.bytes, call.digest, call.on_offer}, image,
                    knowledge);
}

}  // namespace longwire::worker
