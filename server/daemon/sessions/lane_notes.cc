#include "server/daemon/sessions/lane_notes.h"

#include "wire/limits.h"

namespace longwire::daemon {
namespace {

constexpr uint64_t kMagic = 0x3165746f6e656c77;
constexpr uint32_t kLanes = 1 + wire::kMaxLanes;  // with the session's own logs

}  // namespace

struct LaneNotes::Content {
  struct Place {
    std::atomic<uint32_t> current;  // which of the two counts
    LaneNote notes[2];
  };
  uint64_t magic;
  Place lanes[kLanes];
};

LaneNotes::Content& LaneNotes::content() const {
  return *reinterpret_cast<Content*>(mapping_->data());
}

bool LaneNotes::Map() {
  if (memory_.valid()) mapping_ = wire::SegmentMapping::Map(memory_.get(), sizeof(Content));
  return mapping_ != nullptr;
}

// New memory reads as zeros, which is an empty note for each lane.
std::shared_ptr<LaneNotes> LaneNotes::Create() {
  std::shared_ptr<LaneNotes> notes(new LaneNotes());
  notes->memory_ = wire::MakeSegment("longwire-notes", sizeof(Content));
  if (!notes->Map()) return nullptr;
  notes->content().magic = kMagic;
  return notes;
}

std::shared_ptr<LaneNotes> LaneNotes::Map(wire::Descriptor memory) {
  if (!wire::IsSegment(memory.get(), sizeof(Content))) return nullptr;
  std::shared_ptr<LaneNotes> notes(new LaneNotes());
  notes->memory_ = std::move(memory);
  return notes->Map() && notes->content().magic == kMagic ? notes : nullptr;
}

void LaneNotes::Write(uint32_t lane, const LaneNote& note) {
  Content::Place& place = content().lanes[lane % kLanes];
  const uint32_t next = (place.current.load(std::memory_order_relaxed) + 1) % 2;
  place.notes[next] = note;
  place.current.store(next, std::memory_order_release);
}

LaneNote LaneNotes::Read(uint32_t lane) const {
  const Content::Place& place = content().lanes[lane % kLanes];
  return place.notes[place.current.load(std::memory_order_acquire) % 2];
}

}  // namespace longwire::daemon
