#include "server/worker/transfer/lanes.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "server/worker/support/current_context.h"
#include "server/worker/support/failures.h"
#include "server/worker/transfer/host_segment.h"
#include "server/worker/transfer/stream_staging.h"
#include "server/worker/transfer/transfers.h"
#include "wire/record.h"
#include "wire/rings/spinning.h"

namespace longwire::worker {
namespace {

// How often a thread that waits for room looks whether the session is over.
constexpr std::chrono::milliseconds kLook{200};

// Of a ring's bytes: often enough that a far end never waits long for room.
constexpr size_t kAcknowledgements = 8;

}  // namespace

void Lanes::Create(const wire::OpenRequest& request) {
  uint32_t wanted = std::min(request.lanes, wire::kMaxLanes);
  copy_bytes_ = std::max<uint64_t>(request.lane_copy_bytes, 1);
  chunk_bytes_ = std::min<uint64_t>(request.lane_chunk_bytes, wire::kMaxLaneChunk);
  for (uint32_t i = 0; i < wanted; ++i) {
    auto lane = std::make_unique<Lane>();
    lane->up = wire::RingMemory::Create(wire::kLaneRingBytes);
    lane->down = wire::RingMemory::Create(wire::kLaneRingBytes);
    if (lane->up == nullptr || lane->down == nullptr) return;  // fewer lanes, or none, do as well
    {
      base::MutexLock lock(lane->mutex);
      lane->log.emplace(lane->down);
    }
    lanes_.push_back(std::move(lane));
  }
}

void Lanes::Reopen() {
  for (auto& lane : lanes_) {
    base::MutexLock lock(lane->mutex);
    lane->log.emplace(lane->down);
  }
}

bool Lanes::IsIdle() {
  {
    base::MutexLock lock(mutex_);
    if (!parts_.empty() || sending_ != 0) return false;
  }
  return std::ranges::all_of(
      lanes_, [](const auto& lane) { return wire::RingConsumer(lane->up).Available().empty(); });
}

void Lanes::Start() {
  for (auto& lane : lanes_) {
    lane->reader = std::thread([this, &lane = *lane] { Read(lane); });
    lane->sender = std::thread([this, &lane = *lane] { SendParts(lane); });
  }
}

void Lanes::Close() {
  {
    base::MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.NotifyAll();
  for (auto& lane : lanes_) {
    lane->up->Close(0);
    lane->down->Close(0);
  }
}

void Lanes::Stop() {
  Close();
  for (auto& lane : lanes_) {
    if (lane->reader.joinable()) lane->reader.join();
    if (lane->sender.joinable()) lane->sender.join();
  }
}

std::vector<int> Lanes::descriptors() const {
  std::vector<int> all;
  for (const auto& lane : lanes_) {
    all.push_back(lane->up->descriptor());
    all.push_back(lane->down->descriptor());
  }
  return all;
}

uint64_t Lanes::PieceOf(uint64_t bytes) const {
  uint64_t most = std::min<uint64_t>(chunk_bytes_, Staging::kMaxBlockBytes);
  return wire::LanePiece(bytes, count(), most);
}

void Lanes::Read(Lane& lane) {
  uses_.current_context.EnterThread();
  wire::RingConsumer log(lane.up);
  wire::SpinPrediction spin(wire::AllowedCores());
  while (!lane.up->closed()) {
    // Bytes that arrive after this poll end the wait.
    uint64_t seen = log.cursor() + log.Available().size();
    if (!ReadRecords(lane, log)) {
      uses_.failures.Fatal("a lane's record is no piece of a copy, or exceeds the credit");
      return;
    }
    auto begun = std::chrono::steady_clock::now();
    log.WaitBeyond(seen, spin.Spin(), log.RestDeadline());
    spin.Waited(std::chrono::steady_clock::now() - begun);
    if (!log.ToldToRest()) continue;
    if (!lane.mutex.TryLock()) continue;
    base::MutexLock lock(lane.mutex, base::AdoptLock());
    lane.log->GiveBack();
    if (!lane.log->WorthGivingBack()) log.Rested();
  }
}

bool Lanes::TakePiece(const wire::LaneHeader& header, std::span<const std::byte> data) {
  auto way = Transfers::Way::kLane;
  if (header.in_slot != 0) {
    std::byte* slot = uses_.host_segment.FindSlot(header.slot, header.in_slot);
    if (slot == nullptr || !data.empty()) return false;
    data = {slot, header.in_slot};
    way = Transfers::Way::kSlot;
  }
  return !data.empty() && uses_.transfers.Arrived(header.transfer, header.offset, data, way);
}

bool Lanes::ReadRecords(Lane& lane, wire::RingConsumer& log) {
  while (true) {
    wire::LaneHeader header;
    size_t bytes = 0;
    auto available = log.Available();
    if (wire::PeekRecord(available, &header, &bytes, sizeof(header)) != wire::WireResult::kOk) {
      return false;
    }
    if (bytes == 0) return true;
    auto data = available.subspan(sizeof(header), bytes - sizeof(header));
    bool opens = header.transfer == 0 && data.empty() && header.in_slot == 0;
    if (!opens && !TakePiece(header, data)) return false;
    log.Advance(wire::AlignLane(bytes));
    log.Release(log.cursor());
    if (log.released() - lane.poked_at >= lane.up->bytes() / kAcknowledgements) {
      lane.poked_at = log.released();
      lane.down->PokeConsumer();  // a relay sends the acknowledgement on
    }
    if (!opens) uses_.up.PokeConsumer();
  }
}

void Lanes::Send(Part part) {
  {
    base::MutexLock lock(mutex_);
    parts_.push_back(std::move(part));
  }
  changed_.NotifyOne();
}

void Lanes::SendParts(Lane& lane) {
  uses_.current_context.EnterThread();
  base::MutexLock lock(mutex_);
  while (true) {
    while (!closed_ && parts_.empty()) changed_.Wait(lock);
    if (closed_) return;
    Part part = std::move(parts_.front());
    parts_.pop_front();
    ++sending_;
    lock.Unlock();
    bool sent = SendPart(lane, part);
    uses_.staging.Release(*part.stream, part.block);
    uses_.up.PokeConsumer();
    lock.Lock();
    --sending_;
    if (!sent) return;
  }
}

bool Lanes::SendPart(Lane& lane, const Part& part) {
  base::MutexLock lock(lane.mutex);
  wire::RingProducer& log = *lane.log;
  wire::LaneHeader header;
  header.bytes = static_cast<uint32_t>(sizeof(header) + part.bytes);
  header.transfer = part.transfer;
  header.offset = part.offset;
  size_t room = wire::AlignLane(header.bytes);
  while (!log.WaitForSpace(room, std::chrono::steady_clock::now() + kLook)) {
    if (log.memory().closed()) return false;
  }
  std::byte* to = log.Reserve(room);
  if (to == nullptr) return false;
  std::memcpy(to, &header, sizeof(header));
  std::memcpy(to + sizeof(header), part.block.data, part.bytes);
  std::memset(to + header.bytes, 0, room - header.bytes);
  log.Commit(room);
  return true;
}

}  // namespace longwire::worker
