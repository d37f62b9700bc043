#include "server/worker/code/image_cache.h"

#include <algorithm>

#include "base/poll_set.h"
#include "server/images/sealed_memory.h"
#include "server/worker/support/log_line.h"

namespace longwire::worker {
namespace {

// The daemon reads and checks up to 2 GiB for one answer.
constexpr std::chrono::seconds kAnswerPatience{20};
// It is busy with what was handed over before.
constexpr std::chrono::milliseconds kHandOverPatience{1000};
// Passed to the daemon and perhaps not stored yet: they take memory that belongs to no process.
constexpr uint64_t kMaxUnansweredBytes = uint64_t{256} << 20;

}  // namespace

bool ImageCache::keeps() {
  base::MutexLock lock(mutex_);
  return control_ >= 0 && !off_;
}

bool ImageCache::Knows(const wire::Digest& digest, uint64_t bytes) {
  return Ask(digest, bytes, false).found.known;
}

wire::Descriptor ImageCache::Find(const wire::Digest& digest, uint64_t bytes) {
  Answer answer = Ask(digest, bytes, true);
  bool whole = answer.found.known && images::IsSealed(answer.memory, bytes);
  return whole ? std::move(answer.memory) : wire::Descriptor();
}

// One image always may: whoever loads one after the other asks about each before.
bool ImageCache::MayPass(uint64_t bytes) {
  base::MutexLock lock(mutex_);
  if (passed_ != taken_ && passed_ - taken_ + bytes > kMaxUnansweredBytes) return false;
  passed_ += bytes;
  return true;
}

void ImageCache::Keep(const wire::Digest& digest, std::span<const std::byte> image) {
  if (!keeps() || !MayPass(image.size())) return;
  wire::Descriptor memory = images::NewMemory();
  if (base::PollOne(control_, POLLOUT, kHandOverPatience) == 0 || !memory.valid() ||
      !images::WriteAll(memory.get(), image) || !images::Seal(memory)) {
    return;
  }
  images::Keep keep{wire::Hexadecimal(digest), image.size()};
  const int descriptor = memory.get();
  // If it does not go, these bytes are sent again one day.
  (void)wire::SendMessage(control_, message::Pack(keep), {&descriptor, 1});
}

ImageCache::Answer ImageCache::Ask(const wire::Digest& digest, uint64_t bytes, bool with_bytes) {
  if (!keeps()) return {};
  images::Find find{0, wire::Hexadecimal(digest), bytes, with_bytes};
  uint64_t passed = 0;  // before this request
  {
    base::MutexLock lock(mutex_);
    find.request = next_request_++;
    waiting_[find.request];
    passed = passed_;
  }
  bool sent = wire::SendMessage(control_, message::Pack(find));
  base::MutexLock lock(mutex_);
  std::optional<Answer>& place = waiting_[find.request];
  const auto deadline = std::chrono::steady_clock::now() + kAnswerPatience;
  while (sent && !off_ && !place.has_value()) {
    if (!answered_.WaitUntil(lock, deadline)) break;
  }
  Answer answer;
  if (place.has_value()) {
    answer = std::move(*place);
    taken_ = std::max(taken_, passed);
  }
  if (!place.has_value() && !off_) LogLine("the daemon does not reply to a request about an image");
  off_ |= !answer.found.keeps;
  waiting_.erase(find.request);
  return answer;
}

void ImageCache::Arrived(wire::Message message) {
  Answer answer;
  if (message::KindOf(message.bytes) == images::Forgotten::kKind) return Forget();
  if (message::Unpack(message.bytes, &answer.found) != wire::WireResult::kOk) return;
  if (!message.descriptors.empty()) answer.memory = std::move(message.descriptors[0]);
  base::MutexLock lock(mutex_);
  auto found = waiting_.find(answer.found.request);
  if (found == waiting_.end()) return;
  found->second = std::move(answer);
  answered_.NotifyAll();
}

// Whoever waits does without the cache.
void ImageCache::Forget() {
  base::MutexLock lock(mutex_);
  for (auto& [request, place] : waiting_) {
    if (!place.has_value()) place.emplace().found.keeps = true;
  }
  answered_.NotifyAll();
}

void ImageCache::Stop() {
  base::MutexLock lock(mutex_);
  off_ = true;
  answered_.NotifyAll();
}

}  // namespace longwire::worker
