#include "server/worker/transfer/lanes.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

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
  Divide(request.environment, wanted);
  copy_bytes_ = std::max<uint64_t>(request.lane_copy_bytes, 1);
  relayed_ = !request.shares_memory;
  chunk_bytes_ = std::min<uint64_t>(request.lane_chunk_bytes, wire::kMaxLaneChunk);
  for (uint32_t i = 0; i < wanted; ++i) {
    auto lane = std::make_unique<Lane>();
    lane->up = wire::RingMemory::Create(wire::kLaneRingBytes);
    lane->down = wire::RingMemory::Create(wire::kLaneRingBytes);
    if (lane->up == nullptr || lane->down == nullptr) break;  // fewer lanes, or none, do as well
    {
      base::MutexLock lock(lane->mutex);
      lane->log.emplace(lane->down);
    }
    lanes_.push_back(std::move(lane));
  }
  if (count() < wanted) {  // bridges need all of theirs
    own_ = std::min(own_, count());
    bridges_ = 0;
    lanes_.resize(own_);
  }
  for (uint32_t i = 0; i <= bridges_; ++i) groups_.emplace_back();
  for (uint32_t i = 0; i < count(); ++i) {
    lanes_[i]->group = &groups_[i < own_ ? 0 : 1 + (i - own_) / per_bridge_];
  }
}

void Lanes::Divide(const std::vector<std::string>& environment, uint32_t wanted) {
  own_ = wanted;
  const std::string_view name = wire::kBridges;
  for (const std::string& entry : environment) {
    unsigned bridges = 0, lanes = 0;
    if (!entry.starts_with(name) ||
        sscanf(entry.c_str() + name.size(), "%u,%u", &bridges, &lanes) != 2) {
      continue;
    }
    // Some are left for the client.
    if (bridges == 0 || lanes == 0 || bridges > wanted || lanes > wanted / bridges) return;
    bridges_ = bridges;
    per_bridge_ = lanes;
    own_ = wanted - bridges * lanes;
  }
}

void Lanes::EndBridge(uint32_t bridge) {
  groups_[bridge].ended = true;
  uses_.up.PokeConsumer();  // calls that wait for its bytes fail
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
    if (sending_ != 0) return false;
    for (const Group& group : groups_) {
      if (!group.parts.empty()) return false;
    }
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
  for (Group& group : groups_) group.changed.NotifyAll();
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

uint64_t Lanes::PieceOf(uint64_t bytes, uint32_t bridge) const {
  uint64_t most = std::min<uint64_t>(chunk_bytes_, Staging::kMaxBlockBytes);
  return wire::LanePiece(bytes, CountOf(bridge), most);
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
  Group& group = groups_[part.bridge];
  {
    base::MutexLock lock(mutex_);
    group.parts.push_back(std::move(part));
  }
  group.changed.NotifyOne();
}

void Lanes::SendParts(Lane& lane) {
  uses_.current_context.EnterThread();
  std::deque<Part>& parts = lane.group->parts;
  base::MutexLock lock(mutex_);
  while (true) {
    while (!closed_ && parts.empty()) lane.group->changed.Wait(lock);
    if (closed_) return;
    Part part = std::move(parts.front());
    parts.pop_front();
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
    if (lane.group->ended) return true;
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
