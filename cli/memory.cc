// longwire memory: which session has which device memory, now or over time.
#include "cli/memory.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <thread>

#include "base/reason.h"
#include "cli/operator/operator.h"
#include "cli/status_json.h"
#include "cli/text.h"
#include "link/transport/grpc_setup.h"
#include "wire/descriptors.h"

namespace longwire::cli {
namespace {

using std::chrono::milliseconds;

constexpr const char* kMemoryFooter =
    "Without --timeline it draws each device's memory as it is now. With it, it says \"watching\" "
    "on "
    "standard error, watches for N seconds and writes what happened.\n\n"
    "The exit status is 0 if the server and its warden answered, or FILE is written; 1 if not, 2 "
    "if "
    "this command was called wrongly.";

constexpr milliseconds kSampleInterval{100};  // between samples of a timeline
constexpr double kLongest = 3600;             // seconds

struct Request {
  ServerOptions server;
  std::string timeline;
  double seconds = 10;
  bool json = false;
};

double ParseSeconds(const std::string& text) {
  double seconds = 0;
  const char* last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, seconds);
  // Rejects NaN, too.
  if (error == std::errc() && end == last && seconds > 0 && seconds <= kLongest) return seconds;
  RefuseValue("--seconds expects a number up to " + std::to_string(static_cast<int>(kLongest)) +
              ", found '" + text + "'");
}

// Before anything is watched.
std::string ParseTimeline(const std::string& file) {
  if (file.ends_with(".svg") || file.ends_with(".html")) return file;
  RefuseValue("--timeline writes files that end in .svg or .html, found '" + file + "'");
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

int CannotWrite(const std::string& path) {
  std::fprintf(stderr, "longwire memory: cannot write %s: %s\n", path.c_str(),
               base::Reason(errno).c_str());
  return 1;
}

int WriteTimeline(Operator& server, const Request& request) {
  // Said before the seconds are over, not after; what is there stays until there is something new.
  wire::Descriptor writable = wire::OpenFile(request.timeline.c_str(), O_WRONLY | O_CREAT, 0666);
  if (!writable.valid()) return CannotWrite(request.timeline);
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
  if (!file.flush()) return CannotWrite(request.timeline);
  std::printf("%s: %zu devices, %zu events in %.1f s\n", request.timeline.c_str(), list.size(),
              events, request.seconds);
  return 0;
}

// One object for each device: what is where, as protobuf has it.
std::string MemoryJson(const transport::InspectReply& reply) {
  std::string devices, sessions;
  for (const transport::Device& device : reply.devices()) {
    devices += (devices.empty() ? "" : ",") + MessageJson(device);
  }
  for (const transport::Session& session : reply.sessions()) {
    for (const transport::SessionMemory& memory : session.memory()) {
      sessions += (sessions.empty() ? "" : ",") + ("{\"session\":" + std::to_string(session.id())) +
                  ",\"tenant\":" + JsonString(session.tenant()) +
                  ",\"program\":" + JsonString(session.program()) +
                  ",\"memory\":" + MessageJson(memory) + "}";
    }
  }
  return "{\"devices\":[" + devices + "],\"sessions\":[" + sessions + "]}";
}

int ShowMemory(const transport::InspectReply& reply, bool json) {
  if (json) std::puts(MemoryJson(reply).c_str());
  for (const transport::Device& device : reply.devices()) {
    if (json) break;
    std::printf("%s%s", device.ordinal() == reply.devices(0).ordinal() ? "" : "\n",
                MemoryMap(reply, device).c_str());
  }
  const std::string& problem = reply.daemon().warden_problem();
  if (!problem.empty()) std::fprintf(stderr, "longwire memory: %s\n", Printable(problem).c_str());
  return problem.empty() ? 0 : 1;
}

int Memory(Request request) {
  FindServer(&request.server);
  transport::PrepareProcess();
  std::string sentence;
  Operator server(request.server, Operator::Prefers::kNetwork);
  if (!request.timeline.empty()) return WriteTimeline(server, request);
  transport::InspectReply reply;
  if (server.Inspect({}, &reply, &sentence)) return ShowMemory(reply, request.json);
  std::fprintf(stderr, "longwire memory: %s\n", sentence.c_str());
  return 1;
}

}  // namespace

void AddMemory(CommandLine& line) {
  auto request = std::make_shared<Request>();
  CLI::App& command =
      line.Add(nullptr, "memory", "which session has which device memory, now or over time",
               [request] { return Memory(*request); });
  command
      .add_option_function<std::string>(
          "--timeline", [=](const std::string& file) { request->timeline = ParseTimeline(file); },
          "watch, and write what happens to FILE: a page if it ends in .html, a picture in .svg")
      ->type_name("FILE");
  command
      .add_option_function<std::string>(
          "--seconds", [=](const std::string& text) { request->seconds = ParseSeconds(text); },
          "how long to watch (default 10)")
      ->type_name("N");
  command.add_flag("--json", request->json, "the memory as it is now, for programs");
  AddConnection(command, Reach::kNetworkAndLocal);
  command.footer(std::string(kOperatorHelp) + kMemoryFooter);
}

}  // namespace longwire::cli
