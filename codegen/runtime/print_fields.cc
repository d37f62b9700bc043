#include "codegen/runtime/print_fields.h"

#include <cstdio>
#include <string_view>

#include "wire/limits.h"

namespace longwire::calls {
namespace {

using wire::WireResult;

constexpr size_t kMaxText = 64;     // of one string, bytes; a line is for reading
constexpr uint32_t kMaxListed = 8;  // elements of one list

template <class T>
WireResult Number(wire::Reader& reader, const char* format, std::string* line) {
  T value{};
  LW_TRY(reader.Raw(&value, sizeof(value)));
  char text[32];
  std::snprintf(text, sizeof(text), format, value);
  *line += text;
  return WireResult::kOk;
}

void Quote(std::string_view text, std::string* line) {
  *line += '"';
  for (const char c : text.substr(0, kMaxText)) *line += c >= ' ' && c < 127 ? c : '.';
  *line += text.size() > kMaxText ? "…\"" : "\"";
}

WireResult Fields(std::span<const FieldInfo> fields, RecordFields records, wire::Reader& reader,
                  std::string* line);

WireResult Element(const FieldInfo& field, RecordFields records, wire::Reader& reader,
                   std::string* line) {
  std::span<const std::byte> view;
  switch (field.kind) {
    case FieldKind::kBool:
    case FieldKind::kU8:
      return Number<unsigned char>(reader, "%u", line);
    case FieldKind::kU16:
      return Number<unsigned short>(reader, "%u", line);
    case FieldKind::kU32:
      return Number<unsigned>(reader, "%u", line);
    case FieldKind::kU64:
      return Number<unsigned long>(reader, "0x%lx", line);
    case FieldKind::kI32:
      return Number<int>(reader, "%d", line);
    case FieldKind::kI64:
      return Number<long>(reader, "%ld", line);
    case FieldKind::kF32:
      return Number<float>(reader, "%g", line);
    case FieldKind::kF64:
      return Number<double>(reader, "%g", line);
    case FieldKind::kString: {
      std::string_view text;
      LW_TRY(reader.String(&text));
      Quote(text, line);
      return WireResult::kOk;
    }
    case FieldKind::kBytes:
      LW_TRY(reader.Bytes(&view));
      break;
    case FieldKind::kBlob:
      LW_TRY(reader.View(field.detail, &view));
      break;
    case FieldKind::kRecord:
      *line += '{';
      LW_TRY(Fields(records[field.detail], records, reader, line));
      *line += '}';
      return WireResult::kOk;
  }
  *line += '<' + std::to_string(view.size()) + " bytes>";
  return WireResult::kOk;
}

WireResult One(const FieldInfo& field, RecordFields records, wire::Reader& reader,
               std::string* line) {
  if (field.flags & kOptional) {
    uint8_t present = 0;
    LW_TRY(reader.U8(&present));
    if (present == 0) {
      *line += "none";
      return WireResult::kOk;
    }
    return Element(field, records, reader, line);
  }
  if (!(field.flags & kRepeated)) return Element(field, records, reader, line);
  uint32_t count = 0;
  LW_TRY(reader.Count(&count, 1, wire::kMaxRecordBytes));
  *line += '[';
  std::string unseen;
  for (uint32_t i = 0; i < count; ++i) {
    unseen.clear();
    std::string* to = i < kMaxListed ? line : &unseen;
    if (i != 0) *to += ", ";
    LW_TRY(Element(field, records, reader, to));
  }
  if (count > kMaxListed) *line += ", … " + std::to_string(count);
  *line += ']';
  return WireResult::kOk;
}

WireResult Fields(std::span<const FieldInfo> fields, RecordFields records, wire::Reader& reader,
                  std::string* line) {
  bool first = true;
  for (const FieldInfo& field : fields) {
    if (!first) *line += ", ";
    first = false;
    *line += field.name;
    *line += '=';
    LW_TRY(One(field, records, reader, line));
  }
  return WireResult::kOk;
}

}  // namespace

void PrintFields(std::span<const FieldInfo> fields, RecordFields records, wire::Reader& reader,
                 std::string* line) {
  if (Fields(fields, records, reader, line) != WireResult::kOk) *line += "…";
}

}  // namespace longwire::calls
