// What longwire top shows, from two replies of a server: the later one's figures, and rates over
// the time between them. No drawing here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/transport.pb.h"

namespace longwire::cli::top {

// Per second; nullopt: not known, because the earlier reply has no such figure.
using Rate = std::optional<double>;

struct DeviceRow {
  int32_t ordinal = 0;
  std::string name;
  double busy = 0;      // 0 to 1
  uint64_t leased = 0;  // bytes, with what sessions have from the driver itself
  uint64_t total = 0;
  uint32_t sessions = 0;
  bool cordoned = false;
  transport::DeviceHealth health;  // what is not known is absent
};

struct TenantRow {
  std::string name;
  uint32_t sessions = 0;
  uint32_t waiting = 0;                // of these: have work behind a closed gate
  std::vector<std::string> held_by;    // tenants that work on the devices on which they wait
  std::optional<double> due, had;      // shares, 0 to 1
  uint64_t memory = 0;                 // bytes
  uint64_t memory_limit = UINT64_MAX;  // UINT64_MAX: none
  Rate gpu;                            // seconds of GPU time per second
};

enum class Gate { kOpen, kClosed, kStopped };  // stopped: its worker does not answer

struct SessionRow {
  uint64_t id = 0;
  std::string program, host, identity, tenant;
  std::string program_id;  // of a program with sessions at several servers; else empty
  std::vector<int32_t> devices;
  uint64_t memory = 0;
  Gate gate = Gate::kOpen;  // the worst of its devices'
  bool waits = false;       // has work behind a closed gate
  Rate gpu, up, down, round_trips;
  // Of a launch in this interval, on average, in seconds: until it is at the driver, and until it
  // begins on the device. nullopt: there was none, or an older server does not tell.
  std::optional<double> queue, start;
};

struct Picture {
  std::string server;  // its address
  std::string version, host;
  double uptime = 0;    // seconds
  double interval = 0;  // seconds that rates cover; 0: there are none
  bool draining = false;
  bool left_out = false;  // sessions and tenants that the caller may not see
  std::string problem;    // of the warden
  std::vector<DeviceRow> devices;
  std::vector<TenantRow> tenants;
  std::vector<SessionRow> sessions;
};

// `before` may be nullptr, or of another daemon: then there are no rates.
Picture MakePicture(const std::string& server, const transport::InspectReply* before,
                    const transport::InspectReply& now);

// Sessions can be ordered by these.
enum class Column {
  kSession,
  kProgram,
  kIdentity,
  kTenant,
  kHost,
  kDevice,
  kGpu,
  kMemory,
  kUp,
  kDown,
  kRoundTrips,
  kQueue,
  kStart,
  kGate
};
inline constexpr int kColumns = 14;

// Texts from A to Z, figures from the highest to the lowest; reversed the other way. Equal ones in
// the order of their numbers.
void Sort(Column column, bool reversed, std::vector<SessionRow>* sessions);
// Keeps those that have the text in their number or in a name, whatever its case.
void Filter(const std::string& text, std::vector<SessionRow>* sessions);

}  // namespace longwire::cli::top
