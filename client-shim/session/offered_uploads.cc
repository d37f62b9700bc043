// The uploads that the worker may request, and who reads them. The program may free or change an
// upload's memory once its copy is said to have finished: then nothing reads it any more.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "client-shim/session/transfers.h"
#include "client-shim/session/upload_source.h"
#include "wire/guards.h"

namespace longwire::shim {
namespace {

using Clock = std::chrono::steady_clock;

// Requests for a graph's bytes that are not served yet: more than launches can be unfinished.
constexpr uint32_t kMaxRequests = 1 << 16;

// At the session's end reads are waited for so long, in steps.
constexpr std::chrono::seconds kEndWait{1};
constexpr std::chrono::microseconds kEndStep{100};

bool GuardIsOff() {
  static const bool off = wire::GuardIsOff("upload_end");
  return off;
}

}  // namespace

void UploadSource::Gather(uint64_t offset, std::span<std::byte> packed) const {
  if (transfers_ == nullptr) return place().Gather(offset, packed);
  if (!transfers_->BeginRead(request_)) {
    // The copy has finished, so nobody needs these bytes.
    std::memset(packed.data(), 0, packed.size());
    return;
  }
  place().Gather(offset, packed);
  transfers_->EndRead(request_);
}

bool Transfers::AnyUploadInUse(uint64_t address, uint64_t bytes) const {
  return std::ranges::any_of(uploads_, [&](const auto& upload) {
    return upload.second.users != 0 && upload.second.Overlaps(address, bytes);
  });
}

bool Transfers::UploadIsRead(uint64_t transfer) const {
  auto found = uploads_.find(transfer);
  return found != uploads_.end() && found->second.reads != 0;
}

bool Transfers::GraphsAreRead() const {
  return std::ranges::any_of(uploads_, [](const auto& upload) {
    return upload.second.persistent && upload.second.reads != 0;
  });
}

void Transfers::EraseUpload(uint64_t transfer) {
  auto found = uploads_.find(transfer);
  if (found == uploads_.end()) return;
  if (found->second.persistent) offered_to_graphs_.fetch_sub(1);
  found->second.persistent = false;
  if (found->second.users == 0) uploads_.erase(found);
}

void Transfers::OfferUpload(uint64_t transfer, const HostPlace& place, bool persistent) {
  base::MutexLock lock(mutex_);
  Entry& entry = uploads_[transfer];
  if (persistent && !entry.persistent) offered_to_graphs_.fetch_add(1);
  entry.place = place;
  entry.persistent = persistent;
}

void Transfers::DropUpload(uint64_t transfer) {
  base::MutexLock lock(mutex_);
  EraseUpload(transfer);
}

void Transfers::EndUpload(uint64_t transfer) {
  base::MutexLock lock(mutex_);
  auto found = uploads_.find(transfer);
  if (found == uploads_.end()) return;
  found->second.ended = true;
  EraseUpload(transfer);
  while (!GuardIsOff() && UploadIsRead(transfer)) landed_.Wait(lock);
}

void Transfers::EndUploads() {
  base::MutexLock lock(mutex_);
  over_ = true;
  auto deadline = Clock::now() + kEndWait;
  auto read = [&] {
    mutex_.AssertHeld();
    return std::ranges::any_of(uploads_,
                               [](const auto& upload) { return upload.second.reads != 0; });
  };
  // Not by the condition: the caller may hold what must not be held in a wait.
  while (!GuardIsOff() && read() && Clock::now() < deadline) {
    lock.Unlock();
    std::this_thread::sleep_for(kEndStep);
    lock.Lock();
  }
}

void Transfers::BeginGraphReads() {
  base::MutexLock lock(mutex_);
  ++graph_reads_;
}

void Transfers::EndGraphReads() {
  base::MutexLock lock(mutex_);
  if (--graph_reads_ != 0) return;
  ++era_;
  while (!GuardIsOff() && GraphsAreRead()) landed_.Wait(lock);
}

bool Transfers::FindUpload(uint64_t transfer, HostPlace* place) {
  base::MutexLock lock(mutex_);
  auto found = uploads_.find(transfer);
  if (found == uploads_.end()) return false;
  *place = found->second.place;
  return true;
}

Transfers::Taken Transfers::TakeUpload(uint64_t transfer, Request* request) {
  base::MutexLock lock(mutex_);
  auto found = uploads_.find(transfer);
  if (found == uploads_.end()) return Taken::kGone;
  Entry& entry = found->second;
  if (entry.users >= (entry.persistent ? kMaxRequests : 1)) return Taken::kTwice;
  if (entry.persistent && graph_reads_ == 0 && !GuardIsOff()) return Taken::kTwice;
  ++entry.users;
  *request = {transfer, entry.place, entry.persistent, era_};
  return Taken::kNow;
}

void Transfers::UploadRead(uint64_t transfer) {
  base::MutexLock lock(mutex_);
  auto found = uploads_.find(transfer);
  if (found == uploads_.end()) return;
  bool over = --found->second.users == 0 && !found->second.persistent;
  if (over) uploads_.erase(found);
  landed_.NotifyAll();
}

bool Transfers::BeginRead(const Request& request) {
  base::MutexLock lock(mutex_);
  auto found = uploads_.find(request.transfer);
  if (found == uploads_.end()) return false;
  Entry& entry = found->second;
  const bool ended = entry.ended || over_ || (request.persistent && request.era != era_);
  if (ended && !GuardIsOff()) return false;
  ++entry.reads;
  return true;
}

void Transfers::EndRead(const Request& request) {
  base::MutexLock lock(mutex_);
  auto found = uploads_.find(request.transfer);
  if (found == uploads_.end()) return;
  --found->second.reads;
  landed_.NotifyAll();
}

void Transfers::DropUploadsOf(uint64_t address, uint64_t bytes) {
  base::MutexLock lock(mutex_);
  std::erase_if(uploads_, [&](const auto& upload) {
    const Entry& entry = upload.second;
    return !entry.persistent && entry.users == 0 && entry.Overlaps(address, bytes);
  });
  while (AnyUploadInUse(address, bytes)) landed_.Wait(lock);
}

}  // namespace longwire::shim
