// One question to the server: what there is for this program.
#pragma once

#include <string>

#include "client-shim/connect/options.h"
#include "wire/view.h"

namespace longwire::nvml {

// False with a sentence for people when there is no answer within five seconds, or a refusal.
bool AskServer(const shim::Options& options, wire::ViewReply* reply, std::string* sentence);

}  // namespace longwire::nvml
