#include "server/warden/compile_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/reason.h"
#include "wire/guards.h"

namespace longwire::warden {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTenants = "/tenants/";
constexpr const char* kWorkers = "/workers/";

// The tenant's folder as a worker's link has it. The prefix = prevents the name "..".
std::string TenantFolder(const std::string& tenant) {
  static const bool apart = !wire::GuardIsOff("compile_tenant");
  return "=" + (apart ? tenant : "all");
}

}  // namespace

CompileCache::CompileCache(const std::string& folder) : folder_(folder) {
  std::string sentence;
  if (folder_.empty() || Prepare(&sentence)) return;
  std::fprintf(stderr, "longwire-warden: compiled kernels are not cached: %s\n", sentence.c_str());
  folder_.clear();
}

bool CompileCache::Prepare(std::string* sentence) {
  std::error_code problem;
  fs::create_directories(folder_ + kTenants, problem);
  if (!problem) fs::create_directories(folder_ + kWorkers, problem);
  if (!problem && chmod(folder_.c_str(), 0700) == 0) {
    lock_.Reset(open((folder_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  }
  if (!lock_.valid()) {
    *sentence = "cannot use " + folder_ + ": " + base::Reason(problem ? problem.value() : errno);
    return false;
  }
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    *sentence = "another longwire-warden uses " + folder_;
    return false;
  }
  // Of workers of an earlier warden, which have ended with it.
  for (fs::directory_iterator link(folder_ + kWorkers, problem), end; !problem && link != end;
       link.increment(problem)) {
    unlink(link->path().c_str());
  }
  return true;
}

std::string CompileCache::LinkOf(uint64_t number) const {
  return folder_ + kWorkers + std::to_string(number);
}

std::string CompileCache::tenants() const { return folder_.empty() ? "" : folder_ + kTenants; }

std::vector<std::string> CompileCache::VariablesOf(uint64_t number) const {
  if (folder_.empty()) return {"CUDA_CACHE_DISABLE=1"};
  return {"CUDA_CACHE_PATH=" + LinkOf(number)};
}

void CompileCache::Assign(uint64_t number, const std::string& tenant) {
  if (folder_.empty() || tenant.empty() || tenant.find('/') != std::string::npos) return;
  // Somebody may have removed it.
  std::string sentence;
  if (access((folder_ + kWorkers).c_str(), F_OK) != 0 && !Prepare(&sentence)) {
    std::fprintf(stderr, "longwire-warden: compiled kernels of tenant %s are not cached: %s\n",
                 tenant.c_str(), sentence.c_str());
    return;
  }
  std::string name = TenantFolder(tenant);
  mkdir((folder_ + kTenants + name).c_str(), 0700);
  // A driver that found no folder may have made one.
  rmdir(LinkOf(number).c_str());
  if (symlink((".." + (kTenants + name)).c_str(), LinkOf(number).c_str()) != 0) {
    std::fprintf(stderr, "longwire-warden: compiled kernels of tenant %s are not cached: %s\n",
                 tenant.c_str(), base::Reason(errno).c_str());
  }
}

void CompileCache::Forget(uint64_t number) {
  if (folder_.empty()) return;
  unlink(LinkOf(number).c_str());
  rmdir(LinkOf(number).c_str());
}

}  // namespace longwire::warden
