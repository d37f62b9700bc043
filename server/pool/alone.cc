// A host that is cut off from etcd: it opens sessions by itself, within what it has and what runs
// here. Etcd does not have them; joining anew writes them (join.cc).
#include <algorithm>

#include "server/pool/directory.h"
#include "server/pool/host.h"
#include "server/pool/keys.h"

namespace longwire::pool {
namespace {

// Longer than the pause after a leader's end: until then the pool may answer.
constexpr std::chrono::seconds kCutOff{5};
constexpr size_t kNumberBytes = 16;

}  // namespace

bool HostPart::CutOff() const {
  base::MutexLock lock(mutex_);
  // One that has not been in the pool does not know what it has promised there.
  return joined_as_ != 0 && !stop_ && Clock::now() - heard_ > kCutOff;
}

// What holds room here whatever becomes of the rest: places whose programs have not come are not
// opened any more, as that needs etcd.
Claims HostPart::Kept() {
  Claims kept = facts_.Running();
  const std::vector<std::string> gone = Gone();  // joining anew drops them
  base::MutexLock lock(mutex_);
  for (const auto& [number, known] : known_) {
    if (known.state == State::kSeen || kept.contains(number)) continue;
    if (std::ranges::count(gone, number) != 0) continue;
    auto alone = alone_.find(number);
    auto told = claims_.find(number);
    if (alone != alone_.end()) {
      kept[number] = alone->second;
    } else if (told != claims_.end()) {
      kept[number] = told->second;
    }
  }
  return kept;
}

bool HostPart::OpenAlone(const Request& request, const std::string& policy, std::string* number,
                         Claim* claim, std::string* sentence) {
  Capacity capacity;
  if (!facts_.Describe(&capacity, sentence)) return false;
  base::MutexLock one_by_one(opening_alone_);
  {
    base::MutexLock lock(mutex_);
    capacity.set_cordoned(capacity.cordoned() || withdrawn_);
  }
  Rewrite(Kept(), &capacity);
  Directory directory;
  HostEntry& entry = directory.hosts[options_.name];
  entry.host.mutable_labels()->insert(options_.labels.begin(), options_.labels.end());
  entry.capacity = capacity;
  entry.host_created = entry.capacity_changed = 1;
  Waiter waiter;
  waiter.request = request;
  const scheduler::pool::Wish wish = WishOf(waiter);
  const scheduler::pool::HostState state = HostStates(directory).front();
  *sentence = "this host is cut off from the pool's etcd, and has no room itself: ";
  const std::string obstacle = Obstacle(wish, state);
  const std::vector<int32_t> devices = ChooseDevices(wish, state, policy, false);
  if (!obstacle.empty() || devices.empty()) {
    *sentence += obstacle.empty() ? "its devices or sessions are taken" : obstacle;
    return false;
  }
  claim->set_tenant(request.tenant());
  claim->set_identity(request.identity());
  claim->set_program(request.program());
  claim->set_local(true);
  claim->set_state(OPEN);
  for (const scheduler::pool::DeviceState& device : state.devices) {
    if (std::ranges::count(devices, device.ordinal) == 0) continue;
    claim->add_devices(device.ordinal);
    claim->set_bytes(std::max(claim->bytes(), Need(wish, device)));
  }
  // A number of its own: the client's may have a place elsewhere, of which nobody here knows.
  *number = RandomHex(kNumberBytes);
  *sentence = "the system has no random bytes";
  if (number->empty()) return false;
  base::MutexLock lock(mutex_);
  *sentence = "longwired ends";
  if (stop_) return false;
  alone_[*number] = *claim;
  known_[*number].state = State::kOpening;
  // Nothing else is opened before etcd knows of it.
  joined_ = false;
  outside_ = "it was cut off from etcd, and has opened sessions by itself";
  return true;
}

}  // namespace longwire::pool
