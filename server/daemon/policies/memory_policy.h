// The policy that has hooks of memory: it runs in the keepers, on the maps that longwired has.
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "policy/program.h"
#include "server/protocol/policies.h"
#include "wire/socket.h"

namespace longwire::daemon {

class MemoryPolicy {
 public:
  // Gives it to the warden; false: that is of an earlier release, which has none.
  using Send = std::function<bool(const warden::SetPolicy& policy, std::span<const int> files)>;
  explicit MemoryPolicy(Send send) : send_(std::move(send)) {}

  // `object`: the file's bytes. Null: there is none.
  void Use(std::shared_ptr<policy::Program> program, const std::string& object);
  // Says it again: the warden may have started anew.
  void Repeat();

 private:
  void Tell() LONGWIRE_REQUIRES(mutex_);

  const Send send_;
  base::Mutex mutex_{base::ranks::kMemoryPolicy};
  std::shared_ptr<policy::Program> program_ LONGWIRE_GUARDED_BY(mutex_);
  warden::SetPolicy told_ LONGWIRE_GUARDED_BY(mutex_);
  wire::Descriptor object_ LONGWIRE_GUARDED_BY(mutex_);  // sealed
};

}  // namespace longwire::daemon
