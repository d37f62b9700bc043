#include "policy/placing.h"

#include <functional>
#include <map>
#include <vector>

namespace longwire::policy {

namespace {

using scheduler::DeviceLoad;

uint64_t ScoreOf(const DeviceLoad& load, uint64_t wanted, Program& program) {
  lw_place place{};
  place.device = load.id;
  place.sessions = load.sessions;
  place.free_bytes = load.free_bytes;
  place.total_bytes = load.total_bytes;
  place.wanted_bytes = wanted;
  place.busy_permille = static_cast<uint32_t>(1000 * load.busy);
  return program.Ask(Hook::kPlace, &place) ? place.score : 0;
}

}  // namespace

scheduler::PlacementAnswer PlaceByScore(std::span<const DeviceLoad> devices,
                                        const scheduler::PlacementRequest& request,
                                        const scheduler::Placement& built_in, Program& program) {
  // Whether it fits at all, with the sentence if it does not.
  scheduler::PlacementAnswer answer = built_in.Place(devices, request);
  if (answer.devices.empty() || !program.Has(Hook::kPlace) || program.ended()) return answer;
  std::map<uint64_t, std::vector<DeviceLoad>, std::greater<>> by_score;
  for (const DeviceLoad& load : devices) {
    if (load.free_bytes < request.bytes) continue;
    by_score[ScoreOf(load, request.bytes, program)].push_back(load);
  }
  if (program.ended()) return answer;
  std::vector<scheduler::DeviceId> chosen;
  for (const auto& [score, equal] : by_score) {
    const size_t missing = request.devices - chosen.size();
    const auto number = static_cast<uint32_t>(std::min(missing, equal.size()));
    if (number == 0) break;
    const auto some = built_in.Place(equal, {number, request.bytes}).devices;
    chosen.insert(chosen.end(), some.begin(), some.end());
  }
  if (chosen.size() == request.devices) answer.devices = std::move(chosen);
  return answer;
}

}  // namespace longwire::policy
