#include "server/pool/parts.h"

#include <algorithm>
#include <cerrno>

#include "base/reason.h"
#include "base/start_thread.h"
#include "server/pool/keys.h"

namespace longwire::pool {
namespace {

// How soon it is noticed that a session waits for more.
constexpr std::chrono::milliseconds kLook{30};
// Parts grow by steps, so that not each allocation asks etcd: a sixty-fourth of the limit.
constexpr uint64_t kStepParts = 64;
constexpr uint64_t kLeastStep = uint64_t{1} << 30;
constexpr uint64_t kGranularity = uint64_t{2} << 20;  // of limits
// What nobody has needed for so long is given back without being asked for.
constexpr std::chrono::seconds kIdle{20};

uint64_t RoundUp(uint64_t bytes, uint64_t step) { return (bytes + step - 1) / step * step; }

TenantLimits WithMemory(TenantLimits limits) {
  std::erase_if(limits, [](const auto& one) { return one.second.memory == 0; });
  return limits;
}

}  // namespace

PartsPart::PartsPart(etcd::Client& client, MemoryFacts& facts, std::string host,
                     TenantLimits limits, std::function<bool()> may)
    : client_(client),
      facts_(facts),
      host_(std::move(host)),
      limits_(WithMemory(std::move(limits))),
      may_(std::move(may)),
      mirror_(client, std::string(kTenants), nullptr) {}

bool PartsPart::Start(std::string* sentence) {
  if (limits_.empty()) return true;
  if (!mirror_.Start(sentence)) return false;
  if (base::StartThread(&thread_, [this] { Loop(); })) return true;
  *sentence = base::ReasonOfNoThread(errno);
  return false;
}

void PartsPart::Stop() {
  stop_.store(true);
  if (thread_.joinable()) thread_.join();
  mirror_.Stop();
}

void PartsPart::Loop() {
  while (!stop_.load()) {
    Step();
    std::this_thread::sleep_for(kLook);
  }
}

void PartsPart::Step() {
  std::map<std::string, TenantMemory> memory;
  if (!facts_.Memory(&memory)) return;
  etcd::Mirror::Keys keys;
  const bool read = mirror_.Get(&keys);
  for (const auto& [tenant, limit] : limits_) {
    Held& held = held_[tenant];
    if (read && may_()) {
      Tend(tenant, Look(keys, tenant), memory[tenant], &held);
    } else {
      facts_.SetPart(tenant, {held.bytes, held.bytes, 0});
    }
  }
}

PartsPart::Seen PartsPart::Look(const etcd::Mirror::Keys& keys, const std::string& tenant) const {
  Seen seen;
  const std::string key = Key(kTenants, tenant);
  auto record = keys.find(key);
  if (record != keys.end() && Decode(record->second.value(), &seen.tenant)) {
    seen.changed = record->second.mod_revision();
  }
  for (auto one = keys.lower_bound(key + "/"); one != keys.end(); ++one) {
    if (!one->first.starts_with(key + "/")) break;
    Part part;
    if (!Decode(one->second.value(), &part)) continue;
    if (LastPart(one->first) == host_) {
      seen.own = part;
    } else {
      seen.others_lack |= part.lacks() != 0;
    }
  }
  return seen;
}

// What the part should be.
uint64_t PartsPart::Goal(const std::string& tenant, const Seen& seen, const TenantMemory& memory,
                         Held* held) const {
  const uint64_t step =
      std::max(kLeastStep, RoundUp(limits_.at(tenant).memory / kStepParts, kGranularity));
  const uint64_t part = seen.own.bytes();
  const uint64_t need = RoundUp(std::max(memory.used, memory.wanted), kGranularity);
  if (need > part) return std::max(need, std::min(RoundUp(need, step), seen.tenant.memory()));
  if (need == part || need + step > part) held->used = Clock::now();
  const bool idle = Clock::now() - held->used > kIdle;
  return seen.others_lack || idle ? need : part;
}

void PartsPart::Tend(const std::string& tenant, const Seen& at, TenantMemory memory, Held* held) {
  Seen seen = at;
  std::string sentence;
  // Without a record of the tenant its placer has not said what the limit is.
  if (seen.changed == 0) return;
  if (held->uncertain) {
    // A change of its revision, after which what was not answered cannot be made any more.
    if (!Write(tenant, seen.tenant, seen.own, seen.changed, held)) return;
    held->uncertain = false;
    return;
  }
  // More is lent than etcd knows of: it was restored from an older copy, or the host forgotten.
  if (seen.own.bytes() < memory.used) {
    (void)Change(tenant, &seen, RoundUp(memory.used, kGranularity), 0, held);
    return;
  }
  uint64_t goal = Goal(tenant, seen, memory, held);
  const uint64_t others = seen.tenant.parts() - std::min(seen.tenant.parts(), seen.own.bytes());
  const uint64_t left = seen.tenant.memory() - std::min(seen.tenant.memory(), others);
  uint64_t lacks = 0;
  if (goal > seen.own.bytes()) {
    const uint64_t need = std::max(memory.used, memory.wanted);
    // Beyond the whole limit nobody can give back enough.
    if (need > left && need <= seen.tenant.memory()) lacks = need - left;
    goal = std::max(seen.own.bytes(), std::min(goal, left));
  }
  if (goal != seen.own.bytes() || (lacks != 0) != (seen.own.lacks() != 0)) {
    if (!Change(tenant, &seen, goal, lacks, held)) return;
  } else {
    held->bytes = seen.own.bytes();
  }
  const uint64_t parts = seen.tenant.parts();
  facts_.SetPart(tenant, {held->bytes, std::max(held->bytes, seen.tenant.memory()),
                          seen.tenant.memory() - std::min(seen.tenant.memory(), parts)});
}

bool PartsPart::Change(const std::string& tenant, Seen* seen, uint64_t bytes, uint64_t lacks,
                       Held* held) {
  const uint64_t before = seen->own.bytes();
  if (bytes < before) {
    held->bytes = bytes;
    facts_.SetPart(tenant, {bytes, bytes, 0});
    // Whoever was faster has it: then the part stays what is needed.
    std::map<std::string, TenantMemory> memory;
    if (!facts_.Memory(&memory)) return false;
    const uint64_t used = RoundUp(memory[tenant].used, kGranularity);
    if (used > bytes) return false;
  }
  Tenant& record = seen->tenant;
  record.set_parts(record.parts() - std::min(record.parts(), before) + bytes);
  seen->own.set_bytes(bytes);
  seen->own.set_lacks(lacks);
  seen->own.set_asked(seen->own.asked() + (lacks != 0 ? 1 : 0));
  if (!Write(tenant, record, seen->own, seen->changed, held)) return false;
  held->bytes = bytes;
  if (bytes >= before) held->used = Clock::now();
  return true;
}

bool PartsPart::Write(const std::string& tenant, const Tenant& record, const Part& part,
                      int64_t changed, Held* held) {
  const std::string key = Key(kTenants, tenant);
  etcd::pb::TxnRequest request;
  etcd::pb::TxnResponse reply;
  std::string sentence;
  *request.add_compare() = etcd::ChangedAt(key, changed);
  *request.add_success() = etcd::PutOp(key, Encode(record));
  *request.add_success() = etcd::PutOp(Key(kTenants, tenant, host_), Encode(part));
  if (!client_.Txn(request, &reply, &sentence)) {
    held->uncertain = true;
    return false;
  }
  if (!reply.succeeded()) {
    (void)mirror_.Refresh(&sentence);  // it was behind
    return false;
  }
  mirror_.Apply(request, reply.header().revision());
  return true;
}

}  // namespace longwire::pool
