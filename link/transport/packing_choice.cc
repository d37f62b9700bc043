#include "link/transport/packing_choice.h"

#include <algorithm>

namespace longwire::transport {
namespace {

using std::chrono::milliseconds;

// A trial is long enough to measure the rate, and short enough that a failed one costs little.
constexpr uint64_t kTrialBytes = uint64_t{8} << 20;
constexpr uint64_t kSlowTrialBytes = uint64_t{1} << 20;
constexpr milliseconds kSlowTrial{1000};

// Above this rate no codec is fast enough: no trials.
constexpr double kFast = 400e6;
// The gain that another codec must show: rates that are not limited by the network, such as the
// rate of launches, vary by chance.
constexpr double kGain = 1.2;
constexpr int kLongestPause = 64;
constexpr double kSmaller = 0.9;
constexpr int kMaxFailedFrames = 4;

}  // namespace

bool ParsePacking(std::string_view text, uint32_t* packing) {
  struct Word {
    std::string_view text;
    uint32_t packing;
  };
  constexpr Word kWords[] = {{"auto", kPackAuto},
                             {"lz4", kPackLz4 | kPackAlways},
                             {"none", 0},
                             {"zstd", kPackZstd | kPackAlways}};
  for (const Word& word : kWords) {
    if (word.text == text) *packing = word.packing;
    if (word.text == text) return true;
  }
  return false;
}

void PackingChoice::Allow(uint32_t packing) {
  bool codecs = (packing & (kPackLz4 | kPackZstd)) != 0;
  packing_ = codecs ? packing : 0;
  best_ = Codec::kNone;
  if ((packing_ & kPackAlways) != 0) {
    best_ = (packing_ & kPackLz4) != 0 ? Codec::kLz4 : Codec::kZstd;
  }
  Use(best_);
}

void PackingChoice::Delivered(uint64_t delivered, uint64_t sent, Time now) {
  if (packing_ == 0 || (packing_ & kPackAlways) != 0) return;
  if (delivered_ < sent_ && delivered_ >= begins_at_) {
    busy_ += now - seen_;
    bytes_ += delivered - delivered_;
  }
  delivered_ = delivered;
  sent_ = sent;
  seen_ = now;
  bool slow = busy_ >= kSlowTrial && bytes_ >= kSlowTrialBytes;
  if (bytes_ >= kTrialBytes || slow) EndTrial();
}

void PackingChoice::Packed(size_t plain, size_t packed) {
  if ((packing_ & kPackAlways) != 0) return;
  bool smaller = static_cast<double>(packed) <= static_cast<double>(plain) * kSmaller;
  in_vain_ = smaller ? 0 : in_vain_ + 1;
  if (in_vain_ < kMaxFailedFrames) return;
  if (codec_ == best_) best_ = Codec::kNone;
  GiveUp();
}

void PackingChoice::EndTrial() {
  double rate = static_cast<double>(bytes_) / std::chrono::duration<double>(busy_).count();
  if (codec_ != best_) {
    if (rate < best_rate_ * kGain) return GiveUp();
    best_ = codec_;
    pause_ = countdown_ = 1;
  }
  best_rate_ = rate;
  bool may_pay = best_ != Codec::kNone || rate < kFast;
  bool tries = may_pay && --countdown_ <= 0;
  Use(tries ? NextCandidate() : best_);
}

void PackingChoice::GiveUp() {
  pause_ = std::min(pause_ * 2, kLongestPause);
  countdown_ = pause_;
  Use(best_);
}

void PackingChoice::Use(Codec codec) {
  // Bytes in flight were sent with the previous codec.
  if (codec != codec_) begins_at_ = sent_;
  codec_ = codec;
  bytes_ = 0;
  busy_ = {};
  in_vain_ = 0;
}

// Each in turn, except the best.
Codec PackingChoice::NextCandidate() {
  constexpr Codec kOrder[] = {Codec::kNone, Codec::kLz4, Codec::kZstd};
  constexpr int kCodecs = 3;
  int at = static_cast<int>(last_candidate_);
  do {
    at = (at + 1) % kCodecs;
    last_candidate_ = kOrder[at];
  } while (last_candidate_ == best_ || (last_candidate_ != Codec::kNone &&
                                        (packing_ & static_cast<uint32_t>(last_candidate_)) == 0));
  return last_candidate_;
}

}  // namespace longwire::transport
