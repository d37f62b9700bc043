#include "cli/connect.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/reason.h"
#include "wire/socket.h"

namespace longwire::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{4000};

constexpr const char* kServerHelp =
    "the server, or several to be tried in this order (default: $LONGWIRE_SERVER)";
constexpr const char* kLocalHelp = ", or unix:PATH, the local socket of one on this host";

struct File {
  const char* option;
  const char* variable;
  const char* help;
};
constexpr File kFiles[] = {
    {"--cert", "LONGWIRE_CERT",
     "this user's certificate (default: $LONGWIRE_CERT, else client.crt in ~/.config/longwire or "
     "/etc/longwire); without one connections are not encrypted"},
    {"--key", "LONGWIRE_KEY", "the private key to it (default: $LONGWIRE_KEY, else client.key)"},
    {"--ca", "LONGWIRE_CA", "the authority of the servers (default: $LONGWIRE_CA, else ca.crt)"}};

}  // namespace

void AddConnection(CLI::App& command, Reach reach) {
  auto keep = [](const char* variable) {
    return [variable](const std::string& value) { setenv(variable, value.c_str(), 1); };
  };
  std::string help = kServerHelp;
  if (reach == Reach::kNetworkAndLocal) help += kLocalHelp;
  command.add_option_function<std::string>("--server", keep("LONGWIRE_SERVER"), help)
      ->type_name("LIST");
  for (const File& file : kFiles) {
    command.add_option_function<std::string>(file.option, keep(file.variable), file.help)
        ->type_name("FILE");
  }
}

void FindServer(ServerOptions* options) {
  wire::ClientSettings settings;
  options->server = settings.Value("LONGWIRE_SERVER");
  options->identity = wire::FindIdentityFiles(settings);
}

bool FindServer(const CLI::App& command, ServerOptions* options) {
  FindServer(options);
  if (!options->server.empty()) return true;
  const std::string path = PathOf(command);
  std::fprintf(stderr,
               "%s: no server; give --server HOST:PORT or set LONGWIRE_SERVER; see %s --help\n",
               path.c_str(), path.c_str());
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
