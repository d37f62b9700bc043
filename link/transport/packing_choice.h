// Decides with which codec a connection's bytes are sent: with none, unless trying one has shown
// that the far end then gets more of them per second. What it tries is the connection itself, for
// some megabytes: whether packing pays depends on the wire, on the bytes, on what else both hosts'
// processors do, and nothing but the outcome knows all of it.
//
// A pure function of what it is told: no clock and no codec in here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace longwire::transport {

enum PackingFlags : uint32_t {
  kPackLz4 = 1,
  kPackZstd = 2,
  kPackAlways = 4,  // whether it pays or not, with the first of the codecs that are set
};
constexpr uint32_t kPackAuto = kPackLz4 | kPackZstd;

// Of what a client wants, what this version knows and its configuration allows.
constexpr uint32_t AgreedPacking(uint32_t wanted, bool allowed) {
  return allowed ? wanted & (kPackLz4 | kPackZstd | kPackAlways) : 0;
}

// auto, none, lz4 or zstd, as users say it. False for other words.
bool ParsePacking(std::string_view text, uint32_t* packing);

enum class Codec : uint32_t { kNone = 0, kLz4 = kPackLz4, kZstd = kPackZstd };

class PackingChoice {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void Allow(uint32_t packing);
  Codec codec() const { return codec_; }

  // Of how much of the log the far end has and how much is on its way, now and then. Positions in
  // the log, so that the same bytes count the same whatever the codec.
  void Delivered(uint64_t delivered, uint64_t sent, Time now);
  // What the codec made of a frame.
  void Packed(size_t plain, size_t packed);

 private:
  void EndTrial();
  void GiveUp();
  void Use(Codec codec);
  Codec NextCandidate();

  uint32_t packing_ = 0;
  Codec codec_ = Codec::kNone;  // in use
  Codec best_ = Codec::kNone;   // so far; another one in use is on trial
  double best_rate_ = 0;        // bytes per second
  Codec last_candidate_ = Codec::kNone;
  int pause_ = 1;      // trials of the best between two of others; longer after each in vain
  int countdown_ = 1;  // of the pause
  int in_vain_ = 0;    // frames in a row that did not get smaller

  // The trial that is going on: bytes that arrived, and time in which some were on their way. It
  // begins with the first byte that was sent with its codec.
  uint64_t begins_at_ = 0;
  uint64_t bytes_ = 0;
  std::chrono::nanoseconds busy_{0};
  uint64_t delivered_ = 0;
  uint64_t sent_ = 0;
  Time seen_{};
};

}  // namespace longwire::transport
