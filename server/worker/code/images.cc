#include "server/worker/code/images.h"

#include <algorithm>

#include "server/images/sealed_memory.h"
#include "server/worker/code/image_cache.h"
#include "server/worker/support/down_writer.h"
#include "server/worker/transfer/transfers.h"
#include "wire/limits.h"
#include "wire/record.h"
#include "wire/sha256.h"

namespace longwire::worker {
namespace {

// From what the daemon keeps; false if it does not know it.
bool ReadKept(ImageCache& cache, const wire::Digest& digest, uint64_t bytes,
              std::vector<std::byte>* image) {
  wire::Descriptor memory = cache.Find(digest, bytes);
  if (!memory.valid()) return false;
  image->resize(bytes + Transfers::kPadding);
  return images::ReadAll(memory, std::span(*image).first(bytes));
}

}  // namespace

bool FetchImage(const ImageSources& from, const NamedImage& named, std::vector<std::byte>* image,
                uint32_t* knowledge) {
  Transfers& transfers = from.transfers;
  ImageCache& cache = from.cache;
  wire::Digest digest;
  bool has_digest = named.digest.size() == digest.size();
  if (named.bytes == 0 || named.bytes > wire::kMaxImageBytes) return false;
  if (has_digest) std::ranges::copy(named.digest, digest.begin());
  bool known = false;
  if (named.on_offer) {
    known = has_digest && ReadKept(cache, digest, named.bytes, image);
    if (!known) from.down.Pull(named.transfer);
    if (!known && !transfers.WaitForImage(named.transfer, named.bytes, image)) return false;
  } else {
    known = has_digest && cache.Knows(digest, named.bytes);
    if (!transfers.TakeImage(named.transfer, named.bytes, image)) return false;
  }
  if (has_digest && !known) cache.Keep(digest, std::span(*image).first(named.bytes));
  auto said = known ? wire::ImageKnowledge::kKnown : wire::ImageKnowledge::kNew;
  if (!has_digest) said = wire::ImageKnowledge::kUnsaid;
  if (has_digest && !cache.keeps()) said = wire::ImageKnowledge::kNotKept;
  *knowledge = static_cast<uint32_t>(said);
  return true;
}

}  // namespace longwire::worker
