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

// While pieces wait in a ring: a missed wake-up would cost at most this.
constexpr std::chrono::milliseconds kRecheck{10};

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
    unsigned bridges = 0, lanes = 0, hold_back = 0;
    if (!entry.starts_with(name)) continue;
    const int numbers =
        sscanf(entry.c_str() + name.size(), "%u,%u,%u", &bridges, &lanes, &hold_back);
    if (numbers < 2) continue;
    // Some are left for the client.
    if (bridges == 0 || lanes == 0 || bridges > wanted || lanes > wanted / bridges) return;
    bridges_ = bridges;
    per_bridge_ = lanes;
    own_ = wanted - bridges * lanes;
    has_choice_ = numbers == 3;
    hold_back_ = hold_back != 0;
  }
}

void Lanes::EndBridge(uint32_t bridge) {
  groups_[bridge].ended = true;
  WakeBridges();
  uses_.up.PokeConsumer();  // calls that wait for its bytes fail
}

void Lanes::WakeBridges() {
  if (!hold_back_) return;
  for (size_t i = own_; i < lanes_.size(); ++i) {
    if (lanes_[i]->stuck.exchange(false)) lanes_[i]->up->PokeConsumer();
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
    auto deadline = log.RestDeadline();
    if (lane.stuck_at != wire::Deadline{}) deadline = std::min(deadline, begun + kRecheck);
    log.WaitBeyond(seen, spin.Spin(), deadline);
    const auto waited = std::chrono::steady_clock::now() - begun;
    spin.Waited(waited);
    const bool dry = lane.group != &groups_[0] && lane.stuck_at == wire::Deadline{};
    if (dry) uses_.figures.AddPause(BridgeFigures::kDry, waited);
    if (!log.ToldToRest()) continue;
    if (!lane.mutex.TryLock()) continue;
    base::MutexLock lock(lane.mutex, base::AdoptLock());
    lane.log->GiveBack();
    if (!lane.log->WorthGivingBack()) log.Rested();
  }
}

bool Lanes::TakePiece(const Lane& lane, const wire::LaneHeader& header,
                      std::span<const std::byte> data) {
  auto way = lane.group == &groups_[0] ? Transfers::Way::kLane : Transfers::Way::kBridge;
  if (header.in_slot != 0) {
    std::byte* slot = uses_.host_segment.FindSlot(header.slot, header.in_slot);
    if (slot == nullptr || !data.empty()) return false;
    data = {slot, header.in_slot};
    way = Transfers::Way::kSlot;
  }
  return !data.empty() && uses_.transfers.Arrived(header.transfer, header.offset, data, way);
}

bool Lanes::TakeOrWait(Lane& lane, const wire::LaneHeader& header, std::span<const std::byte> data,
                       bool* waits) {
  if (header.in_slot != 0 || data.empty()) return false;
  if (lane.group->ended) return true;  // nobody waits for it
  auto landed = uses_.transfers.Land(header.transfer, header.offset, data);
  if (landed == Transfers::Landed::kNotYet) {
    if (lane.stuck_at == wire::Deadline{}) lane.stuck_at = BridgeFigures::Clock::now();
    lane.stuck = true;
    // Once more: what has changed before that woke nobody.
    landed = uses_.transfers.Land(header.transfer, header.offset, data);
  }
  *waits = landed == Transfers::Landed::kNotYet;
  if (*waits) return true;
  lane.stuck = false;
  if (lane.stuck_at != wire::Deadline{}) {
    uses_.figures.Add(BridgeFigures::kPlace, BridgeFigures::Clock::now() - lane.stuck_at);
    lane.stuck_at = {};
  }
  return landed != Transfers::Landed::kWrong;
}

bool Lanes::ReadRecords(Lane& lane, wire::RingConsumer& log) {
  const bool holds_back = hold_back_ && lane.group != &groups_[0];
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
    bool waits = false;
    if (!opens &&
        !(holds_back ? TakeOrWait(lane, header, data, &waits) : TakePiece(lane, header, data))) {
      return false;
    }
    if (waits) return true;
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
  const bool bridge = lane.group != &groups_[0];
  while (true) {
    const auto begun = BridgeFigures::Clock::now();
    while (!closed_ && parts.empty()) lane.group->changed.Wait(lock);
    if (closed_) return;
    if (bridge) {
      const auto now = BridgeFigures::Clock::now();
      uses_.figures.AddPause(BridgeFigures::kIdle, now - begun);
      uses_.figures.Add(BridgeFigures::kQueue, now - parts.front().at);
    }
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
  const auto begun = BridgeFigures::Clock::now();
  while (!log.WaitForSpace(room, std::chrono::steady_clock::now() + kLook)) {
    if (log.memory().closed()) return false;
    if (lane.group->ended) return true;
  }
  const auto roomy = BridgeFigures::Clock::now();
  std::byte* to = log.Reserve(room);
  if (to == nullptr) return false;
  std::memcpy(to, &header, sizeof(header));
  std::memcpy(to + sizeof(header), part.block.data, part.bytes);
  std::memset(to + header.bytes, 0, room - header.bytes);
  log.Commit(room);
  if (part.bridge == 0) return true;
  uses_.figures.Sent(part.bytes);
  uses_.figures.Add(BridgeFigures::kRoom, roomy - begun);
  uses_.figures.Add(BridgeFigures::kFill, BridgeFigures::Clock::now() - roomy);
  return true;
}

}  // namespace longwire::worker
