#include "cli/status_json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "cli/text.h"

namespace longwire::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string FieldsOf(const Message& message);

// The highest number stands for no limit.
std::string UnlessUnlimited(uint64_t value) {
  return value == UINT64_MAX ? "null" : std::to_string(value);
}

// The field's value, or the index-th of a repeated one (else -1).
std::string ValueOf(const Message& message, const FieldDescriptor& field, int index) {
  const auto& of = *message.GetReflection();
  auto pick = [&](auto single, auto repeated) {
    return index < 0 ? (of.*single)(message, &field) : (of.*repeated)(message, &field, index);
  };
  using R = google::protobuf::Reflection;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return pick(&R::GetBool, &R::GetRepeatedBool) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_INT32:
      return std::to_string(pick(&R::GetInt32, &R::GetRepeatedInt32));
    case FieldDescriptor::CPPTYPE_UINT32:
      return std::to_string(pick(&R::GetUInt32, &R::GetRepeatedUInt32));
    case FieldDescriptor::CPPTYPE_INT64:
      return std::to_string(pick(&R::GetInt64, &R::GetRepeatedInt64));
    case FieldDescriptor::CPPTYPE_UINT64:
      return UnlessUnlimited(pick(&R::GetUInt64, &R::GetRepeatedUInt64));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return std::to_string(pick(&R::GetDouble, &R::GetRepeatedDouble));
    case FieldDescriptor::CPPTYPE_STRING:
      return JsonString(pick(&R::GetString, &R::GetRepeatedString));
    case FieldDescriptor::CPPTYPE_ENUM:
      return JsonString(pick(&R::GetEnum, &R::GetRepeatedEnum)->name());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "{" +
             FieldsOf(index < 0 ? of.GetMessage(message, &field)
                                : of.GetRepeatedMessage(message, &field, index)) +
             "}";
    default:
      return "null";  // the description has no other types
  }
}

// What is absent is not known, which is not 0. Other messages that are absent have always been
// shown with nothing in them.
bool MayBeAbsent(const FieldDescriptor& field) {
  if (field.is_repeated()) return false;
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return field.has_presence();
  const google::protobuf::Descriptor* type = field.message_type();
  return type == transport::DeviceHealth::descriptor() ||
         type == transport::ThrottleReasons::descriptor() ||
         type == transport::XidErrors::descriptor() ||
         type == transport::PoolWithdrawal::descriptor();
}

std::string FieldText(const Message& message, const FieldDescriptor& field) {
  std::string text = JsonString(field.name()) + ":";
  const bool absent = MayBeAbsent(field) && !message.GetReflection()->HasField(message, &field);
  if (absent) return text + "null";
  if (!field.is_repeated()) return text + ValueOf(message, field, -1);
  std::string list;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    list += (i == 0 ? "" : ",") + ValueOf(message, field, i);
  }
  return text + "[" + list + "]";
}

// Without the braces.
std::string FieldsOf(const Message& message) {
  std::string text;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    text += (i == 0 ? "" : ",") + FieldText(message, *message.GetDescriptor()->field(i));
  }
  return text;
}

}  // namespace

std::string MessageJson(const Message& message) { return "{" + FieldsOf(message) + "}"; }

std::string StatusJson(const std::string& server, const transport::InspectReply& reply) {
  std::string text = "{\"server\":" + JsonString(server) + "," + FieldsOf(reply.daemon());
  for (int i = 0; i < reply.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *reply.GetDescriptor()->field(i);
    if (field.name() != "daemon") text += "," + FieldText(reply, field);
  }
  return text + "}";
}

}  // namespace longwire::cli
