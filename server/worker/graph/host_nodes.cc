#include "server/worker/graph/host_nodes.h"

#include <atomic>
#include <unordered_map>

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace longwire::worker::host_nodes {
namespace {

base::Mutex mutex{base::ranks::kHostNodes};
std::unordered_map<uint64_t, std::weak_ptr<GraphPart>> parts LONGWIRE_GUARDED_BY(mutex);
uint64_t last LONGWIRE_GUARDED_BY(mutex) = 0;
std::atomic<Runner*> served{nullptr};

}  // namespace

void Serve(Runner* runner) { served = runner; }

void CUDA_CB Call(void* number) {
  Runner* runner = served;
  if (runner == nullptr) return;
  auto part = Find(number);
  part != nullptr ? runner->RunHostNode(*part) : runner->HostNodeIsLost();
}

uint64_t Add(const std::shared_ptr<GraphPart>& part) {
  base::MutexLock lock(mutex);
  parts.emplace(++last, part);
  return last;
}

std::shared_ptr<GraphPart> Find(const void* number) {
  base::MutexLock lock(mutex);
  auto found = parts.find(reinterpret_cast<uint64_t>(number));
  return found == parts.end() ? nullptr : found->second.lock();
}

void Forget(uint64_t number) {
  base::MutexLock lock(mutex);
  parts.erase(number);
}

}  // namespace longwire::worker::host_nodes
