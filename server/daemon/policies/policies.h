// The policies that are loaded, from the configuration or by longwire policy load, and who asks
// them: the scheduler, the placement, the keepers and workers. Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "policy/program.h"
#include "proto/config.pb.h"
#include "proto/transport.pb.h"
#include "server/daemon/policies/launch_policy.h"
#include "server/daemon/policies/memory_policy.h"
#include "server/daemon/sessions/placement.h"
#include "server/daemon/sessions/scheduling.h"

namespace longwire::daemon {

class Policies {
 public:
  struct Askers {
    Scheduling& scheduling;
    PlacementTable& placements;
    MemoryPolicy& memory;
    LaunchPolicy& launches;
  };
  explicit Policies(Askers askers) : askers_(askers) {}

  // Reads and verifies what the configuration lists; false with a sentence, and nothing has
  // changed. Apply puts into force what Prepare has read, beside what is loaded by command, also
  // meanwhile; Abandon drops it. A policy whose file is as it was goes on with its maps.
  bool Prepare(const config::Config& config, std::string* sentence);
  void Apply();
  void Abandon();

  // Each false with a sentence. Others may not have taken the change yet (takers.h); *program is
  // the one that was loaded or unloaded.
  bool Load(const std::string& name, std::span<const std::byte> object, std::string* sentence,
            std::shared_ptr<policy::Program>* program = nullptr);
  bool Unload(const std::string& name, std::string* sentence,
              std::shared_ptr<policy::Program>* program = nullptr);
  // Those that are loaded, by name.
  std::map<std::string, std::shared_ptr<policy::Program>> Programs();
  // `key`: a number, tenant:NAME or kernel:NAME.
  bool SetValue(const std::string& name, const std::string& map, const std::string& key,
                uint64_t value, std::string* sentence);

  // `values`: with those of the maps. `tenants`: whose numbers are shown as names.
  void Describe(bool values, const std::vector<std::string>& tenants,
                transport::InspectReply* reply);

 private:
  struct Loaded {
    std::shared_ptr<policy::Program> program;
    std::string object;  // the file's bytes
    bool configured = false;
  };
  using Table = std::map<std::string, Loaded>;

  static bool Read(const std::string& name, std::span<const std::byte> object, Loaded* loaded,
                   std::string* sentence);
  // Those of the configuration, and those that were loaded by command under other names.
  static Table Together(const Table& loaded, const Table& configured);
  // False with a sentence if two of them would be asked the same.
  static bool AreApart(const Table& table, std::string* sentence);
  // Puts them into force; those that are no longer among them end, also in other processes.
  void Install(Table next) LONGWIRE_REQUIRES(mutex_);

  const Askers askers_;
  base::Mutex mutex_{base::ranks::kPolicies};
  Table loaded_ LONGWIRE_GUARDED_BY(mutex_);
  std::optional<Table> prepared_ LONGWIRE_GUARDED_BY(mutex_);  // of the configuration
};

}  // namespace longwire::daemon
