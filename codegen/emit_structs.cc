#include <algorithm>

#include "codegen/emitters.h"
#include "codegen/text.h"

namespace longwire::codegen {
namespace {

// Bytes that a field takes if every value of it takes the same number, else 0.
int RunBytes(const WireField& field) {
  return field.repeated || field.optional ? 0 : FixedBytes(field);
}

// The fewest bytes that a field can take.
int LeastBytes(const WireField& field) {
  if (field.optional) return 1;
  if (RunBytes(field) != 0) return RunBytes(field);
  return field.element == "record" && !field.repeated ? 1 : 4;
}

void Members(const std::vector<WireField>& fields, const std::string& indent, Text* out) {
  for (const WireField& field : fields) {
    const bool plain = CppType(field) == ElementType(field) && FixedBytes(field) != 0;
    const char* initial = !plain ? "" : field.element == "blob" ? "{}" : " = 0";
    out->Line(indent + "$type$ $name$$initial$;",
              {{"type", CppType(field)},
               {"name", field.name},
               {"initial", field.element == "bool" && plain ? " = false" : initial}});
  }
}

// Whether a declaration of struct members needs the encoding functions.
void Functions(const std::string& indent, Text* out) {
  out->Line(indent + "void Encode(wire::Writer& writer) const;");
  out->Line(indent + "wire::WireResult Decode(wire::Reader& reader);");
  out->Line(indent + "size_t EncodedBytes() const;  // what Encode will append");
}

void DeclareRecord(const Record& record, Text* out) {
  out->Line("struct $name$ {", {{"name", record.name}});
  int least = 0;
  for (const WireField& field : record.fields) least += LeastBytes(field);
  out->Line("  static constexpr size_t kLeastBytes = $least$;", {{"least", std::to_string(least)}});
  Members(record.fields, "  ", out);
  Functions("  ", out);
  out->Line("};\n");
}

void DeclareCall(const Call& call, Text* out) {
  out->Line("struct $name$ {\n  static constexpr CallId kId = CallId::$name$;",
            {{"name", call.symbol}});
  Members(call.request, "  ", out);
  if (call.reply.empty()) {
    out->Line("  using Reply = Empty;");
  } else {
    out->Line("  struct Reply {");
    Members(call.reply, "    ", out);
    Functions("    ", out);
    out->Line("  };");
  }
  Functions("  ", out);
  out->Line("};\n");
}

// Calls visit(first, last, bytes) for every stretch of neighbours: of fixed size together
// (bytes > 0), or one field by itself.
template <class Visit>
void ForEachRun(const std::vector<WireField>& fields, Visit visit) {
  size_t at = 0;
  while (at < fields.size()) {
    size_t end = at;
    int bytes = 0;
    while (end < fields.size() && RunBytes(fields[end]) != 0) bytes += RunBytes(fields[end++]);
    if (end == at) ++end;
    visit(at, end, bytes);
    at = end;
  }
}

// Names of generated variables end with _, so that no field has the same.
void DefineEncode(const std::string& name, const std::vector<WireField>& fields, Text* out) {
  out->Line("void $name$::Encode(wire::Writer& writer_) const {", {{"name", name}});
  ForEachRun(fields, [&](size_t at, size_t end, int bytes) {
    if (bytes == 0) {
      out->Line("  Put(writer_, $field$);", {{"field", fields[at].name}});
      return;
    }
    out->Line("  if (std::byte* at_ = writer_.Grow($bytes$)) {",
              {{"bytes", std::to_string(bytes)}});
    for (; at < end; ++at) out->Line("    Store(at_, $field$);", {{"field", fields[at].name}});
    out->Line("  }");
  });
  out->Line("}\n");
}

void DefineDecode(const std::string& name, const std::vector<WireField>& fields, Text* out) {
  out->Line("wire::WireResult $name$::Decode(wire::Reader& reader_) {", {{"name", name}});
  const bool any_run = std::any_of(fields.begin(), fields.end(),
                                   [](const WireField& field) { return RunBytes(field) != 0; });
  if (any_run) out->Line("  std::span<const std::byte> view_;\n  const std::byte* at_ = nullptr;");
  ForEachRun(fields, [&](size_t at, size_t end, int bytes) {
    if (bytes == 0) {
      out->Line("  LW_TRY(Get(reader_, &$field$));", {{"field", fields[at].name}});
      return;
    }
    out->Line("  LW_TRY(reader_.View($bytes$, &view_));\n  at_ = view_.data();",
              {{"bytes", std::to_string(bytes)}});
    for (; at < end; ++at) out->Line("  Load(at_, &$field$);", {{"field", fields[at].name}});
  });
  out->Line("  return wire::WireResult::kOk;\n}\n");
}

void DefineSize(const std::string& name, const std::vector<WireField>& fields, Text* out) {
  int fixed = 0;
  std::string sum;
  for (const WireField& field : fields) {
    fixed += RunBytes(field);
    if (RunBytes(field) == 0) sum += " + Size(" + field.name + ")";
  }
  out->Line("size_t $name$::EncodedBytes() const { return $fixed$$sum$; }\n",
            {{"name", name}, {"fixed", std::to_string(fixed)}, {"sum", sum}});
}

void Define(const std::string& name, const std::vector<WireField>& fields, Text* out) {
  DefineSize(name, fields, out);
  DefineEncode(name, fields, out);
  DefineDecode(name, fields, out);
}

constexpr char kHeaderHead[] = R"(#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "longwire/call_ids.h"
#include "wire/buffer.h"

// Decoded strings and byte spans point into the buffer that was decoded.
namespace longwire::calls {

// The reply of calls without results.
struct Empty {
  void Encode(wire::Writer&) const {}
  wire::WireResult Decode(wire::Reader&) { return wire::WireResult::kOk; }
  size_t EncodedBytes() const { return 0; }
};

)";

constexpr char kSourceHead[] = R"(#include "longwire/calls.h"

#include "codegen/runtime/encoding.h"

namespace longwire::calls {

)";

class StructsEmitter : public Emitter {
 public:
  std::vector<File> Emit(const Api& api) const override {
    Text header;
    header.Raw(FileHead("The calls' parameters and results as they travel.", true));
    header.Raw(kHeaderHead);
    for (const Record& record : api.records) DeclareRecord(record, &header);
    std::vector<Text> sources(kStructParts);
    for (Text& source : sources) {
      source.Raw(FileHead("Encoding and decoding of the calls.", false));
      source.Raw(kSourceHead);
    }
    for (const Record& record : api.records) Define(record.name, record.fields, &sources[0]);
    size_t next = 0;
    for (const Call& call : api.calls) {
      if (!call.Travels()) continue;
      Text& source = sources[next++ % kStructParts];
      DeclareCall(call, &header);
      Define(call.symbol, call.request, &source);
      if (!call.reply.empty()) Define(call.symbol + "::Reply", call.reply, &source);
    }
    header.Raw("}  // namespace longwire::calls\n");
    std::vector<File> files = {{"longwire/calls.h", header.str()}};
    for (Text& source : sources) {
      source.Raw("}  // namespace longwire::calls\n");
      files.push_back({"longwire/calls_" + std::to_string(files.size()) + ".cc", source.str()});
    }
    return files;
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeStructsEmitter() { return std::make_unique<StructsEmitter>(); }

}  // namespace longwire::codegen
