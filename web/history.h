// What was a second apart in the last hour: each device's memory and work, and each session's. Kept
// minute by minute; what is beyond the budget is forgotten from the oldest minute on. No thread, no
// clock.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "proto/transport.pb.h"

namespace longwire::web {

inline constexpr int kMinute = 60;  // seconds, and samples
inline constexpr size_t kHistoryMinutes = 60;
// With what else the process has, it stays below 64 MiB.
inline constexpr size_t kHistoryBudget = 28 << 20;

// A session as it is known after its end.
struct KnownSession {
  uint64_t id = 0;
  std::string program, host, identity, tenant;
};

class History {
 public:
  explicit History(size_t budget = kHistoryBudget) : budget_(budget) {}

  // One sample. `second`: since 1970, each later than the last; `before`: the last reply if it is
  // of the same daemon, else nullptr.
  void Add(int64_t second, const transport::InspectReply* before,
           const transport::InspectReply& now);

  // One column for each `step` seconds from `begin` on. nullopt stands for: nothing is known.
  struct Series {
    KnownSession session;
    std::vector<uint64_t> memory;  // bytes, the most in the column
    std::vector<float> gpu;        // seconds per second, the mean
    std::vector<uint8_t> held;     // 1: waited at a closed gate
    uint64_t most = 0;
  };
  struct Columns {
    int64_t begin = 0, step = 1;
    uint64_t total = 0;  // bytes of the device
    std::vector<bool> known;
    std::vector<uint64_t> leased, idle;  // of the device; leased with what is not shown below
    std::vector<float> busy;             // 0 to 1
    std::vector<Series> sessions;        // those that had most memory, the most first
    size_t left_out = 0;                 // further ones
  };
  using MaySee = std::function<bool(const std::string& tenant)>;
  Columns Read(int32_t device, int64_t begin, int64_t end, int64_t step, size_t sessions,
               const MaySee& may_see) const;

  int64_t begin() const;  // of the oldest second; 0: empty
  int64_t end() const { return last_; }
  size_t bytes() const { return bytes_; }
  uint64_t left_out() const {
    return left_out_;
  }  // samples of sessions for which there was no room

 private:
  using Key = uint32_t;  // of a session; its number may come again after a daemon's new start
  struct DeviceTrack {
    int32_t device = 0;
    uint64_t total = 0;
    std::array<uint16_t, kMinute> leased{}, idle{};  // parts of the total
    std::array<uint8_t, kMinute> busy{};
  };
  struct SeatTrack {
    Key session = 0;
    int32_t device = 0;
    std::array<uint16_t, kMinute> memory{};  // part of the device's total
    std::array<uint8_t, kMinute> gpu{}, held{};
  };
  struct Minute {
    int64_t begin = 0;
    std::bitset<kMinute> known;
    std::vector<DeviceTrack> devices;
    std::vector<SeatTrack> seats;
    uint32_t index = 0;  // counts minutes
  };
  struct Life {
    KnownSession known;
    uint32_t last_minute = 0;  // in which there is a track of it
  };

  Minute& MinuteOf(int64_t second);
  void AddDevices(size_t at, const transport::InspectReply& now, Minute* minute);
  void AddSessions(size_t at, const transport::InspectReply* before,
                   const transport::InspectReply& now, Minute* minute);
  // nullptr, as the next: there is no room.
  const Key* KeyOf(const transport::Session& session);
  SeatTrack* SeatOf(Key session, int32_t device, Minute* minute);
  bool IsFull(size_t more) const;
  void ForgetMinute();
  void MakeRoom();
  // The `count` sessions that had most memory there, and how many others there are.
  std::map<Key, Series> Largest(int32_t device, int64_t begin, int64_t end, size_t count,
                                const MaySee& may_see, size_t* left_out) const;
  static void ReadDevice(const Minute& minute, const DeviceTrack& track, Columns* columns);
  static void ReadSeat(const Minute& minute, const SeatTrack& seat, uint64_t total,
                       const Columns& columns, Series* series);

  const size_t budget_;
  size_t bytes_ = 0;
  int64_t last_ = 0;
  uint32_t minutes_made_ = 0;
  uint64_t left_out_ = 0;
  Key last_key_ = 0;
  std::deque<Minute> minutes_;
  std::map<Key, Life> sessions_;
  std::unordered_map<uint64_t, Key> live_;              // by the session's number
  std::unordered_map<uint64_t, size_t> present_seats_;  // of the last minute: key and device
};

}  // namespace longwire::web
