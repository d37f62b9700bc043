#include "server/worker/transfer/bridge_desk.h"

#include <chrono>

namespace longwire::worker {
namespace {

// The daemon gives up a server that does not answer sooner.
constexpr std::chrono::seconds kAnswerPatience{20};
constexpr const char* kNoAnswer = "the server's daemon does not answer";

}  // namespace

bridges::Answer BridgeDesk::Ask(bridges::Ask ask) {
  bridges::Answer none;
  none.sentence = kNoAnswer;
  if (control_ < 0) return none;
  {
    base::MutexLock lock(mutex_);
    ask.request = next_request_++;
    waiting_[ask.request];
  }
  const bool sent = wire::SendMessage(control_, message::Pack(ask));
  const auto deadline = std::chrono::steady_clock::now() + kAnswerPatience;
  base::MutexLock lock(mutex_);
  std::optional<bridges::Answer>& place = waiting_[ask.request];
  while (sent && !place.has_value() && answered_.WaitUntil(lock, deadline)) {
  }
  bridges::Answer answer = place.value_or(none);
  waiting_.erase(ask.request);
  return answer;
}

bool BridgeDesk::Arrived(const wire::Message& message) {
  bridges::Answer answer;
  if (message::Unpack(message.bytes, &answer) != wire::WireResult::kOk) return false;
  base::MutexLock lock(mutex_);
  auto found = waiting_.find(answer.request);
  if (found != waiting_.end()) found->second = std::move(answer);
  answered_.NotifyAll();
  return true;
}

void BridgeDesk::Forget() {
  base::MutexLock lock(mutex_);
  for (auto& [request, place] : waiting_) {
    if (!place.has_value()) place.emplace().sentence = "the server's daemon was restarted";
  }
  answered_.NotifyAll();
}

}  // namespace longwire::worker
