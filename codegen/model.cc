#include "codegen/model.h"

namespace longwire::codegen {

std::string Parameter::CType() const {
  if (!c_type.empty()) return c_type;
  if (type->kind == TypeKind::kString) return out ? "char*" : "const char*";
  if (out || inout) return type->c + "*";
  if (in || !count.empty()) return "const " + type->c + "*";
  return type->c;
}

bool Call::Travels() const {
  if (is_private) return true;
  if (IsUnsupported() || !same_as.empty()) return false;
  return body != Body::kHandWritten;
}

bool Call::HasHandBody() const {
  return !is_private && !IsUnsupported() && same_as.empty() && body != Body::kGenerated;
}

const Call* Api::Find(const std::string& symbol) const {
  for (const Call& call : calls) {
    if (call.symbol == symbol) return &call;
  }
  return nullptr;
}

}  // namespace longwire::codegen
