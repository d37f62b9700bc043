// Moves gangs through their phases (see Gang in state.h): who lines up, whose turn begins, when it
// is over and when it has drained. No decision is sent here; seats that may have changed are
// marked.
//
// A gang of one device begins its turn when it is first in that device's order, by GPU time. A gang
// of several, a *wide* one, has a ticket: its place in one order of all wide gangs, by turns. Its
// devices are kept for it as they come free, the lowest ticket first, so two wide gangs never wait
// for each other. After a wide turn a device serves one of its own first, so none of them starves.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <tuple>

#include "scheduler/advice.h"
#include "scheduler/changes.h"
#include "scheduler/device_state.h"
#include "scheduler/options.h"
#include "scheduler/policy.h"
#include "scheduler/snapshot.h"

namespace longwire::scheduler {

class Turns {
 public:
  Turns(const Policy& policy, const Options& options, Changes& changes)
      : options_(options), changes_(changes) {
    SetPolicy(policy);
  }
  void SetPolicy(const Policy& policy) {
    policy_ = &policy;
    advice_ = policy.advice();
  }
  Advice* advice() const { return advice_; }

  // The time of all that follows; does what is due until then.
  void Advance(Time now);
  // When Advance has something to do; later than now.
  std::optional<Time> next() const;

  // A worker's report, in two parts: GPU time that the seat used since its last report, then what
  // it does now.
  void OnUse(Seat& seat, Time used);
  void OnActivity(Seat& seat, Activity activity);
  // The gang's class or devices, or a regime of theirs, may be others.
  void Reconsider(Gang& gang);
  // `from` becomes part of `into`, in the registry right after this.
  void Merge(Gang& into, Gang& from);
  // Times have become others: its turn, as far as it is under way, gets no longer ones than those.
  void TakeOptions(Gang& gang);
  // The gang loses its place and its turn.
  void Withdraw(Gang& gang);

  // Something about the device is new: Settle asks its policy and goes on with its turns.
  void Unsettle(Device& device);
  void Settle();

  const Counters& counters() const { return counters_; }

 private:
  // Devices (devices.cc).
  void AskPolicy(Device& device);
  void Offer(Device& device);
  Gang* Next(const Device& device) const;
  Gang* NextOfQueue(const Device& device) const;
  void LineUp(Gang& gang);
  void StepOut(Gang& gang);
  FairQueue& QueueOf(Device& device);
  void ChargeAhead(Gang& gang);

  // Turns (turns.cc).
  void Begin(Gang& gang);
  Time TurnLength(const Gang& gang) const;
  TurnFacts FactsOf(const Gang& gang) const;
  void Step(Gang& gang);
  void Spend(Gang& gang) const;
  Time LingersUntil(Gang& gang);
  bool IsNext(Gang& gang, Time slack);
  Ticket NextTicket(const Gang& gang) const;
  void ServeWide(Tenant& tenant, const Ticket& ticket);
  void SetGate(Gang& gang, bool open);
  void Drain(Gang& gang);
  void Complete(Gang& gang);
  void LetGo(Gang& gang);
  void ChangedInDrain(Seat& seat, Activity activity);
  void Finish(Gang& gang);
  void ReleaseDevices(Gang& gang);
  void WakeAt(Gang& gang, Time time);

  const Policy* policy_ = nullptr;
  Advice* advice_ = nullptr;  // the policy's
  const Options& options_;
  Changes& changes_;
  Time now_{0};
  std::set<std::tuple<Time, uint64_t, Gang*>> timers_;
  std::deque<Device*> unsettled_;
  uint64_t arrivals_ = 0;
  double wide_clock_ = 0;  // the ticket of the wide turn that began last
  Counters counters_;
};

}  // namespace longwire::scheduler
