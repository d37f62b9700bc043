#include "cli/connect.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace longwire::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{4000};

}  // namespace

const char kConnectionHelp[] = R"(
  --server LIST   the server, or several to be tried in this order (default: $LONGWIRE_SERVER);
                  unix:PATH for one on this host
  --cert FILE, --key FILE, --ca FILE
                  this user's certificate, the private key to it, and the authority of the servers
                  (default: $LONGWIRE_CERT, $LONGWIRE_KEY, $LONGWIRE_CA, else client.crt,
                  client.key, ca.crt in ~/.config/longwire or /etc/longwire)
)";

bool TakeConnectionOption(const Arguments& arguments, size_t* i) {
  static constexpr std::pair<const char*, const char*> kOptions[] = {
      {"--server", "LONGWIRE_SERVER"},
      {"--cert", "LONGWIRE_CERT"},
      {"--key", "LONGWIRE_KEY"},
      {"--ca", "LONGWIRE_CA"}};
  const std::string& word = arguments[*i];
  for (const auto& [option, variable] : kOptions) {
    if (word == option && *i + 1 < arguments.size()) {
      setenv(variable, arguments[++*i].c_str(), 1);
    } else if (word.starts_with(std::string(option) + "=")) {
      setenv(variable, word.substr(std::strlen(option) + 1).c_str(), 1);
    } else {
      continue;
    }
    return true;
  }
  return false;
}

void FindServer(ServerOptions* options) {
  wire::ClientSettings settings;
  options->server = settings.Value("LONGWIRE_SERVER");
  options->identity = wire::FindIdentityFiles(settings);
}

bool ParseServerOptions(const char* command, const Arguments& arguments, const char* flag,
                        bool* flag_given, ServerOptions* options) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (TakeConnectionOption(arguments, &i)) continue;
    if (name == flag) {
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
  FindServer(options);
  if (!options->server.empty()) return true;
  std::fprintf(stderr, "longwire %s: no server; give --server HOST:PORT or set LONGWIRE_SERVER\n",
               command);
  return false;
}

std::optional<link::ServerChannel> ConnectTo(const ServerOptions& options, std::string* sentence) {
  const std::string& server = options.server;
  if (server.starts_with("unix:")) {
    *sentence = "the door " + server + " serves programs only; ask at the server's host:port";
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
