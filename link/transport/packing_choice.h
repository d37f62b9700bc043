// Chooses the codec with which a connection's bytes are sent: none, unless a trial has shown that
// the receiver then gets more bytes per second. A trial sends some megabytes over the connection
// itself: whether compression pays depends on the network, the bytes and the load of both hosts,
// and only a measurement covers all of these.
//
// Deterministic: it contains no clock and no codec.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace longwire::transport {

enum PackingFlags : uint32_t {
  kPackLz4 = 1,
  kPackZstd = 2,
  kPackAlways = 4,  // without trials, with the first of the codecs that are set
};
constexpr uint32_t kPackAuto = kPackLz4 | kPackZstd;

// The flags that the client wants, this version knows and the configuration allows.
constexpr uint32_t AgreedPacking(uint32_t wanted, bool allowed) {
  return allowed ? wanted & (kPackLz4 | kPackZstd | kPackAlways) : 0;
}

// Parses auto, none, lz4 or zstd. False for anything else.
bool ParsePacking(std::string_view text, uint32_t* packing);

enum class Codec : uint32_t { kNone = 0, kLz4 = kPackLz4, kZstd = kPackZstd };

class PackingChoice {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void Allow(uint32_t packing);
  Codec codec() const { return codec_; }

  // Call it now and then with the positions up to which the log is delivered and sent. Positions
  // count uncompressed bytes, so rates of different codecs can be compared.
  void Delivered(uint64_t delivered, uint64_t sent, Time now);
  // A frame was sent, with the bytes of the log up to `sent`. How soon they are acknowledged may
  // show that the network is fast, though the threads at both ends rest between copies and say late
  // what has arrived: then nothing is tried for a while. Off with LONGWIRE_DISABLE=batch-rates.
  void Sent(uint64_t sent, size_t bytes, Time now);
  // The size of a frame before and after compression.
  void Packed(size_t plain, size_t packed);

 private:
  void LookAtMarks(uint64_t delivered, Time now);
  void EndTrial(Time now);
  void GiveUp();
  void Use(Codec codec);
  Codec NextCandidate();

  uint32_t packing_ = 0;
  Codec codec_ = Codec::kNone;  // in use
  Codec best_ = Codec::kNone;   // so far; if another is in use, that one is on trial
  double best_rate_ = 0;        // bytes per second
  Codec last_candidate_ = Codec::kNone;
  int pause_ = 1;      // trials of the best codec between two of others; grows with each failed one
  int countdown_ = 1;  // trials left in the pause
  int in_vain_ = 0;    // frames in a row that compression did not shrink

  // Of the last frames on their way: where the log stood after them. Not all of them: those that
  // are acknowledged late show nothing.
  struct Mark {
    uint64_t sent = 0;
    size_t bytes = 0;  // 0: none
    Time at{};
  };
  std::array<Mark, 8> marks_;
  size_t next_mark_ = 0;
  Time fast_until_{};

  // The current trial: bytes delivered, and the time during which some were in flight. It begins
  // with the first byte that was sent with its codec.
  uint64_t begins_at_ = 0;
  uint64_t bytes_ = 0;
  std::chrono::nanoseconds busy_{0};
  uint64_t delivered_ = 0;
  uint64_t sent_ = 0;
  Time seen_{};
};

}  // namespace longwire::transport
