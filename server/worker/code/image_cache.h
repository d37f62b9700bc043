// The worker's side of the daemon's image cache (server/protocol/images.h). Helpers send requests;
// the thread that reads the control socket delivers the replies. If the daemon keeps no images or
// does not reply, the client sends every image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/protocol/images.h"
#include "wire/sha256.h"
#include "wire/socket.h"

namespace longwire::worker {

class ImageCache {
 public:
  // `control`: the daemon's socket; -1 if there is none.
  explicit ImageCache(int control) : control_(control) {}

  // True if the daemon keeps images, and until it reports that it does not.
  bool keeps();
  // True if the tenant has uploaded these bytes before.
  bool Knows(const wire::Digest& digest, uint64_t bytes);
  // The bytes that the tenant uploaded before, in sealed memory of this size; invalid if not known.
  wire::Descriptor Find(const wire::Digest& digest, uint64_t bytes);
  // Passes an image that the client has sent to the daemon, without waiting until it is stored.
  // Not if much is under way there already.
  void Keep(const wire::Digest& digest, std::span<const std::byte> image);

  // Handles a packet from the socket.
  void Arrived(wire::Message message);
  // Ends all waits for replies.
  void Stop();

 private:
  struct Answer {
    images::Found found;
    wire::Descriptor memory;
  };
  void Forget();
  bool MayPass(uint64_t bytes);
  Answer Ask(const wire::Digest& digest, uint64_t bytes, bool with_bytes);

  const int control_;
  base::Mutex mutex_{base::ranks::kImageCache};
  base::CondVar answered_;
  uint64_t next_request_ LONGWIRE_GUARDED_BY(mutex_) = 1;
  // Bytes that were passed to the daemon until now, and how many of them it has surely taken: it
  // replies in order.
  uint64_t passed_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t taken_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  // By request.
  std::map<uint64_t, std::optional<Answer>> waiting_ LONGWIRE_GUARDED_BY(mutex_);
  bool off_ LONGWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace longwire::worker
