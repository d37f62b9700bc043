// longwire doctor: tries everything a program would need, and says what to do about what fails.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/connect.h"
#include "cli/explain.h"
#include "cli/ping.h"
#include "cli/text.h"
#include "link/transport/grpc_setup.h"
#include "server/daemon/paths.h"
#include "wire/open.h"
#include "wire/socket.h"

namespace longwire::cli {
namespace {

constexpr const char* kHelp =
    R"(longwire doctor: finds out what works and what does not.

  longwire doctor [OPTIONS] [--all]
  longwire doctor --explain FUNCTION...
  longwire doctor --explain [OPTIONS] -- PROGRAM [ARGUMENTS...]

  --all       name every CUDA call that the server's driver lacks
  --explain   what becomes of a driver function here; or runs a program and names what it used that
              Longwire refuses, with the reasons

Looks at this installation, connects, measures, opens a session and closes it again. Each problem
comes with its remedy. The exit status is 0 if all is well, 1 if there is any problem, 2 if this
command was called wrongly. With --explain it is 0, 2 if there is no such function, or the program's
own.
)";

constexpr int kRoundTrips = 50;
constexpr std::chrono::seconds kOpenPatience{60};
// Beyond this a program that waits for each call feels the distance.
constexpr double kFarMicroseconds = 2000;

// Collects what is wrong.
class Report {
 public:
  void Good(const std::string& what) { std::printf("  ok      %s\n", what.c_str()); }
  void Note(const std::string& what) { std::printf("  note    %s\n", what.c_str()); }
  void Bad(const std::string& what, const std::string& remedy) {
    ++problems_;
    std::printf("  PROBLEM %s\n          remedy: %s\n", what.c_str(), remedy.c_str());
  }
  int problems() const { return problems_; }

 private:
  int problems_ = 0;
};

void CheckInstallation(Report* report) {
  std::printf("this host (longwire %s, protocol %u)\n", LONGWIRE_VERSION, wire::kProtocolVersion);
  struct {
    const char* path;
    const char* what;
  } const parts[] = {{"/longwire-link", "longwire-link"},
                     {"/../lib/longwire/libcuda.so.1", "libcuda.so.1"}};
  for (const auto& part : parts) {
    std::string path = daemon::ProgramFolder() + part.path;
    if (access(path.c_str(), R_OK) == 0) {
      report->Good(std::string(part.what) + " is where programs look for it");
    } else {
      report->Bad("there is no " + path, "install Longwire completely on this host");
    }
  }
  const char* library_path = getenv("LD_PRELOAD");
  if (library_path != nullptr && std::strstr(library_path, "libcuda") != nullptr) {
    report->Note(std::string("LD_PRELOAD is set: ") + library_path);
  }
}

void CheckDaemon(const transport::InspectReply& reply, Report* report) {
  const transport::Daemon& daemon = reply.daemon();
  report->Good("longwired " + Printable(daemon.version()) + " on " + Printable(daemon.host()) +
               ", protocol " + std::to_string(daemon.protocol()));
  if (daemon.protocol() != wire::kProtocolVersion) {
    bool older = daemon.protocol() < wire::kProtocolVersion;
    report->Bad("client and server speak different protocols",
                older ? "upgrade longwired on the server" : "upgrade Longwire on this host");
  }
  if (!daemon.warden_problem().empty()) {
    report->Bad("the server cannot start workers: " + Printable(daemon.warden_problem()),
                "look at the log of longwired and longwire-warden on " + Printable(daemon.host()));
  } else {
    report->Good("driver library " + Printable(daemon.driver()));
  }
  for (const transport::Device& device : reply.devices()) {
    uint64_t left = device.lendable() - std::min(device.lendable(), device.leased());
    std::string text = "device " + std::to_string(device.ordinal()) + ": " +
                       Printable(device.name()) + ", " + BytesText(device.total()) + ", " +
                       BytesText(left) + " free";
    if (left < device.lendable() / 10) {
      report->Bad(text, "see with longwire status which sessions hold its memory");
    } else {
      report->Good(text);
    }
  }
}

void CheckRoundTrip(const link::ServerChannel& server, Report* report) {
  auto times = MeasureRoundTrips(server.channel, kRoundTrips);
  if (!times) {
    report->Bad("the stream that carries calls does not answer",
                "upgrade the older of client and server; look for a proxy in between");
    return;
  }
  char text[128];
  std::snprintf(text, sizeof(text), "round trip: median %.1f us of %d (fastest %.1f, slowest %.1f)",
                (*times)[kRoundTrips / 2], kRoundTrips, times->front(), times->back());
  report->Good(text);
  if ((*times)[kRoundTrips / 2] > kFarMicroseconds) {
    report->Note("that is far: programs that wait for each call will be slow");
  }
}

std::vector<std::byte> EncodedRequest() {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  wire::OpenRequest request;
  request.pid = static_cast<uint32_t>(getpid());
  request.host = host;
  request.program = "longwire doctor";
  // What programs ask for by default; nothing of it is reserved here.
  for (uint64_t base : {0x200000000000ULL, 0x500000000000ULL, 0x600000000000ULL}) {
    request.windows.push_back({base, uint64_t{1} << 41});
  }
  wire::Writer writer;
  request.Encode(writer);
  return {writer.data(), writer.data() + writer.size()};
}

void DescribeSession(const wire::OpenReply& reply, bool all_calls, Report* report) {
  report->Good("a session opens; CUDA driver version " + VersionText(reply.driver_version));
  for (const wire::DeviceDescription& device : reply.devices) {
    char window[64];
    std::snprintf(window, sizeof(window), "addresses from 0x%llx",
                  static_cast<unsigned long long>(device.window.base));
    report->Good(Printable(device.name) + ": " + BytesText(device.total_memory) + ", " + window);
  }
  for (const wire::ProcessDescription& process : reply.processes) {
    report->Good(process.role + " runs on " + Printable(process.host) + ", pid " +
                 std::to_string(process.pid));
  }
  if (reply.devices.empty()) {
    report->Bad("the server has no device",
                "look at its driver, or start it with --driver software");
  }
  if (reply.missing_calls.empty()) {
    report->Good("the server's driver has every call that this version forwards");
    return;
  }
  report->Note("the server's driver lacks " + std::to_string(reply.missing_calls.size()) +
               " calls; programs that ask for one are told so" +
               (all_calls ? ":" : " (--all names them)"));
  for (const std::string& name : reply.missing_calls) {
    if (all_calls) std::printf("            %s\n", Printable(name).c_str());
  }
}

void RefusedSession(const std::string& sentence, Report* report) {
  report->Bad("no session opens: " + Printable(sentence),
              "look at the log of longwired; longwire status shows who holds the devices");
}

void CheckSession(const link::ServerChannel& server, bool all_calls, Report* report) {
  std::vector<std::byte> bytes = EncodedRequest();
  transport::OpenSessionRequest request;
  request.set_request(bytes.data(), bytes.size());
  request.set_client_version(LONGWIRE_VERSION);
  transport::OpenSessionReply answer;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kOpenPatience);
  grpc::Status status =
      transport::Transport::NewStub(server.channel)->Open(&context, request, &answer);
  wire::OpenReply reply;
  wire::Reader reader(std::as_bytes(std::span(answer.reply())));
  if (!status.ok()) {
    RefusedSession(link::ExplainStatus(server.server, status), report);
  } else if (reply.Decode(reader) != wire::WireResult::kOk) {
    RefusedSession("the answer cannot be read; client and server differ in version", report);
  } else if (reply.code != 0) {
    RefusedSession(reply.sentence, report);
  } else {
    DescribeSession(reply, all_calls, report);
    transport::Attach attach;
    attach.session = answer.session();
    std::memcpy(attach.token.data(), answer.resume_token().data(),
                std::min(attach.token.size(), answer.resume_token().size()));
    CloseSession(server.channel, attach);
  }
}

void CheckLocalDoor(const std::string& path, bool all_calls, Report* report) {
  wire::Descriptor door = wire::ConnectLocal(path);
  if (!door.valid()) {
    report->Bad("nobody answers at " + path + ": " + std::strerror(errno),
                "start longwired on this host with --door " + path);
    return;
  }
  wire::SendMessage(door.get(), EncodedRequest());
  auto message = wire::ReceiveMessage(door.get(), kOpenPatience);
  wire::OpenReply reply;
  wire::Reader reader(message ? std::span<const std::byte>(message->bytes)
                              : std::span<const std::byte>());
  if (!message || reply.Decode(reader) != wire::WireResult::kOk) {
    RefusedSession("the door closed without an answer", report);
  } else if (reply.code != 0) {
    RefusedSession(reply.sentence, report);
  } else {
    DescribeSession(reply, all_calls, report);
  }
}

// False when nobody can connect with these files.
bool CheckIdentity(const wire::IdentityFiles& files, Report* report) {
  if (files.none()) {
    report->Note("no certificate: connections are not encrypted");
    return true;
  }
  std::string sentence;
  auto material = transport::LoadTls(files, transport::TlsRole::kClient, &sentence);
  if (!material) {
    report->Bad(sentence, "longwire cert show FILE shows a certificate; docs/identity.md has more");
    return false;
  }
  report->Good("certificate " + files.certificate + " of '" + Printable(material->own.common_name) +
               "', valid until " + transport::DateText(material->own.not_after));
  return true;
}

void CheckServer(const ServerOptions& options, Report* report) {
  const std::string& name = options.server;
  std::printf("server %s\n", name.c_str());
  if (name.starts_with("unix:")) {
    return CheckLocalDoor(name.substr(std::strlen("unix:")), options.all, report);
  }
  if (!CheckIdentity(options.identity, report)) return;
  std::string sentence;
  auto server = ConnectTo(options, &sentence);
  transport::InspectReply reply;
  if (!server || !InspectServer(*server, &reply, &sentence)) {
    report->Bad(sentence, "start longwired there, or correct --server, --cert, --key or --ca");
    return;
  }
  CheckDaemon(reply, report);
  CheckRoundTrip(*server, report);
  CheckSession(*server, options.all, report);
}

}  // namespace

int Doctor(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] == "--explain") {
    Arguments what = {arguments.begin() + 1, arguments.end()};
    // Behind -- it is the program's.
    if (std::any_of(what.begin(), std::find(what.begin(), what.end(), "--"), IsHelp)) {
      PrintHelp(kHelp, Reach::kNetworkAndDoor);
      return 0;
    }
    return Explain(what);
  }
  ServerOptions options;
  if (!ParseServerOptions("doctor", arguments, "--all", &options.all, &options)) {
    return kUsageStatus;
  }
  if (options.help) {
    PrintHelp(kHelp, Reach::kNetworkAndDoor);
    return 0;
  }
  transport::PrepareProcess();
  Report report;
  CheckInstallation(&report);
  CheckServer(options, &report);
  if (report.problems() == 0) {
    std::printf("all is well\n");
  } else {
    std::printf("%d problem%s\n", report.problems(), report.problems() == 1 ? "" : "s");
  }
  return report.problems() == 0 ? 0 : 1;
}

}  // namespace longwire::cli
