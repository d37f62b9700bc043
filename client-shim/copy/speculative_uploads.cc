#include "client-shim/copy/speculative_uploads.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/connect/connection.h"
#include "client-shim/connect/options.h"
#include "client-shim/context/context.h"
#include "client-shim/memory/sharing.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/session/session.h"
#include "client-shim/session/uploads.h"
#include "client-shim/stream/host_writes.h"
#include "client-shim/stream/stream.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/threads.h"
#include "longwire/calls.h"
#include "wire/guards.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kBlock = size_t{16} << 10;            // bytes compared, and sent again, at once
constexpr uint64_t kWatchedBytes = uint64_t{8} << 20;  // of all copies
constexpr uint64_t kBytesOfOneCopy = kWatchedBytes / 2;
constexpr uint64_t kComparedBytes = uint64_t{4} << 20;  // for the calls behind one copy
// The pause between comparisons, for streams that proceed by themselves. It is longer where a
// comparison takes more than a twentieth of it.
constexpr Clock::duration kPause = std::chrono::milliseconds(2);
constexpr int kPauseShare = 20;

bool IsOver(const StreamPoint& point) {
  return ClientSession::over() != CUDA_SUCCESS ||
         point.stream->finished.load(std::memory_order_acquire) >= point.position ||
         point.stream->context->sticky.load(std::memory_order_acquire) != 0;
}

struct Upload {
  StreamPoint point;  // its stream is retained
  uint64_t transfer;
  HostPlace place;
  std::vector<std::byte> sent;  // what the worker has
  double reads = 0;             // how often calls had it compared
  bool pulled = false;          // the worker asks for it

  bool Overlaps(uint64_t address, uint64_t bytes) const {
    auto start = reinterpret_cast<uint64_t>(place.base);
    return bytes == kAnywhere || (start < address + bytes && address < start + place.span());
  }
};

class Uploads {
 public:
  bool HasRoom(uint64_t bytes);
  void Add(Upload upload);
  void AddRead(const StreamPoint& point);
  void Revise(const Stream* stream);
  void PullInstead(const Stream* stream, uint64_t address, uint64_t bytes);
  void Forget(uint64_t address, uint64_t bytes);

 private:
  static void Compare(Upload& upload);  // with the lock held
  void DropOver() LONGWIRE_REQUIRES(mutex_);
  template <class Which>
  void Drop(Which which) LONGWIRE_REQUIRES(mutex_);
  void CountUploads() LONGWIRE_REQUIRES(mutex_);
  void WakeWatcher() LONGWIRE_REQUIRES(mutex_);
  void Watch();

  // A thread that holds it waits for nothing but room in the log.
  base::Mutex mutex_{base::ranks::kSpeculativeUploads};
  base::CondVar added_;
  std::vector<Upload> uploads_ LONGWIRE_GUARDED_BY(mutex_);
  // Of mirrored memory; their streams are retained.
  std::vector<StreamPoint> reads_ LONGWIRE_GUARDED_BY(mutex_);
  uint64_t bytes_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  double usual_reads_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // of the last few uploads
  bool watched_ LONGWIRE_GUARDED_BY(mutex_) = false;
};

Uploads& TheUploads() {
  static NeverDestroyed<Uploads> uploads;
  return *uploads;
}

// Sends what has changed, before a call of the stream (nullptr: of none) is queued. Copies of the
// same stream are left out: no later work of a stream lets its earlier work proceed.
void ReviseAll(const Stream* stream) { TheUploads().Revise(stream); }

// Comparing again and again, because many calls of other streams follow, costs more than a round
// trip. Then the next few copies are pulled before one is sent speculatively again.
bool Uploads::HasRoom(uint64_t bytes) {
  base::MutexLock lock(mutex_);
  DropOver();
  bool cheap = usual_reads_ * static_cast<double>(bytes) <= kComparedBytes;
  if (!cheap) usual_reads_ -= usual_reads_ / 16;
  return cheap && bytes_ + bytes <= kWatchedBytes;
}

void Uploads::Add(Upload upload) {
  base::MutexLock lock(mutex_);
  bytes_ += upload.sent.size();
  uploads_.push_back(std::move(upload));
  CountUploads();
  WakeWatcher();
}

void Uploads::AddRead(const StreamPoint& point) {
  base::MutexLock lock(mutex_);
  DropOver();
  auto same = std::ranges::find(reads_, point.stream, &StreamPoint::stream);
  if (same != reads_.end()) {
    same->position = point.position;
    return;
  }
  Retain(point.stream);
  reads_.push_back(point);
  mirrored_reads.store(reads_.size(), std::memory_order_release);
  WakeWatcher();
}

void Uploads::CountUploads() {
  speculative_uploads.store(uploads_.size(), std::memory_order_release);
  before_work.store(uploads_.empty() ? nullptr : &ReviseAll, std::memory_order_release);
}

// Without the thread, a stream that a call lets proceed is still noticed.
void Uploads::WakeWatcher() {
  if (!watched_) {
    watched_ = StartThread(
        "longwire-watch", [](void* self) { static_cast<Uploads*>(self)->Watch(); }, this);
  }
  added_.NotifyOne();
}

template <class Which>
void Uploads::Drop(Which which) {
  std::erase_if(uploads_, [&](const Upload& upload) {
    if (!which(upload)) return false;
    mutex_.AssertHeld();
    bytes_ -= upload.sent.size();
    if (upload.pulled) upload.point.stream->session->transfers().DropUpload(upload.transfer);
    usual_reads_ += (upload.reads - usual_reads_) / 8;
    Release(upload.point.stream);
    return true;
  });
  CountUploads();
}

void Uploads::DropOver() {
  Drop([](const Upload& upload) { return IsOver(upload.point); });
  std::erase_if(reads_, [](const StreamPoint& point) {
    bool over = IsOver(point);
    if (over) Release(point.stream);
    return over;
  });
  mirrored_reads.store(reads_.size(), std::memory_order_release);
}

// The bytes are copied before they are compared: the program may be writing them just now.
void Uploads::Compare(Upload& upload) {
  static const bool guard_off = wire::GuardIsOff("late_writes");
  if (upload.pulled || guard_off) return;
  std::byte seen[kBlock];
  for (size_t at = 0; at < upload.sent.size(); at += kBlock) {
    std::span<std::byte> now(seen, std::min(kBlock, upload.sent.size() - at));
    std::span<std::byte> sent = std::span(upload.sent).subspan(at, now.size());
    upload.place.Gather(at, now);
    // The program may have changed it since it saw the copy's end.
    if (IsOver(upload.point)) return;
    if (std::memcmp(now.data(), sent.data(), now.size()) == 0) continue;
    std::memcpy(sent.data(), now.data(), now.size());
    calls::lwCopyRevised revised;
    revised.transfer = upload.transfer;
    revised.offset = at;
    revised.data = sent;
    upload.point.stream->session->Submit({}, revised, revised.EncodedBytes());
    upload.point.stream->session->counts().uploaded.fetch_add(sent.size(),
                                                              std::memory_order_relaxed);
  }
}

void Uploads::Revise(const Stream* stream) {
  base::MutexLock lock(mutex_);
  DropOver();
  for (Upload& upload : uploads_) {
    if (upload.point.stream == stream) continue;
    Compare(upload);
    ++upload.reads;
  }
}

void Uploads::PullInstead(const Stream* stream, uint64_t address, uint64_t bytes) {
  std::vector<std::pair<StreamPoint, Ending>> endings;
  base::MutexLock lock(mutex_);
  DropOver();
  for (Upload& upload : uploads_) {
    bool meant = upload.point.stream != stream && !upload.pulled && upload.Overlaps(address, bytes);
    if (!meant) continue;
    upload.pulled = true;
    upload.point.stream->session->transfers().OfferUpload(upload.transfer, upload.place, false);
    calls::lwCopyPull pull;
    pull.transfer = upload.transfer;
    upload.point.stream->session->Submit({}, pull);
    Retain(upload.point.stream);
    endings.emplace_back(upload.point, Ending{Ending::Kind::kUpload, upload.transfer});
  }
  lock.Unlock();  // an upload that has ended already is waited for
  for (const auto& [point, ending] : endings) {
    point.stream->session->EndsWith(point.stream, point.position, ending);
    Release(point.stream);
  }
}

void Uploads::Forget(uint64_t address, uint64_t bytes) {
  base::MutexLock lock(mutex_);
  Drop([&](const Upload& upload) { return upload.Overlaps(address, bytes); });
}

void Uploads::Watch() {
  base::MutexLock lock(mutex_);
  Clock::duration pause = kPause;
  while (true) {
    while (uploads_.empty() && reads_.empty()) added_.Wait(lock);
    lock.Unlock();
    std::this_thread::sleep_for(pause);
    Clock::time_point begun = Clock::now();
    // The mirrors' lock is taken before this one.
    if (mirrored_reads.load(std::memory_order_acquire) != 0) PushHostWrites();
    lock.Lock();
    DropOver();
    for (Upload& upload : uploads_) Compare(upload);
    pause = std::max(kPause, (Clock::now() - begun) * kPauseShare);
  }
}

}  // namespace

// Not where others can let streams proceed unnoticed: where programs share device memory, and where
// a kernel reads flags in host memory that is shared with the server.
bool MaySpeculate(ClientSession& session, uint64_t bytes) {
  static const bool off = wire::IsSwitchedOff("speculative-uploads") || IsLocal(ProcessOptions());
  if (off || AreSeveral() || MemoryIsShared()) return false;
  return bytes <= kBytesOfOneCopy && FitsUploadWindow(session, bytes) &&
         TheUploads().HasRoom(bytes);
}

bool SendSpeculatively(Stream* stream, uint64_t position, uint64_t transfer,
                       const HostPlace& place) {
  Upload upload{{stream, position}, transfer, place, std::vector<std::byte>(place.bytes())};
  place.Gather(0, upload.sent);
  HostPlace sent = HostPlace::Linear(upload.sent.data(), upload.sent.size());
  if (!SendBytes(*stream->session, transfer, UploadSource(sent))) return false;
  Retain(stream);
  TheUploads().Add(std::move(upload));
  // Its completion is reported early: until then it is compared.
  WantProgress(stream, position);
  return true;
}

void NoteMirroredRead(Stream* stream, uint64_t position) {
  TheUploads().AddRead({stream, position});
  WantProgress(stream, position);
}

void PullInstead(const Stream* stream, uint64_t address, uint64_t bytes) {
  if (speculative_uploads.load(std::memory_order_acquire) == 0) return;
  TheUploads().PullInstead(stream, address, bytes);
}

void ForgetUploadsOf(uint64_t address, uint64_t bytes) {
  if (speculative_uploads.load(std::memory_order_acquire) == 0) return;
  TheUploads().Forget(address, bytes);
}

}  // namespace longwire::shim
