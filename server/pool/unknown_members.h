// Records in etcd may be of a newer version, with members that this one does not know. Whoever
// changes such a record keeps them: a record with a field `unknown_members` carries its text along.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace longwire::pool {

// Notes that the record was read from this text, which has members that it does not know; or that
// it has none (empty).
void NoteText(const std::string& text, google::protobuf::Message* record);
// `text`: the record as JSON. With the members that were noted and that it does not know.
std::string WithUnknownMembers(const google::protobuf::Message& record, std::string text);

}  // namespace longwire::pool
