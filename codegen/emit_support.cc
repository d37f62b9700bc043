#include "codegen/emitters.h"
#include "codegen/text.h"

namespace longwire::codegen {
namespace {

const char* Answer(const Call& call) {
  switch (call.kind) {
    case Kind::kAtOnce:
      return "queued";
    case Kind::kAfterReply:
      return "one round trip";
    case Kind::kLocal:
      return "in the client";
    default:
      return "no";
  }
}

// The description is the support statement; this prints it for people.
class SupportEmitter : public Emitter {
 public:
  std::vector<File> Emit(const Api& api) const override {
    int supported = 0, refused = 0;
    std::map<std::string, std::vector<const Call*>> chapters;
    for (const Call& call : api.calls) {
      if (call.is_private) continue;
      chapters[call.chapter].push_back(&call);
      (call.IsUnsupported() ? refused : supported) += 1;
    }
    Text out;
    out.Raw("<!-- Generated from proto/calls: do not edit. -->\n# Driver functions\n\n");
    out.Line(
        "$supported$ functions work, $refused$ are refused: they answer\n"
        "CUDA_ERROR_NOT_SUPPORTED, as a driver does whose device lacks what they need. \"Queued\"\n"
        "returns at once. A form with `_ptds` or `_ptsz` exists where marked.",
        {{"supported", std::to_string(supported)}, {"refused", std::to_string(refused)}});
    for (const auto& [chapter, calls] : chapters) {
      std::string title = chapter;
      for (char& c : title) c = c == '_' ? ' ' : c;
      title[0] = static_cast<char>(std::toupper(title[0]));
      out.Line(
          "\n## $title$\n\n| function | since | per-thread form | answered |\n"
          "| --- | --- | --- | --- |",
          {{"title", title}});
      for (const Call* call : calls) Row(*call, &out);
    }
    return {{"longwire/support.md", out.str()}};
  }

 private:
  static void Row(const Call& call, Text* out) {
    const std::string version =
        std::to_string(call.introduced / 1000) + "." + std::to_string(call.introduced % 1000 / 10);
    out->Line("| `$symbol$` | $version$ | $per_thread$ | $answer$ |",
              {{"symbol", call.symbol},
               {"version", version},
               {"per_thread", call.per_thread == PerThread::kNone
                                  ? ""
                                  : "`" + std::string(call.PerThreadSuffix()) + "`"},
               {"answer", call.IsUnsupported() ? "no: " + call.unsupported : Answer(call)}});
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeSupportEmitter() { return std::make_unique<SupportEmitter>(); }

}  // namespace longwire::codegen
