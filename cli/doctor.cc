// longwire doctor: tests everything that a program needs, and prints a remedy for what fails.
#include "cli/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cli/connect.h"
#include "cli/explain.h"
#include "cli/installation.h"
#include "cli/ping.h"
#include "cli/remedies.h"
#include "cli/report.h"
#include "cli/text.h"
#include "cli/tried_program.h"
#include "link/transport/grpc_setup.h"
#include "wire/open.h"
#include "wire/socket.h"

namespace longwire::cli {
namespace {

constexpr const char* kDoctorFooter =
    R"(It looks at this installation, connects, measures, opens a session and closes it again; then
does what every program does, in a process with the same variables: loads the installed
libcuda.so.1 and copies a few bytes to a device and back. Each problem comes with its remedy.

  longwire doctor --explain FUNCTION...
  longwire doctor --explain [OPTIONS] -- PROGRAM [ARGUMENTS...]

With --explain it says what becomes of a driver function here; or runs a program and names what
it used that Longwire refuses, with the reasons.

The exit status is 0 if all is well, 1 if there is any problem, 2 if this command was called
wrongly. With --explain it is 0, 2 if there is no such function, or the program's own.)";

constexpr int kRoundTrips = 50;
constexpr std::chrono::seconds kOpenPatience{60};
// Above this round-trip time, programs that wait for each call are slow.
constexpr double kFarMicroseconds = 2000;
// As programs here get it from cuDriverGetVersion (client-shim/context/properties.cc).
constexpr int kShownVersion = 13000;

void CheckDaemon(const transport::InspectReply& reply, Report* report) {
  const transport::Daemon& daemon = reply.daemon();
  wire::VersionRange theirs{daemon.protocol(), daemon.newest_protocol()};
  if (theirs.newest == 0) theirs.newest = theirs.oldest;  // an older server sends only one
  report->Good("longwired " + Printable(daemon.version()) + " on " + Printable(daemon.host()) +
               ", " + wire::VersionsText(theirs));
  const wire::VersionRange ours = wire::SpokenVersions();
  if (wire::NewestCommon(ours, theirs) == 0) {
    bool older = theirs.newest < ours.newest;
    report->Bad("this host speaks " + wire::VersionsText(ours) + ", the server does not",
                older ? "upgrade longwired on the server" : "upgrade Longwire on this host");
  }
  if (!daemon.warden_problem().empty()) {
    report->Bad("the server cannot start workers: " + Printable(daemon.warden_problem()),
                "see the logs of longwired and longwire-warden on " + Printable(daemon.host()));
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
                "upgrade the older of client and server; check for a proxy between them");
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
  // The default addresses of programs; nothing is reserved here.
  for (uint64_t base : {0x200000000000ULL, 0x500000000000ULL, 0x600000000000ULL}) {
    request.windows.push_back({base, uint64_t{1} << 41});
  }
  wire::Writer writer;
  request.Encode(writer);
  return {writer.data(), writer.data() + writer.size()};
}

void DescribeDriver(const wire::OpenReply& reply, bool all_calls, Report* report) {
  if (reply.driver_version < kShownVersion) {
    report->Note("the server's driver is for CUDA " + VersionText(reply.driver_version) +
                 ", programs see " + VersionText(kShownVersion) +
                 ": they run with what that driver has; it may refuse kernels that a newer "
                 "toolkit compiled, and upgrading it is the remedy");
  }
  if (reply.missing_calls.empty()) {
    report->Good("the server's driver has every call that this version forwards");
    return;
  }
  report->Note("the server's driver lacks " + std::to_string(reply.missing_calls.size()) +
               " calls; they are refused" + (all_calls ? ":" : " (--all names them)"));
  for (const std::string& name : reply.missing_calls) {
    if (all_calls) report->Note(Printable(name));
  }
}

// False when there is no device for programs.
bool DescribeSession(const wire::OpenReply& reply, bool all_calls, Report* report) {
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
    report->Bad("the server has no device", "check its driver, or start it with --driver software");
  }
  DescribeDriver(reply, all_calls, report);
  return !reply.devices.empty();
}

bool RefusedSession(const std::string& sentence, Report* report) {
  report->Bad("no session opens: " + Printable(sentence),
              RemedyFor(sentence,
                        "see the log of longwired; longwire status shows who holds the "
                        "devices"));
  return false;
}

bool CheckSession(const link::ServerChannel& server, bool all_calls, Report* report) {
  std::vector<std::byte> bytes = EncodedRequest();
  transport::OpenSessionRequest request;
  request.set_request(bytes.data(), bytes.size());
  request.set_client_version(LONGWIRE_VERSION);
  request.set_oldest_protocol(wire::SpokenVersions().oldest);
  request.set_newest_protocol(wire::SpokenVersions().newest);
  transport::OpenSessionReply answer;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kOpenPatience);
  grpc::Status status =
      transport::Transport::NewStub(server.channel)->Open(&context, request, &answer);
  wire::OpenReply reply;
  wire::Reader reader(std::as_bytes(std::span(answer.reply())));
  if (!status.ok()) return RefusedSession(link::ExplainStatus(server.server, status), report);
  if (reply.Decode(reader) != wire::WireResult::kOk) {
    return RefusedSession("the answer cannot be read; client and server differ in version", report);
  }
  std::string problem = wire::ProblemOfAnswer(reply.code != 0, reply.protocol, reply.versions);
  if (!problem.empty()) return RefusedSession(problem, report);
  if (reply.code != 0) return RefusedSession(reply.sentence, report);
  bool useful = DescribeSession(reply, all_calls, report);
  transport::Attach attach;
  attach.session = answer.session();
  std::memcpy(attach.token.data(), answer.resume_token().data(),
              std::min(attach.token.size(), answer.resume_token().size()));
  CloseSession(server.channel, attach);
  return useful;
}

// Reports why there is no answer at the socket.
void ReportClosedSocket(const std::string& path, int error, Report* report) {
  std::string remedy = "start longwired on this host with --local-socket " + path;
  if (error == EACCES) {
    remedy = "add \"uid:" + std::to_string(geteuid()) +
             "\" to identities of a tenant in the server's configuration, and longwire admin "
             "reload; give this user access to the folder of the local socket";
  }
  report->Bad("no process answers at " + path + ": " + std::strerror(error), remedy);
}

bool CheckLocalSocket(const std::string& path, bool all_calls, Report* report) {
  wire::Descriptor socket = wire::ConnectLocal(path);
  if (!socket.valid()) {
    ReportClosedSocket(path, errno, report);
    return false;
  }
  wire::SendMessage(socket.get(), EncodedRequest());
  auto message = wire::ReceiveMessage(socket.get(), kOpenPatience);
  wire::OpenReply reply;
  wire::Reader reader(message ? std::span<const std::byte>(message->bytes)
                              : std::span<const std::byte>());
  if (!message || reply.Decode(reader) != wire::WireResult::kOk) {
    return RefusedSession("the connection was closed without an answer", report);
  }
  std::string problem = wire::ProblemOfAnswer(reply.code != 0, reply.protocol, reply.versions);
  if (!problem.empty()) return RefusedSession(problem, report);
  if (reply.code != 0) return RefusedSession(reply.sentence, report);
  return DescribeSession(reply, all_calls, report);
}

// False when no connection is possible with these files.
bool CheckIdentity(const wire::IdentityFiles& files, Report* report) {
  if (files.none()) {
    report->Note("no certificate: connections are not encrypted");
    return true;
  }
  std::string sentence;
  auto material = transport::LoadTls(files, transport::TlsRole::kClient, &sentence);
  if (!material) {
    report->Bad(sentence, RemedyFor(sentence,
                                    "longwire cert show FILE shows a certificate; "
                                    "docs/identity.md has more"));
    return false;
  }
  report->Good("certificate " + files.certificate + " of '" + Printable(material->own.common_name) +
               "', valid until " + transport::DateText(material->own.not_after));
  return true;
}

// True if the server would serve programs.
bool CheckServer(const ServerOptions& options, bool all_calls, Report* report) {
  const std::string& name = options.server;
  report->Title("server " + name);
  if (name.starts_with("unix:")) {
    return CheckLocalSocket(name.substr(std::strlen("unix:")), all_calls, report);
  }
  if (!CheckIdentity(options.identity, report)) return false;
  std::string sentence;
  auto server = ConnectTo(options, &sentence);
  transport::InspectReply reply;
  if (!server || !InspectServer(*server, &reply, &sentence)) {
    report->Bad(
        sentence,
        RemedyFor(sentence, "start longwired there, or correct --server, --cert, --key or --ca"));
    return false;
  }
  CheckDaemon(reply, report);
  CheckRoundTrip(*server, report);
  return CheckSession(*server, all_calls, report);
}

struct Wish {
  bool all = false;
  bool json = false;
  bool explain = false;
  Arguments names;    // of functions
  Arguments program;  // with its arguments
};

int Doctor(const CLI::App& command, const Wish& wish) {
  ServerOptions options;
  if (wish.explain && wish.program.empty()) return ExplainNames(wish.names, wish.json);
  if (wish.explain && wish.json) {
    RefuseValue("--json is for functions: what a program used is said beside its own output");
  }
  if (wish.explain) return ExplainProgram(wish.program);
  if (!wish.names.empty() || !wish.program.empty()) {
    std::fputs(
        "longwire doctor: functions and programs go with --explain; see longwire doctor "
        "--help\n",
        stderr);
    return kUsageStatus;
  }
  if (!FindServer(command, &options)) return kUsageStatus;
  return Diagnose(options, wish.all, wish.json);
}

}  // namespace

int Diagnose(const ServerOptions& options, bool all_calls, bool json) {
  transport::PrepareProcess();
  Report report(json);
  CheckInstallation(&report);
  // Without a session, a test program would only report the same problem.
  if (CheckServer(options, all_calls, &report)) TryProgram(options.server, &report);
  report.End();
  return report.problems() == 0 ? 0 : 1;
}

void AddDoctor(CommandLine& line) {
  auto wish = std::make_shared<Wish>();
  auto self = std::make_shared<CLI::App*>();
  CLI::App& command =
      line.Add(nullptr, "doctor", "find out what works and what does not, with remedies",
               [=] { return Doctor(**self, *wish); });
  *self = &command;
  command.add_option("FUNCTION...", wish->names, "with --explain: functions of the CUDA driver")
      ->take_all();
  command.add_flag("--all", wish->all, "name every CUDA call that the server's driver lacks");
  command.add_flag("--explain", wish->explain,
                   "what becomes of a driver function here, or what a program used that Longwire "
                   "refuses");
  command.add_flag("--json", wish->json, "the findings for programs");
  AddConnection(command, Reach::kNetworkAndLocal);
  line.TakesProgram(command, ProgramBegins::kBehindDashes, &wish->program);
  command.footer(kDoctorFooter);
}

}  // namespace longwire::cli
