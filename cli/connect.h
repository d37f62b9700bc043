// How the commands connect to a server, and the options that they share.
#pragma once

#include <optional>
#include <string>

#include "cli/options.h"
#include "link/server_connection.h"

namespace longwire::cli {

struct ServerOptions {
  std::string server;
  wire::IdentityFiles identity;
  bool json = false;  // of status
  bool all = false;   // of doctor
  bool help = false;
};

// Copies --server, --cert, --key and --ca from the arguments at `i` to the environment, where this
// process and the program that it becomes read them.
Taken TakeConnectionOption(const char* command, const Arguments& arguments, size_t* i);
// Prints a command's help and the description of those options. kNetwork: for commands that use
// the daemon's gRPC service, which its unix socket does not have.
enum class Reach { kNetwork, kNetworkAndLocal };
void PrintHelp(const char* help, Reach reach);

// Fills the options from the environment and the file client.conf.
void FindServer(ServerOptions* options);

// Parses these options, --help and the command's own `flag`. False with a sentence on standard
// error.
enum class Server { kNeeded, kOptional };
bool ParseServerOptions(const char* command, const Arguments& arguments, const char* flag,
                        bool* flag_given, ServerOptions* options, Server server = Server::kNeeded);

// nullopt with a sentence. A unix: address has no service.
std::optional<link::ServerChannel> ConnectTo(const ServerOptions& options, std::string* sentence);

// True on success; else a sentence.
bool InspectServer(const link::ServerChannel& server, transport::InspectReply* reply,
                   std::string* sentence, transport::InspectRequest request = {});

}  // namespace longwire::cli
