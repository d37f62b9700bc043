// The worker's side of the daemon's cache of images (server/images/protocol.h). Helpers ask; the
// thread that reads the control socket brings the answers. With a daemon that keeps no images or
// does not answer, the client sends every image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/images/protocol.h"
#include "wire/sha256.h"
#include "wire/socket.h"

namespace longwire::worker {

class ImageCache {
 public:
  // The daemon's socket; -1: there is none.
  explicit ImageCache(int control) : control_(control) {}

  // Whether the daemon keeps images; true until it denies that.
  bool keeps();
  // Whether the tenant has uploaded these bytes before.
  bool Knows(const wire::Digest& digest, uint64_t bytes);
  // What the tenant uploaded before, in sealed memory of that size; invalid if it is not known.
  wire::Descriptor Find(const wire::Digest& digest, uint64_t bytes);
  // Hands over what the client has sent. The daemon takes it in on its own time.
  void Keep(const wire::Digest& digest, std::span<const std::byte> image);

  // What came over the socket.
  void Arrived(wire::Message message);
  // Nobody waits for an answer any more.
  void Stop();

 private:
  struct Answer {
    images::Found found;
    wire::Descriptor memory;
  };
  Answer Ask(const wire::Digest& digest, uint64_t bytes, bool with_bytes);

  const int control_;
  base::Mutex mutex_{base::ranks::kImageCache};
  base::CondVar answered_;
  uint64_t next_request_ LONGWIRE_GUARDED_BY(mutex_) = 1;
  // By request.
  std::map<uint64_t, std::optional<Answer>> waiting_ LONGWIRE_GUARDED_BY(mutex_);
  bool off_ LONGWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace longwire::worker
