#include "client-shim/mirror/words.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/memory_sizes.h"
#include "client-shim/connect/options.h"
#include "client-shim/support/own_memory.h"
#include "longwire/calls.h"
#include "wire/limits.h"
#include "wire/live/changed_word.h"
#include "wire/live/changed_words.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kWord = 8;
// The first version of the protocol whose workers take words.
constexpr uint32_t kTakesWords = 14;

// Collects the bytes of one word, which may come in several runs.
class WordStores {
 public:
  explicit WordStores(Mirror& mirror) : mirror_(mirror) {}
  ~WordStores() { Store(); }
  void Add(uint64_t offset, std::byte value) {
    const uint64_t address = mirror_.range.address + offset;
    if (address / kWord != word_) Begin(address / kWord);
    if (!whole_) {
      CopyToProgram(&value, reinterpret_cast<std::byte*>(address), 1);
    } else {
      is_[address % kWord] = value;
    }
    mirror_.shadow[offset] = value;
  }

 private:
  void Begin(uint64_t word) {
    Store();
    word_ = word;
    const uint64_t begin = word * kWord, first = mirror_.range.address;
    whole_ = begin >= first && begin + kWord <= first + mirror_.range.bytes;
    if (whole_) std::copy_n(mirror_.shadow + (begin - first), kWord, was_.begin());
    is_ = was_;
  }
  void Store() {
    if (!whole_ || was_ == is_ || !pages_.MayWrite(mirror_, word_ * kWord)) return;
    auto* place = reinterpret_cast<std::byte*>(word_ * kWord);
    // Where the program has changed a byte as well, the device's value stays.
    while (!wire::StoreWord(place, kWord, was_.data(), is_.data())) {
      const uint64_t now =
          __atomic_load_n(reinterpret_cast<const uint64_t*>(place), __ATOMIC_RELAXED);
      for (size_t i = 0; i < kWord; ++i) {
        if (was_[i] != is_[i]) was_[i] = reinterpret_cast<const std::byte*>(&now)[i];
      }
    }
  }

  Mirror& mirror_;
  WritablePages pages_;
  uint64_t word_ = UINT64_MAX;
  bool whole_ = false;
  std::array<std::byte, kWord> was_{}, is_{};
};

}  // namespace

bool AreIndependent(const Channel& channel) {
  static const bool wanted = ProcessOptions().independent_words;
  return wanted && channel.stream->session->opened().protocol >= kTakesWords;
}

bool SendWords(Mirrors& mirrors, Mirror& mirror, uint64_t offset, std::span<const std::byte> now) {
  std::vector<std::vector<std::byte>> deltas;
  for (uint64_t at = 0; at < now.size();) {
    std::vector<std::byte> delta;
    const uint64_t place = offset + at;
    at += wire::AppendWords(now.subspan(at), mirror.shadow + place, place,
                            mirror.range.address + place, wire::kDeltaBytes - wire::kMaxDeltaOfPage,
                            &delta);
    if (!delta.empty()) deltas.push_back(std::move(delta));
  }
  Stream* stream = mirror.channel->stream;
  for (auto delta = deltas.rbegin(); delta != deltas.rend(); ++delta) {
    if (AwaitStream(stream, AwaitedForRoom(stream)) != CUDA_SUCCESS) break;  // it has failed
    calls::lwMirrorPush push;
    push.mirror = mirror.id;
    push.delta = *delta;
    mirrors.AwaitConflict();
    stream->session->Submit(mirror.channel->where(), push, push.EncodedBytes());
    stream->session->counts().uploaded.fetch_add(delta->size(), std::memory_order_relaxed);
  }
  return !deltas.empty();
}

bool WritablePages::MayWrite(const Mirror& mirror, uint64_t address) {
  if (!mirror.range.may_shrink) return true;
  return MayWrite(address);
}

bool WritablePages::MayWrite(uint64_t address) {
  if (address / base::kPageBytes == page_) return may_;
  page_ = address / base::kPageBytes;
  return may_ = MayWriteOwnMemory(address);
}

void StoreRuns(Mirror& mirror, std::span<const wire::DeltaRun> runs) {
  WordStores stores(mirror);
  for (const wire::DeltaRun& run : runs) {
    for (size_t i = 0; i < run.bytes.size(); ++i) {
      // Bytes that equal the shadow came before.
      if (mirror.shadow[run.offset + i] != run.bytes[i]) stores.Add(run.offset + i, run.bytes[i]);
    }
  }
}

}  // namespace longwire::shim
