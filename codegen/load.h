// Descriptors of the description's files to the typed model.
#pragma once

#include <string>
#include <vector>

#include "codegen/model.h"

namespace google::protobuf {
class FileDescriptor;
}

namespace longwire::codegen {

// Wire numbers: lines "number symbol"; # starts a comment.
std::map<std::string, int> ReadNumbers(const std::string& path, Errors* errors);

Api Load(const std::vector<const google::protobuf::FileDescriptor*>& files,
         const std::map<std::string, int>& numbers, Errors* errors);

}  // namespace longwire::codegen
