// What a server has counted of programs, as it comes over the network.
#pragma once

#include <string>
#include <vector>

#include "proto/transport.pb.h"
#include "server/statistics/advice.h"

namespace longwire::cli {

// True if `wanted`, a pattern, is of the program's path or its last part.
bool IsProgram(const transport::ProgramFigures& program, const std::string& wanted);
// "train.py" of "/home/a/train.py".
std::string LastPart(const std::string& program);

// One program of several tenants, or several of one pattern, are one each.
std::vector<transport::ProgramFigures> ProgramsOf(const transport::InspectReply& reply,
                                                  const std::string& wanted);

statistics::KernelKey KeyOf(const transport::KernelFigures& kernel);
statistics::KernelFigures FiguresOf(const transport::KernelFigures& kernel);
statistics::ProgramSeen SeenOf(const transport::ProgramFigures& program);

// Why nothing is known, and what to do.
std::string NothingCounted(const transport::InspectReply& reply, const std::string& wanted);

}  // namespace longwire::cli
