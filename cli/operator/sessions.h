// The sessions of a server in a table, for administrators.
#pragma once

#include <string>

#include "proto/transport.pb.h"

namespace longwire::cli {

// A line for each session below a line of titles.
std::string SessionsText(const transport::InspectReply& reply);
// A list of objects with the fields of transport.proto's Session.
std::string SessionsJson(const transport::InspectReply& reply);

}  // namespace longwire::cli
