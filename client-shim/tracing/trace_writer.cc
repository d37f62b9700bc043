#include "client-shim/tracing/trace_writer.h"

#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "base/json.h"
#include "client-shim/entry/entry.h"

namespace longwire::shim {
namespace {

constexpr auto kProgram = static_cast<uint32_t>(TracePart::kProgram);
constexpr auto kWay = static_cast<uint32_t>(TracePart::kWay);
constexpr auto kWorker = static_cast<uint32_t>(TracePart::kWorker);
constexpr auto kDevices = static_cast<uint32_t>(TracePart::kDevices);

std::string Member(const char* name, uint64_t value) {
  return std::string("\"") + name + "\":" + std::to_string(value);
}

uint32_t DevicePart(const TracedSession& session, int ordinal) {
  const auto place = static_cast<size_t>(std::max(ordinal, 0));
  const int device = place < session.devices.size() ? session.devices[place] : ordinal;
  return kDevices + static_cast<uint32_t>(std::max(device, 0));
}

uint32_t WorkerPart(const TracedSession& session) {
  constexpr auto kFurther = static_cast<uint32_t>(TracePart::kFurtherWorkers);
  return session.server == 0 ? kWorker : kFurther + static_cast<uint32_t>(session.server);
}

std::string ProgramName() {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "program";
}

std::string HostOf(const wire::OpenReply& opened, std::string_view role) {
  auto found = std::ranges::find(opened.processes, role, &wire::ProcessDescription::role);
  return found == opened.processes.end() ? std::string("the server") : found->host;
}

}  // namespace

std::string Demangled(std::string_view name) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : std::string(name);
}

void TraceWriter::Begin(uint64_t start) {
  file_.Begin(start);
  file_.NamePart(kProgram, ProgramName() + ", process " + std::to_string(getpid()));
  file_.NamePart(kWay, "way of calls: wire, queue, gate");
}

void TraceWriter::Begin(const TracedSession& session, const wire::OpenReply& opened) {
  file_.NamePart(WorkerPart(session), "worker of session " + std::to_string(opened.session) +
                                          " on " + HostOf(opened, "longwire-worker"));
  for (size_t i = 0; i < opened.devices.size(); ++i) {
    if (i < session.devices.size() && session.devices[i] < 0) continue;
    const uint32_t part = DevicePart(session, static_cast<int>(i));
    file_.NamePart(part, "device " + std::to_string(part - kDevices) + ": " +
                             opened.devices[i].name +
                             (session.name.empty() ? "" : " of " + session.name));
  }
}

void TraceWriter::NameTrack(uint32_t part, uint64_t track, const std::string& name) {
  if (tracks_.try_emplace({part, track}, 0).second) file_.NameTrack(part, track, name);
}

void TraceWriter::Name(const TracedSession& session, uint64_t function, std::string_view name) {
  names_[{session.server, function}] = Demangled(name);
}

void TraceWriter::Write(const Notes& notes) {
  for (const SentNote& sent : notes.sent) {
    sent_[sent.position] = sent;
    if (sent_.size() > kSentLimit) sent_.erase(sent_.begin());
  }
  for (const CallNote& call : notes.calls) {
    NameTrack(kProgram, call.thread, "thread " + std::to_string(call.thread));
    std::string arguments;
    if (call.position != CallNote::kNone) arguments = Member("correlation", call.position);
    if (call.result != CUDA_SUCCESS) {
      const char* name = ErrorName(call.result);
      arguments += (arguments.empty() ? "" : ",") + std::string(R"("result":)") +
                   base::JsonString(name == nullptr ? "?" : name);
    }
    file_.Span(kProgram, call.thread, CallName(call.call), call.began, call.ended, arguments);
  }
  for (const RangeNote& range : notes.ranges) {
    NameTrack(kProgram, range.thread, "thread " + std::to_string(range.thread));
    file_.Span(kProgram, range.thread, range.name, range.began, range.ended, R"("nvtx":true)");
  }
  WriteProbes(notes.probes);
  for (const MemoryNote& memory : notes.memory) {
    file_.Counter(kDevices + static_cast<uint32_t>(memory.device), "memory of the program",
                  memory.at, Member("bytes", memory.bytes));
  }
}

void TraceWriter::Write(const std::vector<calls::CallSpan>& spans, const TracedSession& session) {
  for (const calls::CallSpan& span : spans) WriteSpan(span, session);
}

// Nothing is shown before what caused it: where the clocks say so, they are wrong by as much.
void TraceWriter::WriteSpan(const calls::CallSpan& span, const TracedSession& session) {
  const ServerClock& clock = session.clock;
  const uint64_t position = TracePosition(session.server, span.position);
  const uint32_t worker = WorkerPart(session);
  auto note = sent_.find(position);
  const bool known = note != sent_.end();
  uint64_t read = clock.ToHere(span.read), begun = clock.ToHere(span.begun);
  const uint64_t sent = known ? note->second.at : read;
  NameTrack(worker, span.thread,
            span.thread == 0 ? "log thread" : "helper " + std::to_string(span.thread));
  file_.Span(worker, span.thread, CallName(static_cast<CallId>(span.call)),
             clock.ToHere(span.called), clock.ToHere(span.returned),
             Member("correlation", position));
  read = std::max(read, sent);
  begun = std::max(begun, read);
  if (known) file_.WayPart(position, "wire", sent, read);
  const uint64_t held = span.held == 0 ? begun : std::clamp(clock.ToHere(span.held), read, begun);
  file_.WayPart(position, "queue", read, held);
  if (span.held != 0) file_.WayPart(position, "gate", held, begun);
  if (span.started != 0) {
    const uint64_t started = WriteDeviceSpan(span, session, sent, begun);
    const TraceFile::Place from{kProgram, known ? note->second.thread : 0, sent};
    if (known) file_.Flow(position, from, {DevicePart(session, span.device), span.stream, started});
  }
  if (known) sent_.erase(note);
}

// Returns when it started.
uint64_t TraceWriter::WriteDeviceSpan(const calls::CallSpan& span, const TracedSession& session,
                                      uint64_t sent, uint64_t begun) {
  const ServerClock& clock = session.clock;
  const uint32_t part = DevicePart(session, span.device);
  NameTrack(part, span.stream, "stream " + std::to_string(span.stream));
  uint64_t& last = tracks_[{part, span.stream}];
  const uint64_t told = clock.ToHere(span.started);
  const uint64_t started = std::max({told, begun, last});
  last = started + std::max(clock.ToHere(span.ended), told) - told;  // as long as it took
  file_.Span(
      part, span.stream, NameOf(span, session), started, last,
      Member("correlation", TracePosition(session.server, span.position)) + R"(,"call":")" +
          CallName(static_cast<CallId>(span.call)) + "\"," +
          Member("from_call_ns", started - sent) + "," + Member("from_issue_ns", started - begun) +
          "," +
          // What was moved to keep the order is as uncertain as it was moved.
          Member("clock_error_ns", span.error + clock.ErrorAt(span.started) + (started - told)));
  return started;
}

std::string TraceWriter::NameOf(const calls::CallSpan& span, const TracedSession& session) const {
  auto found = names_.find({session.server, span.function});
  if (span.function != 0 && found != names_.end() && !found->second.empty()) return found->second;
  const std::string name = CallName(static_cast<CallId>(span.call));
  return name.starts_with("lw") || name.starts_with("cu") ? name.substr(2) : name;
}

void TraceWriter::WriteClock(const TracedSession& session) {
  const ServerClock& clock = session.clock;
  const uint64_t now = TraceNow();
  auto unix_time = std::chrono::system_clock::now().time_since_epoch();
  const auto wall = static_cast<uint64_t>(std::chrono::nanoseconds(unix_time).count());
  const std::string of = session.name.empty() ? "" : " of " + session.name;
  file_.Mark("clocks" + of, now,
             R"("server_ahead_ns":)" + std::to_string(clock.offset()) + "," +
                 Member("error_ns", clock.error()) + "," + Member("unix_ns", wall));
}

}  // namespace longwire::shim
