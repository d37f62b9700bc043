#include "cli/connect.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/reason.h"
#include "wire/socket.h"

namespace longwire::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{4000};

constexpr const char* kServerHelp = R"(
  --server LIST   the server, or several to be tried in this order (default: $LONGWIRE_SERVER)
)";
constexpr const char* kLocalHelp =
    R"(                  or unix:PATH, the local socket of one on this host
)";
constexpr const char* kIdentityHelp = R"(  --cert FILE, --key FILE, --ca FILE
                  this user's certificate, the private key to it, and the authority of the servers
                  (default: $LONGWIRE_CERT, $LONGWIRE_KEY, $LONGWIRE_CA, else client.crt,
                  client.key, ca.crt in ~/.config/longwire or /etc/longwire)
)";

}  // namespace

void PrintHelp(const char* help, Reach reach) {
  std::fputs(help, stdout);
  std::fputs(kServerHelp, stdout);
  if (reach == Reach::kNetworkAndLocal) std::fputs(kLocalHelp, stdout);
  std::fputs(kIdentityHelp, stdout);
}

Taken TakeConnectionOption(const char* command, const Arguments& arguments, size_t* i) {
  static constexpr std::pair<const char*, const char*> kOptions[] = {
      {"--server", "LONGWIRE_SERVER"},
      {"--cert", "LONGWIRE_CERT"},
      {"--key", "LONGWIRE_KEY"},
      {"--ca", "LONGWIRE_CA"}};
  for (const auto& [option, variable] : kOptions) {
    std::string value;
    Taken taken = TakeOption(command, arguments, option, i, &value);
    if (taken == Taken::kYes) setenv(variable, value.c_str(), 1);
    if (taken != Taken::kNo) return taken;
  }
  return Taken::kNo;
}

void FindServer(ServerOptions* options) {
  wire::ClientSettings settings;
  options->server = settings.Value("LONGWIRE_SERVER");
  options->identity = wire::FindIdentityFiles(settings);
}

bool ParseServerOptions(const char* command, const Arguments& arguments, const char* flag,
                        bool* flag_given, ServerOptions* options, Server server) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    Taken taken = TakeConnectionOption(command, arguments, &i);
    if (taken == Taken::kBad) return false;
    if (taken == Taken::kYes) continue;
    if (name == flag) {
      *flag_given = true;
    } else if (IsHelp(name)) {
      options->help = true;
      return true;
    } else {
      std::fprintf(stderr, "longwire %s: unknown option '%s'. See longwire %s --help\n", command,
                   name.c_str(), command);
      return false;
    }
  }
  FindServer(options);
  if (!options->server.empty() || server == Server::kOptional) return true;
  std::fprintf(stderr, "longwire %s: no server; give --server HOST:PORT or set LONGWIRE_SERVER\n",
               command);
  return false;
}

std::optional<link::ServerChannel> ConnectTo(const ServerOptions& options, std::string* sentence) {
  const std::string& server = options.server;
  if (server.starts_with("unix:")) {
    std::string path = server.substr(std::strlen("unix:"));
    bool answers = wire::ConnectLocal(path).valid();
    *sentence = answers ? "the local socket " + server + " serves programs only"
                        : "no process answers at " + path + ": " + base::Reason(errno);
    *sentence += "; give the server's host:port, such as --server 127.0.0.1:7411";
    return std::nullopt;
  }
  auto addresses = transport::ParseAddresses(server, sentence);
  if (!addresses) return std::nullopt;
  return link::ServerConnection(std::move(*addresses), options.identity).Take(kPatience, sentence);
}

bool InspectServer(const link::ServerChannel& server, transport::InspectReply* reply,
                   std::string* sentence, transport::InspectRequest request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  request.set_client_version(LONGWIRE_VERSION);
  grpc::Status status =
      transport::Transport::NewStub(server.channel)->Inspect(&context, request, reply);
  if (!status.ok()) *sentence = link::ExplainStatus(server.server, status);
  return status.ok();
}

}  // namespace longwire::cli
