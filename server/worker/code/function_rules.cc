#include "server/worker/code/function_rules.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "server/worker/code/loading.h"
#include "server/worker/code/session_rules.h"
#include "server/worker/memory/memory.h"
#include "server/worker/support/objects.h"

namespace longwire::worker {
namespace {

constexpr size_t kMaxParameters = 4096;

CUlaunchAttribute Attribute(CUlaunchAttributeID id) {
  CUlaunchAttribute attribute{};
  attribute.id = id;
  return attribute;
}

// The driver counts from 0, its lowest, down.
int DriverPriority(const DriverTable& driver, uint32_t priority) {
  int least = 0, greatest = 0;
  driver.cuCtxGetStreamPriorityRange(&least, &greatest);
  return std::max(greatest, least - static_cast<int>(priority));
}

std::vector<uint32_t> PointersOf(const DriverTable& driver, const Function& function) {
  std::vector<uint32_t> offsets;
  for (size_t i = 0; i < kMaxParameters; ++i) {
    size_t offset = 0, size = 0;
    if (PlaceOfParameter(driver, function, i, &offset, &size) != CUDA_SUCCESS) break;
    if (size == sizeof(uint64_t)) offsets.push_back(static_cast<uint32_t>(offset));
  }
  return offsets;
}

std::string NearestText(const Memory::Range& nearest) {
  if (nearest.bytes == 0) return "the session has no device memory";
  char text[128];
  std::snprintf(text, sizeof(text), "the nearest memory is %llu bytes at 0x%llx",
                static_cast<unsigned long long>(nearest.bytes),
                static_cast<unsigned long long>(nearest.address));
  return text;
}

}  // namespace

std::vector<CUlaunchAttribute> AttributesOf(const DriverTable& driver,
                                            const rules::LaunchChange& change) {
  std::vector<CUlaunchAttribute> attributes;
  if (change.priority != rules::kUnset) {
    auto& added = attributes.emplace_back(Attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY));
    added.value.priority = DriverPriority(driver, change.priority);
  }
  if (change.shared_memory != rules::kUnset) {
    auto& added =
        attributes.emplace_back(Attribute(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT));
    added.value.sharedMemCarveout = change.shared_memory;
  }
  if (change.clusters != rules::kUnset) {
    auto& added = attributes.emplace_back(
        Attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE));
    added.value.clusterSchedulingPolicyPreference =
        static_cast<CUclusterSchedulingPolicy>(change.clusters);
  }
  return attributes;
}

const FunctionRules* RulesOf(const DriverTable& driver, const SessionRules& rules,
                             Function& function) {
  const uint32_t version = rules.version();
  if (function.rules_version == version) return function.rules.get();
  function.rules = nullptr;
  function.rules_version = version;
  if (!rules.any()) return nullptr;
  auto decided = std::make_shared<FunctionRules>();
  decided->decision = rules::DecideLaunch(*rules.Get(), function.module, function.name);
  if (decided->decision.empty()) return nullptr;
  decided->attributes = AttributesOf(driver, decided->decision.change);
  if (decided->decision.validate) decided->pointers = PointersOf(driver, function);
  decided->page = rules.page();
  if (decided->page != nullptr) {
    for (uint32_t place : rules::RulesOfLaunch(*rules.Get(), function.module, function.name)) {
      decided->counters.push_back(&decided->page->rule_launches(place));
    }
  }
  function.rules = std::move(decided);
  return function.rules.get();
}

std::string WrongArgument(Memory& memory, const Function& function, const FunctionRules& rules,
                          std::span<const std::byte> parameters) {
  for (size_t i = 0; i < rules.pointers.size(); ++i) {
    const size_t offset = rules.pointers[i];
    uint64_t address = 0;
    if (offset + sizeof(address) > parameters.size()) continue;
    std::memcpy(&address, &parameters[offset], sizeof(address));
    Memory::Range nearest;
    if (memory.MayPointAt(address, &nearest)) continue;
    char place[96];
    std::snprintf(place, sizeof(place), "the argument at offset %zu, 0x%llx, ", offset,
                  static_cast<unsigned long long>(address));
    return "kernel '" + function.name + "': " + place +
           "points to device addresses where no memory is; " + NearestText(nearest);
  }
  return {};
}

std::string WrongRange(Memory& memory, const std::string& what, uint64_t address, uint64_t bytes) {
  Memory::Range nearest;
  if (memory.MayAccess(address, bytes, &nearest)) return {};
  char place[96];
  std::snprintf(place, sizeof(place), "%llu bytes at 0x%llx ",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address));
  return what + ": " + place + "go beyond memory that is there; " + NearestText(nearest);
}

}  // namespace longwire::worker
