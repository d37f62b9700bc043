// The functions of a PTX text that a program can launch.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "server/worker/support/parameter_place.h"

namespace longwire::worker {

// Adds them; one whose parameters cannot be read is left out.
void FunctionsOfPtx(std::string_view text, std::map<std::string, FunctionParameters>* functions);

}  // namespace longwire::worker
