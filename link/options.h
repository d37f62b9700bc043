// The command line of longwire-link.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "link/certificates/address.h"
#include "link/transport/log.h"
#include "link/transport/packing_choice.h"
#include "link/transport/tls_files.h"

namespace longwire::link {

struct Options {
  std::vector<transport::Address> servers;  // tried in this order
  std::string server_problem;               // if not empty: every program is refused with it
  transport::TlsFiles identity;             // none: without TLS
  std::string socket;
  std::chrono::milliseconds idle{60'000};   // ends after this long without a session
  uint32_t packing = transport::kPackAuto;  // compression
  bool foreground = false;                  // keeps standard error and working directory
  std::string log_file;
  int ready_descriptor = -1;  // closed once the link listens
  int successor = 0;          // its number, if the link before it was killed
  transport::LogLevel log_level = transport::LogLevel::kInfo;
};

using base::Refusal;

// nullopt with a refusal.
std::optional<Options> ParseOptions(int count, char** arguments, Refusal* refusal);

}  // namespace longwire::link
