// For --json: messages with the names of their descriptions, such as proto/transport.proto.
#pragma once

#include <string>

#include "proto/transport.pb.h"

namespace longwire::cli {

// All fields of a message, those without a value too.
std::string MessageJson(const google::protobuf::Message& message);

// One object: the server's address and the daemon's fields, then devices, sessions, tenants,
// scheduler, calls. Fields that are 0 are included; numbers are not quoted.
std::string StatusJson(const std::string& server, const transport::InspectReply& reply);

}  // namespace longwire::cli
