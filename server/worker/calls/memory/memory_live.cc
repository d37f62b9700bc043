#include "server/worker/calls/memory/memory_live.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/memory_sizes.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/memory/memory_state.h"
#include "wire/limits.h"
#include "wire/live/changed_word.h"
#include "wire/live/changed_words.h"

namespace longwire::worker {
namespace {

constexpr size_t kWord = 8;
// Of one call of the driver, which refuses 256 and more.
constexpr size_t kMaxOperations = 255;
// What the device had in words that are so near each other comes in one copy.
constexpr uint64_t kNear = 32;  // bytes

// By one store of the device for each word, which therefore nobody sees in part. It must not need a
// processor of the device, as a fill may: a kernel that waits for the word can have all of them.
// Nor may words come by a copy: no manual says that a copy stores an aligned word in one piece.
class Stores {
 public:
  Stores(const DriverTable& driver, CUstream stream) : driver_(driver), stream_(stream) {}
  // `bytes` stay until it is done.
  CUresult Add(uint64_t address, std::span<const std::byte> bytes) {
    if (bytes.size() < 4) {
      const CUresult result = Flush();
      return result != CUDA_SUCCESS
                 ? result
                 : driver_.cuMemcpyHtoDAsync_v2(address, bytes.data(), bytes.size(), stream_);
    }
    CUstreamBatchMemOpParams store = {};
    const bool whole = bytes.size() == kWord;
    store.writeValue.operation =
        whole ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
    store.writeValue.address = address;
    // Each behind a fence: the driver takes no other flag in this version of the call.
    store.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
    if (whole) {
      std::memcpy(&store.writeValue.value64, bytes.data(), kWord);
    } else {
      std::memcpy(&store.writeValue.value, bytes.data(), bytes.size());
    }
    waiting_.push_back(store);
    return waiting_.size() < kMaxOperations ? CUDA_SUCCESS : Flush();
  }
  CUresult Flush() {
    if (waiting_.empty()) return CUDA_SUCCESS;
    const CUresult result =
        waiting_.size() == 1
            ? StoreOne(waiting_.front())
            : driver_.cuStreamBatchMemOp_v2(stream_, static_cast<unsigned>(waiting_.size()),
                                            waiting_.data(), 0);
    waiting_.clear();
    return result;
  }

 private:
  CUresult StoreOne(const CUstreamBatchMemOpParams& store) {
    const auto& write = store.writeValue;
    return store.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64
               ? driver_.cuStreamWriteValue64_v2(stream_, write.address, write.value64, write.flags)
               : driver_.cuStreamWriteValue32_v2(stream_, write.address, write.value, write.flags);
  }

  const DriverTable& driver_;
  CUstream stream_;
  std::vector<CUstreamBatchMemOpParams> waiting_;
};

// Words that the program has changed, and where in the block the device's own bytes come.
struct PushedWords {
  std::shared_ptr<Mirror> mirror;
  std::shared_ptr<std::vector<wire::DeltaRun>> runs;  // ascending
  StagingBlock block;
  std::vector<std::byte> kept;  // to which the runs point, as the call ends before the stores
  std::vector<size_t> places;   // of each run
  size_t bytes = 0;             // of the device's
};

// Of words that are pushed: ascending, aligned, and nothing else.
bool AreWords(const Mirror& mirror, const std::vector<wire::DeltaRun>& runs) {
  uint64_t end = 0;
  for (const wire::DeltaRun& run : runs) {
    const size_t bytes = run.bytes.size();
    if (run.form != wire::PageForm::kWord || run.offset < end) return false;
    if ((mirror.address + run.offset) % bytes != 0) return false;
    end = run.offset + bytes;
  }
  return true;
}

void KeepBytes(PushedWords& words) {
  size_t all = 0;
  for (const wire::DeltaRun& run : *words.runs) all += 2 * run.bytes.size();
  words.kept.resize(all);
  std::byte* at = words.kept.data();
  auto keep = [&](std::span<const std::byte>& bytes) {
    std::ranges::copy(bytes, at);
    bytes = {at, bytes.size()};
    at += bytes.size();
  };
  for (wire::DeltaRun& run : *words.runs) {
    keep(run.was);
    keep(run.bytes);
  }
}

// Calls copy(offset, bytes) for each stretch of words that are near each other.
template <class Copy>
CUresult ForEachStretch(PushedWords& words, Copy copy) {
  const std::vector<wire::DeltaRun>& runs = *words.runs;
  for (size_t i = 0; i < runs.size();) {
    const uint64_t begin = runs[i].offset;
    uint64_t end = begin;
    for (; i < runs.size() && (end == begin || runs[i].offset - end <= kNear); ++i) {
      end = runs[i].offset + runs[i].bytes.size();
    }
    const CUresult result = copy(begin, end - begin);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

void FindPlaces(PushedWords& words) {
  size_t run = 0;
  static_cast<void>(ForEachStretch(words, [&](uint64_t offset, uint64_t bytes) {
    const std::vector<wire::DeltaRun>& runs = *words.runs;
    for (; run < runs.size() && runs[run].offset < offset + bytes; ++run) {
      words.places.push_back(words.bytes + (runs[run].offset - offset));
    }
    words.bytes += bytes;
    return CUDA_SUCCESS;
  }));
}

// The first byte that the device had changed to something else, perhaps already on its way to the
// client.
bool FindConflict(const PushedWords& words, uint64_t* offset) {
  for (size_t k = 0; k < words.runs->size(); ++k) {
    const wire::DeltaRun& run = (*words.runs)[k];
    const wire::StoredPart part = wire::PartToStore(run.was, run.bytes);
    const std::byte* shadow = words.mirror->shadow->data() + run.offset;
    const std::byte* before = words.block.data + words.places[k];
    for (size_t i = part.begin; i < part.begin + part.bytes; ++i) {
      const bool sent = shadow[i] != run.was[i] && shadow[i] != run.bytes[i];
      const bool changed = before[i] != shadow[i] && before[i] != run.bytes[i];
      if (!sent && !changed) continue;
      *offset = run.offset + i;
      return true;
    }
  }
  return false;
}

// What the device has, and then the stores.
CUresult Issue(CallContext& context, PushedWords& words) {
  const DriverTable& driver = context.driver();
  CUstream stream = context.driver_stream();
  std::byte* to = words.block.data;
  CUresult result = ForEachStretch(words, [&](uint64_t offset, uint64_t bytes) {
    std::byte* place = to;
    to += bytes;
    return driver.cuMemcpyDtoHAsync_v2(place, words.mirror->address + offset, bytes, stream);
  });
  if (result != CUDA_SUCCESS) return result;
  Stores stores(driver, stream);
  std::byte* staged = words.block.data + words.bytes;
  for (auto run = words.runs->rbegin(); run != words.runs->rend(); ++run) {
    const wire::StoredPart part = wire::PartToStore(run->was, run->bytes);
    const std::span<const std::byte> bytes = run->bytes.subspan(part.begin, part.bytes);
    std::ranges::copy(bytes, staged);
    result = stores.Add(words.mirror->address + run->offset + part.begin, {staged, bytes.size()});
    staged += bytes.size();
    if (result != CUDA_SUCCESS) return result;
  }
  return stores.Flush();
}

// The words are in the device's memory.
void Finish(WorkerSession& session, const PushedWords& words) {
  uint64_t offset = 0;
  if (FindConflict(words, &offset)) {
    std::vector<std::byte> conflict;
    wire::AppendConflict(offset, &conflict);
    session.down().Mirror(words.mirror->id, conflict);
  }
  for (const wire::DeltaRun& run : *words.runs) {
    const wire::StoredPart part = wire::PartToStore(run.was, run.bytes);
    std::byte* shadow = words.mirror->shadow->data() + run.offset + part.begin;
    std::ranges::copy(run.bytes.subspan(part.begin, part.bytes), shadow);
    words.mirror->NoteChange(run.offset + part.begin, part.bytes);
  }
}

// A part of a mirror that is copied twice: first to the begin of the block, then behind that.
struct LookPart {
  std::shared_ptr<Mirror> mirror;
  uint64_t offset = 0;
  size_t bytes = 0;
  StagingBlock block;
  uint64_t pulls = 0;  // that were done before
};
constexpr size_t kPartBytes = Staging::kMaxBlockBytes / 2;

CUresult PartsOf(const calls::lwMirrorLook& call, const Mirrors& mirrors,
                 std::vector<LookPart>* parts) {
  const size_t offsets = call.independent ? call.mirror.size() : 0;
  if (call.mirror.size() != call.bytes.size() || call.mirror.size() > wire::kLookMirrors ||
      call.offset.size() != offsets) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t all = 0;
  for (size_t i = 0; i < call.mirror.size(); ++i) {
    auto mirror = mirrors.Find(call.mirror[i]);
    if (mirror == nullptr) {  // its context has ended: nobody asks any more
      parts->clear();
      return CUDA_SUCCESS;
    }
    const uint64_t bytes = call.bytes[i], first = offsets == 0 ? 0 : call.offset[i];
    if (first > mirror->bytes || bytes > mirror->bytes - first || bytes > wire::kLookBytes - all)
      return CUDA_ERROR_INVALID_VALUE;
    all += bytes;
    // Behind the first part, parts begin at aligned words.
    const uint64_t misaligned = (mirror->address + first) % kWord;
    for (uint64_t at = 0; at < bytes;) {
      const uint64_t part = std::min(bytes - at, kPartBytes - (at == 0 ? misaligned : 0));
      parts->push_back({mirror, first + at, part, {}, mirror->pulls.done});
      at += part;
    }
  }
  return CUDA_SUCCESS;
}

// Blocks for all parts, or none.
bool Acquire(CallContext& context, std::vector<LookPart>& parts) {
  StreamStaging& staging = context.session().staging();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (staging.Acquire(*context.stream(), 2 * parts[i].bytes, &parts[i].block)) continue;
    while (i-- > 0) staging.Release(*context.stream(), parts[i].block);
    return false;
  }
  return true;
}

// The second copies are made when all first ones are complete: the stream's order says so.
CUresult CopyTimes(CallContext& context, const std::vector<LookPart>& parts, size_t times) {
  for (size_t turn = 0; turn < times; ++turn) {
    for (const LookPart& part : parts) {
      CUresult result = context.driver().cuMemcpyDtoHAsync_v2(part.block.data + turn * part.bytes,
                                                              part.mirror->address + part.offset,
                                                              part.bytes, context.driver_stream());
      if (result != CUDA_SUCCESS) return result;
    }
  }
  return CUDA_SUCCESS;
}

std::vector<wire::ComparedRange> Ranges(const std::vector<LookPart>& parts, size_t turn) {
  std::vector<wire::ComparedRange> ranges;
  for (const LookPart& part : parts) {
    ranges.push_back({{part.block.data + turn * part.bytes, part.bytes},
                      part.mirror->shadow->data() + part.offset,
                      part.mirror->address + part.offset});
  }
  return ranges;
}

// Whether the shadow is the one of the copies: no pull behind other work was done meanwhile.
bool AreOfTheShadow(const std::vector<LookPart>& parts) {
  return std::ranges::all_of(
      parts, [](const LookPart& part) { return part.mirror->pulls.done == part.pulls; });
}

// Sends the word, if that is all that has changed.
bool SendWord(WorkerSession& session, const std::vector<LookPart>& parts,
              wire::Difference* difference) {
  wire::ChangedWord word;
  *difference = wire::FindDifference(Ranges(parts, 0), &word);
  if (*difference != wire::Difference::kWord || !wire::Confirms(Ranges(parts, 1), word)) {
    return false;
  }
  const LookPart& part = parts[word.range];
  word.offset += part.offset;
  std::vector<std::byte> delta;
  wire::AppendWord(word, &delta);
  ++part.mirror->looked;
  std::copy_n(word.is.begin(), word.bytes, part.mirror->shadow->data() + word.offset);
  part.mirror->NoteChange(word.offset, word.bytes);
  session.down().Mirror(part.mirror->id, delta);
  return true;
}

void SendOneWord(WorkerSession& session, const std::vector<LookPart>& parts) {
  wire::Difference difference;
  static_cast<void>(SendWord(session, parts, &difference));
}

// Sends whatever has changed, if the copies are equal: then they are a state (live/changed_word.h).
// True if there is more to send than that.
bool SendState(WorkerSession& session, const std::vector<LookPart>& parts) {
  wire::Difference difference;
  if (SendWord(session, parts, &difference)) return false;
  const bool equal = std::ranges::all_of(parts, [](const LookPart& part) {
    return std::memcmp(part.block.data, part.block.data + part.bytes, part.bytes) == 0;
  });
  if (!equal) return true;
  if (difference == wire::Difference::kNone) return false;
  for (const LookPart& part : parts) {
    part.mirror->looked +=
        SendChanges(session, *part.mirror, part.offset, {part.block.data, part.bytes}) ? 1 : 0;
  }
  return false;
}

// Sends all words that have changed.
void SendWords(WorkerSession& session, const std::vector<LookPart>& parts) {
  std::vector<std::byte> delta;
  for (const LookPart& part : parts) {
    for (uint64_t at = 0; at < part.bytes;) {
      const uint64_t offset = part.offset + at;
      at += wire::AppendWords(
          {part.block.data + at, part.bytes - at}, part.mirror->shadow->data() + offset, offset,
          part.mirror->address + offset, wire::kDeltaBytes - wire::kMaxDeltaOfPage, &delta);
      if (delta.empty()) continue;
      ++part.mirror->looked;
      NoteDelta(*part.mirror, delta);
      session.down().Mirror(part.mirror->id, delta);
      delta.clear();
    }
  }
}

// Compares the copies once they are made; the call then goes on (FinishLook).
CUresult LookAtAll(CallContext& context, const std::shared_ptr<std::vector<LookPart>>& parts) {
  WorkerSession& session = context.session();
  auto* stream = context.stream().get();
  auto look = std::make_shared<WholeLook>();
  for (const LookPart& part : *parts) {
    look->parts.push_back({part.mirror, part.offset, part.bytes, part.pulls});
  }
  session.kept_states().Of(stream->id).look = look;
  context.call().step = 1;
  stream->actions.push_back([&session, stream, parts, look](bool good) {
    const bool counts = good && !parts->empty() && AreOfTheShadow(*parts);
    look->differs = counts && SendState(session, *parts);
    if (counts && !look->differs) AnswerLook(session, *parts->front().mirror);
    for (const LookPart& part : *parts) session.staging().Release(*stream, part.block);
    look->decided = true;
    session.WakeLogThread();
  });
  session.issuer().PlaceMarker(context.stream());
  return kNotYet;
}

}  // namespace

CUresult PushWords(CallContext& context, const std::shared_ptr<Mirror>& mirror,
                   const std::shared_ptr<std::vector<wire::DeltaRun>>& runs) {
  if (!AreWords(*mirror, *runs)) return CUDA_ERROR_INVALID_VALUE;
  auto words = std::make_shared<PushedWords>();
  words->mirror = mirror;
  words->runs = runs;
  FindPlaces(*words);
  const size_t room = words->bytes + kWord * runs->size();
  if (room > Staging::kMaxBlockBytes) return CUDA_ERROR_INVALID_VALUE;
  if (!context.session().staging().Acquire(*context.stream(), room, &words->block)) return kNotYet;
  KeepBytes(*words);
  ++mirror->pushes.queued;
  const CUresult result = Issue(context, *words);
  const bool stored = result == CUDA_SUCCESS;
  WorkerSession& session = context.session();
  auto* owner = context.stream().get();
  owner->actions.push_back([&session, owner, words, stored](bool good) {
    ++words->mirror->pushes.done;
    if (good && stored) Finish(session, *words);
    session.staging().Release(*owner, words->block);
  });
  return result;
}

CUresult Do_lwMirrorLook(CallContext& context, const calls::lwMirrorLook& call,
                         calls::lwMirrorLook::Reply*) {
  WorkerSession& session = context.session();
  if (call.mirror.empty()) return StoreKept(context);
  if (call.whole && (call.independent || context.capturing())) return CUDA_ERROR_INVALID_VALUE;
  if (call.whole && IsCompared(call)) return LookByComparing(context, call);
  if (context.call().step != 0) return FinishLook(context);
  auto parts = std::make_shared<std::vector<LookPart>>();
  CUresult result = PartsOf(call, session.mirrors(), parts.get());
  if (result != CUDA_SUCCESS) return result;
  auto* stream = context.stream().get();
  stream->push_next = true;
  // Without room there is no answer this time: pushes wait behind this call.
  if (!Acquire(context, *parts)) return CUDA_SUCCESS;
  result = CopyTimes(context, *parts, call.independent ? 1 : 2);
  const bool copied = result == CUDA_SUCCESS;
  if (call.whole && copied) return LookAtAll(context, parts);
  auto send = call.independent ? &SendWords : &SendOneWord;
  stream->actions.push_back([&session, stream, parts, copied, send](bool good) {
    if (good && copied && AreOfTheShadow(*parts)) send(session, *parts);
    for (const LookPart& part : *parts) session.staging().Release(*stream, part.block);
  });
  return result;
}

}  // namespace longwire::worker
