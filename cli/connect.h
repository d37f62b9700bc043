// The commands' way to a server, and the options they share.
#pragma once

#include <optional>
#include <string>

#include "cli/commands.h"
#include "link/server_connection.h"

namespace longwire::cli {

struct ServerOptions {
  std::string server;
  bool json = false;
  bool help = false;
};

// Reads --server, --json and --help. False with a sentence on standard error.
bool ParseServerOptions(const char* command, const Arguments& arguments, bool json_allowed,
                        ServerOptions* options);

// nullopt with a sentence. With `unix:` the daemon's door is reached, but not its service.
std::optional<link::ServerChannel> ConnectTo(const std::string& server, std::string* sentence);

// True on success; else a sentence.
bool InspectServer(const link::ServerChannel& server, transport::InspectReply* reply,
                   std::string* sentence);

}  // namespace longwire::cli
