// A directory that follows the keys has at each moment what reading all of them anew gives.
#include "server/pool/directory.h"

#include <gtest/gtest.h>

#include <random>

#include "server/pool/keys.h"

namespace longwire::pool {
namespace {

constexpr int kChanges = 4000;
constexpr int kNames = 3;  // few, so that keys come, change and go

std::string Said(const Directory& directory) {
  std::string all = directory.placer + " " + std::to_string(directory.placer_created) + " " +
                    std::to_string(directory.placer_lease) + " " + std::to_string(directory.epoch) +
                    " " + std::to_string(directory.epoch_changed) + "\n";
  for (const auto& [name, entry] : directory.hosts) {
    all += name + " " + entry.host.ShortDebugString() + " " + std::to_string(entry.host_created) +
           " " + entry.capacity.ShortDebugString() + " " + std::to_string(entry.capacity_changed) +
           " " + entry.load.ShortDebugString() + " " + entry.unknown_host + " " +
           entry.unknown_capacity + " " +
           (entry.withdrawn ? "withdrawn " + entry.withdrawn->ShortDebugString() : "") + "\n";
  }
  for (const auto& [host, claims] : directory.claims) {
    for (const auto& [number, claim] : claims) {
      all += host + "/" + number + " " + claim.ShortDebugString() + "\n";
    }
  }
  for (const auto& [number, host] : directory.owners) all += number + " of " + host + "\n";
  for (const auto& [key, waiter] : directory.waiters) {
    all += key + " " + waiter.front + " " + waiter.number + " " +
           waiter.request.ShortDebugString() + " " + std::to_string(waiter.created) + " " +
           std::to_string(waiter.changed) + " " + std::to_string(waiter.lease) + " " +
           waiter.unknown + "\n";
  }
  for (const auto& [key, answer] : directory.answers) all += key + " " + answer + "\n";
  return all;
}

// A record of the kind that belongs under `folder`, or, now and then, none at all.
std::string ValueFor(std::string_view folder, uint64_t value) {
  if (value % 7 == 0) return "no record";
  Host host;
  Capacity capacity;
  Load load;
  Withdrawal withdrawal;
  Claim claim;
  Owner owner;
  Request request;
  host.set_incarnation(value);
  host.set_format(static_cast<uint32_t>(value % 3));
  capacity.set_sessions(static_cast<uint32_t>(value));
  capacity.set_format(static_cast<uint32_t>(value % 3));
  withdrawal.set_seconds(value);
  load.add_devices()->set_free_bytes(value);
  claim.set_bytes(value);
  owner.set_host(std::to_string(value));
  request.set_bytes(value);
  if (folder == kHosts) return Encode(host);
  if (folder == kCapacities) return Encode(capacity);
  if (folder == kLoads) return Encode(load);
  if (folder == kWithdrawn) return Encode(withdrawal);
  if (folder == kClaims) return Encode(claim);
  if (folder == kSessions) return Encode(owner);
  if (folder == kQueue) return Encode(request);
  return std::to_string(value);
}

class DirectoryTest : public ::testing::Test {
 protected:
  std::string AnyKey(std::string_view* folder) {
    constexpr std::string_view kFolders[] = {kHosts,   kCapacities, kLoads, kWithdrawn,
                                             kClaims,  kSessions,   kQueue, kAnswers,
                                             kTenants, kPlacer,     kEpoch};
    *folder = kFolders[random_() % std::size(kFolders)];
    if (*folder == kPlacer || *folder == kEpoch) return std::string(*folder);
    const std::string name = "h" + std::to_string(random_() % kNames);
    const bool has_number = *folder == kClaims || *folder == kQueue || *folder == kAnswers;
    return has_number ? Key(*folder, name, std::to_string(random_() % kNames)) : Key(*folder, name);
  }

  // As etcd does: a key that comes again is created anew.
  void Change() {
    std::string_view folder;
    const std::string key = AnyKey(&folder);
    ++revision_;
    if (random_() % 3 == 0) {
      keys_.erase(key);
      return;
    }
    etcd::pb::KeyValue& kv = keys_[key];
    if (kv.create_revision() == 0) kv.set_create_revision(revision_);
    kv.set_key(key);
    kv.set_mod_revision(revision_);
    kv.set_lease(static_cast<int64_t>(random_() % 5));
    kv.set_value(ValueFor(folder, random_() % 100));
  }

  std::minstd_rand random_{5};
  int64_t revision_ = 0;
  etcd::Mirror::Keys keys_;
};

TEST_F(DirectoryTest, FollowsWhateverChanges) {
  Directory directory;
  for (int i = 0; i < kChanges; ++i) {
    for (uint64_t changes = random_() % 4; changes != 0; --changes) Change();
    directory.Update(keys_);
    ASSERT_EQ(Said(directory), Said(ReadDirectory(keys_))) << "after change " << i;
  }
  keys_.clear();
  directory.Update(keys_);
  EXPECT_EQ(Said(directory), Said(Directory()));
}

}  // namespace
}  // namespace longwire::pool
