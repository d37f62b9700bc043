#include "server/worker/support/journal.h"

#include <algorithm>
#include <utility>

#include "server/worker/support/same_answer.h"
#include "server/worker/support/superseded.h"
#include "wire/guards.h"
#include "wire/record.h"

namespace longwire::worker {
namespace {

const bool kCompares = !wire::GuardIsOff("moved_answers");

// As they are counted; an entry with an image is never dropped.
size_t BytesOf(const Journal::Entry& entry) {
  return sizeof(Journal::Entry) + entry.call.arguments.size() + entry.reply.size();
}

}  // namespace

bool Journal::Keeps(const QueuedCall& call) {
  const bool captured = (call.flags & wire::kCapturing) != 0 && call.stream != 0;
  return Rebuilds(call.call) || (captured && LeavesNothing(call.call));
}

void Journal::Refuse(const std::string& why) {
  if (unmovable_.empty()) unmovable_ = why;
  entries_.clear();
  bytes_ = call_bytes_ = 0;
}

void Journal::Never(const std::string& why) {
  base::MutexLock lock(mutex_);
  Refuse(why);
}

bool Journal::Grow(size_t bytes) {
  bytes_ += bytes;
  if (bytes_ <= kMaxBytes) return true;
  Refuse("its modules and what it made of objects take more than " +
         std::to_string(kMaxBytes >> 20) + " MiB to write down");
  return false;
}

bool Journal::GrowByCall(size_t bytes) {
  if (call_bytes_ + bytes > crowded_) DropSuperseded();
  call_bytes_ += bytes;
  return Grow(bytes);
}

void Journal::DropSuperseded() {
  for (uint64_t position : Superseded(entries_, taken_)) {
    auto found = entries_.find(position);
    const size_t bytes = BytesOf(found->second);
    bytes_ -= bytes;
    call_bytes_ -= bytes;
    entries_.erase(found);
  }
  crowded_ = std::max(kCrowdedBytes, 2 * call_bytes_);
}

size_t Journal::bytes_of_calls() {
  base::MutexLock lock(mutex_);
  return call_bytes_;
}

void Journal::Read(const QueuedCall& call) {
  const bool keeps = Keeps(call);
  if (!keeps && LeavesNothing(call.call)) return;
  base::MutexLock lock(mutex_);
  if (!unmovable_.empty()) return;
  if (!keeps) {
    return Refuse(std::string("it has called ") + CallName(call.call) +
                  ", whose objects are not carried");
  }
  if (!GrowByCall(sizeof(Entry) + call.arguments.size())) return;
  Entry& entry = entries_[call.position];
  entry.call = call;
  entry.behind = call.position;
}

void Journal::Answered(const QueuedCall& call, int32_t result, std::span<const std::byte> reply) {
  if (!Keeps(call)) return;
  base::MutexLock lock(mutex_);
  auto found = entries_.find(call.position);
  if (found == entries_.end() || !GrowByCall(reply.size())) return;
  Entry& entry = found->second;
  entry.answered = true;
  entry.result = result;
  entry.reply.assign(reply.begin(), reply.end());
  if (!expected_ || !difference_.empty() || !kCompares) return;
  const bool same = IsSameAnswer(call.call, expected_->reply, reply);
  if (expected_->call.position != call.position || expected_->result != result || !same) {
    difference_ = std::string(CallName(call.call)) + " answers otherwise there (" +
                  std::to_string(result) + ", here " + std::to_string(expected_->result) + ")";
  }
}

void Journal::TookImage(uint64_t position, const std::vector<std::byte>& image,
                        uint32_t knowledge) {
  base::MutexLock lock(mutex_);
  auto found = entries_.find(position);
  if (found == entries_.end() || !Grow(image.size())) return;
  found->second.image = std::make_shared<const std::vector<std::byte>>(image);
  found->second.knowledge = knowledge;
}

bool Journal::GiveImage(uint64_t position, std::vector<std::byte>* image, uint32_t* knowledge) {
  base::MutexLock lock(mutex_);
  if (!expected_ || expected_->call.position != position || expected_->image == nullptr)
    return false;
  *image = *expected_->image;
  *knowledge = expected_->knowledge;
  return true;
}

void Journal::KeepVariables(uint64_t position, Names names) {
  base::MutexLock lock(mutex_);
  auto found = entries_.find(position);
  if (found != entries_.end()) found->second.variables = std::move(names);
}

void Journal::NotePlacing(uint64_t position) {
  base::MutexLock lock(mutex_);
  placed_ = std::max(placed_, position);
  auto found = entries_.find(position);
  if (found == entries_.end()) return;
  found->second.behind = placed_;
  found->second.turn = ++turns_;
}

std::string Journal::Unmovable() {
  base::MutexLock lock(mutex_);
  return unmovable_;
}

std::vector<Journal::Entry> Journal::Entries(uint64_t from) {
  base::MutexLock lock(mutex_);
  std::vector<Entry> all;
  if (from == 0) all.reserve(entries_.size());
  for (auto entry = entries_.lower_bound(from); entry != entries_.end(); ++entry) {
    all.push_back(entry->second);
  }
  if (!entries_.empty()) taken_ = std::max(taken_, entries_.rbegin()->first + 1);
  std::ranges::stable_sort(
      all, {}, [](const Entry& entry) { return std::make_pair(entry.behind, entry.turn); });
  return all;
}

std::vector<Journal::Entry> Journal::EntriesOf(bool (*wanted)(CallId)) {
  base::MutexLock lock(mutex_);
  std::vector<Entry> some;
  for (const auto& [position, entry] : entries_) {
    if (wanted(entry.call.call)) some.push_back(entry);
  }
  return some;
}

void Journal::Expect(const Entry& entry) {
  base::MutexLock lock(mutex_);
  expected_ = entry;
}

std::string Journal::Difference() {
  base::MutexLock lock(mutex_);
  return difference_;
}

}  // namespace longwire::worker
