// Sessions that are suspended into files, each with a ticket on disk: without one its file is void.
// A ticket is there from the moment at which the old worker may end until the moment before the new
// one's first answer can reach the client. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/transport/frame.h"
#include "server/daemon/checkpoints/checkpoint_file.h"
#include "server/daemon/settings/peer.h"
#include "server/daemon/settings/token.h"

namespace longwire::daemon {

// As LaneNote (server/daemon/sessions/lane_notes.h).
struct TicketLane {
  std::string token, previous_token;
  uint64_t received = 0;
  uint32_t epoch = 0;
  bool previous_good = false;
  bool first_attach = false;
  auto Fields() {
    return std::tie(token, previous_token, received, epoch, previous_good, first_attach);
  }
};

struct Ticket {
  static constexpr uint32_t kKind = 442;
  uint32_t version = 1;
  std::vector<uint64_t> numbers;  // that it had, the last one last
  std::string identity, tenant, program;
  std::string record;  // a SessionRecord
  std::string file;    // its name in the folder
  std::string salt;    // of the file's head
  std::string digest;  // of the whole file
  uint64_t since = 0;  // seconds of the system's clock
  uint64_t bytes = 0;  // of the file
  int32_t device = 0;  // where it was
  std::vector<TicketLane> lanes;
  auto Fields() {
    return std::tie(version, numbers, identity, tenant, program, record, file, salt, digest, since,
                    bytes, device, lanes);
  }
  uint64_t session() const { return numbers.back(); }
};

class Suspended {
 public:
  // Reads the tickets in the folder and removes what a killed daemon has left half written.
  void Load(const std::string& folder);
  // Empty where the operator has named none.
  const std::string& folder() const { return folder_; }

  // Makes the folder, and a file in it for one session, under another name until it is whole.
  // Invalid with a sentence.
  wire::Descriptor Create(const std::string& name, std::string* sentence);
  // The file is whole, and the session is suspended in it from now on. False with a sentence, and
  // neither file nor ticket is there.
  bool Add(const Ticket& ticket, std::string* sentence);
  // A file that Create has made, and that is not wanted.
  void Discard(const std::string& name);

  std::vector<Ticket> List();
  // Those whose clients do not wait any more, after so long. `*any`: whether there are others.
  std::vector<uint64_t> Late(std::chrono::milliseconds grace, bool* any);
  // By any number that the session had.
  std::optional<Ticket> Find(uint64_t number);
  // Of two who want to restore it one may: the other hears so, as who comes too late does.
  std::optional<Ticket> Claim(const std::string& salt, std::string* sentence);
  bool Claim(uint64_t session);
  void GiveBack(uint64_t session);
  // The session goes on, or is over: the ticket goes first, then the file. False with a sentence,
  // and the ticket stays.
  bool Remove(uint64_t session, std::string* sentence);

 private:
  struct Entry {
    Ticket ticket;
    bool claimed = false;
  };
  std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }
  std::string TicketPath(uint64_t session) const;
  bool ReadTicket(const std::string& path);
  bool WriteTicket(const Ticket& ticket);

  std::string folder_;  // constant after Load
  base::Mutex mutex_{base::ranks::kSuspended};
  std::map<uint64_t, Entry> all_ LONGWIRE_GUARDED_BY(mutex_);
};

// True for a plain name of a file: no folder, no dot first.
bool IsFileName(const std::string& name);
// Whether the attach shows the right to the suspended session.
bool MayWaitFor(const Ticket& ticket, const transport::Attach& attach, const Peer& peer);
// Whether it shows the right to a session with these lanes.
bool ShowsRight(const std::vector<TicketLane>& lanes, const std::string& identity,
                const std::string& tenant, const transport::Attach& attach, const Peer& peer);
// How long its client still waits.
std::chrono::milliseconds RestOf(const Ticket& ticket, std::chrono::milliseconds grace);

}  // namespace longwire::daemon
