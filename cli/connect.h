// How the commands connect to a server, and the options that they share.
#pragma once

#include <optional>
#include <string>

#include "cli/commands.h"
#include "link/server_connection.h"

namespace longwire::cli {

struct ServerOptions {
  std::string server;
  wire::IdentityFiles identity;
};

// Whom a command asks. kNetwork: by the daemon's gRPC service, which its unix socket does not have.
enum class Reach { kNetwork, kNetworkAndLocal };
// Adds --server, --cert, --key and --ca. They go to the environment, where this process and the
// program that it becomes read them.
void AddConnection(CLI::App& command, Reach reach);

// Fills the options from the environment and the file client.conf.
void FindServer(ServerOptions* options);

// The same, where there must be a server; else false with a sentence on standard error.
bool FindServer(const CLI::App& command, ServerOptions* options);

// nullopt with a sentence. A unix: address has no service.
std::optional<link::ServerChannel> ConnectTo(const ServerOptions& options, std::string* sentence);

// True on success; else a sentence.
bool InspectServer(const link::ServerChannel& server, transport::InspectReply* reply,
                   std::string* sentence, transport::InspectRequest request = {});

}  // namespace longwire::cli
