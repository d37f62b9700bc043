// Who gets in, and how fast: the limits of the configuration (admission:) for what waits at the
// daemon's sockets, and for the sessions of one identity. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "server/admission/capacity.h"
#include "server/admission/connections.h"
#include "server/admission/descriptor_plan.h"
#include "server/admission/openings.h"
#include "server/config/live_config.h"

namespace longwire::admission {

class Entrance {
 public:
  explicit Entrance(const config::LiveConfig& live);

  struct StreamShares {
    Capacity::Share of_identity;
    Capacity::Share of_address;
  };
  // Capacity for a stream that has no session yet. `identity`: empty for a peer that is refused.
  // `own`: streams by which the identity's own sessions may be resumed.
  std::optional<StreamShares> EnterStream(const std::string& identity, const std::string& peer,
                                          size_t own);
  // A share for a call with one answer. `party`: the caller's identity, or its address.
  std::optional<Capacity::Share> EnterCall(const std::string& party);
  // May wait. False with a sentence.
  bool AwaitOpening(const std::string& identity, const std::atomic<bool>& cancelled,
                    std::string* sentence);
  // Counts a session of the identity, and the descriptors that it needs, or says why it may not
  // enter.
  enum class Entry { kEntered, kTooManyOfIdentity, kTooFewDescriptors };
  Entry EnterSession(const std::string& identity, size_t descriptors, std::string* sentence);
  // Counts one that another daemon let in, beyond any limit.
  void InheritSession(const std::string& identity, size_t descriptors);
  void LeaveSession(const std::string& identity, size_t descriptors);

  Connections& connections() { return connections_; }
  std::chrono::milliseconds opening_time() const;
  // How many sessions one identity may have; SIZE_MAX: any number.
  size_t SessionsOfIdentity() const;
  // At the local socket: of one uid, and of all.
  Capacity::Limits LocalLimits() const;
  void AddLocal(int64_t change) { local_waiting_.fetch_add(change); }
  void CountLocalClosed() { local_closed_.fetch_add(1); }

  struct Figures {
    uint64_t connections = 0, streams = 0, closed = 0;
    uint64_t waiting_limit = 0;
    uint64_t refused_streams = 0, refused_calls = 0, refused_rate = 0, refused_limit = 0;
    uint64_t held_descriptors = 0;
    DescriptorPlan descriptors;
  };
  Figures figures();

 private:
  DescriptorPlan Plan() const;

  const config::LiveConfig& live_;
  Connections connections_;
  Capacity streams_;    // without a session, by identity
  Capacity addresses_;  // the same ones by address
  Capacity calls_;
  Openings openings_;
  std::atomic<int64_t> local_waiting_{0};
  std::atomic<uint64_t> local_closed_{0};
  std::atomic<uint64_t> refused_sessions_{0};
  base::Mutex mutex_{base::ranks::kEntrance};
  std::map<std::string, size_t> sessions_ LONGWIRE_GUARDED_BY(mutex_);  // by identity
  size_t held_ LONGWIRE_GUARDED_BY(mutex_) = 0;                         // descriptors
};

}  // namespace longwire::admission
