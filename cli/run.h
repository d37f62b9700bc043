// longwire run, also as a step of other commands.
#pragma once

#include <string>

#include "cli/commands.h"

namespace longwire::cli {

// Becomes the program, or returns the exit status with a sentence in the name of the command (run
// or trace). `trace`: what the client's library tells of it, by names with commas between.
int RunProgram(const std::string& command, const Arguments& words, const std::string& trace);

// The options of commands that become a program, and the program's words.
void AddProgram(CommandLine& line, CLI::App& command, Arguments* words);

}  // namespace longwire::cli
