#include "client-shim/connect/wait_for_room.h"

#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "wire/duration.h"

namespace longwire::shim {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Between attempts: soon at first, and a server with many that wait is not asked all the time.
constexpr milliseconds kFirstAskPause{200}, kLastAskPause{3000};

// Hexadecimal digits that no other program has.
std::string NewNumber() {
  uint64_t random[2] = {};
  if (getrandom(random, sizeof(random), 0) != sizeof(random)) return {};
  char text[33];
  snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(random[0]),
           static_cast<unsigned long long>(random[1]));
  return text;
}

// Of a program that does not say itself how long it waits.
std::chrono::seconds ToldWait(const wire::OpenReply& reply) {
  constexpr uint64_t kLongestWait = wire::kForeverSeconds;
  return std::chrono::seconds(std::min(reply.wait, kLongestWait));
}

}  // namespace

bool OpenSessionOrWait(const Options& options, const std::vector<wire::Window>& windows,
                       SessionParts* parts, std::string* sentence) {
  const Clock::time_point began = Clock::now();
  Options asked = options;
  if (!options.wait || options.wait->count() != 0) asked.request = NewNumber();
  std::string said;
  for (milliseconds pause = kFirstAskPause;; pause = std::min(2 * pause, kLastAskPause)) {
    *parts = SessionParts();
    if (!OpenSession(asked, windows, parts, sentence)) return false;
    const wire::OpenReply& reply = parts->reply;
    const Clock::time_point deadline = began + options.wait.value_or(ToldWait(reply));
    if (reply.code != CUDA_ERROR_DEVICE_UNAVAILABLE || Clock::now() + pause > deadline) return true;
    if (said != reply.sentence) Say("waiting: %s", reply.sentence.c_str());
    said = reply.sentence;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace longwire::shim
