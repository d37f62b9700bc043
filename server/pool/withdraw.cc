#include "server/pool/withdraw.h"

#include "server/pool/keys.h"
#include "server/pool/records.pb.h"

namespace longwire::pool {
namespace {

constexpr int kTries = 20;  // against the placer, who changes cap/H with each session
constexpr size_t kNumberBytes = 8;
constexpr size_t kLongestList = 400;

struct Known {
  etcd::pb::KeyValue capacity_kv, withdrawn_kv;  // without revision: not there
  Capacity capacity;
  bool joined = false;
  std::string hosts;  // all that the pool knows
};

bool Read(etcd::Client& client, const std::string& host, Known* known, std::string* sentence) {
  etcd::pb::TxnRequest read;
  etcd::pb::TxnResponse found;
  const std::string all(kCapacities);
  *read.add_success() = etcd::ReadOp(Key(kCapacities, host));
  *read.add_success() = etcd::ReadOp(Key(kWithdrawn, host));
  *read.add_success() = etcd::ReadOp(Key(kHosts, host));
  *read.add_success() = etcd::ReadOp(all, etcd::EndOfPrefix(all));
  if (!client.Txn(read, &found, sentence)) return false;
  *sentence = "etcd's answer cannot be understood";
  if (found.responses_size() != 4) return false;
  auto one = [&](int place) -> etcd::pb::KeyValue {
    const auto& range = found.responses(place).response_range();
    return range.kvs_size() == 0 ? etcd::pb::KeyValue() : range.kvs(0);
  };
  *known = Known();
  known->capacity_kv = one(0);
  known->withdrawn_kv = one(1);
  known->joined = one(2).create_revision() != 0;
  for (const etcd::pb::KeyValue& kv : found.responses(3).response_range().kvs()) {
    if (known->hosts.size() > kLongestList) {
      known->hosts += " and more (longwire status --pool)";
      break;
    }
    known->hosts += (known->hosts.empty() ? "" : ", ") + LastPart(kv.key());
  }
  return true;
}

std::string Minutes(uint64_t seconds) {
  return seconds % 60 == 0 ? std::to_string(seconds / 60) + " min" : std::to_string(seconds) + " s";
}

std::string Result(const WithdrawalWish& wish, const Known& known) {
  const std::string host = "the host '" + wish.host + "'";
  const uint32_t sessions = known.capacity.sessions();
  if (wish.service == Service::kBack && known.capacity.drained_here()) {
    return host +
           " is not taken out of service through the pool any more, but longwired there was "
           "drained "
           "by itself, and gets no new sessions: longwire admin drain --off there takes that back";
  }
  if (wish.service == Service::kBack) {
    return host + " gets new sessions again" +
           (known.joined ? "" : ", once it is back in the pool");
  }
  std::string text = host + " gets no new sessions any more; it has " + std::to_string(sessions) +
                     (sessions == 1 ? " session" : " sessions");
  if (wish.service == Service::kCordon) text += sessions == 0 ? "" : ", which go on";
  if (wish.service == Service::kDrain && wish.seconds != 0) {
    text += "; what still runs after " + Minutes(wish.seconds) + " is ended";
  } else if (wish.service == Service::kDrain && sessions != 0) {
    text += ", which go to other hosts that take them (moves_from), or end by themselves";
  }
  if (!known.joined) text += "; it is not in the pool now, and keeps to it once it is back";
  return text;
}

// Also cap/H changes: who plans on what it was before cannot place there any more. A placer of a
// version that does not know withdrawn/H finds there whether the host takes something new.
bool Write(etcd::Client& client, const WithdrawalWish& wish, const Known& known, bool* changed,
           std::string* sentence) {
  const std::string key = Key(kWithdrawn, wish.host), capacity_key = Key(kCapacities, wish.host);
  etcd::pb::TxnRequest request;
  etcd::pb::TxnResponse reply;
  *request.add_compare() = etcd::ChangedAt(capacity_key, known.capacity_kv.mod_revision());
  Capacity capacity = known.capacity;
  capacity.set_cordoned(wish.service != Service::kBack || capacity.drained_here());
  *request.add_success() = etcd::PutOp(capacity_key, Encode(capacity));
  if (wish.service == Service::kBack) {
    *request.add_success() = etcd::DeleteOp(key);
  } else {
    Withdrawal record;
    record.set_drain(wish.service == Service::kDrain);
    record.set_seconds(wish.seconds);
    record.set_by(wish.by);
    record.set_number(RandomHex(kNumberBytes));
    *sentence = "the system has no random bytes";
    if (record.number().empty()) return false;
    *request.add_success() = etcd::PutOp(key, Encode(record));
  }
  if (!client.Txn(request, &reply, sentence)) return false;
  *changed = reply.succeeded();
  return true;
}

}  // namespace

bool Withdraw(etcd::Client& client, const WithdrawalWish& wish, std::string* sentence) {
  for (int i = 0; i < kTries; ++i) {
    Known known;
    if (!Read(client, wish.host, &known, sentence)) return false;
    if (known.capacity_kv.create_revision() == 0) {
      *sentence = "the pool knows no host '" + wish.host + "'; it has " +
                  (known.hosts.empty() ? "none" : known.hosts);
      return false;
    }
    if (!Decode(known.capacity_kv.value(), &known.capacity)) {
      *sentence = Key(kCapacities, wish.host) +
                  " in etcd is no record of this version; say it to a newer longwired";
      return false;
    }
    if (wish.service == Service::kBack && known.withdrawn_kv.create_revision() == 0) {
      *sentence = "the host '" + wish.host + "' was not taken out of service through the pool" +
                  (known.capacity.cordoned() ? "; longwired there was drained by itself: longwire "
                                               "admin drain --off there takes that back"
                                             : "; nothing has changed");
      return !known.capacity.cordoned();
    }
    bool changed = false;
    if (!Write(client, wish, known, &changed, sentence)) return false;
    *sentence = Result(wish, known);
    if (changed) return true;
  }
  *sentence = "the host '" + wish.host + "' changes all the time; say it again";
  return false;
}

}  // namespace longwire::pool
