#include "server/keeper/swap_advice/advised_swaps.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace longwire::keeper {
namespace {

using policy::Hook;
using std::chrono::nanoseconds;

constexpr nanoseconds kLongestStay = std::chrono::seconds(1);
// Regions that are asked about one by one; those behind have the score of their owner's last one.
// A keeper serves nobody meanwhile.
constexpr size_t kAskedRegions = 8192;

uint64_t BytesOf(std::span<const Region> regions) {
  uint64_t sum = 0;
  for (const Region& region : regions) sum += region.bytes;
  return sum;
}

}  // namespace

AdvisedSwaps::AdvisedSwaps(std::unique_ptr<SwapPolicy> built_in, uint32_t device, Clock clock)
    : built_in_(std::move(built_in)), device_(device), clock_(std::move(clock)) {}

int64_t AdvisedSwaps::SteadyNow() {
  return nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void AdvisedSwaps::Use(std::shared_ptr<policy::Program> program) {
  program_ = std::move(program);
  for (const auto& [id, region] : regions_) Tell(Hook::kRegionAdded, region);
}

void AdvisedSwaps::SetOwner(uint64_t owner, uint64_t session, uint64_t tenant) {
  Owner& known = owners_[owner];
  known.session = session;
  known.tenant = tenant;
  known.placed = true;
}

lw_memory AdvisedSwaps::ContextOf(uint64_t owner) const {
  lw_memory memory{};
  memory.now = clock_();
  memory.device = device_;
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return memory;
  memory.session = found->second.session;
  memory.tenant = found->second.tenant;
  memory.idle = memory.now - found->second.used;
  return memory;
}

void AdvisedSwaps::Tell(Hook hook, const Region& region) {
  if (!Has(hook)) return;
  lw_memory memory = ContextOf(region.owner);
  memory.region = region.id;
  memory.bytes = region.bytes;
  program_->Ask(hook, &memory);
}

void AdvisedSwaps::Added(const Region& region) {
  built_in_->Added(region);
  regions_[region.id] = region;
  Owner& owner = owners_[region.owner];
  owner.used = clock_();
  ++owner.regions;
  Tell(Hook::kRegionAdded, region);
}

void AdvisedSwaps::Accessed(uint64_t owner) {
  built_in_->Accessed(owner);
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return;
  if (Has(Hook::kRegionAccessed)) Tell(Hook::kRegionAccessed, {0, owner, 0});
  found->second.used = clock_();
}

void AdvisedSwaps::Removed(uint64_t region) {
  built_in_->Removed(region);
  const auto found = regions_.find(region);
  if (found == regions_.end()) return;
  Tell(Hook::kRegionRemoved, found->second);
  const auto owner = owners_.find(found->second.owner);
  if (owner != owners_.end() && --owner->second.regions == 0 && !owner->second.placed) {
    owners_.erase(owner);
  }
  regions_.erase(found);
}

nanoseconds AdvisedSwaps::Runs(uint64_t owner, uint64_t away, const NextLaunches& next) {
  const nanoseconds usual = built_in_->Runs(owner, away, next);
  if (!Has(Hook::kSessionRuns)) return usual;
  lw_memory memory = ContextOf(owner);
  memory.bytes = away;
  memory.launches = next.count;
  std::ranges::copy(next.kernels, memory.kernel);
  if (!program_->Ask(Hook::kSessionRuns, &memory)) return usual;
  if (memory.stay >= 0 && memory.stay <= kLongestStay.count()) return nanoseconds(memory.stay);
  program_->Refuse(Hook::kSessionRuns,
                   "a stay of " + std::to_string(memory.stay) + " ns is not from 0 to 1 s");
  return usual;
}

uint64_t AdvisedSwaps::ScoreOf(const Region& region) {
  lw_memory memory = ContextOf(region.owner);
  memory.region = region.id;
  memory.bytes = region.bytes;
  return program_->Ask(Hook::kEvictNext, &memory) ? memory.score : 0;
}

// Empty if that order finds too little.
std::vector<Region> AdvisedSwaps::ByScore(uint64_t needed, uint64_t room,
                                          std::span<const Region> movable) {
  std::map<uint64_t, std::vector<Region>, std::greater<>> lists;
  std::unordered_map<uint64_t, uint64_t> last;  // by owner
  for (size_t i = 0; i < movable.size(); ++i) {
    const Region& region = movable[i];
    const auto known = i < kAskedRegions ? last.end() : last.find(region.owner);
    const uint64_t score = known == last.end() ? ScoreOf(region) : known->second;
    last[region.owner] = score;
    lists[score].push_back(region);
  }
  if (program_->ended()) return {};
  std::vector<Region> victims;
  uint64_t sum = 0;
  for (const auto& [score, list] : lists) {
    const uint64_t all = BytesOf(list);
    const uint64_t wanted = std::min(needed - sum, all);
    std::vector<Region> some = built_in_->Victims(wanted, room - sum, list);
    if (some.empty()) return {};
    sum += BytesOf(some);
    victims.insert(victims.end(), some.begin(), some.end());
    if (sum >= needed) return victims;
  }
  return {};
}

std::vector<Region> AdvisedSwaps::Victims(uint64_t needed, uint64_t room,
                                          std::span<const Region> movable) {
  if (needed != 0 && Has(Hook::kEvictNext)) {
    std::vector<Region> victims = ByScore(needed, room, movable);
    if (!victims.empty()) return victims;
  }
  return built_in_->Victims(needed, room, movable);
}

std::vector<Region> AdvisedSwaps::Prefetch(std::span<const Region> away) {
  return built_in_->Prefetch(away);
}

}  // namespace longwire::keeper
