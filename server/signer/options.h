// The command line of longwire-signer.
#pragma once

#include <optional>
#include <string>
#include <vector>

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

// What to print instead of starting, and the exit status.
struct Refusal {
  std::string text;
  int status = 2;
};

// nullopt with a refusal.
std::optional<Options> ParseCommandLine(int count, char** arguments, Refusal* refusal);

}  // namespace longwire::signer
