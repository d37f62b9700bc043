// What probes in kernels saw begin and end: a part of the trace for each device and map, with a
// track for each warp or block.
#include <algorithm>

#include "client-shim/tracing/trace_writer.h"

namespace longwire::shim {
namespace {

// Kernels that run at once each have a block of that number: then a track has neighbours.
constexpr uint64_t kNextTrack = uint64_t{1} << 40;
constexpr int kNeighbours = 64;

}  // namespace

uint32_t TraceWriter::ProbePart(const ProbeNote& note) {
  auto map = std::ranges::find(probe_maps_, note.map);
  if (map == probe_maps_.end()) map = probe_maps_.insert(probe_maps_.end(), note.map);
  const auto place = static_cast<uint32_t>(map - probe_maps_.begin()) % kMapsOfProbes;
  const uint32_t part = static_cast<uint32_t>(TracePart::kProbes) +
                        kMapsOfProbes * static_cast<uint32_t>(note.device) + place;
  if (probe_parts_.insert(part).second) {
    file_.NamePart(part, "probes on device " + std::to_string(note.device) + ": " + note.map);
  }
  return part;
}

void TraceWriter::WriteProbe(const ProbeNote& note) {
  const uint32_t part = ProbePart(note);
  uint64_t track = note.number % kNextTrack;
  for (int i = 0; i < kNeighbours; ++i, track += kNextTrack) {
    const auto last = tracks_.find({part, track});
    if (last == tracks_.end() || last->second <= note.began) break;
  }
  NameTrack(part, track, note.map + (" " + std::to_string(note.number)));
  tracks_[{part, track}] = note.ended;
  file_.Span(part, track, Demangled(note.kernel), note.began, note.ended,
             "\"number\":" + std::to_string(note.number) +
                 ",\"clock_error_ns\":" + std::to_string(note.error));
}

void TraceWriter::WriteProbes(std::vector<ProbeNote> notes) {
  std::ranges::sort(notes, {}, &ProbeNote::began);
  for (const ProbeNote& note : notes) {
    if (note.kernel != nullptr) {
      WriteProbe(note);
      continue;
    }
    file_.Mark("probes: " + std::to_string(note.number) + " spans of " + note.map +
                   " are missing: the map was full, or the device's clock could not be read",
               note.began, "");
  }
}

}  // namespace longwire::shim
