#include "policy/advised.h"

#include <limits>

namespace longwire::policy {

namespace {

using scheduler::PriorityClass;
using scheduler::Time;

constexpr uint64_t kShortestSlice = 64 << 10;  // of copies; shorter ones cost more than they take

std::string Number(uint64_t value) { return std::to_string(value); }

// Null, or what is wrong with the answer.
const char* Problem(const lw_device& device) {
  if (device.turns > 1) return "turns is neither 0 nor 1";
  if (device.hold_until < 0) return "hold_until is negative";
  const bool slice =
      device.copy_slice == 0 || (device.copy_slice >= kShortestSlice &&
                                 device.copy_slice <= std::numeric_limits<uint32_t>::max());
  return slice ? nullptr : "copy_slice is neither 0 nor from 64 KiB to 4 GiB";
}

scheduler::Regime RegimeOf(const lw_device& device) {
  scheduler::Regime regime;
  regime.turns = device.turns == 1;
  regime.hold_until = Time(device.hold_until);
  if (device.budget_launches != 0) regime.budget.launches = device.budget_launches;
  if (device.budget_us != 0) regime.budget.work = std::chrono::microseconds(device.budget_us);
  regime.copy_slice = device.copy_slice;
  return regime;
}

lw_session ContextOf(Time now, const scheduler::SessionTerms& terms) {
  lw_session session{};
  session.now = now.count();
  session.session = terms.session;
  session.tenant = terms.tenant;
  session.devices = terms.devices;
  session.priority_class =
      terms.priority_class == PriorityClass::kBestEffort ? LW_BEST_EFFORT : LW_LATENCY_CRITICAL;
  session.weight = terms.weight;
  return session;
}

lw_turn ContextOf(Time now, const scheduler::TurnFacts& facts) {
  lw_turn turn{};
  turn.now = now.count();
  turn.session = facts.session;
  turn.tenant = facts.tenant;
  turn.device = facts.device;
  turn.weight = facts.weight;
  turn.waited = facts.waited.count();
  turn.charged = facts.charged.count();
  return turn;
}

class ProgramAdvice final : public scheduler::Advice {
 public:
  explicit ProgramAdvice(std::shared_ptr<Program> program) : program_(std::move(program)) {}

  void OnOpened(Time now, scheduler::SessionTerms* terms) override {
    lw_session session = ContextOf(now, *terms);
    if (!program_->Ask(Hook::kSessionOpened, &session)) return;
    if (session.priority_class > LW_BEST_EFFORT) {
      return program_->Refuse(Hook::kSessionOpened,
                              "priority_class " + Number(session.priority_class) +
                                  " is neither LW_LATENCY_CRITICAL nor LW_BEST_EFFORT");
    }
    if (session.weight < 1 || session.weight > scheduler::kMaxWeight) {
      return program_->Refuse(Hook::kSessionOpened,
                              "a weight of " + Number(session.weight) + " is not from 1 to 10000");
    }
    terms->priority_class = session.priority_class == LW_BEST_EFFORT
                                ? PriorityClass::kBestEffort
                                : PriorityClass::kLatencyCritical;
    terms->weight = session.weight;
  }

  void OnClosed(Time now, const scheduler::SessionTerms& terms) override {
    if (!program_->Has(Hook::kSessionClosed)) return;
    lw_session session = ContextOf(now, terms);
    program_->Ask(Hook::kSessionClosed, &session);
  }

  void OnQueue(Time now, const scheduler::QueueChange& change) override {
    if (!program_->Has(Hook::kQueueChanged)) return;
    lw_queue queue{};
    queue.now = now.count();
    queue.session = change.session;
    queue.tenant = change.tenant;
    queue.device = change.device;
    queue.busy = change.busy ? 1 : 0;
    queue.gpu_time = change.gpu_time.count();
    program_->Ask(Hook::kQueueChanged, &queue);
  }

  bool scores() const override { return program_->Has(Hook::kTurnNext) && !program_->ended(); }

  uint64_t Score(Time now, const scheduler::TurnFacts& facts) override {
    lw_turn turn = ContextOf(now, facts);
    return program_->Ask(Hook::kTurnNext, &turn) ? turn.score : 0;
  }

  Time TurnLength(Time now, const scheduler::TurnFacts& facts, Time usual) override {
    if (!program_->Has(Hook::kTurnBegins)) return usual;
    lw_turn turn = ContextOf(now, facts);
    turn.turn_time = usual.count();
    if (!program_->Ask(Hook::kTurnBegins, &turn)) return usual;
    const Time length(turn.turn_time);
    if (length >= scheduler::kShortestTurn && length <= scheduler::kLongestTurn) return length;
    program_->Refuse(Hook::kTurnBegins, "a turn_time of " + std::to_string(turn.turn_time) +
                                            " ns is not from 100 us to 1 s");
    return usual;
  }

  void OnTurnEnded(Time now, const scheduler::TurnFacts& facts) override {
    if (!program_->Has(Hook::kTurnEnded)) return;
    lw_turn turn = ContextOf(now, facts);
    program_->Ask(Hook::kTurnEnded, &turn);
  }

 private:
  const std::shared_ptr<Program> program_;
};

class Advised final : public scheduler::Policy {
 public:
  Advised(std::unique_ptr<scheduler::Policy> built_in, const std::shared_ptr<Program>& program)
      : built_in_(std::move(built_in)), program_(program), advice_(program) {}

  scheduler::Regime Decide(const scheduler::DeviceSnapshot& snapshot) const override {
    lw_device device{};
    device.now = snapshot.now.count();
    device.device = snapshot.device;
    device.latency_critical = snapshot.latency_critical;
    device.best_effort = snapshot.best_effort;
    device.best_effort_tenants = snapshot.best_effort_tenants;
    device.busy_until = snapshot.busy_until.count();
    if (!program_->Ask(Hook::kDeviceChanged, &device)) return built_in_->Decide(snapshot);
    const char* problem = Problem(device);
    if (problem == nullptr) return RegimeOf(device);
    program_->Refuse(Hook::kDeviceChanged, problem);
    return built_in_->Decide(snapshot);
  }

  scheduler::Advice* advice() const override { return &advice_; }

 private:
  const std::unique_ptr<scheduler::Policy> built_in_;
  const std::shared_ptr<Program> program_;
  mutable ProgramAdvice advice_;
};

}  // namespace

std::unique_ptr<scheduler::Policy> MakeAdvised(std::unique_ptr<scheduler::Policy> built_in,
                                               std::shared_ptr<Program> program) {
  return std::make_unique<Advised>(std::move(built_in), program);
}

}  // namespace longwire::policy
