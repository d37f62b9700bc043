// The commands' way to a server, and the options they share.
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

// Takes --server, --cert, --key and --ca from the arguments at `i` into the environment, where this
// process and what it becomes look for them.
Taken TakeConnectionOption(const char* command, const Arguments& arguments, size_t* i);
// Prints a command's help and the description of those options. kNetwork: of commands that ask the
// daemon's service, which no unix socket has.
enum class Reach { kNetwork, kNetworkAndDoor };
void PrintHelp(const char* help, Reach reach);

// What those options, the environment and the file client.conf say.
void FindServer(ServerOptions* options);

// Reads those, --help and the command's own `flag`. False with a sentence on standard error.
bool ParseServerOptions(const char* command, const Arguments& arguments, const char* flag,
                        bool* flag_given, ServerOptions* options);

// nullopt with a sentence. Behind a unix: door there is no service.
std::optional<link::ServerChannel> ConnectTo(const ServerOptions& options, std::string* sentence);

// True on success; else a sentence.
bool InspectServer(const link::ServerChannel& server, transport::InspectReply* reply,
                   std::string* sentence, transport::InspectRequest request = {});

}  // namespace longwire::cli
