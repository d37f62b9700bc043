#include "codegen/options.h"

#include <algorithm>
#include <cctype>

namespace longwire::codegen {
namespace {

constexpr Option kOptions[] = {
    {"before_init", &Call::before_init, Applies::kExported, "CallBeforeInit",
     "May be called before cuInit."},
    {"capture_unsafe", &Call::capture_unsafe, Applies::kExported, "CaptureUnsafe",
     "\"Potentially unsafe\" while a stream is captured in a strict mode."},
    {"implicit_stream", &Call::implicit_stream, Applies::kExported},
    {"needs_context", &Call::needs_context, Applies::kExported},
    {"looks_first", &Call::looks_first, Applies::kExported},
    {"worker_hand_written", &Call::worker_hand_written, Applies::kForwarded},
    {"stream_ordered", &Call::stream_ordered, Applies::kPrivate, "CallStreamOrdered",
     "Private calls that the stream in the record's header orders."},
    {"carries_bulk_bytes", &Call::carries_bulk_bytes, Applies::kOutsideStreams, "CarriesBulkBytes",
     "Brings bytes of a copy whose own record stands elsewhere in the log, or asks for them."},
    {"may_pass_deferred", &Call::may_pass_deferred, Applies::kOutsideStreams, "MayPassDeferred",
     "May be appended to the log before the client's deferred call."},
    {"ends_by_itself", &Call::ends_by_itself, Applies::kInStreams, "EndsByItself",
     "Only the device's speed decides when it is done."},
    {"pulls_may_pass", &Call::pulls_may_pass, Applies::kInStreams, "PullsMayPass",
     "Bytes of copies behind it may be asked for before it has run."},
    {"gated", &Call::gated, Applies::kInStreams, "IsGated",
     "Work of the device: a closed gate holds it back."},
    {"works_when_failed", &Call::works_when_failed, Applies::kOutsideStreams, "WorksWhenFailed",
     "Works in a context that has failed."},
    {"passes_maps", &Call::passes_maps, Applies::kOutsideStreams, "PassesMaps",
     "Is read from the log while a map before it is under way."},
    {"needs_no_memory", &Call::needs_no_memory, Applies::kOutsideStreams, "NeedsNoMemory",
     "Runs while the session's memory is swapped out."},
    {"returns_memory", &Call::returns_memory, Applies::kOutsideStreams, "ReturnsMemory",
     "Gives device memory back: these run in the log's order."},
    {"rebuilds", &Call::rebuilds, Applies::kTravels, "Rebuilds",
     "Makes or changes an object: a moved session's new worker runs it again."},
    {"leaves_nothing", &Call::leaves_nothing, Applies::kTravels, "LeavesNothing",
     "Leaves nothing behind that a moved session would miss."},
    {"lasting_answer", &Call::lasting_answer, Applies::kForwarded, "HasLastingAnswer",
     "The same arguments in the same context give the same answer."},
};

bool HasStream(const Call& call) {
  return std::ranges::any_of(call.parameters,
                             [](const Parameter& p) { return p.role == Role::kStream; });
}

bool IsInStreams(const Call& call) {
  return call.Travels() && (call.is_private ? call.stream_ordered : HasStream(call));
}

}  // namespace

std::span<const Option> BoolOptions() { return kOptions; }

std::string ConstantOf(const Option& option) {
  std::string constant = "k";
  bool first = true;  // letter of a word
  for (const char* c = option.name; *c != 0; ++c) {
    if (*c != '_') constant += static_cast<char>(first ? std::toupper(*c) : *c);
    first = *c == '_';
  }
  return constant;
}

bool DoesApply(Applies applies, const Call& call) {
  switch (applies) {
    case Applies::kExported:
      return !call.is_private;
    case Applies::kForwarded:
      return call.IsForwarded();
    case Applies::kPrivate:
      return call.is_private;
    case Applies::kInStreams:
      return IsInStreams(call);
    case Applies::kOutsideStreams:
      return call.Travels() && !IsInStreams(call);
    case Applies::kTravels:
      return call.Travels();
  }
  return false;
}

const char* WhichCalls(Applies applies) {
  switch (applies) {
    case Applies::kExported:
      return "functions of the driver, not for private calls";
    case Applies::kForwarded:
      return "functions of the driver that travel to the worker";
    case Applies::kPrivate:
      return "private calls";
    case Applies::kInStreams:
      return "calls that travel to the worker and that a stream orders";
    case Applies::kOutsideStreams:
      return "calls that travel to the worker and that no stream orders";
    case Applies::kTravels:
      return "calls that travel to the worker";
  }
  return "";
}

}  // namespace longwire::codegen
