#include "client-shim/image_upload.h"

#include <atomic>

#include "client-shim/options.h"
#include "client-shim/uploads.h"
#include "wire/record.h"

namespace longwire::shim {
namespace {

using wire::ImageKnowledge;

// What the server said of the last image: the next one's fate is mostly the same, since a program
// loads what it loaded in its last run, or everything for the first time.
std::atomic<ImageKnowledge> last_said{ImageKnowledge::kKnown};

}  // namespace

bool ImageUpload::Start() {
  transfer_ = session_.NewId();
  session_.counts().images.fetch_add(1, std::memory_order_relaxed);
  session_.counts().image_bytes.fetch_add(image_.size(), std::memory_order_relaxed);
  ImageKnowledge expected = last_said.load();
  has_digest_ = expected != ImageKnowledge::kNotKept && !ProcessOptions().Disabled("module-cache");
  if (has_digest_) digest_ = wire::Sha256Of(image_);
  HostPlace place = HostPlace::Linear(image_.data(), image_.size());
  on_offer_ = has_digest_ && expected == ImageKnowledge::kKnown;
  if (!on_offer_) return SendImage(session_, transfer_, place);
  session_.transfers().OfferImage(transfer_, place);
  return true;
}

void ImageUpload::Answered(uint32_t knowledge) {
  auto said = static_cast<ImageKnowledge>(knowledge);
  if (said == ImageKnowledge::kUnsaid || said > ImageKnowledge::kKnown) return;
  if (said == ImageKnowledge::kKnown) {
    session_.counts().images_known.fetch_add(1, std::memory_order_relaxed);
  }
  last_said = said;
}

ImageUpload::~ImageUpload() {
  if (on_offer_) session_.transfers().WithdrawImage(transfer_);
}

}  // namespace longwire::shim
