#include "server/keeper/swap_policy.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace longwire::keeper {
namespace {

bool Larger(const Region& one, const Region& other) {
  return one.bytes != other.bytes ? one.bytes > other.bytes : one.id < other.id;
}

class LeastRecent : public SwapPolicy {
 public:
  void Added(const Region& region) override {
    owners_[region.id] = region.owner;
    ++uses_[region.owner].regions;
    Accessed(region.owner);
  }

  void Accessed(uint64_t owner) override {
    auto found = uses_.find(owner);
    if (found != uses_.end()) found->second.last = ++now_;
  }

  void Removed(uint64_t region) override {
    auto owner = owners_.find(region);
    if (owner == owners_.end()) return;
    auto use = uses_.find(owner->second);
    if (--use->second.regions == 0) uses_.erase(use);
    owners_.erase(owner);
  }

  std::vector<Region> Victims(uint64_t needed, uint64_t room,
                              std::span<const Region> movable) override {
    std::vector<Region> victims;
    if (needed == 0) return victims;
    // Owner by owner, until enough was found.
    uint64_t sum = 0;
    for (std::vector<Region>& regions : ByLastUse(movable)) {
      for (const Region& region : Fewest(needed - sum, room - sum, std::move(regions))) {
        sum += region.bytes;
        victims.push_back(region);
      }
      if (sum >= needed) return victims;
    }
    return {};
  }

  std::vector<Region> Prefetch(std::span<const Region> away) override {
    std::vector<Region> all(away.begin(), away.end());
    std::ranges::sort(all, Larger);
    return all;
  }

 private:
  struct Use {
    uint64_t last = 0;
    size_t regions = 0;
  };

  std::vector<std::vector<Region>> ByLastUse(std::span<const Region> movable) const {
    std::map<std::pair<uint64_t, uint64_t>, std::vector<Region>> sorted;  // by last use and owner
    for (const Region& region : movable) {
      auto use = uses_.find(region.owner);
      uint64_t last = use == uses_.end() ? 0 : use->second.last;
      sorted[{last, region.owner}].push_back(region);
    }
    std::vector<std::vector<Region>> lists;
    for (auto& [use, regions] : sorted) lists.push_back(std::move(regions));
    return lists;
  }

  // The largest that are not too large, then the smallest that covers the rest; or a single one,
  // where that is less in all.
  static std::vector<Region> Fewest(uint64_t needed, uint64_t room, std::vector<Region> regions) {
    std::ranges::sort(regions, Larger);
    std::erase_if(regions, [&](const Region& region) { return region.bytes > room; });
    std::vector<Region> taken;
    uint64_t sum = 0;
    const Region* cover = nullptr;  // the smallest that is more than the rest
    const Region* alone = nullptr;  // the smallest that is enough
    for (const Region& region : regions) {
      if (region.bytes >= needed) alone = &region;
      if (region.bytes > needed - sum) {
        cover = &region;
      } else {
        sum += region.bytes;
        taken.push_back(region);
      }
    }
    if (sum < needed && cover != nullptr) {
      sum += cover->bytes;
      // With it some of the small ones are not needed.
      while (!taken.empty() && sum - taken.back().bytes >= needed) {
        sum -= taken.back().bytes;
        taken.pop_back();
      }
      taken.push_back(*cover);
    }
    if (alone != nullptr && (alone->bytes < sum || sum > room)) return {*alone};
    while (sum > room) {
      sum -= taken.back().bytes;
      taken.pop_back();
    }
    return taken;
  }

  std::unordered_map<uint64_t, uint64_t> owners_;  // by region
  std::unordered_map<uint64_t, Use> uses_;         // by owner
  uint64_t now_ = 0;                               // counts uses
};

}  // namespace

std::unique_ptr<SwapPolicy> LeastRecentlyUsed() { return std::make_unique<LeastRecent>(); }

}  // namespace longwire::keeper
