#include "server/daemon/pool/emptier.h"

#include <algorithm>
#include <cerrno>

#include "base/reason.h"
#include "base/start_thread.h"

namespace longwire::daemon {
namespace {

constexpr std::chrono::milliseconds kLook{500};
constexpr int kLooksBetween = 4;
// A session that did not go is tried again: there may be room later, or its program be between
// calls.
constexpr std::chrono::seconds kFirstPause{15};
constexpr std::chrono::seconds kLongestPause{600};

}  // namespace

bool Emptier::Start(std::string* sentence) {
  if (base::StartThread(&thread_, [this] { Loop(); })) return true;
  *sentence = base::ReasonOfNoThread(errno);
  return false;
}

void Emptier::Stop() {
  stop_.store(true);
  if (thread_.joinable()) thread_.join();
}

void Emptier::Loop() {
  while (!stop_.load()) {
    if (shall_()) {
      MoveSome();
    } else {
      tried_.clear();
    }
    for (int i = 0; i < kLooksBetween && !stop_.load(); ++i) std::this_thread::sleep_for(kLook);
  }
}

// One after the other, as long as they shall go.
void Emptier::MoveSome() {
  for (const auto& session : table_.List()) {
    const uint64_t id = session->id();
    auto before = tried_.find(id);
    if (before != tried_.end() && Clock::now() < before->second.again) continue;
    if (stop_.load() || !shall_()) return;
    std::string sentence;
    if (table_.HandOver(id, {}, &sentence)) continue;
    const auto pause =
        before == tried_.end() ? kFirstPause : std::min(2 * before->second.pause, kLongestPause);
    tried_[id] = {Clock::now() + pause, pause};
  }
}

}  // namespace longwire::daemon
