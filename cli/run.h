// longwire run, also as a step of other commands.
#pragma once

#include <string>

#include "cli/commands.h"

namespace longwire::cli {

// Becomes the program, or returns the exit status with a sentence in the name of the command (run
// or trace). `trace`: what the client's library tells of it, by names with commas between.
// `restarts`: how often it is started again after a fault of its device.
int RunProgram(const std::string& command, const Arguments& words, const std::string& trace,
               unsigned restarts = 0);

// The options of commands that become a program, and the program's words.
void AddProgram(CommandLine& line, CLI::App& command, Arguments* words);

}  // namespace longwire::cli
