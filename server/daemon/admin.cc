#include "server/daemon/admin.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "base/printable.h"
#include "base/reason.h"
#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/daemon/access/withdrawn.h"
#include "server/daemon/pool/pool.h"
#include "wire/duration.h"
#include "wire/guards.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

constexpr size_t kLongestHost = 256;

std::string NameOf(const Peer& peer) {
  return peer.identity.empty() ? peer.address : peer.identity + " (" + peer.address + ")";
}

transport::AdminReply Refuse(const std::string& sentence) {
  transport::AdminReply reply;
  reply.add_sentences(sentence);
  return reply;
}

// The log says who did it.
transport::AdminReply Done(const std::string& who, const std::string& sentence) {
  Log(LogLevel::kInfo, sentence + ", for " + who);
  transport::AdminReply reply;
  reply.set_done(true);
  reply.add_sentences(sentence);
  return reply;
}

std::string Sessions(size_t count) {
  return std::to_string(count) + (count == 1 ? " session" : " sessions");
}

}  // namespace

bool MayAdminister(const Peer& peer, std::string* sentence) {
  if (wire::GuardIsOff("admin")) return true;
  if (peer.uid && (*peer.uid == geteuid() || *peer.uid == 0)) return true;
  if (peer.refused()) {
    *sentence = peer.refusal;
    return false;
  }
  if (peer.tenant->admin()) return true;
  *sentence =
      "only an administrator may do that: on the server's host root, the server's own user and "
      "members of its admin_group, who need no --server; elsewhere a member of a tenant with "
      "admin: true. " +
      NameOf(peer) + " of the tenant '" + peer.tenant->name() + "' is none";
  return false;
}

transport::AdminReply Admin::Handle(const Peer& peer, const transport::AdminRequest& request) {
  std::string sentence;
  if (!MayAdminister(peer, &sentence)) {
    Log(LogLevel::kWarning, peer.subject(),
        "administration by " + NameOf(peer) + " was refused: " + sentence);
    return Refuse(sentence);
  }
  return Execute(NameOf(peer), request);
}

transport::AdminReply Admin::Execute(const std::string& who,
                                     const transport::AdminRequest& request) {
  switch (request.request_case()) {
    case transport::AdminRequest::kReload:
      break;
    case transport::AdminRequest::kKill:
      return Kill(who, request.kill().session());
    case transport::AdminRequest::kEvict:
      return Evict(who, request.evict().name());
    case transport::AdminRequest::kPolicy:
      return ChangePolicy(who, request.policy());
    case transport::AdminRequest::kDrain:
      if (!request.drain().to().empty()) return DrainTo(who, request.drain().to());
      if (!request.drain().has_device()) return Drain(who, request.drain().off());
      if (!request.drain().off()) return DrainDevice(who, request.drain().device());
      return Cordon(who, request.drain().device(), true);
    case transport::AdminRequest::kForget:
      return Forget(who, request.forget().host());
    case transport::AdminRequest::kWithdraw:
      return Withdraw(who, request.withdraw());
    case transport::AdminRequest::kCordon:
      return Cordon(who, request.cordon().device(), request.cordon().off());
    case transport::AdminRequest::kMigrate:
      return Migrate(who, request.migrate());
    case transport::AdminRequest::kCheckpoint:
      return Checkpoint(who, request.checkpoint().session(), request.checkpoint().file());
    case transport::AdminRequest::kRestore:
      return Restore(who, request.restore());
    default:
      return Refuse("this longwired (" LONGWIRE_VERSION
                    ") does not know what it is asked for; upgrade it");
  }
  Reloader::Outcome outcome = reload_(who);
  transport::AdminReply reply;
  reply.set_done(outcome.done);
  for (const std::string& said : outcome.sentences) reply.add_sentences(said);
  if (outcome.done) AddPolicies(&reply);
  return reply;
}

// What the configuration keeps a policy from being asked about; empty: nothing.
static std::string NotAsked(const policy::Program& program, const config::Config& config) {
  std::string sentence;
  if (program.IsAskedBy(policy::Asker::kKeepers) && config.memory().swap_host_memory() == 0) {
    sentence = "its hooks of memory are not asked: no memory is swapped (memory.swap_host_memory)";
  }
  if (program.IsAskedBy(policy::Asker::kScheduler) && !config.scheduler().enabled()) {
    sentence += sentence.empty() ? "" : "; and ";
    sentence += "its hooks of turns are not asked: the scheduler is off (scheduler.enabled)";
  }
  return sentence;
}

// Policies that do not decide although the configuration is in force.
void Admin::AddPolicies(transport::AdminReply* reply) {
  for (const auto& [name, program] : table_.policies().Programs()) {
    const std::string policy = "the policy '" + name + "' ";
    std::string sentence;
    if (!AwaitTakers(*program, table_.TakersOfPolicies(), kTakersPatience, &sentence)) {
      reply->add_sentences(policy + "is unloaded: " + sentence + ". What is built in decides");
    } else if (!sentence.empty()) {
      reply->add_sentences(policy + "decides now, but " + sentence);
    }
  }
}

transport::AdminReply Admin::Kill(const std::string& who, uint64_t id) {
  auto session = table_.Find(id);
  if (session == nullptr &&
      table_.EndSuspended(id, "the server's administrator ended this session")) {
    return Done(who, "session " + std::to_string(id) + ", which was suspended, has been ended");
  }
  if (session == nullptr) {
    return Refuse("there is no session " + std::to_string(id) +
                  "; longwire admin sessions lists them");
  }
  table_.End(session, {static_cast<uint32_t>(transport::kLaunchFailed),
                       "the server's administrator ended this session"});
  return Done(who, "session " + std::to_string(id) + " of '" + session->client().peer.identity +
                       "' has been ended");
}

transport::AdminReply Admin::Migrate(const std::string& who,
                                     const transport::MigrateRequest& asked) {
  std::string sentence;
  if (asked.to().empty()) {
    return table_.Move(asked.session(), asked.device(), &sentence) ? Done(who, sentence)
                                                                   : Refuse(sentence);
  }
  ServerPlace to{base::Printable(asked.to()), std::nullopt};
  if (asked.has_device_there()) to.device = asked.device_there();
  return table_.HandOver(asked.session(), to, &sentence) ? Done(who, sentence) : Refuse(sentence);
}

transport::AdminReply Admin::Checkpoint(const std::string& who, uint64_t id,
                                        const std::string& file) {
  std::string sentence;
  if (file.starts_with(kOwnFiles)) {
    return Refuse("files whose names begin with " + kOwnFiles +
                  " are those of programs that suspend themselves; choose another name");
  }
  return table_.Suspend(id, file, &sentence) ? Done(who, sentence) : Refuse(sentence);
}

transport::AdminReply Admin::Restore(const std::string& who,
                                     const transport::RestoreRequest& request) {
  std::optional<int32_t> device;
  if (request.has_device()) device = request.device();
  std::string sentence;
  return table_.Restore(request.file(), device, &sentence) ? Done(who, sentence) : Refuse(sentence);
}

transport::AdminReply Admin::Evict(const std::string& who, const std::string& name) {
  std::optional<size_t> ended = removals_.Evict(name);
  if (!ended) return Refuse("there is no tenant and no identity '" + name + "'");
  return Done(who, Sessions(*ended) + " of '" + name + "' ended");
}

transport::AdminReply Admin::Forget(const std::string& who, const std::string& host) {
  if (pool_ == nullptr) return Refuse("this server is not in a pool; ask one that is");
  std::string sentence;
  return pool_->Forget(host, &sentence) ? Done(who, sentence) : Refuse(sentence);
}

// Done only when everybody who shall ask it has it, and nobody has ended it.
transport::AdminReply Admin::LoadPolicy(const std::string& who, const std::string& name,
                                        std::span<const std::byte> object) {
  std::string sentence;
  std::shared_ptr<policy::Program> program;
  if (!table_.policies().Load(name, object, &sentence, &program)) return Refuse(sentence);
  const std::string policy = "the policy '" + name + "' ";
  if (!AwaitTakers(*program, table_.TakersOfPolicies(), kTakersPatience, &sentence)) {
    return Refuse(policy + "was unloaded as soon as it was loaded: " + sentence +
                  ". What is built in decides");
  }
  if (const std::string more = NotAsked(*program, *table_.config()); !more.empty()) {
    sentence += (sentence.empty() ? "" : "; and ") + more;
  }
  return Done(who, policy + "decides now" + (sentence.empty() ? "" : ", but " + sentence));
}

transport::AdminReply Admin::UnloadPolicy(const std::string& who, const std::string& name) {
  std::string sentence;
  std::shared_ptr<policy::Program> program;
  if (!table_.policies().Unload(name, &sentence, &program)) return Refuse(sentence);
  AwaitLeavers(*program, table_.TakersOfPolicies(), kTakersPatience, &sentence);
  return Done(who, "the policy '" + name + "' is unloaded; what is built in decides" +
                       (sentence.empty() ? "" : ", but " + sentence));
}

transport::AdminReply Admin::ChangePolicy(const std::string& who,
                                          const transport::PolicyRequest& request) {
  Policies& policies = table_.policies();
  const std::string& name = request.name();
  std::string sentence;
  switch (request.request_case()) {
    case transport::PolicyRequest::kLoad: {
      const auto object = std::as_bytes(std::span(request.load()));
      return LoadPolicy(who, name, object);
    }
    case transport::PolicyRequest::kUnload:
      return UnloadPolicy(who, name);
    case transport::PolicyRequest::kSet: {
      const transport::PolicyValueRequest& set = request.set();
      if (!policies.SetValue(name, set.map(), set.key(), set.value(), &sentence)) {
        return Refuse(sentence);
      }
      return Done(who, "in the map '" + set.map() + "' of the policy '" + name + "' " + set.key() +
                           " has the value " + std::to_string(set.value()));
    }
    default:
      return Refuse("this longwired (" LONGWIRE_VERSION
                    ") does not know what is to be done with a policy; upgrade it");
  }
}

transport::AdminReply Admin::Withdraw(const std::string& who,
                                      const transport::WithdrawRequest& asked) {
  using Kind = transport::WithdrawRequest;
  const std::string host = base::Printable(asked.host()).substr(0, kLongestHost);
  if (pool_ == nullptr) {
    return Refuse("this server is not in a pool, so it knows no host '" + host +
                  "'; ask one that is. longwire admin drain without a name drains this server");
  }
  pool::WithdrawalWish wish{asked.host(), pool::Service::kCordon, 0, who};
  if (asked.kind() == Kind::DRAIN) {
    wish.service = pool::Service::kDrain;
    wish.seconds = std::min<uint64_t>(asked.seconds(), wire::kLongestWaitSeconds);
  } else if (asked.kind() == Kind::BACK) {
    wish.service = pool::Service::kBack;
  } else if (asked.kind() != Kind::CORDON) {
    return Refuse("this longwired (" LONGWIRE_VERSION
                  ") does not know what shall be done with the host; upgrade it");
  }
  std::string sentence;
  return pool_->Withdraw(wish, &sentence) ? Done(who, sentence) : Refuse(sentence);
}

transport::AdminReply Admin::DoneWithdrawing(const std::string& who, std::string sentence) {
  const std::string path = WithdrawnPath(table_.config()->warden());
  if (!WriteWithdrawn(path, {table_.draining(), table_.placements().Cordoned()})) {
    sentence += "; a restart of longwired forgets it, for " + path +
                " cannot be written: " + base::Reason(errno);
  }
  return Done(who, sentence);
}

transport::AdminReply Admin::Drain(const std::string& who, bool off) {
  base::MutexLock lock(withdrawing_);
  table_.SetDraining(!off);
  if (off && pool_ != nullptr && pool_->withdrawn()) {
    return DoneWithdrawing(
        who,
        "this server by itself would open new sessions again; its host was taken "
        "out of service in the pool, too: longwire admin uncordon HOST");
  }
  if (off) return DoneWithdrawing(who, "new sessions are opened again");
  return DoneWithdrawing(who, "no new sessions are opened any more; running now: " +
                                  std::to_string(table_.List().size()));
}

transport::AdminReply Admin::DrainTo(const std::string& who, const std::string& server) {
  transport::AdminReply reply = Drain(who, false);
  if (!reply.done()) return reply;
  std::vector<std::string> sentences;
  reply.set_done(table_.HandOverAll(base::Printable(server), &sentences));
  for (const std::string& sentence : sentences) reply.add_sentences(sentence);
  return reply;
}

transport::AdminReply Admin::DrainDevice(const std::string& who, int32_t device) {
  transport::AdminReply reply = Cordon(who, device, false);
  if (!reply.done()) return reply;
  for (const std::string& sentence : table_.MoveAwayFrom(device)) reply.add_sentences(sentence);
  return reply;
}

transport::AdminReply Admin::Cordon(const std::string& who, int32_t device, bool off) {
  std::string sentence;
  auto stats = table_.warden().GetStats(&sentence);
  if (!stats) return Refuse(sentence);
  bool served = std::ranges::any_of(
      stats->devices, [&](const warden::DeviceStats& one) { return one.device == device; });
  if (!served) return Refuse("the server has no device " + std::to_string(device));
  base::MutexLock lock(withdrawing_);
  table_.placements().Cordon(device, !off);
  return DoneWithdrawing(who,
                         "device " + std::to_string(device) +
                             (off ? " gets new sessions again"
                                  : " gets no new sessions any more; those that it has go on"));
}

}  // namespace longwire::daemon
