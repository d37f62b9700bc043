#include "codegen/emitters.h"
#include "codegen/text.h"

namespace longwire::codegen {
namespace {

std::string KindOf(const WireField& field) {
  const std::string& element = field.element;
  if (element == "bool") return "kBool";
  if (element == "string") return "kString";
  if (element == "bytes") return "kBytes";
  if (element == "blob") return "kBlob";
  if (element == "record") return "kRecord";
  return std::string("k") + static_cast<char>(std::toupper(element[0])) + element.substr(1);
}

void Fields(const Api& api, const std::vector<WireField>& fields, Text* out) {
  for (const WireField& field : fields) {
    int detail = field.bytes;
    for (size_t i = 0; i < api.records.size(); ++i) {
      if (field.element == "record" && api.records[i].name == field.record) {
        detail = static_cast<int>(i);
      }
    }
    out->Line("    {\"$name$\", FieldKind::$kind$, $flags$, $detail$},",
              {{"name", field.name},
               {"kind", KindOf(field)},
               {"flags", field.repeated   ? "kRepeated"
                         : field.optional ? "kOptional"
                                          : "0"},
               {"detail", std::to_string(detail)}});
  }
}

constexpr char kHeader[] = R"(#include <string>

#include "longwire/call_ids.h"
#include "wire/buffer.h"

namespace longwire {

// E.g. cuGraphUpload(hGraph=0x3). Whatever the bytes are, it answers with a line.
std::string PrintCall(CallId id, wire::Reader arguments);

}  // namespace longwire
)";

class PrinterEmitter : public Emitter {
 public:
  std::vector<File> Emit(const Api& api) const override {
    Text header, out;
    header.Raw(FileHead("One readable line for an encoded call.", true));
    header.Raw(kHeader);
    out.Raw(FileHead("One readable line for an encoded call.", false));
    out.Raw(
        "#include \"longwire/printer.h\"\n\n#include \"codegen/runtime/print_fields.h\"\n\n"
        "namespace longwire {\nnamespace {\n\nusing namespace calls;\n\n");
    std::string records;
    for (const Record& record : api.records) {
      out.Line("constexpr FieldInfo k$name$Fields[] = {", {{"name", record.name}});
      Fields(api, record.fields, &out);
      out.Line("};");
      records += "k" + record.name + "Fields, ";
    }
    if (records.empty()) records = "std::span<const FieldInfo>()";
    out.Line("constexpr std::span<const FieldInfo> kRecords[] = {$records$};\n",
             {{"records", records}});
    Text rows;
    EmitTables(api, &out, &rows);
    out.Raw(
        "}  // namespace\n\nstd::string PrintCall(CallId id, wire::Reader arguments) {\n"
        "  static constexpr std::span<const FieldInfo> kCalls[] = {\n      {},\n");
    out.Raw(rows.str());
    out.Raw(R"(  };
  const size_t number = static_cast<size_t>(id);
  std::string line = CallName(id);
  line += '(';
  if (number < std::size(kCalls)) PrintFields(kCalls[number], kRecords, arguments, &line);
  return line + ')';
}

}  // namespace longwire
)");
    return {{"longwire/printer.h", header.str()}, {"longwire/printer.cc", out.str()}};
  }

 private:
  static void EmitTables(const Api& api, Text* tables, Text* rows) {
    int last = 0;
    for (const Call& call : api.calls) {
      while (++last < call.number) rows->Line("      {},");
      if (!call.Travels() || call.request.empty()) {
        rows->Line("      {},");
        continue;
      }
      tables->Line("constexpr FieldInfo k$name$[] = {", {{"name", call.symbol}});
      Fields(api, call.request, tables);
      tables->Line("};");
      rows->Line("      k$name$,", {{"name", call.symbol}});
    }
  }
};

}  // namespace

std::unique_ptr<Emitter> MakePrinterEmitter() { return std::make_unique<PrinterEmitter>(); }

}  // namespace longwire::codegen
