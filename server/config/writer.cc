// A configuration as YAML, and the schema as a commented file.
#include <cctype>
#include <string_view>

#include "server/config/config.h"
#include "server/config/schema.h"
#include "server/config/values.h"
#include "wire/guards.h"

namespace longwire::config {
namespace {

// Whether the word can stand alone; what YAML might read as something else is quoted.
bool IsPlain(const std::string& text) {
  if (text.empty() || text.ends_with(':')) return false;
  if (std::isalnum(static_cast<unsigned char>(text[0])) == 0 && text[0] != '/') return false;
  for (char c : text) {
    bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                 std::string_view("_./:+-").find(c) != std::string_view::npos;
    if (!plain) return false;
  }
  return text != "null" && text != "Null" && text != "NULL";
}

std::string Scalar(const std::string& text) {
  if (IsPlain(text)) return text;
  std::string quoted = "\"";
  for (char c : text) {
    bool special = c == '"' || c == '\\';
    if (special && !wire::kPlantedBug) quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

void WriteMessage(const Message& message, const std::string& indent, std::string* out);

void WriteField(const Message& message, const FieldDescriptor* field, const std::string& indent,
                std::string* out) {
  const auto* reflection = message.GetReflection();
  *out += field->name() + ":";
  if (!field->is_repeated()) {
    if (IsBlock(field)) {
      *out += "\n" + indent + "  ";
      return WriteMessage(reflection->GetMessage(message, field), indent + "  ", out);
    }
    *out += " " + Scalar(ValueText(message, field, 0)) + "\n";
    return;
  }
  *out += "\n";
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    *out += indent + "  - ";
    if (IsBlock(field)) {
      WriteMessage(reflection->GetRepeatedMessage(message, field, i), indent + "    ", out);
    } else {
      *out += Scalar(ValueText(message, field, i)) + "\n";
    }
  }
}

// The first key stands where the cursor is, the others behind the indent.
void WriteMessage(const Message& message, const std::string& indent, std::string* out) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i != 0) *out += indent;
    WriteField(message, fields[i], indent, out);
  }
  if (fields.empty()) *out += "{}\n";
}

}  // namespace

std::string Write(const Config& config) {
  std::string text;
  if (config.ByteSizeLong() != 0) WriteMessage(config, "", &text);
  return text;
}

}  // namespace longwire::config
