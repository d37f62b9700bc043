// The commands of longwire. Each describes itself to the command line, with what it does.
#pragma once

#include "cli/command_line/command_line.h"

namespace longwire::cli {

void AddAdmin(CommandLine& line);
void AddAdvise(CommandLine& line);
void AddBench(CommandLine& line);
void AddCert(CommandLine& line);
void AddCompletion(CommandLine& line);
void AddConfig(CommandLine& line);
void AddDoctor(CommandLine& line);
void AddInvite(CommandLine& line);
void AddJoin(CommandLine& line);
void AddMemory(CommandLine& line);
void AddPolicy(CommandLine& line);
void AddPool(CommandLine& line);
void AddProbe(CommandLine& line);
void AddRules(CommandLine& line);
void AddRun(CommandLine& line);
void AddStatus(CommandLine& line);
void AddTop(CommandLine& line);
void AddTrace(CommandLine& line);
void AddUsage(CommandLine& line);
void AddVersion(CommandLine& line);

}  // namespace longwire::cli
