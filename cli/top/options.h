// What longwire top is asked for.
#pragma once

#include <string>

#include "cli/connect.h"

namespace longwire::cli::top {

struct Options {
  double interval = 1;  // seconds
  bool once = false;
  bool json = false;
  ServerOptions server;
};

// Also --help, in server.help. False with a sentence, which is empty if it was printed already.
bool ParseOptions(const Arguments& arguments, Options* options, std::string* sentence);

}  // namespace longwire::cli::top
