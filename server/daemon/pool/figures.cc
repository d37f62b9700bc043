// The pool for people: longwire status --pool, longwire pool explain.
#include <algorithm>
#include <chrono>
#include <map>

#include "base/printable.h"
#include "server/daemon/inspect.h"
#include "server/daemon/pool/pool.h"
#include "server/pool/directory.h"
#include "server/pool/keys.h"

namespace longwire::daemon {
namespace {

void FillHost(const std::string& name, const pool::HostEntry& entry, transport::PoolHost* out) {
  const pool::Capacity& capacity = entry.capacity;
  out->set_name(name);
  out->set_joined(entry.host_created != 0);
  if (out->joined()) out->set_address(entry.host.address());
  if (out->joined()) out->set_version(entry.host.version());
  out->set_cordoned(capacity.cordoned() || entry.withdrawn);
  out->set_sessions(capacity.sessions());
  out->set_sessions_limit(capacity.sessions_limit());
  out->set_unknown(base::Printable(entry.unknown()));
  out->set_oldest_protocol(entry.host.oldest_protocol());
  out->set_gives_alone(entry.host.gives_alone());
  out->set_newest_protocol(entry.host.newest_protocol());
  if (entry.withdrawn) {
    transport::PoolWithdrawal& told = *out->mutable_withdrawn();
    told.set_drain(entry.withdrawn->drain());
    told.set_seconds(entry.withdrawn->seconds());
    told.set_by(base::Printable(entry.withdrawn->by()));
    told.set_heard(entry.load.withdrawal() == entry.withdrawn->number());
    if (told.heard()) told.set_left(entry.load.drain_left());
  }
  const std::map<std::string, std::string> labels(entry.host.labels().begin(),
                                                  entry.host.labels().end());
  for (const auto& [label, value] : labels) out->add_labels(label + "=" + value);
  for (const pool::Device& device : capacity.devices()) {
    transport::PoolDevice& to = *out->add_devices();
    to.set_ordinal(device.ordinal());
    to.set_name(device.name());
    to.set_total(device.total());
    to.set_promised(device.bytes());
    to.set_sessions(device.sessions());
    to.set_cordoned(device.cordoned());
    to.set_alone(device.alone());
    for (const pool::Load::Of& load : entry.load.devices()) {
      if (load.ordinal() == device.ordinal()) to.set_busy(load.busy());
    }
  }
}

void FillWaiter(const pool::Waiter& waiter, const pool::Directory& directory,
                transport::PoolWaiter* out) {
  out->set_number(waiter.number);
  out->set_front(waiter.front);
  out->set_tenant(waiter.request.tenant());
  out->set_identity(waiter.request.identity());
  out->set_program(waiter.request.program());
  out->set_devices(waiter.request.devices());
  out->set_bytes(waiter.request.bytes());
  out->set_hosts(1 + static_cast<uint32_t>(waiter.request.further_hashes_size()));
  out->set_priority(waiter.request.priority());
  const std::map<std::string, std::string> labels(waiter.request.labels().begin(),
                                                  waiter.request.labels().end());
  for (const auto& [label, value] : labels) out->add_labels(label + "=" + value);
  auto found = directory.answers.find(pool::Key(pool::kAnswers, waiter.front, waiter.number));
  pool::Answer answer;
  if (found == directory.answers.end() || !pool::Decode(found->second, &answer)) return;
  out->set_place(answer.place());
  out->set_reason(answer.reason());
  // By the calendars of two hosts: it is for people, and never less than nothing.
  const auto now = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(
                                             std::chrono::system_clock::now().time_since_epoch())
                                             .count());
  if (answer.since() != 0) out->set_waited(now - std::min(now, answer.since()));
}

}  // namespace

void Pool::Inspect(bool all, const std::string& tenant, transport::PoolFigures* figures) {
  std::string sentence;
  figures->set_host(config_.host());
  figures->set_joined(host_->joined(&sentence));
  figures->set_problem(sentence);
  figures->set_placed(placed());
  const std::shared_ptr<const pool::Directory> read = reader_->Read(&sentence);
  if (read == nullptr) {
    figures->set_problem(sentence);
    return;
  }
  const pool::Directory& directory = *read;
  figures->set_placer(directory.placer);
  for (const auto& [name, entry] : directory.hosts) {
    transport::PoolHost& host = *figures->add_hosts();
    FillHost(name, entry, &host);
    if (!all && host.has_withdrawn()) host.mutable_withdrawn()->clear_by();
  }
  for (const auto& [key, waiter] : directory.waiters) {
    if (!all && waiter.request.tenant() != tenant) continue;
    FillWaiter(waiter, directory, figures->add_waiting());
  }
}

void Pool::DescribeWithdrawal(bool all, transport::Daemon* daemon) const {
  uint64_t left = 0;
  const auto told = host_->withdrawal(&left);
  if (!told) return;
  transport::PoolWithdrawal& to = *daemon->mutable_withdrawn();
  to.set_drain(told->drain());
  to.set_seconds(told->seconds());
  if (all) to.set_by(base::Printable(told->by()));
  to.set_left(left);
  to.set_heard(true);
}

void InspectWithdrawal(const Pool* pool, bool all, transport::InspectReply* reply) {
  if (pool != nullptr) pool->DescribeWithdrawal(all, reply->mutable_daemon());
}

void InspectPool(Pool* pool, bool all, const std::string& tenant, transport::InspectReply* reply) {
  if (pool != nullptr) pool->Inspect(all, tenant, reply->mutable_pool());
}

}  // namespace longwire::daemon
