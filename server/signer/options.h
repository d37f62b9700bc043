// The command line of longwire-signer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "link/certificates/address.h"

namespace longwire::signer {

struct Options {
  std::string folder;  // of the authority: ca.crt, ca.key
  std::vector<transport::Address> listen;
  std::string socket;
  std::string state;  // folder
  std::string revoked;
  std::string group;
  int days = 0;
};

using base::Refusal;

// nullopt with a refusal.
std::optional<Options> ParseCommandLine(int count, char** arguments, Refusal* refusal);

}  // namespace longwire::signer
