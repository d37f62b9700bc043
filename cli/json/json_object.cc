#include "cli/json/json_object.h"

#include <cstdio>

#include "cli/text.h"

namespace longwire::cli {

JsonObject& JsonObject::AddValue(std::string_view name, std::string_view json) {
  if (!fields_.empty()) fields_ += ",";
  fields_ += JsonString(name) + ":" + std::string(json);
  return *this;
}

JsonObject& JsonObject::Add(std::string_view name, std::string_view text) {
  return AddValue(name, JsonString(text));
}

JsonObject& JsonObject::Add(std::string_view name, const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ",") + JsonString(text);
  return AddValue(name, "[" + list + "]");
}

JsonObject& JsonObject::Add(std::string_view name, uint64_t number) {
  return AddValue(name, std::to_string(number));
}

JsonObject& JsonObject::Add(std::string_view name, bool value) {
  return AddValue(name, value ? "true" : "false");
}

void JsonObject::Print() const { std::printf("%s\n", Text().c_str()); }

}  // namespace longwire::cli
