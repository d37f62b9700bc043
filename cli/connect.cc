#include "cli/connect.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace longwire::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{4000};

}  // namespace

bool ParseServerOptions(const char* command, const Arguments& arguments, const char* flag,
                        bool* flag_given, ServerOptions* options) {
  const char* environment = getenv("LONGWIRE_SERVER");
  if (environment != nullptr) options->server = environment;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (name == "--server" && i + 1 < arguments.size()) {
      options->server = arguments[++i];
    } else if (name.starts_with("--server=")) {
      options->server = name.substr(std::strlen("--server="));
    } else if (name == flag) {
      *flag_given = true;
    } else if (name == "--help" || name == "-h") {
      options->help = true;
      return true;
    } else {
      std::fprintf(stderr, "longwire %s: what is '%s'? See longwire %s --help\n", command,
                   name.c_str(), command);
      return false;
    }
  }
  if (!options->server.empty()) return true;
  std::fprintf(stderr, "longwire %s: no server; give --server HOST:PORT or set LONGWIRE_SERVER\n",
               command);
  return false;
}

std::optional<link::ServerChannel> ConnectTo(const std::string& server, std::string* sentence) {
  if (server.starts_with("unix:")) {
    *sentence = "the door " + server + " serves programs only; ask at the server's host:port";
    return std::nullopt;
  }
  auto addresses = transport::ParseAddresses(server, sentence);
  if (!addresses) return std::nullopt;
  return link::ServerConnection(std::move(*addresses)).Take(kPatience, sentence);
}

bool InspectServer(const link::ServerChannel& server, transport::InspectReply* reply,
                   std::string* sentence) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  transport::InspectRequest request;
  request.set_client_version(LONGWIRE_VERSION);
  grpc::Status status =
      transport::Transport::NewStub(server.channel)->Inspect(&context, request, reply);
  if (!status.ok()) *sentence = link::ExplainStatus(server.server, status);
  return status.ok();
}

}  // namespace longwire::cli
