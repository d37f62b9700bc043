// Where a worker's driver keeps what it compiled from PTX: a folder for each tenant, so that no
// tenant runs what was compiled for another. A worker that was started ahead has no tenant yet, so
// its driver is given a path of the worker's own, which becomes a link to the tenant's folder.
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
  // An empty folder, or one that cannot be used (which is said): nothing is kept.
  explicit CompileCache(const std::string& folder);

  // What tells the driver of worker `number`; without a folder, that it shall keep nothing.
  std::vector<std::string> VariablesOf(uint64_t number) const;
  // The worker serves that tenant from now on.
  void Assign(uint64_t number, const std::string& tenant);
  // The worker is gone.
  void Forget(uint64_t number);

 private:
  std::string LinkOf(uint64_t number) const;
  bool Prepare(std::string* sentence);

  std::string folder_;  // empty: nothing is kept
  wire::Descriptor lock_;
};

}  // namespace longwire::warden
