// Whom an operator's commands ask: longwired of this host through its control socket, where the
// kernel says who asks, or any server over the network, where a certificate does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/connect.h"

namespace longwire::cli {

class Operator {
 public:
  // Without a server: longwired of this host. unix:PATH: the daemon whose local socket that is.
  // kLocal: also for an address of this host, if there is no certificate and longwired of this host
  // listens there.
  enum class Prefers { kNetwork, kLocal };
  Operator(const ServerOptions& options, Prefers prefers);

  // True on success; else a sentence.
  bool Inspect(const transport::InspectRequest& request, transport::InspectReply* reply,
               std::string* sentence);
  bool Administer(const transport::AdminRequest& request, transport::AdminReply* reply,
                  std::string* sentence);
  // For people, once it has answered: the server's address, or the control socket.
  const std::string& name() const { return name_; }

 private:
  enum class Asked { kYes, kNo, kAbsent };
  // kAbsent: no daemon is there, or another one; with a sentence.
  Asked AskHere(transport::ControlRequest request, transport::ControlReply* reply,
                std::string* sentence);
  bool Connect(std::string* sentence);

  const ServerOptions options_;
  std::vector<std::string> control_paths_;
  uint32_t port_ = 0;     // at which the daemon of the control socket shall listen; 0: any
  bool network_ = false;  // if no daemon is at the control socket
  std::optional<link::ServerChannel> server_;
  std::string name_;
};

// A part of the commands' help.
inline constexpr const char* kOperatorHelp =
    "Without --server and LONGWIRE_SERVER, longwired of this host is asked through its control "
    "socket. That needs no certificate; it serves root, the user that longwired runs as and the "
    "members of its admin_group.\n\n";

}  // namespace longwire::cli
