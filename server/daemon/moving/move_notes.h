// What longwired has to know of sessions that move between servers, also the next one of this boot:
// files in a folder beside the warden's socket. Of a session that has gone from here, one from the
// moment at which its old worker may end; of one that has come, one from the moment before its new
// worker begins until the server where it was has heard so. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/daemon/checkpoints/suspended.h"

namespace longwire::daemon {

struct GoneSession {
  static constexpr uint32_t kKind = 444;
  uint32_t version = 1;
  std::string move;               // its number
  std::vector<uint64_t> numbers;  // that the session had here, the last one last
  std::string identity, tenant;
  std::string server;     // HOST:PORT, as the administrator named it
  uint64_t session = 0;   // its number there
  uint64_t since = 0;     // seconds of the system's clock
  uint64_t patience = 0;  // seconds: how long the server there waits for the session's beginning
  uint64_t begun = 0;     // seconds of the system's clock; 0: not known to have begun there
  std::vector<TicketLane> lanes;
  auto Fields() {
    return std::tie(version, move, numbers, identity, tenant, server, session, since, patience,
                    begun, lanes);
  }
  uint64_t number() const { return numbers.back(); }
};

// How long its client waits because it may not have begun; none: it has, or nobody knows better.
std::optional<std::chrono::milliseconds> DoubtOf(const GoneSession& gone);

struct ComeSession {
  static constexpr uint32_t kKind = 445;
  uint32_t version = 1;
  std::string move;
  uint64_t session = 0;
  uint64_t since = 0;
  auto Fields() { return std::tie(version, move, session, since); }
};

std::string MoveNotesFolder(const std::string& warden_socket);
// The number of a move: 32 hexadecimal digits, by chance; empty if the system has none.
std::string NewMove();
bool IsMove(const std::string& text);

class MoveNotes {
 public:
  void Load(const std::string& folder);

  // The session has gone, and whoever added it settles what becomes of it. False with a sentence,
  // and it has not gone.
  bool Add(const GoneSession& gone, std::string* sentence);
  // It has begun there.
  void SetBegun(uint64_t number);
  // By any number that the session had.
  std::optional<GoneSession> Find(uint64_t number);
  std::vector<GoneSession> List();
  // Nobody else settles it meanwhile. False if somebody does, or it is not there.
  bool Claim(uint64_t number);
  void GiveBack(uint64_t number);
  // True if it was there.
  bool Remove(uint64_t number);

  // False with a sentence, and it is not noted.
  bool AddCome(const ComeSession& come, std::string* sentence);
  std::optional<ComeSession> FindCome(const std::string& move);
  void RemoveCome(const std::string& move);
  void RemoveComeBefore(uint64_t since);

  bool empty();

 private:
  struct Entry {
    GoneSession gone;
    bool claimed = false;
  };
  bool MakeFolder(std::string* sentence);
  bool Write(const std::string& name, const std::vector<std::byte>& content, std::string* sentence);

  std::string folder_;  // constant after Load
  base::Mutex mutex_{base::ranks::kMoveNotes};
  std::map<uint64_t, Entry> gone_ LONGWIRE_GUARDED_BY(mutex_);  // by its last number
  std::map<std::string, ComeSession> come_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::daemon
