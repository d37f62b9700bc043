#include "server/pool/unknown_members.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

namespace longwire::pool {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::ListValue;
using google::protobuf::Message;
using google::protobuf::Struct;
using google::protobuf::Value;

const FieldDescriptor* NotedIn(const Message& record) {
  return record.GetDescriptor()->FindFieldByName("unknown_members");
}

const FieldDescriptor* FieldOf(const Descriptor& record, const std::string& name) {
  for (int i = 0; i < record.field_count(); ++i) {
    if (record.field(i)->json_name() == name || record.field(i)->name() == name) {
      return record.field(i);
    }
  }
  return nullptr;
}

void Keep(const Struct& before, const Descriptor& record, Struct* now);

void KeepInList(const ListValue& before, const Descriptor& record, ListValue* now) {
  // Else it is not known which is which.
  if (before.values_size() != now->values_size()) return;
  for (int i = 0; i < now->values_size(); ++i) {
    if (!before.values(i).has_struct_value() || !now->values(i).has_struct_value()) continue;
    Keep(before.values(i).struct_value(), record, now->mutable_values(i)->mutable_struct_value());
  }
}

void Keep(const Struct& before, const Descriptor& record, Struct* now) {
  for (const auto& [name, value] : before.fields()) {
    const FieldDescriptor* field = FieldOf(record, name);
    if (field == nullptr) {
      (*now->mutable_fields())[name] = value;
      continue;
    }
    auto known = now->mutable_fields()->find(name);
    if (field->message_type() == nullptr || field->is_map() ||
        known == now->mutable_fields()->end()) {
      continue;
    }
    Value& to = known->second;
    if (value.has_list_value() && to.has_list_value()) {
      KeepInList(value.list_value(), *field->message_type(), to.mutable_list_value());
    } else if (value.has_struct_value() && to.has_struct_value()) {
      Keep(value.struct_value(), *field->message_type(), to.mutable_struct_value());
    }
  }
}

}  // namespace

void NoteText(const std::string& text, Message* record) {
  const FieldDescriptor* noted = NotedIn(*record);
  if (noted == nullptr) return;
  record->GetReflection()->ClearField(record, noted);
  if (!text.empty()) record->GetReflection()->SetString(record, noted, text);
}

std::string WithUnknownMembers(const Message& record, std::string text) {
  const FieldDescriptor* noted = NotedIn(record);
  if (noted == nullptr || !record.GetReflection()->HasField(record, noted)) return text;
  Struct before, now;
  std::string whole;
  const std::string earlier = record.GetReflection()->GetString(record, noted);
  if (!google::protobuf::util::JsonStringToMessage(earlier, &before).ok() ||
      !google::protobuf::util::JsonStringToMessage(text, &now).ok()) {
    return text;
  }
  now.mutable_fields()->erase(noted->json_name());
  Keep(before, *record.GetDescriptor(), &now);
  return google::protobuf::util::MessageToJsonString(now, &whole).ok() ? whole : text;
}

}  // namespace longwire::pool
