#include "server/worker/code/images.h"

#include <algorithm>

#include "base/try.h"
#include "server/images/sealed_memory.h"
#include "server/worker/code/image_cache.h"
#include "server/worker/support/down_writer.h"
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

CUresult FetchImage(const ImageSources& from, const NamedImage& named, Transfers::Image* image,
                    uint32_t* knowledge) {
  Transfers& transfers = from.transfers;
  ImageCache& cache = from.cache;
  wire::Digest digest;
  bool has_digest = named.digest.size() == digest.size();
  if (named.bytes == 0 || named.bytes > wire::kMaxImageBytes) return CUDA_ERROR_INVALID_IMAGE;
  if (has_digest) std::ranges::copy(named.digest, digest.begin());
  bool known = false;
  if (named.on_offer) {
    image->share = HostMemory::Share(from.memory, HostUse::kImages);
    if (!image->share.Resize(named.bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    known = has_digest && ReadKept(cache, digest, named.bytes, &image->bytes);
    if (!known) {
      transfers.ExpectImage(named.transfer, named.bytes, std::move(image->share));
      from.down.Pull(named.transfer);
      LONGWIRE_TRY(transfers.WaitForImage(named.transfer, named.bytes, image));
    }
  } else {
    known = has_digest && cache.Knows(digest, named.bytes);
    LONGWIRE_TRY(transfers.TakeImage(named.transfer, named.bytes, image));
  }
  if (has_digest && !known) cache.Keep(digest, std::span(image->bytes).first(named.bytes));
  auto said = known ? wire::ImageKnowledge::kKnown : wire::ImageKnowledge::kNew;
  if (!has_digest) said = wire::ImageKnowledge::kUnsaid;
  if (has_digest && !cache.keeps()) said = wire::ImageKnowledge::kNotKept;
  *knowledge = static_cast<uint32_t>(said);
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
