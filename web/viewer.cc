#include "web/viewer.h"

namespace longwire::web {
namespace {

using std::chrono::steady_clock;

// A page asks every second; who is removed or moved sees no more after this.
constexpr std::chrono::seconds kGood{2};
constexpr size_t kMaxAnswers = 256;

template <class List, class Keep>
void KeepOnly(List* list, Keep keep) {
  auto rest =
      std::remove_if(list->begin(), list->end(), [&](const auto& one) { return !keep(one); });
  list->erase(rest, list->end());
}

}  // namespace

transport::InspectReply Seen(const transport::InspectReply& reply, const Viewer& viewer) {
  transport::InspectReply seen = reply;
  if (viewer.admin) return seen;
  KeepOnly(seen.mutable_sessions(), [&](const auto& one) { return viewer.MaySee(one.tenant()); });
  KeepOnly(seen.mutable_tenants(), [&](const auto& one) { return viewer.MaySee(one.name()); });
  if (seen.has_pool()) {
    KeepOnly(seen.mutable_pool()->mutable_waiting(),
             [&](const auto& one) { return viewer.MaySee(one.tenant()); });
    for (auto& host : *seen.mutable_pool()->mutable_hosts()) {
      if (host.has_withdrawn()) host.mutable_withdrawn()->clear_by();
    }
  }
  seen.clear_identities();
  seen.clear_calls();
  seen.clear_latencies();
  seen.mutable_daemon()->clear_admission();
  seen.mutable_daemon()->clear_module_cache();
  return seen;
}

Viewers::Verdict Viewers::Find(const std::string& chain, Viewer* viewer, std::string* sentence) {
  transport::WhoReply who;
  bool known = false;
  {
    base::MutexLock lock(mutex_);
    auto found = answers_.find(chain);
    if (found != answers_.end() && steady_clock::now() < found->second.time + kGood) {
      who = found->second.reply;
      known = true;
    }
  }
  if (!known) {
    transport::ControlRequest request;
    request.mutable_who()->set_certificates(chain);
    transport::ControlReply reply;
    if (!daemon_.Ask(std::move(request), &reply, sentence)) return Verdict::kUnanswered;
    who = reply.who();
    base::MutexLock lock(mutex_);
    std::erase_if(answers_,
                  [](const auto& one) { return steady_clock::now() >= one.second.time + kGood; });
    if (answers_.size() < kMaxAnswers) answers_[chain] = {steady_clock::now(), who};
  }
  *sentence = who.refusal();
  // Nothing that is not said is a right.
  if (who.refusal().empty() && who.tenant().empty())
    *sentence = "longwired knows no tenant of this certificate";
  if (!sentence->empty()) return Verdict::kRefused;
  *viewer = {who.identity(), who.tenant(), who.admin()};
  return Verdict::kKnown;
}

}  // namespace longwire::web
