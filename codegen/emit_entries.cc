#include "codegen/emitters.h"
#include "codegen/text.h"

namespace longwire::codegen {
namespace {

constexpr char kHead[] = R"(#include "client-shim/entry/entry.h"
#include "longwire/shim_hand_written.h"

#define LONGWIRE_EXPORT __attribute__((visibility("default")))

using longwire::CallId;
namespace shim = longwire::shim;

namespace {

// In functions for per-thread default streams, stream 0 is the thread's own.
[[maybe_unused]] CUstream PerThread(CUstream stream) {
  return stream == nullptr ? CU_STREAM_PER_THREAD : stream;
}

}  // namespace

extern "C" {

)";

// Null pointers that the call may not have: "a == nullptr || b == nullptr".
std::string NullChecks(const Call& call) {
  std::string checks;
  for (const Parameter& parameter : call.parameters) {
    if (parameter.nullable || parameter.role == Role::kNone) continue;
    const bool needed = parameter.role == Role::kOut || parameter.role == Role::kInOut ||
                        parameter.role == Role::kIn || parameter.role == Role::kInString ||
                        parameter.role == Role::kOutString;
    if (needed) checks += (checks.empty() ? "" : " || ") + parameter.name + " == nullptr";
  }
  return checks;
}

void RefuseNull(const Call& call, bool behind_pointers, Text* out) {
  for (const Parameter& parameter : call.parameters) {
    if (parameter.if_null.empty() || parameter.behind_pointers != behind_pointers) continue;
    out->Line("  if ($name$ == nullptr) return entry_.Done($code$);",
              {{"name", parameter.name}, {"code", parameter.if_null}});
  }
}

void RefuseNulls(const Call& call, Text* out) {
  RefuseNull(call, false, out);
  const std::string checks = NullChecks(call);
  if (!checks.empty()) {
    out->Line("  if ($checks$) return entry_.Done(CUDA_ERROR_INVALID_VALUE);",
              {{"checks", checks}});
  }
  RefuseNull(call, true, out);
}

class EntriesEmitter : public Emitter {
 public:
  std::vector<File> Emit(const Api& api) const override {
    std::vector<Text> sources(kEntryParts);
    for (Text& source : sources) {
      source.Raw(FileHead("The exported functions of the client's library.", false));
      source.Raw(kHead);
    }
    size_t next = 0;
    for (const Call& call : api.calls) {
      if (call.is_private) continue;
      Text& source = sources[next++ % kEntryParts];
      const Call& body = call.same_as.empty() ? call : *api.Find(call.same_as);
      Define(call, body, false, &source);
      if (call.per_thread != PerThread::kNone) Define(call, body, true, &source);
    }
    std::vector<File> files;
    for (Text& source : sources) {
      source.Raw("}  // extern \"C\"\n");
      files.push_back(
          {"longwire/shim_entries_" + std::to_string(files.size() + 1) + ".cc", source.str()});
    }
    return files;
  }

 private:
  static void Define(const Call& call, const Call& body, bool per_thread, Text* out) {
    std::string symbol = call.symbol;
    if (per_thread) symbol += call.PerThreadSuffix();
    out->Line("LONGWIRE_EXPORT CUresult $symbol$($parameters$) {",
              {{"symbol", symbol}, {"parameters", ParameterList(call)}});
    if (call.IsUnsupported()) {
      out->Line("  return shim::Refuse(CallId::$id$);\n}\n", {{"id", call.symbol}});
      return;
    }
    out->Line("  shim::Entry entry_(CallId::$id$$needs$);",
              {{"id", call.symbol},
               {"needs", body.without_session.empty() ? "" : ", shim::Needs::kNoSession"}});
    if (body.looks_first) RefuseNulls(body, out);
    out->Line("  if (!entry_.ok()) return entry_.code();");
    if (!body.looks_first) RefuseNulls(body, out);
    if (body.needs_context) {
      out->Line(
          "  if (!shim::HasCurrentContext()) return entry_.Done(CUDA_ERROR_INVALID_CONTEXT);");
    }
    std::string arguments = ArgumentList(call, per_thread);
    if (body.implicit_stream) {
      arguments += std::string(arguments.empty() ? "" : ", ") +
                   (per_thread ? "CU_STREAM_PER_THREAD" : "CU_STREAM_LEGACY");
    }
    out->Line("  return entry_.Done(shim::$where$::$body$($arguments$));\n}\n",
              {{"where", body.HasHandBody() ? "hand" : "forward"},
               {"body", body.symbol},
               {"arguments", arguments}});
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeEntriesEmitter() { return std::make_unique<EntriesEmitter>(); }

}  // namespace longwire::codegen
