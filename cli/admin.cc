// longwire admin: for operators of a server.
#include <cstdio>
#include <cstring>

#include "cli/connect.h"
#include "cli/text.h"
#include "link/transport/grpc_setup.h"
#include "server/daemon/control.h"

namespace longwire::cli {
namespace {

constexpr const char* kHelp =
    R"(longwire admin: for those who run a server.

  longwire admin reload [--server HOST:PORT | --server unix:PATH]

reload makes longwired read its configuration file again. All of it comes into force, or nothing
when something is wrong with it; sessions go on. Without a server it is this user's longwired on
this host; unix:PATH is the local socket of another one there. Over the network it needs a tenant
with admin: true, or a server without tenants and without TLS on this host.

The exit status is 0 if the new configuration is in force, 1 if not, 2 if this command was called
wrongly.
)";

// The daemon reads and checks files; it waits for no device.
constexpr std::chrono::seconds kPatience{30};

void PrintLines(const std::string& lines, FILE* to) {
  size_t start = 0;
  for (size_t end; (end = lines.find('\n', start)) != std::string::npos; start = end + 1) {
    std::fprintf(to, "%s\n", Printable(lines.substr(start, end - start)).c_str());
  }
}

// True when the reload is in force; *lines has the daemon's answer.
bool ReloadOverNetwork(const ServerOptions& options, std::string* lines) {
  auto server = ConnectTo(options, lines);
  *lines += server ? "" : "\n";
  if (!server) return false;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  transport::AdminRequest request;
  request.set_client_version(LONGWIRE_VERSION);
  request.mutable_reload();
  transport::AdminReply reply;
  grpc::Status status =
      transport::Transport::NewStub(server->channel)->Admin(&context, request, &reply);
  if (!status.ok()) *lines = link::ExplainStatus(server->server, status) + "\n";
  for (const std::string& sentence : reply.sentences()) *lines += sentence + "\n";
  return status.ok() && reply.done();
}

// The control socket, which the daemon has for its own user, is in the local socket's folder.
std::string ControlOf(const std::string& server) {
  if (server.empty()) return daemon::ControlPath();
  std::string socket = server.substr(std::strlen("unix:"));
  size_t folder = socket.rfind('/');
  return (folder == std::string::npos ? "" : socket.substr(0, folder + 1)) + "control";
}

int Reload(const ServerOptions& options) {
  std::string lines;
  bool here = options.server.empty() || options.server.starts_with("unix:");
  bool done = here ? daemon::AskForReload(ControlOf(options.server), &lines)
                   : ReloadOverNetwork(options, &lines);
  if (done) {
    PrintLines(lines.empty() ? "nothing has changed\n" : lines, stdout);
    return 0;
  }
  std::fputs("longwire admin: not reloaded\n", stderr);
  PrintLines(lines, stderr);
  return 1;
}

}  // namespace

int Admin(const Arguments& arguments) {
  bool reload = false;
  ServerOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (IsHelp(arguments[i])) {
      PrintHelp(kHelp, Reach::kNetworkAndLocal);
      return 0;
    }
    Taken taken = TakeConnectionOption("admin", arguments, &i);
    if (taken == Taken::kBad) return kUsageStatus;
    if (taken == Taken::kYes) continue;
    if (arguments[i] != "reload" || reload) {
      std::fprintf(stderr, "longwire admin: unknown option '%s'. See longwire admin --help\n",
                   arguments[i].c_str());
      return kUsageStatus;
    }
    reload = true;
  }
  if (!reload) {
    std::fputs("longwire admin: what shall be done? See longwire admin --help\n", stderr);
    return kUsageStatus;
  }
  FindServer(&options);
  transport::PrepareProcess();
  return Reload(options);
}

}  // namespace longwire::cli
