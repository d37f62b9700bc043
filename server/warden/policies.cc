// The operator's policy for memory, kept here for keepers that start later; and whose a worker is,
// which keepers have to know.
#include "server/protocol/policies.h"

#include <algorithm>
#include <cstdio>

#include "base/name_number.h"
#include "server/warden/warden.h"

namespace longwire::warden {

void Warden::TakePolicy(const SetPolicy& request, std::vector<wire::Descriptor> descriptors) {
  const keeper::UsePolicy& policy = request.policy;
  if (policy.number == policy_.number) return;  // the daemon repeats it with each session
  if (policy.number != 0 && descriptors.size() != keeper::kPolicyDescriptors) return;
  policy_ = policy;
  policy_files_ = std::move(descriptors);
  for (auto& [device, keeper] : keepers_) SendPolicy(keeper);
}

void Warden::SendPolicy(Keeper& keeper) const {
  if (!keeper.control.valid()) return;
  std::vector<int> files;
  for (const wire::Descriptor& file : policy_files_) files.push_back(file.get());
  keeper::UsePolicy policy = policy_;
  policy.taker = static_cast<uint64_t>(keeper.process.pid);
  if (wire::SendMessage(keeper.control.get(), message::Pack(policy), files)) return;
  std::fprintf(stderr,
               "longwire-warden: a keeper did not take the policy '%s'; what is built in "
               "decides there\n",
               policy_.name.c_str());
}

bool Warden::SendPlaced(const Keeper& keeper, uint64_t number, const Worker& worker) const {
  if (worker.session == 0) return true;
  const auto tenant =
      std::ranges::find(tenants_, worker.tenant, [](const auto& entry) { return entry.second; });
  const uint64_t name = tenant == tenants_.end() ? 0 : base::NumberOfName(tenant->first);
  return wire::SendMessage(keeper.control.get(),
                           message::Pack(keeper::Placed{number, worker.session, name}));
}

}  // namespace longwire::warden
