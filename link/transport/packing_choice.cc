#include "link/transport/packing_choice.h"

#include <algorithm>

#include "wire/switches.h"

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
// A smaller frame takes as long as the threads' wake-ups; its rate says nothing.
constexpr size_t kMarkedBytes = size_t{64} << 10;
// A network that was fast is taken to be for this time.
constexpr milliseconds kStaysFast{10'000};
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
  marks_ = {};
  fast_until_ = {};
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
  LookAtMarks(delivered, now);
  if (delivered_ < sent_ && delivered_ >= begins_at_) {
    busy_ += now - seen_;
    bytes_ += delivered - delivered_;
  }
  delivered_ = delivered;
  sent_ = sent;
  seen_ = now;
  bool slow = busy_ >= kSlowTrial && bytes_ >= kSlowTrialBytes;
  if (bytes_ >= kTrialBytes || slow) EndTrial(now);
}

void PackingChoice::Sent(uint64_t sent, size_t bytes, Time now) {
  static const bool off = wire::IsSwitchedOff("batch-rates");
  const bool plain = packing_ != 0 && (packing_ & kPackAlways) == 0 && codec_ == Codec::kNone;
  if (off || !plain || bytes < kMarkedBytes) return;
  marks_[next_mark_++ % marks_.size()] = {sent, bytes, now};
}

// All of a frame has arrived since it was sent, so the network is at least as fast as that.
void PackingChoice::LookAtMarks(uint64_t delivered, Time now) {
  for (Mark& mark : marks_) {
    if (mark.bytes == 0 || delivered < mark.sent) continue;
    const double seconds = std::chrono::duration<double>(now - mark.at).count();
    if (static_cast<double>(mark.bytes) > kFast * seconds) fast_until_ = now + kStaysFast;
    mark.bytes = 0;
  }
}

void PackingChoice::Packed(size_t plain, size_t packed) {
  if ((packing_ & kPackAlways) != 0) return;
  bool smaller = static_cast<double>(packed) <= static_cast<double>(plain) * kSmaller;
  in_vain_ = smaller ? 0 : in_vain_ + 1;
  if (in_vain_ < kMaxFailedFrames) return;
  if (codec_ == best_) best_ = Codec::kNone;
  GiveUp();
}

void PackingChoice::EndTrial(Time now) {
  double rate = static_cast<double>(bytes_) / std::chrono::duration<double>(busy_).count();
  if (codec_ != best_) {
    if (rate < best_rate_ * kGain) return GiveUp();
    best_ = codec_;
    pause_ = countdown_ = 1;
  }
  best_rate_ = rate;
  bool may_pay = best_ != Codec::kNone || (rate < kFast && now >= fast_until_);
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
