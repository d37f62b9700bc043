#include "server/worker/code/session_rules.h"

#include <sys/socket.h>

#include <algorithm>

#include "server/rules/calls.h"
#include "server/worker/support/log_line.h"
#include "wire/socket.h"

namespace longwire::worker {
namespace {

constexpr std::chrono::milliseconds kLongestPause{10'000};
// One for each stream whose head is tried again; those of streams that are gone go first.
constexpr size_t kMaxPauses = 4096;

}  // namespace

std::chrono::milliseconds PauseBefore(const rules::Retry& retry, uint32_t tries) {
  constexpr uint32_t kDoublings = 14;
  std::chrono::milliseconds pause(retry.back_off_milliseconds);
  return std::min(pause * (1 << std::min(tries, kDoublings)), kLongestPause);
}

void SessionRules::Replace(rules::RuleList list) {
  auto next = std::make_shared<const std::vector<rules::Rule>>(std::move(list.rules));
  const bool any = !next->empty();
  base::MutexLock lock(mutex_);
  rules_ = std::move(next);
  page_ = nullptr;
  any_.store(any || has_policy_, std::memory_order_release);
  version_.fetch_add(1, std::memory_order_release);
}

void SessionRules::UsePolicy(bool on) {
  base::MutexLock lock(mutex_);
  if (!on && !has_policy_) return;
  has_policy_ = on;
  any_.store(on || !rules_->empty(), std::memory_order_release);
  version_.fetch_add(1, std::memory_order_release);
}

void SessionRules::CountIn(std::shared_ptr<statistics::Page> page) {
  base::MutexLock lock(mutex_);
  page_ = std::move(page);
  if (any()) version_.fetch_add(1, std::memory_order_release);
}

void SessionRules::CountCall(uint32_t place) const {
  base::MutexLock lock(mutex_);
  if (page_ != nullptr) page_->rule_calls(place).fetch_add(1, std::memory_order_relaxed);
}

void SessionRules::CountCall(const std::string& rule) const {
  auto now = Get();
  for (uint32_t i = 0; i < now->size(); ++i) {
    if ((*now)[i].name == rule) return CountCall(i);
  }
}

std::string SessionRules::DeniedBy(CallId call) const {
  if (!any()) return {};
  const std::string_view wire_name = CallName(call);
  for (const rules::DeniableCall& known : rules::DeniableCalls()) {
    if (known.wire_name != wire_name || known.name == rules::kLaunchKernel) continue;
    return DeniedBy(known.name);
  }
  return {};
}

std::string SessionRules::DeniedBy(std::string_view name) const {
  return any() ? rules::DeniedBy(*Get(), name, {}) : std::string();
}

bool SessionRules::PausesNow(uint64_t position) {
  auto found = pauses_.find(position);
  return found != pauses_.end() && Clock::now() < found->second.until;
}

bool SessionRules::TryAgain(uint64_t position, const rules::Retry& retry, CUresult result) {
  if (retry.count == 0 || IsSticky(result)) return false;
  if (pauses_.size() >= kMaxPauses && !pauses_.contains(position)) pauses_.erase(pauses_.begin());
  Pause& pause = pauses_[position];
  if (pause.tries >= retry.count) return false;
  pause.until = Clock::now() + PauseBefore(retry, pause.tries++);
  return true;
}

void SessionRules::Notice(const std::string& sentence) const {
  LogLine("%s", sentence.c_str());
  if (control_ < 0) return;
  const auto packet = message::Pack(rules::Notice{sentence});
  // A daemon that does not read must not hold the session up.
  if (wire::SendMessage(control_, packet, {}, MSG_DONTWAIT)) return;
  LogLine("longwired did not take that line for its log");
}

}  // namespace longwire::worker
