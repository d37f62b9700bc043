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

HeldUntil Call::HoldOf() const {
  const bool frees = !is_private && Travels() && kind == Kind::kAtOnce;
  return held_until == HeldUntil::kNothing && frees ? HeldUntil::kFinished : held_until;
}

RunsOn Call::ThreadOf() const {
  if (runs_on != RunsOn::kByKind) return runs_on;
  if (kind == Kind::kAfterReply) return RunsOn::kClientThread;
  return HoldOf() != HeldUntil::kNothing ? RunsOn::kMemoryThread : RunsOn::kLogThread;
}

const Call* Api::Find(const std::string& symbol) const {
  for (const Call& call : calls) {
    if (call.symbol == symbol) return &call;
  }
  return nullptr;
}

}  // namespace longwire::codegen
