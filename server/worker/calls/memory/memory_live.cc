#include "server/worker/calls/memory/memory_live.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "longwire/worker_hand_written.h"
#include "wire/limits.h"
#include "wire/live/changed_word.h"

namespace longwire::worker {
namespace {

// By one store of the device, which therefore nobody sees in part. It must not need a processor of
// the device, as a fill may: a kernel that waits for the word can have all of them. `bytes` stay
// until it is done.
CUresult Store(const DriverTable& driver, uint64_t address, std::span<const std::byte> bytes,
               CUstream stream) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  switch (bytes.size()) {
    case 1:
    case 2:
      return driver.cuMemcpyHtoDAsync_v2(address, bytes.data(), bytes.size(), stream);
    case 4:
      return driver.cuStreamWriteValue32_v2(stream, address, static_cast<cuuint32_t>(value),
                                            CU_STREAM_WRITE_VALUE_DEFAULT);
    default:
      return driver.cuStreamWriteValue64_v2(stream, address, value, CU_STREAM_WRITE_VALUE_DEFAULT);
  }
}

// The word that the program has changed from `was` to `is`.
struct PushedWord {
  uint64_t offset = 0;
  size_t bytes = 0;
  std::array<std::byte, 8> was{}, is{};
};

// Of the pushed word: the first byte that the device had changed to something else, perhaps already
// on its way to the client. `before`: what the device had there.
bool FindConflict(const Mirror& mirror, const PushedWord& word, const std::byte* before,
                  uint64_t* offset) {
  const std::byte* shadow = mirror.shadow->data() + word.offset;
  for (size_t i = 0; i < word.bytes; ++i) {
    const bool sent = shadow[i] != word.was[i] && shadow[i] != word.is[i];
    const bool changed = before[i] != shadow[i] && before[i] != word.is[i];
    if (!sent && !changed) continue;
    *offset = word.offset + i;
    return true;
  }
  return false;
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
  if (call.mirror.size() != call.bytes.size() || call.mirror.size() > wire::kLookMirrors) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t all = 0;
  for (size_t i = 0; i < call.mirror.size(); ++i) {
    auto mirror = mirrors.Find(call.mirror[i]);
    if (mirror == nullptr) {  // its context has ended: nobody asks any more
      parts->clear();
      return CUDA_SUCCESS;
    }
    const uint64_t bytes = call.bytes[i];
    if (bytes > mirror->bytes || bytes > wire::kLookBytes - all) return CUDA_ERROR_INVALID_VALUE;
    all += bytes;
    for (uint64_t at = 0; at < bytes; at += kPartBytes) {
      parts->push_back(
          {mirror, at, std::min<uint64_t>(bytes - at, kPartBytes), {}, mirror->pulls.done});
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
CUresult CopyTwice(CallContext& context, const std::vector<LookPart>& parts) {
  for (const size_t turn : {0, 1}) {
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

// Sends the word, if that is all that has changed. The shadow is the one of the copies, unless a
// pull behind other work was done meanwhile.
void SendWord(WorkerSession& session, const std::vector<LookPart>& parts) {
  for (const LookPart& part : parts) {
    if (part.mirror->pulls.done != part.pulls) return;
  }
  wire::ChangedWord word;
  if (wire::FindDifference(Ranges(parts, 0), &word) != wire::Difference::kWord ||
      !wire::Confirms(Ranges(parts, 1), word)) {
    return;
  }
  const LookPart& part = parts[word.range];
  word.offset += part.offset;
  std::vector<std::byte> delta;
  wire::AppendWord(word, &delta);
  ++part.mirror->looked;
  std::copy_n(word.is.begin(), word.bytes, part.mirror->shadow->data() + word.offset);
  session.down().Mirror(part.mirror->id, delta);
}

}  // namespace

CUresult PushWord(CallContext& context, const std::shared_ptr<Mirror>& mirror,
                  const std::vector<wire::DeltaRun>& runs) {
  const wire::DeltaRun& run = runs.front();
  const uint64_t address = mirror->address + run.offset;
  if (runs.size() != 1 || address % run.bytes.size() != 0) return CUDA_ERROR_INVALID_VALUE;
  StagingBlock block;
  if (!context.session().staging().Acquire(*context.stream(), 2 * sizeof(uint64_t), &block)) {
    return kNotYet;
  }
  std::byte* staged = block.data + sizeof(uint64_t);
  std::ranges::copy(run.bytes, staged);
  PushedWord word{run.offset, run.bytes.size()};
  std::ranges::copy(run.was, word.was.begin());
  std::ranges::copy(run.bytes, word.is.begin());
  ++mirror->pushes.queued;
  CUstream stream = context.driver_stream();
  CUresult result = context.driver().cuMemcpyDtoHAsync_v2(block.data, address, word.bytes, stream);
  if (result == CUDA_SUCCESS)
    result = Store(context.driver(), address, {staged, word.bytes}, stream);
  const bool stored = result == CUDA_SUCCESS;
  WorkerSession& session = context.session();
  auto* owner = context.stream().get();
  owner->actions.push_back([&session, owner, block, mirror, word, stored](bool good) {
    ++mirror->pushes.done;
    uint64_t offset = 0;
    if (good && stored && FindConflict(*mirror, word, block.data, &offset)) {
      std::vector<std::byte> conflict;
      wire::AppendConflict(offset, &conflict);
      session.down().Mirror(mirror->id, conflict);
    }
    if (good && stored) {
      std::copy_n(word.is.begin(), word.bytes, mirror->shadow->data() + word.offset);
    }
    session.staging().Release(*owner, block);
  });
  return result;
}

CUresult Do_lwMirrorLook(CallContext& context, const calls::lwMirrorLook& call,
                         calls::lwMirrorLook::Reply*) {
  WorkerSession& session = context.session();
  auto parts = std::make_shared<std::vector<LookPart>>();
  CUresult result = PartsOf(call, session.mirrors(), parts.get());
  if (result != CUDA_SUCCESS) return result;
  auto* stream = context.stream().get();
  stream->push_next = true;
  // Without room there is no answer this time: pushes wait behind this call.
  if (!Acquire(context, *parts)) return CUDA_SUCCESS;
  result = CopyTwice(context, *parts);
  const bool copied = result == CUDA_SUCCESS;
  stream->actions.push_back([&session, stream, parts, copied](bool good) {
    if (good && copied) SendWord(session, *parts);
    for (const LookPart& part : *parts) session.staging().Release(*stream, part.block);
  });
  return result;
}

}  // namespace longwire::worker
