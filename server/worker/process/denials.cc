#include "server/worker/process/denials.h"

#include "longwire/calls.h"
#include "server/rules/calls.h"
#include "server/worker/code/function_rules.h"
#include "wire/record.h"

namespace longwire::worker {
namespace {

template <class Call>
bool Decode(const QueuedCall& queued, Call* call) {
  wire::Reader reader(queued.arguments);
  return call->Decode(reader) == wire::WireResult::kOk;
}

bool IsOfProgram(WorkerSession& session, const calls::Place& place) {
  if (place.array != 0) return false;
  const HostSegment& live = session.host_segment();
  if (live.base() != 0 && place.address - live.base() < live.bytes()) return true;
  return session.mirrors().Has(place.address);
}

// What the driver's interface calls such a copy; within the program's memory none of its names
// fits.
std::string RuleAgainstCopy(WorkerSession& session, bool from_program, bool to_program) {
  if (from_program && to_program) return {};
  const char* name = from_program ? "cuMemcpyHtoD" : to_program ? "cuMemcpyDtoH" : "cuMemcpyDtoD";
  return session.rules().DeniedBy(name);
}

std::string RuleAgainst(WorkerSession& session, const calls::MemcpyNode& copy) {
  return RuleAgainstCopy(session, copy.read != 0 || IsOfProgram(session, copy.source),
                         copy.write != 0 || IsOfProgram(session, copy.destination));
}

std::string RuleAgainst(WorkerSession& session, const calls::KernelNode& kernel) {
  const FunctionRules* rules = session.loaded_functions().RulesFor(kernel.function);
  return rules == nullptr ? std::string() : rules->decision.denied_by;
}

}  // namespace

std::string RuleAgainst(WorkerSession& session, const QueuedCall& call) {
  switch (call.call) {
    case CallId::lwLaunch:
    case CallId::lwModuleLoad:
    case CallId::lwCopyKept:
      return {};
    case CallId::lwCopyPinned: {
      calls::lwCopyPinned copy;
      if (!Decode(call, &copy)) return {};
      return RuleAgainstCopy(session, copy.to_host == 0, copy.to_host != 0);
    }
    case CallId::lwCopyDevice: {
      calls::lwCopyDevice copy;
      if (!Decode(call, &copy)) return {};
      return RuleAgainstCopy(session, IsOfProgram(session, copy.source),
                             IsOfProgram(session, copy.destination));
    }
    case CallId::lwGraphAddMemcpy: {
      calls::lwGraphAddMemcpy add;
      return Decode(call, &add) ? RuleAgainst(session, add.copy) : std::string();
    }
    case CallId::lwGraphSetMemcpy: {
      calls::lwGraphSetMemcpy set;
      return Decode(call, &set) ? RuleAgainst(session, set.copy) : std::string();
    }
    case CallId::lwGraphAddKernel: {
      calls::lwGraphAddKernel add;
      return Decode(call, &add) ? RuleAgainst(session, add.kernel) : std::string();
    }
    case CallId::lwGraphSetKernel: {
      calls::lwGraphSetKernel set;
      return Decode(call, &set) ? RuleAgainst(session, set.kernel) : std::string();
    }
    default:
      return session.rules().DeniedBy(call.call);
  }
}

}  // namespace longwire::worker
