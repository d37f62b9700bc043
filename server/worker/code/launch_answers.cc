#include "server/worker/code/launch_answers.h"

#include <sys/socket.h>

#include <charconv>
#include <utility>

#include "base/name_number.h"
#include "server/worker/code/function_rules.h"
#include "server/worker/support/log_line.h"
#include "server/worker/support/objects.h"
#include "wire/socket.h"

namespace longwire::worker {
namespace {

using Clock = std::chrono::steady_clock;

// Shapes of one function that have an answer of their own; others go as the program says.
constexpr size_t kShapesOfFunction = 64;
// Pending requests; the oldest are given up. Those of functions that are gone never end otherwise.
constexpr size_t kPendingRequests = 1024;
constexpr size_t kDigits = 16;  // of a digest's first eight bytes

// The first bytes of the digest; 0 if it is not known.
uint64_t NumberOfModule(const std::string& digest) {
  uint64_t number = 0;
  if (digest.size() < kDigits) return 0;
  std::from_chars(digest.data(), digest.data() + kDigits, number, 16);
  return number;
}

}  // namespace

bool LaunchAnswers::Arrived(const launches::LaunchAnswer& answer) {
  base::MutexLock lock(mutex_);
  auto found = pending_.find(answer.request);
  if (found == pending_.end()) return false;
  found->second = answer;
  return true;
}

FunctionAdvice& LaunchAnswers::AdviceOn(Function& function) const {
  const uint64_t policy = policy_.load(std::memory_order_acquire);
  if (function.advice == nullptr || function.advice->policy != policy) {
    function.advice = std::make_shared<FunctionAdvice>();
    function.advice->policy = policy;
  }
  return *function.advice;
}

bool LaunchAnswers::LeavesAlone(const Function& function) const {
  const uint64_t policy = policy_.load(std::memory_order_acquire);
  if (policy == 0) return true;
  const FunctionAdvice* advice = function.advice.get();
  return advice != nullptr && advice->policy == policy && advice->settled &&
         advice->whole.attributes.empty();
}

void LaunchAnswers::Ask(const Function& function, uint32_t device, const launches::Shape& shape,
                        LaunchAdvice* advice) {
  advice->request = next_request_++;
  advice->shape = shape;
  advice->asked = Clock::now();
  {
    base::MutexLock lock(mutex_);
    if (pending_.size() >= kPendingRequests) pending_.erase(pending_.begin());
    pending_[advice->request];
  }
  const launches::AskLaunch ask{advice->request, base::NumberOfName(function.name),
                                NumberOfModule(function.module), device, shape};
  // A daemon that does not read must not hold the session up: no answer is one, too.
  if (control_ >= 0) (void)wire::SendMessage(control_, message::Pack(ask), {}, MSG_DONTWAIT);
}

std::optional<launches::LaunchAnswer> LaunchAnswers::Take(uint64_t request) {
  base::MutexLock lock(mutex_);
  auto found = pending_.find(request);
  if (found == pending_.end() || !found->second) return std::nullopt;
  auto answer = std::move(found->second);
  pending_.erase(found);
  return answer;
}

// Where the answer for the shape is, or comes; null: the function has too many.
LaunchAdvice* LaunchAnswers::PlaceOf(FunctionAdvice& advice, const launches::Shape& shape) {
  if (!advice.each) return &advice.whole;
  auto found = advice.shapes.find(shape);
  if (found != advice.shapes.end()) return &found->second;
  return advice.shapes.size() >= kShapesOfFunction ? nullptr : &advice.shapes[shape];
}

void LaunchAnswers::Keep(const launches::LaunchAnswer& answer, FunctionAdvice* advice,
                         LaunchAdvice* about) const {
  about->request = 0;
  about->attributes = AttributesOf(driver_, answer.change);
  if (!answer.each) {  // the last answer counts
    if (about != &advice->whole) advice->whole = std::move(*about);
    advice->shapes.clear();
  } else if (about == &advice->whole) {
    const launches::Shape asked = about->shape;
    advice->shapes[asked] = std::exchange(advice->whole, {});
  }
  advice->each = answer.each;
  advice->settled = !answer.each;
}

bool LaunchAnswers::Decide(Function& function, uint32_t device, const launches::Shape& shape,
                           const std::vector<CUlaunchAttribute>** attributes) {
  *attributes = nullptr;
  FunctionAdvice& advice = AdviceOn(function);
  if (advice.policy == 0) return true;
  while (LaunchAdvice* about = PlaceOf(advice, shape)) {
    if (!about->is_asked()) Ask(function, device, shape, about);
    if (about->request == 0) {
      if (!about->attributes.empty()) *attributes = &about->attributes;
      return true;
    }
    const auto answer = Take(about->request);
    if (answer) {
      Keep(*answer, &advice, about);
      continue;  // perhaps that was about another shape
    }
    if (Clock::now() - about->asked < kLaunchPatience) return false;
    if (!std::exchange(told_late_, true)) {
      LogLine("longwired does not answer about launches: they go as the program says");
    }
    return true;
  }
  return true;
}

}  // namespace longwire::worker
