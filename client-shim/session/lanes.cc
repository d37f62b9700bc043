#include "client-shim/session/lanes.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/reason.h"
#include "client-shim/connect/connection.h"
#include "client-shim/connect/options.h"
#include "client-shim/session/session.h"
#include "client-shim/session/uploads.h"
#include "client-shim/support/threads.h"
#include "wire/lane.h"
#include "wire/record.h"
#include "wire/rings/pieces.h"

namespace longwire::shim {
namespace {

using Clock = std::chrono::steady_clock;

// So long a full lane is waited for before another one is looked at.
constexpr std::chrono::milliseconds kLaneLook{5};

// As long as none comes back in this time, slots are not waited for: streams that wait have them.
constexpr std::chrono::milliseconds kSlotLook{20};

}  // namespace

Lanes::Lanes(ClientSession& session, const std::vector<LaneRings>& rings) : session_(session) {
  for (const LaneRings& pair : rings) {
    lanes_.push_back(std::make_unique<Lane>(pair));
    lanes_.back()->lanes = this;
  }
}

bool Lanes::Carries(uint64_t bytes) const {
  return !lanes_.empty() && bytes >= ProcessOptions().lane_copy_bytes;
}

bool Lanes::Open() {
  std::call_once(once_, [this] { open_.store(Start()); });
  if (!open_.load()) {
    session_.End(CUDA_ERROR_OPERATING_SYSTEM,
                 "no large copies can be made: " + base::ReasonOfNoThread(EAGAIN));
  }
  return open_.load();
}

bool Lanes::Start() {
  for (auto& lane : lanes_) {
    auto receive = [](void* self) {
      auto* lane = static_cast<Lane*>(self);
      lane->lanes->Receive(*lane);
    };
    if (!StartThread("longwire-lane", receive, lane.get())) return false;
    if (!Connect(*lane)) return false;
  }
  uint32_t wanted = ProcessOptions().copy_threads;
  for (uint32_t i = 1; i < wanted; ++i) {
    auto help = [](void* self) { static_cast<Lanes*>(self)->Help(); };
    if (StartThread("longwire-copy", help, this)) ++helpers_;
  }
  return true;
}

// By an empty record: the link connects the lane when it sees one.
bool Lanes::Connect(Lane& lane) {
  base::MutexLock lock(lane.mutex);
  std::byte* to = lane.up.Reserve(sizeof(wire::LaneHeader));
  if (to == nullptr) return false;
  wire::LaneHeader header;
  header.bytes = sizeof(header);
  std::memcpy(to, &header, sizeof(header));
  lane.up.Commit(sizeof(header));
  return true;
}

void Lanes::Receive(Lane& lane) {
  wire::RingMemory& memory = lane.down.memory();
  while (!memory.closed()) {
    // Bytes that arrive after this poll end the wait.
    uint64_t seen = lane.down.cursor() + lane.down.Available().size();
    if (!TakePieces(lane)) {
      session_.Distrust("sent bytes that were not requested");
      return;
    }
    lane.down.WaitBeyond(seen, {}, lane.down.RestDeadline());
    if (lane.down.ToldToRest()) Rest(lane);
  }
}

void Lanes::Rest(Lane& lane) {
  if (!lane.mutex.TryLock()) return;
  base::MutexLock lock(lane.mutex, base::AdoptLock());
  lane.up.GiveBack();
  if (!lane.up.WorthGivingBack()) lane.down.Rested();
}

bool Lanes::TakePieces(Lane& lane) {
  while (true) {
    wire::LaneHeader header;
    size_t bytes = 0;
    auto log = lane.down.Available();
    if (wire::PeekRecord(log, &header, &bytes, sizeof(header)) != wire::WireResult::kOk) {
      return false;
    }
    if (bytes == 0) return true;
    auto data = log.subspan(sizeof(header), bytes - sizeof(header));
    session_.counts().downloaded.fetch_add(data.size(), std::memory_order_relaxed);
    if (!session_.HasGiven(header.transfer)) return false;
    if (!session_.transfers().Arrive(header.transfer, header.offset, data)) return false;
    lane.down.Advance(wire::AlignLane(bytes));
    lane.down.Release(lane.down.cursor());
    if (lane.down.released() - lane.poked_at >= lane.down.memory().bytes() / 8) {
      lane.poked_at = lane.down.released();
      lane.up_memory.PokeConsumer();  // a relay sends the acknowledgement on
    }
  }
}

// On the server's own host the lanes are the shorter way for all bytes.
uint64_t Lanes::InLog(uint64_t bytes) const {
  static const bool local = IsLocal(ProcessOptions());
  return local ? 0 : wire::LogShare(bytes, session_.log_backlog());
}

bool Lanes::Send(uint64_t transfer, const UploadSource& source) {
  const uint64_t in_log = InLog(source.bytes());
  if (in_log == source.bytes()) return SendBytes(session_, transfer, source);
  if (!Open()) return false;
  Job job;
  job.transfer = transfer;
  job.source = &source;
  job.total = source.bytes();
  job.in_slots = slots_.Open(job.total);
  uint64_t chunk = LargestPiece(session_, ProcessOptions().lane_chunk_bytes);
  if (job.in_slots) chunk = std::min<uint64_t>(chunk, wire::kSlotBytes);
  const uint64_t by_lanes = job.total - in_log;
  job.piece = wire::LanePiece(by_lanes, static_cast<uint32_t>(lanes_.size()), chunk);
  uint64_t pieces = (by_lanes + job.piece - 1) / job.piece;
  job.next.store(in_log);
  {
    base::MutexLock lock(jobs_mutex_);
    for (uint64_t i = 1; i < std::min<uint64_t>(pieces, helpers_ + 1); ++i) jobs_.push_back(&job);
  }
  if (pieces > 1 && helpers_ > 0) jobs_changed_.NotifyAll();
  // The lanes' threads wake up meanwhile.
  if (!SendRange(session_, transfer, source, 0, in_log)) job.failed.store(true);
  Work(job);
  base::MutexLock lock(jobs_mutex_);
  jobs_.erase(std::remove(jobs_.begin(), jobs_.end(), &job), jobs_.end());
  while (job.helpers != 0) jobs_changed_.Wait(lock);
  return !job.failed.load();
}

void Lanes::Help() {
  base::MutexLock lock(jobs_mutex_);
  while (true) {
    while (jobs_.empty()) jobs_changed_.Wait(lock);
    Job* job = jobs_.front();
    jobs_.pop_front();
    ++job->helpers;
    lock.Unlock();
    Work(*job);
    lock.Lock();
    --job->helpers;
    jobs_changed_.NotifyAll();
  }
}

void Lanes::Work(Job& job) {
  while (!job.failed.load(std::memory_order_relaxed)) {
    uint64_t offset = job.next.fetch_add(job.piece);
    if (offset >= job.total) return;
    uint64_t bytes = std::min(job.piece, job.total - offset);
    if (!WaitForUploadWindow(session_, bytes) || !Put(job, {offset, bytes, {}})) {
      job.failed.store(true);
      return;
    }
  }
}

// The rings are no way out of a short wait: the worker's thread that gives slots back copies what
// came in them, and while it does more pieces find no slot.
bool Lanes::TakeSlot(Slots::Slot* slot) {
  while (true) {
    uint64_t given = slots_.given();
    if (slots_.Take(slot)) return true;
    if (stuck_at_.load() == given) {
      session_.ReadWithoutWaiting();  // some may have come by now
      return slots_.Take(slot);
    }
    auto comes = [&] { return slots_.given() != given; };
    if (!session_.WaitUntil(comes, Clock::now() + kSlotLook)) stuck_at_.store(given);
  }
}

// On the next lane that has room, or that has some first.
bool Lanes::Put(const Job& job, Piece piece) {
  bool in_slot = job.in_slots && TakeSlot(&piece.slot);
  if (in_slot) job.source->Gather(piece.offset, {piece.slot.data, piece.bytes});
  auto& count_of = in_slot ? session_.counts().staged : session_.counts().uploaded;
  count_of.fetch_add(piece.bytes, std::memory_order_relaxed);
  uint32_t count = static_cast<uint32_t>(lanes_.size());
  uint32_t first = turn_.fetch_add(1, std::memory_order_relaxed);
  for (uint32_t i = 0; session_.ended() == CUDA_SUCCESS; ++i) {
    Lane& lane = *lanes_[(first + i) % count];
    if (PutInto(lane, job, piece, i >= count)) return true;
    if (lane.up_memory.closed()) return false;
  }
  return false;
}

bool Lanes::PutInto(Lane& lane, const Job& job, const Piece& piece, bool wait) {
  bool in_slot = piece.slot.data != nullptr;
  uint64_t bytes = in_slot ? 0 : piece.bytes;
  wire::LaneHeader header;
  header.bytes = static_cast<uint32_t>(sizeof(header) + bytes);
  header.in_slot = in_slot ? static_cast<uint32_t>(piece.bytes) : 0;
  header.transfer = job.transfer;
  header.offset = piece.offset;
  header.slot = piece.slot.offset;
  size_t room = wire::AlignLane(header.bytes);
  if (wait) {
    lane.mutex.Lock();
  } else if (!lane.mutex.TryLock()) {
    return false;
  }
  base::MutexLock lock(lane.mutex, base::AdoptLock());
  if (wait) lane.up.WaitForSpace(room, Clock::now() + kLaneLook);
  std::byte* to = lane.up_memory.closed() ? nullptr : lane.up.Reserve(room);
  if (to == nullptr) return false;
  std::memcpy(to, &header, sizeof(header));
  if (!in_slot) job.source->Gather(piece.offset, {to + sizeof(header), bytes});
  std::memset(to + header.bytes, 0, room - header.bytes);
  lane.up.Commit(room);
  return true;
}

}  // namespace longwire::shim
