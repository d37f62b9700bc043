// Single values as they stand in the file: text to a field of a message and back.
#pragma once

#include <string>

#include "server/config/schema.h"

namespace longwire::config {

// Sets the field, or adds to it if it is repeated. False when the text is not what
// ExpectedValue(field) says; *hint may say more then.
bool SetValue(const std::string& text, const FieldDescriptor* field, Message* message,
              std::string* hint);

// The value as the file would have it, not quoted; `index` counts in a repeated field.
std::string ValueText(const Message& message, const FieldDescriptor* field, int index);

}  // namespace longwire::config
