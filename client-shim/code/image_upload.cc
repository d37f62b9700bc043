#include "client-shim/code/image_upload.h"

#include "client-shim/session/uploads.h"
#include "wire/record.h"
#include "wire/switches.h"

namespace longwire::shim {

using wire::ImageKnowledge;

bool ImageUpload::Start() {
  transfer_ = session_.NewId();
  counts_.number.fetch_add(1, std::memory_order_relaxed);
  counts_.bytes.fetch_add(image_.size(), std::memory_order_relaxed);
  ImageKnowledge expected = counts_.last_said.load();
  has_digest_ = expected != ImageKnowledge::kNotKept && !wire::IsSwitchedOff("module-cache");
  if (has_digest_) digest_ = wire::Sha256Of(image_);
  HostPlace place = HostPlace::Linear(image_.data(), image_.size());
  on_offer_ = has_digest_ && expected == ImageKnowledge::kKnown;
  if (!on_offer_) {
    counts_.bytes_sent.fetch_add(image_.size(), std::memory_order_relaxed);
    return SendImage(session_, transfer_, place);
  }
  session_.transfers().OfferImage(transfer_, place);
  return true;
}

void ImageUpload::Answered(uint32_t knowledge) {
  auto said = static_cast<ImageKnowledge>(knowledge);
  if (on_offer_ && said != ImageKnowledge::kKnown) {
    counts_.bytes_sent.fetch_add(image_.size(), std::memory_order_relaxed);
  }
  if (said == ImageKnowledge::kUnsaid || said > ImageKnowledge::kKnown) return;
  if (said == ImageKnowledge::kKnown) counts_.known.fetch_add(1, std::memory_order_relaxed);
  counts_.last_said = said;
}

ImageUpload::~ImageUpload() {
  if (on_offer_) session_.transfers().WithdrawImage(transfer_);
}

}  // namespace longwire::shim
