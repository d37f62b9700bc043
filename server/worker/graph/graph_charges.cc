#include "server/worker/graph/graph_charges.h"

#include <algorithm>

#include "base/memory_sizes.h"
#include "server/worker/memory/memory.h"

namespace longwire::worker {
namespace {

// The driver takes memory for graphs in such steps.
constexpr uint64_t kUnit = uint64_t{32} << 20;

}  // namespace

CUresult GraphCharges::TakeOrSettle(int32_t device, uint64_t bytes, Charge* charge) {
  CUresult result = charges_.Take(device, bytes, charge);
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  Settle();
  return charges_.Take(device, bytes, charge);
}

GraphCharges::Shared GraphCharges::Of(CUgraph graph, bool makes) {
  base::MutexLock lock(mutex_);
  auto found = graphs_.find(graph);
  if (found == graphs_.end() && !makes) return nullptr;
  Shared& shared = graphs_[graph].shared;
  if (shared == nullptr) {
    shared = Shared(new Taken(), [this](Taken* taken) {
      Left(std::move(*taken));
      delete taken;
    });
  }
  return shared;
}

CUresult GraphCharges::AddNode(CUgraph graph, int32_t device, uint64_t bytes) {
  Shared shared = Of(graph, true);
  uint64_t more = 0;
  {
    base::MutexLock lock(mutex_);
    uint64_t& sum = graphs_[graph].bytes[device];
    uint64_t before = base::RoundUp(sum, kUnit);
    sum = std::min(sum + bytes, base::kMaxMemoryBytes);
    more = base::RoundUp(sum, kUnit) - before;
  }
  Charge charge;
  CUresult result = TakeOrSettle(device, more, &charge);
  base::MutexLock lock(mutex_);
  if (result != CUDA_SUCCESS) {
    graphs_[graph].bytes[device] -= bytes;
    return result;
  }
  if (charge.bytes() == 0) return result;
  accounts_[device].alive += charge.bytes();
  shared->push_back({device, std::move(charge), 0});
  return result;
}

void GraphCharges::RemoveNode(CUgraph graph, int32_t device, uint64_t bytes) {
  std::vector<Charge> back;  // ends after the lock
  base::MutexLock lock(mutex_);
  auto found = graphs_.find(graph);
  if (found == graphs_.end()) return;
  uint64_t& sum = found->second.bytes[device];
  sum -= std::min(sum, bytes);
  uint64_t keeps = base::RoundUp(sum, kUnit);
  for (OnDevice& one : *found->second.shared) {
    if (one.device != device) continue;
    uint64_t here = std::min(keeps, one.charge.bytes());
    keeps -= here;
    back.push_back(one.charge.Beyond(here));
    accounts_[device].alive -= back.back().bytes();
  }
}

GraphCharges::Shared GraphCharges::Remove(CUgraph graph) {
  base::MutexLock lock(mutex_);
  auto found = graphs_.find(graph);
  if (found == graphs_.end()) return nullptr;
  Shared shared = std::move(found->second.shared);
  graphs_.erase(found);
  return shared;
}

CUresult GraphCharges::Take(CUgraph graph, const std::map<CUdevice, Bytes>& bytes, Shared* shared,
                            Taken* taken) {
  *shared = Of(graph, false);
  for (const auto& [handle, sums] : bytes) {
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].handle != handle) continue;
      auto device = static_cast<int32_t>(i);
      uint64_t needed = base::RoundUp(sums.all, kUnit);
      {
        base::MutexLock lock(mutex_);
        for (size_t each = 0; *shared != nullptr && each < (*shared)->size(); ++each) {
          OnDevice& had = (**shared)[each];
          if (had.device != device) continue;
          needed -= std::min(needed, had.charge.bytes());
          had.unfreed = std::min(had.charge.bytes(), base::RoundUp(sums.unfreed, kUnit));
        }
      }
      if (needed == 0) continue;
      Charge charge;
      CUresult result = TakeOrSettle(device, needed, &charge);
      if (result != CUDA_SUCCESS) return result;
      base::MutexLock lock(mutex_);
      accounts_[device].alive += charge.bytes();
      taken->push_back({device, std::move(charge), base::RoundUp(sums.unfreed, kUnit)});
    }
  }
  return CUDA_SUCCESS;
}

void GraphCharges::Cancel(Taken taken) {
  base::MutexLock lock(mutex_);
  for (auto& [device, charge, unfreed] : taken) accounts_[device].alive -= charge.bytes();
  lock.Unlock();  // the charges end after that
}

void GraphCharges::Left(Taken taken) {
  if (taken.empty()) return;
  {
    base::MutexLock lock(mutex_);
    for (auto& [device, charge, unfreed] : taken) {
      Account& account = accounts_[device];
      account.alive -= charge.bytes();
      account.rest.Absorb(charge.Beyond(unfreed));
      account.unfreed.Absorb(std::move(charge));
    }
  }
  Settle();
}

void GraphCharges::Settle() {
  for (size_t i = 0; i < devices_.size(); ++i) {
    auto device = static_cast<int32_t>(i);
    {
      base::MutexLock lock(mutex_);
      auto account = accounts_.find(device);
      bool nothing = account == accounts_.end() ||
                     account->second.unfreed.bytes() + account->second.rest.bytes() == 0;
      if (nothing) continue;
    }
    driver_.cuDeviceGraphMemTrim(devices_[i].handle);
    cuuint64_t has = 0;
    constexpr auto kReserved = CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT;
    if (driver_.cuDeviceGetGraphMemAttribute(devices_[i].handle, kReserved, &has) != CUDA_SUCCESS) {
      continue;
    }
    Charge unfreed, rest;  // that are given back, after the lock
    base::MutexLock lock(mutex_);
    Account& account = accounts_[device];
    unfreed = account.unfreed.Beyond(has);
    uint64_t explained = account.alive + account.unfreed.bytes();
    rest = account.rest.Beyond(has - std::min<uint64_t>(has, explained));
  }
}

}  // namespace longwire::worker
