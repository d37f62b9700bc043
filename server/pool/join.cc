// How a host joins the pool: it finds out that the place is its own, writes what is so, and only
// then is there for the placer.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>
#include <sstream>

#include "base/read_write.h"
#include "base/reason.h"
#include "link/transport/log.h"
#include "server/pool/directory.h"
#include "server/pool/host.h"
#include "server/pool/keys.h"
#include "wire/descriptors.h"

namespace longwire::pool {
namespace {

using transport::Log;
using transport::LogLevel;

constexpr size_t kIdentityBytes = 16;
constexpr size_t kFileLimit = 256;
constexpr size_t kAtOnce = 30;  // claims in one transaction, as in host.cc

std::set<std::string> UuidsOf(const Capacity& capacity) {
  std::set<std::string> uuids;
  for (const Device& device : capacity.devices()) {
    if (!device.uuid().empty()) uuids.insert(device.uuid());
  }
  return uuids;
}

std::string ForgetHint(const std::string& host) {
  return "if the host that was called so is gone for good, say: longwire admin forget " + host;
}

}  // namespace

bool HostPart::ReadIdentity(std::string* sentence) {
  std::istringstream text(wire::ReadFile(options_.state_file.c_str(), kFileLimit));
  const bool whole = static_cast<bool>(text >> identity_ >> incarnation_);
  text >> written_ >> epoch_;  // not there in files of earlier versions
  following_.Read(text);
  if (whole && IsNumber(identity_)) return true;
  if (access(options_.state_file.c_str(), F_OK) == 0) {
    *sentence = options_.state_file + " does not say which host of the pool this is; remove it, " +
                "and then say: longwire admin forget " + options_.name;
    return false;
  }
  identity_ = RandomHex(kIdentityBytes);
  incarnation_ = 0;
  *sentence = "the system has no random bytes";
  return !identity_.empty() && WriteIdentity(sentence);
}

bool HostPart::WriteIdentity(std::string* sentence) const {
  const std::string text = identity_ + " " + std::to_string(incarnation_) + " " +
                           std::to_string(written_) + " " + std::to_string(epoch_) + " " +
                           following_.Text() + "\n";
  const std::string made = options_.state_file + ".new";
  wire::Descriptor file = wire::OpenFile(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  bool whole = file.valid() && base::WriteAll(file.get(), std::as_bytes(std::span(text))) &&
               fsync(file.get()) == 0 && rename(made.c_str(), options_.state_file.c_str()) == 0;
  if (!whole) *sentence = options_.state_file + " cannot be written: " + base::Reason(errno);
  return whole;
}

bool HostPart::MayJoin(const Truth& truth, const Capacity& now, std::string* sentence) {
  const std::string& name = options_.name;
  Host host;
  if (truth.host.create_revision() != 0) {
    const bool read = Decode(truth.host.value(), &host);
    *sentence = "another longwired is in the pool as '" + name + "', at " +
                (read ? host.address() : "an address that cannot be read") +
                "; give this one another pool.host, or wait until that one has left";
    // Its own, from before a restart: it goes when its lease ends.
    if (read && host.identity() == identity_) {
      *sentence = "the entry of the longwired before this one is still there; it ends in seconds";
    }
    return false;
  }
  if (truth.capacity_kv.create_revision() == 0) return true;
  const std::set<std::string> before = UuidsOf(truth.capacity), here = UuidsOf(now);
  const bool other_devices =
      !before.empty() &&
      std::ranges::none_of(before, [&](const std::string& uuid) { return here.contains(uuid); });
  if (truth.capacity.identity() == identity_ && !other_devices) return true;
  *sentence = "the pool knows '" + name + "' as another host" +
              (other_devices ? ", with other devices" : "") +
              "; give this one another pool.host, or, " + ForgetHint(name);
  return false;
}

Claims HostPart::Living() {
  Claims living = facts_.Running();
  base::MutexLock lock(mutex_);
  for (const auto& [number, known] : known_) {
    // One that is being opened, or whose memory is not back yet, is kept as etcd has it.
    if (known.state == State::kSeen) continue;
    Claim& claim = living[number];
    auto alone = alone_.find(number);
    if (alone != alone_.end()) claim = alone->second;
  }
  return living;
}

// Claims in etcd become those of what lives here, a few at a time; after each step cap/H is their
// sum. Nobody else writes them: without host/H nothing is placed here.
bool HostPart::Reconcile(Truth* truth, Capacity now, std::string* sentence) {
  const std::string key = Key(kCapacities, options_.name);
  DropGone();                                        // reading etcd may have taken long
  const std::set<std::string> moving = Unsettled();  // first: one that settles now is in Living
  const Claims living = Living();
  Claims wanted;
  for (const auto& [number, claim] : living) {
    auto found = truth->claims.find(number);
    const bool known = found != truth->claims.end();
    if (!known && claim.devices_size() == 0) continue;
    Claim& kept = wanted[number] = known ? found->second : claim;
    kept.set_incarnation(incarnation_);
    if (claim.devices_size() == 0) continue;
    kept.set_state(OPEN);
    // It may have moved since that was written; while it moves it keeps what it has there.
    if (!moving.contains(number)) *kept.mutable_devices() = claim.devices();
  }
  // Those that go are first: their room may be others' by now.
  std::vector<std::string> numbers;
  for (const auto& [number, claim] : truth->claims) {
    if (!wanted.contains(number)) numbers.push_back(number);
  }
  for (const auto& [number, claim] : wanted) numbers.push_back(number);
  auto next = numbers.begin();
  do {
    etcd::pb::TxnRequest request;
    etcd::pb::TxnResponse reply;
    *request.add_compare() = etcd::ChangedAt(key, truth->capacity_kv.mod_revision());
    *request.add_compare() = etcd::Absent(Key(kHosts, options_.name));
    for (size_t i = 0; i < kAtOnce && next != numbers.end(); ++i, ++next) {
      const std::string claim_key = Key(kClaims, options_.name, *next);
      auto kept = wanted.find(*next);
      if (kept == wanted.end()) {
        truth->claims.erase(*next);
        *request.add_success() = etcd::DeleteOp(claim_key);
        *request.add_success() = etcd::DeleteOp(Key(kSessions, *next));
        continue;
      }
      Owner owner;
      owner.set_host(options_.name);
      owner.set_generation(1);
      truth->claims[*next] = kept->second;
      *request.add_success() = etcd::PutOp(claim_key, Encode(kept->second));
      *request.add_success() = etcd::PutOp(Key(kSessions, *next), Encode(owner));
    }
    Rewrite(truth->claims, &now);
    *request.add_success() = etcd::PutOp(key, Encode(now));
    if (!client_.Txn(request, &reply, sentence)) return false;
    *sentence = "somebody else writes " + key + " in etcd";
    if (!reply.succeeded()) return false;
    truth->capacity_kv.set_mod_revision(reply.header().revision());
  } while (next != numbers.end());
  truth->capacity = now;
  base::MutexLock lock(mutex_);
  for (const auto& [number, claim] : wanted) {
    Known& known = known_[number];
    if (known.state == State::kSeen) known.state = State::kOpen;
    known.written = claim.state() == OPEN;
    alone_.erase(number);
  }
  std::erase_if(known_, [&](const auto& one) {
    return one.second.state == State::kSeen && !wanted.contains(one.first);
  });
  return true;
}

// A device belongs to one host of the pool: two daemons on one GPU would both promise its memory.
bool HostPart::ClaimDevices(const Capacity& now, etcd::pb::TxnRequest* request,
                            std::string* sentence) {
  const std::string mine = options_.name + " " + identity_;
  for (const Device& device : now.devices()) {
    // The software device's are the same everywhere; they are named after the host.
    if (device.uuid().empty() || device.uuid().starts_with(options_.name)) continue;
    const std::string key = Key(kDevices, device.uuid());
    etcd::pb::RangeRequest read;
    etcd::pb::RangeResponse found;
    read.set_key(key);
    if (!client_.Range(read, &found, sentence)) return false;
    if (found.kvs_size() != 0 && found.kvs(0).value() != mine) {
      const std::string other = found.kvs(0).value().substr(0, found.kvs(0).value().find(' '));
      *sentence = "device " + device.uuid() + " belongs to the host '" + other + "' of the pool; " +
                  ForgetHint(other);
      return false;
    }
    *request->add_compare() =
        etcd::ChangedAt(key, found.kvs_size() == 0 ? 0 : found.kvs(0).mod_revision());
    *request->add_success() = etcd::PutOp(key, mine);
  }
  return true;
}

// A store that is behind what this host has seen was restored. Who sees it first counts the epoch
// up; nothing is placed until each host has joined in it, and has written what is so.
bool HostPart::EnterEpoch(const Truth& truth, std::string* sentence) {
  const uint64_t back = client_.went_back();
  const bool restored = back != went_back_ || truth.capacity.incarnation() < written_;
  if (truth.epoch > epoch_ || !restored) {
    went_back_ = back;
    // An older one than before without a sign of it: that is one.
    if (truth.epoch >= epoch_) {
      epoch_ = truth.epoch;
      return true;
    }
  }
  const std::string key(kEpoch);
  etcd::pb::TxnRequest request;
  etcd::pb::TxnResponse reply;
  *request.add_compare() = etcd::ChangedAt(key, truth.epoch_kv.mod_revision());
  *request.add_success() = etcd::PutOp(key, std::to_string(epoch_ + 1));
  if (!client_.Txn(request, &reply, sentence)) return false;
  *sentence = "another host has just seen that etcd was restored";
  if (!reply.succeeded()) return false;
  Log(LogLevel::kWarning,
      "etcd was restored from an older copy: nothing is placed until all hosts have joined anew");
  ++epoch_;
  went_back_ = back;
  return true;
}

// As this host's own words.
void HostPart::Sign(Capacity* now) {
  now->set_identity(identity_);
  now->set_incarnation(incarnation_);
  now->set_epoch(epoch_);
  now->set_format(kUsualFormat);
  now->set_drained_here(now->cordoned());
  now->set_cordoned(now->cordoned() || following_.withdrawn());
}

bool HostPart::Join(std::string* sentence) {
  const int64_t lease = lease_.id();
  Truth truth;
  Capacity now;
  if (!facts_.Describe(&now, sentence) || !Read(&truth, sentence)) return false;
  // An answer that was lost, or a check that found fault: its own entry goes, then it joins anew.
  if (truth.host.create_revision() != 0 && truth.host.lease() == lease) {
    etcd::pb::DeleteRangeRequest request;
    etcd::pb::DeleteRangeResponse reply;
    request.set_key(Key(kHosts, options_.name));
    if (!client_.Delete(request, &reply, sentence) || !Read(&truth, sentence)) return false;
  }
  if (!MayJoin(truth, now, sentence)) return false;
  etcd::pb::RangeRequest read;
  etcd::pb::RangeResponse format;
  read.set_key(std::string(kFormat));
  if (!client_.Range(read, &format, sentence)) return false;
  if (format.kvs_size() != 0 && format.kvs(0).value() != kFormatNow) {
    *sentence = "the pool's keys in etcd are of format " + format.kvs(0).value() +
                ", which this longwired does not know; upgrade it";
    return false;
  }
  if (!EnterEpoch(truth, sentence)) return false;
  incarnation_ = std::max<uint64_t>(incarnation_, truth.capacity.incarnation()) + 1;
  if (!WriteIdentity(sentence)) return false;
  Sign(&now);
  etcd::pb::TxnRequest request;
  etcd::pb::TxnResponse reply;
  if (!ClaimDevices(now, &request, sentence) || !Reconcile(&truth, now, sentence)) return false;
  Host host;
  host.set_address(options_.address);
  host.set_version(options_.version);
  host.set_identity(identity_);
  host.set_incarnation(incarnation_);
  host.set_format(kUsualFormat);
  host.set_gives_alone(true);
  host.set_oldest_protocol(options_.oldest_protocol);
  host.set_newest_protocol(options_.newest_protocol);
  host.mutable_labels()->insert(options_.labels.begin(), options_.labels.end());
  *request.add_compare() =
      etcd::ChangedAt(Key(kCapacities, options_.name), truth.capacity_kv.mod_revision());
  *request.add_compare() = etcd::Absent(Key(kHosts, options_.name));
  *request.add_success() = etcd::PutOp(Key(kHosts, options_.name), Encode(host), lease);
  *request.add_success() = etcd::PutOp(std::string(kFormat), std::string(kFormatNow));
  if (!client_.Txn(request, &reply, sentence)) return false;
  *sentence = "another longwired has just joined the pool as '" + options_.name + "'";
  if (!reply.succeeded()) return false;
  joined_lease_ = lease;
  written_ = incarnation_;
  if (!WriteIdentity(sentence)) return false;
  load_written_.clear();
  warm_written_.clear();
  Log(LogLevel::kInfo, "in the pool as '" + options_.name + "', incarnation " +
                           std::to_string(incarnation_) + ", with " +
                           std::to_string(truth.claims.size()) + " sessions");
  base::MutexLock lock(mutex_);
  joined_ = !stop_;
  joined_as_ = incarnation_;
  outside_.clear();
  wake_.NotifyAll();
  return true;
}

}  // namespace longwire::pool
