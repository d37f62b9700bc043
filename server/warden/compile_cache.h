// The drivers' cache of code compiled from PTX: a folder for each tenant, so that no tenant runs
// code that was compiled for another. A worker that was started ahead has no tenant yet, so its
// driver gets a path of the worker's own, which later becomes a symbolic link to the tenant's
// folder.
//
//   tenants/=NAME     the driver's files, bounded by the driver (CUDA_CACHE_MAXSIZE)
//   workers/NUMBER    link of a worker that runs
//   lock              held by the one warden that uses the folder
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/socket.h"

namespace longwire::warden {

class CompileCache {
 public:
  // Nothing is cached if `folder` is empty, or, with a line in the log, if it cannot be used.
  explicit CompileCache(const std::string& folder);

  // The environment of worker `number` that sets its driver's cache, or switches it off.
  std::vector<std::string> VariablesOf(uint64_t number) const;
  // The worker serves that tenant from now on.
  void Assign(uint64_t number, const std::string& tenant);
  // The folder of the tenants' folders; empty if nothing is cached.
  std::string tenants() const;
  // The worker is gone.
  void Forget(uint64_t number);

 private:
  std::string LinkOf(uint64_t number) const;
  bool Prepare(std::string* sentence);

  std::string folder_;  // empty: nothing is cached
  wire::Descriptor lock_;
};

}  // namespace longwire::warden
