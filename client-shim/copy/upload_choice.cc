#include "client-shim/copy/upload_choice.h"

#include "wire/limits.h"

namespace longwire::shim {
namespace {

bool IsSmall(const UploadFacts& facts) { return facts.bytes <= wire::kInlineCopyBytes; }

// The source may change before the copy has to read it.
bool MayChange(const UploadFacts& facts) {
  return ReadsInOrder(facts) && (facts.write_pending || facts.reached_later);
}

// The bytes are taken when the stream reaches the copy.
bool IsTakenLater(const UploadFacts& facts) {
  bool fits = IsSmall(facts) || facts.waits || facts.fits_window;
  return facts.captured || MayChange(facts) || (ReadsInOrder(facts) && !fits);
}

bool IsShared(const UploadFacts& facts) {
  return facts.shared && !facts.captured && !MustReadNow(facts);
}

}  // namespace

bool ReadsInOrder(const UploadFacts& facts) { return facts.pinned && !facts.reads_now; }

bool MustReadNow(const UploadFacts& facts) {
  // Few bytes that are read now need no wait for the device.
  return !MayChange(facts) && (facts.reads_now || (IsSmall(facts) && facts.waits));
}

bool AsksToSpeculate(const UploadFacts& facts) {
  return !IsShared(facts) && IsTakenLater(facts) && !facts.captured && !facts.write_pending;
}

UploadWay ChooseUpload(const UploadFacts& facts) {
  if (IsShared(facts)) return UploadWay::kShared;
  if (IsTakenLater(facts)) {
    bool speculates = AsksToSpeculate(facts) && facts.may_speculate;
    return speculates ? UploadWay::kSpeculative : UploadWay::kPulled;
  }
  if (IsSmall(facts)) return facts.contiguous ? UploadWay::kInline : UploadWay::kPacked;
  return facts.fits_lanes ? UploadWay::kByLanes : UploadWay::kInLog;
}

bool AsksToReturnEarly(const UploadFacts& facts, UploadWay way) {
  bool taken =
      way != UploadWay::kShared && way != UploadWay::kPulled && way != UploadWay::kSpeculative;
  return facts.waits && taken;
}

UploadReturn ChooseReturn(const UploadFacts& facts, UploadWay way, bool unobserved) {
  if (!facts.waits || facts.captured) return UploadReturn::kAtOnce;
  bool early = AsksToReturnEarly(facts, way) && unobserved;
  return early ? UploadReturn::kEarly : UploadReturn::kWhenFinished;
}

bool MayBeCached(const CacheFacts& facts) {
  bool now = facts.waits || !facts.pinned;
  return facts.linear && now && !facts.captured && !facts.mirrored && !facts.write_pending;
}

}  // namespace longwire::shim
