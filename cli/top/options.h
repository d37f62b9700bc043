// What longwire top is asked for.
#pragma once

#include "cli/connect.h"

namespace longwire::cli::top {

struct Options {
  double interval = 1;  // seconds
  bool once = false;
  bool json = false;
  bool pool = false;     // of the server's pool instead of the server
  bool kernels = false;  // likewise of the kernels of programs
};

void Describe(CLI::App& command, Options* options);

}  // namespace longwire::cli::top
