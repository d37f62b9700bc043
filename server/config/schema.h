// What proto/config.proto says about each key, as the reader, the writer and the errors need it.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/config.pb.h"

namespace longwire::config {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kLongestName = 64;

const Entry& EntryOf(const FieldDescriptor* field);

// True if the field's value is a mapping of its own.
bool IsBlock(const FieldDescriptor* field);
// A block that is there only when the file has it: it has keys without which it means nothing.
bool IsOptionalBlock(const FieldDescriptor* field);

// Completes "expected …": of one value, and of all that may stand behind the key.
std::string ExpectedValue(const FieldDescriptor* field);
std::string Expected(const FieldDescriptor* field);

// The largest number that the field takes; for text the largest length, 0: any.
uint64_t LargestValue(const FieldDescriptor* field);

// The field that a file calls `key`, by its name or its former one; nullptr if there is none.
const FieldDescriptor* FieldOf(const google::protobuf::Descriptor* message, const std::string& key);
std::vector<std::string> KeysOf(const google::protobuf::Descriptor* message);
// The known word that somebody who wrote `word` probably meant; empty if none is close.
std::string Closest(const std::string& word, const std::vector<std::string>& known);

}  // namespace longwire::config
