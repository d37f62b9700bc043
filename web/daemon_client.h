// Asks longwired of this host through its control socket. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "proto/transport.pb.h"

namespace longwire::web {

class DaemonClient {
 public:
  // The first that answers is asked.
  explicit DaemonClient(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  // False with a sentence.
  bool Ask(transport::ControlRequest request, transport::ControlReply* reply,
           std::string* sentence) const;

 private:
  const std::vector<std::string> paths_;
};

}  // namespace longwire::web
