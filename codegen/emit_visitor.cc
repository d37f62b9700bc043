#include "codegen/emitters.h"
#include "codegen/text.h"

namespace longwire::codegen {
namespace {

void VisitFunction(const std::string& type, const std::vector<WireField>& fields, Text* out) {
  out->Line(
      "template <class Visitor>\nvoid VisitFields([[maybe_unused]] $type$& value,\n"
      "                 [[maybe_unused]] Visitor&& visitor) {",
      {{"type", type}});
  for (const WireField& field : fields) {
    out->Line("  visitor(\"$name$\", value.$name$);", {{"name", field.name}});
  }
  out->Line("}\n");
}

// Tests walk over everything that travels with these; nothing else includes the file.
class VisitorEmitter : public Emitter {
 public:
  std::vector<File> Emit(const Api& api) const override {
    Text out;
    out.Raw(FileHead("Visitors over all calls that travel and over their fields.", true));
    out.Raw("#include \"longwire/calls.h\"\n\nnamespace longwire::calls {\n\n");
    out.Line("template <class Visitor>\nvoid VisitFields(Empty&, Visitor&&) {}\n");
    for (const Record& record : api.records) VisitFunction(record.name, record.fields, &out);
    for (const Call& call : api.calls) {
      if (!call.Travels()) continue;
      VisitFunction(call.symbol, call.request, &out);
      if (!call.reply.empty()) VisitFunction(call.symbol + "::Reply", call.reply, &out);
    }
    out.Line("// visitor.template operator()<Call>(name) for every call that travels.");
    out.Line("template <class Visitor>\nvoid ForEachCall(Visitor&& visitor) {");
    for (const Call& call : api.calls) {
      if (call.Travels()) {
        out.Line("  visitor.template operator()<$name$>(\"$name$\");", {{"name", call.symbol}});
      }
    }
    out.Raw("}\n\n}  // namespace longwire::calls\n");
    return {{"longwire/for_each_call.h", out.str()}};
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeVisitorEmitter() { return std::make_unique<VisitorEmitter>(); }

}  // namespace longwire::codegen
