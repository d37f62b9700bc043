// longwire memory: which session has which device memory, now or over time.
#include "cli/memory.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "base/reason.h"
#include "cli/operator/operator.h"
#include "cli/text.h"
#include "link/transport/grpc_setup.h"

namespace longwire::cli {
namespace {

using std::chrono::milliseconds;

constexpr const char* kHelp =
    R"(longwire memory: which session has which of a server's device memory.

  longwire memory [OPTIONS]
  longwire memory [OPTIONS] --timeline FILE [--seconds N]

Without --timeline it draws each device's memory as it is now. With it, it watches for N seconds (10
unless told otherwise) and writes what happened to FILE: a page if it ends in .html, else SVG. It
says "watching" on standard error once it does.

The exit status is 0 if the server and its warden answered, or FILE is written; 1 if not, 2 if this
command was called wrongly.
)";

constexpr milliseconds kSampleInterval{100};  // between samples of a timeline
constexpr double kLongest = 3600;             // seconds

struct Request {
  ServerOptions server;
  std::string timeline;
  double seconds = 10;
};

Taken TakeSeconds(const Arguments& arguments, size_t* i, double* seconds) {
  std::string text;
  Taken taken = TakeOption("memory", arguments, "--seconds", i, &text);
  if (taken != Taken::kYes) return taken;
  const char* last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, *seconds);
  // Rejects NaN, too.
  if (error == std::errc() && end == last && *seconds > 0 && *seconds <= kLongest) return taken;
  std::fprintf(stderr, "longwire memory: --seconds expects a number up to %.0f, found '%s'\n",
               kLongest, text.c_str());
  return Taken::kBad;
}

// False when there is nothing to be done; then *status is the exit status.
bool Parse(const Arguments& arguments, Request* request, int* status) {
  Arguments others;
  *status = kUsageStatus;
  for (size_t i = 0; i < arguments.size(); ++i) {
    Taken taken = TakeOption("memory", arguments, "--timeline", &i, &request->timeline);
    if (taken == Taken::kNo) taken = TakeSeconds(arguments, &i, &request->seconds);
    if (taken == Taken::kBad) return false;
    if (taken == Taken::kNo) others.push_back(arguments[i]);
  }
  bool none = false;
  if (!ParseServerOptions("memory", others, "", &none, &request->server, Server::kOptional)) {
    return false;
  }
  if (request->server.help) {
    std::fputs(kHelp, stdout);
    PrintHelp(kOperatorHelp, Reach::kNetworkAndLocal);
    *status = 0;
    return false;
  }
  return true;
}

void TakeSample(const transport::InspectReply& reply, const transport::Device& device,
                double seconds, MemoryHistory* history) {
  history->title = "device " + std::to_string(device.ordinal()) + "  " + device.name();
  history->total = device.total();
  MemoryHistory::Sample sample{seconds, {}, device.idle(), device.scrub_pending()};
  for (const transport::Session& session : reply.sessions()) {
    for (const transport::SessionMemory& memory : session.memory()) {
      if (memory.device() != device.ordinal()) continue;
      sample.leased[session.id()] += memory.leased();
      history->names[session.id()] = "session " + std::to_string(session.id()) + " of " +
                                     session.tenant() + ": " + session.program();
    }
  }
  history->samples.push_back(std::move(sample));
}

// Samples for this many seconds. Earlier events are left out.
bool Watch(Operator& server, double seconds, std::map<int32_t, MemoryHistory>* devices,
           std::string* sentence) {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::map<int32_t, uint64_t> last;
  double before = 0;
  for (bool first = true; first || Clock::now() < end; first = false) {
    transport::InspectRequest request;
    request.set_memory_events(true);
    for (const auto& [device, number] : last) {
      transport::MemoryCursor* cursor = request.add_events_after();
      cursor->set_device(device);
      cursor->set_number(number);
    }
    transport::InspectReply reply;
    if (!server.Inspect(request, &reply, sentence)) return false;
    auto time = std::chrono::system_clock::now().time_since_epoch();
    double now = std::chrono::duration<double>(time).count();
    for (const transport::Device& device : reply.devices()) {
      TakeSample(reply, device, now, &(*devices)[device.ordinal()]);
    }
    for (transport::MemoryEvents& events : *reply.mutable_memory_events()) {
      for (transport::MemoryEvent& event : *events.mutable_events()) {
        last[events.device()] = event.number();
        // The event came after the last sample, whatever the server's clock says.
        event.set_seconds(std::clamp(event.seconds(), before, now));
        if (!first) (*devices)[events.device()].events.push_back(event);
      }
    }
    before = now;
    if (first) std::fprintf(stderr, "longwire memory: watching for %.1f s\n", seconds);
    std::this_thread::sleep_for(kSampleInterval);
  }
  return true;
}

int WriteTimeline(Operator& server, const Request& request) {
  std::map<int32_t, MemoryHistory> devices;
  std::string sentence;
  if (!Watch(server, request.seconds, &devices, &sentence)) {
    std::fprintf(stderr, "longwire memory: %s\n", sentence.c_str());
    return 1;
  }
  std::vector<MemoryHistory> list;
  size_t events = 0;
  for (auto& [ordinal, history] : devices) {
    events += history.events.size();
    list.push_back(std::move(history));
  }
  std::ofstream file(request.timeline);
  file << MemoryTimeline(list, request.timeline.ends_with(".html"));
  if (!file.flush()) {
    std::fprintf(stderr, "longwire memory: cannot write %s: %s\n", request.timeline.c_str(),
                 base::Reason(errno).c_str());
    return 1;
  }
  std::printf("%s: %zu devices, %zu events in %.1f s\n", request.timeline.c_str(), list.size(),
              events, request.seconds);
  return 0;
}

}  // namespace

int Memory(const Arguments& arguments) {
  Request request;
  int status = 0;
  if (!Parse(arguments, &request, &status)) return status;
  transport::PrepareProcess();
  std::string sentence;
  Operator server(request.server, Operator::Prefers::kNetwork);
  if (!request.timeline.empty()) return WriteTimeline(server, request);
  transport::InspectReply reply;
  if (!server.Inspect({}, &reply, &sentence)) {
    std::fprintf(stderr, "longwire memory: %s\n", sentence.c_str());
    return 1;
  }
  for (const transport::Device& device : reply.devices()) {
    std::printf("%s%s", device.ordinal() == reply.devices(0).ordinal() ? "" : "\n",
                MemoryMap(reply, device).c_str());
  }
  const std::string& problem = reply.daemon().warden_problem();
  if (!problem.empty()) std::fprintf(stderr, "longwire memory: %s\n", Printable(problem).c_str());
  return problem.empty() ? 0 : 1;
}

}  // namespace longwire::cli
