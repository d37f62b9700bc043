// Prints encoded calls by tables of their fields: one readable line, whatever the bytes are.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "wire/buffer.h"

namespace longwire::calls {

enum class FieldKind : uint8_t {
  kBool,
  kU8,
  kU16,
  kU32,
  kU64,
  kI32,
  kI64,
  kF32,
  kF64,
  kString,
  kBytes,
  kBlob,
  kRecord
};
enum FieldFlags : uint8_t { kRepeated = 1, kOptional = 2 };

struct FieldInfo {
  const char* name;
  FieldKind kind;
  uint8_t flags;    // FieldFlags
  uint16_t detail;  // bytes of a blob, index of a record
};

using RecordFields = std::span<const std::span<const FieldInfo>>;

// "name=value, name=[value, …]"; ends with "…" where the bytes end too early.
void PrintFields(std::span<const FieldInfo> fields, RecordFields records, wire::Reader& reader,
                 std::string* line);

}  // namespace longwire::calls
