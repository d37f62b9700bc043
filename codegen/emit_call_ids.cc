#include "codegen/emitters.h"
#include "codegen/options.h"
#include "codegen/text.h"

namespace longwire::codegen {
namespace {

const char* KindName(const Call& call) {
  switch (call.kind) {
    case Kind::kAtOnce:
      return "kAtOnce";
    case Kind::kAfterReply:
      return "kAfterReply";
    case Kind::kLocal:
      return "kLocal";
    default:
      return "kUnsupported";
  }
}

const char* ThreadName(const Call& call) {
  switch (call.ThreadOf()) {
    case RunsOn::kLinkerThread:
      return "kLinkerThread";
    case RunsOn::kMemoryThread:
      return "kMemoryThread";
    case RunsOn::kClientThread:
      return "kClientThread";
    default:
      return "kLogThread";
  }
}

const char* HoldName(const Call& call) {
  switch (call.HoldOf()) {
    case HeldUntil::kIssued:
      return "kIssued";
    case HeldUntil::kFinished:
      return "kFinished";
    case HeldUntil::kStreamDrained:
      return "kStreamDrained";
    default:
      return "kNothing";
  }
}

// The constants of what is true of the call: "| kPrivate | kGated".
std::string Flags(const Call& call) {
  std::string flags;
  for (const Option& option : BoolOptions()) {
    if (option.predicate != nullptr && call.*option.member) flags += " | " + ConstantOf(option);
  }
  if (call.is_private) flags += " | kPrivate";
  if (call.kind == Kind::kLocal) flags += " | kAllowedInHostFunction";
  return flags;
}

constexpr char kHeader[] = R"(#include <cstddef>
#include <cstdint>
#include <iterator>

namespace longwire {

// When the client may return.
enum class CallKindValue : uint8_t { kAtOnce, kAfterReply, kLocal, kUnsupported };

// The worker's thread that runs a call outside streams.
enum class CallThread : uint8_t { kLogThread, kClientThread, kLinkerThread, kMemoryThread };

// What the worker waits for before it runs a call outside streams: that the calls before it in the
// log are issued, or finished, or that the stream which it destroys has drained.
enum class CallHold : uint8_t { kNothing, kIssued, kFinished, kStreamDrained };

// Published numbers: they never change meaning. 0 is no call.
enum class CallId : uint16_t {
  kNone = 0,
)";

constexpr char kFactsHead[] = R"(};

// One word for each call: kind, thread, hold, and what is true of it.
namespace facts {

constexpr uint32_t Word(CallKindValue kind, CallThread thread, CallHold hold) {
  return static_cast<uint32_t>(kind) | static_cast<uint32_t>(thread) << 2 |
         static_cast<uint32_t>(hold) << 4;
}

)";

constexpr char kFactsEnd[] = R"(};

constexpr uint32_t Of(CallId id) {
  const auto number = static_cast<size_t>(id);
  return kOf[number < std::size(kOf) ? number : 0];
}

}  // namespace facts

// "?" for a number that is no call.
const char* CallName(CallId id);
// Why an unsupported call is refused; "" for the others.
const char* CallRefusal(CallId id);
constexpr CallKindValue CallKind(CallId id) {
  return static_cast<CallKindValue>(facts::Of(id) & 3);
}
constexpr CallThread CallRunsOn(CallId id) {
  return static_cast<CallThread>(facts::Of(id) >> 2 & 3);
}
constexpr CallHold CallHeldUntil(CallId id) {
  return static_cast<CallHold>(facts::Of(id) >> 4 & 3);
}
// One of Longwire's own calls; the others are functions of the driver.
constexpr bool CallIsPrivate(CallId id) { return (facts::Of(id) & facts::kPrivate) != 0; }
// A host function may call it: what is answered in the client waits for nothing.
constexpr bool AllowedInHostFunction(CallId id) {
  return (facts::Of(id) & facts::kAllowedInHostFunction) != 0;
}
)";

constexpr char kSourceHead[] = R"(#include "longwire/call_ids.h"

namespace longwire {
namespace {

struct Words {
  const char* name;
  const char* refusal;
};

constexpr Words kCalls[] = {
)";

constexpr char kSourceEnd[] = R"(};

const Words& Of(CallId id) {
  const auto number = static_cast<size_t>(id);
  return kCalls[number < std::size(kCalls) ? number : 0];
}

}  // namespace

const char* CallName(CallId id) { return Of(id).name; }
const char* CallRefusal(CallId id) { return Of(id).refusal; }

}  // namespace longwire
)";

// The first bit behind kind, thread and hold.
constexpr int kFirstFlag = 6;

void EmitFlags(Text* out) {
  int bit = kFirstFlag;
  const auto add = [&](const std::string& name) {
    out->Line("inline constexpr uint32_t $name$ = uint32_t{1} << $bit$;",
              {{"name", name}, {"bit", std::to_string(bit++)}});
  };
  add("kPrivate");
  add("kAllowedInHostFunction");
  for (const Option& option : BoolOptions()) {
    if (option.predicate != nullptr) add(ConstantOf(option));
  }
}

void EmitPredicates(Text* out) {
  for (const Option& option : BoolOptions()) {
    if (option.predicate == nullptr) continue;
    out->Line(
        "// $comment$\nconstexpr bool $predicate$(CallId id) {\n"
        "  return (facts::Of(id) & facts::$constant$) != 0;\n}",
        {{"comment", option.comment},
         {"predicate", option.predicate},
         {"constant", ConstantOf(option)}});
  }
}

// Numbers that no call has: "?", nothing is true of it.
constexpr char kNoFacts[] =
    "    Word(CallKindValue::kUnsupported, CallThread::kLogThread, CallHold::kNothing),";
constexpr char kNoWords[] = "  {\"?\", \"\"},";

class CallIdsEmitter : public Emitter {
 public:
  std::vector<File> Emit(const Api& api) const override {
    Text ids, table, source;
    source.Raw(FileHead("Names of the calls, and why some are refused.", false));
    source.Raw(kSourceHead);
    source.Line(kNoWords);
    table.Line("inline constexpr uint32_t kOf[] = {");
    table.Line(kNoFacts);
    int last = 0;
    for (const Call& call : api.calls) {
      ids.Line("  $name$ = $number$,",
               {{"name", call.symbol}, {"number", std::to_string(call.number)}});
      for (; ++last < call.number; source.Line(kNoWords)) table.Line(kNoFacts);
      source.Line("  {\"$name$\", \"$refusal$\"},",
                  {{"name", call.symbol}, {"refusal", call.unsupported}});
      table.Line(
          "    Word(CallKindValue::$kind$, CallThread::$thread$, CallHold::$hold$)$flags$,"
          "  // $name$",
          {{"kind", KindName(call)},
           {"thread", ThreadName(call)},
           {"hold", HoldName(call)},
           {"flags", Flags(call)},
           {"name", call.symbol}});
    }
    source.Raw(kSourceEnd);
    return {{"longwire/call_ids.h", Header(ids, table)}, {"longwire/call_ids.cc", source.str()}};
  }

 private:
  static std::string Header(const Text& ids, const Text& table) {
    Text out;
    out.Raw(FileHead("Numbers, names and facts of the calls.", true));
    out.Raw(kHeader);
    out.Raw(ids.str());
    out.Raw(kFactsHead);
    EmitFlags(&out);
    out.Raw("\n" + table.str());
    out.Raw(kFactsEnd);
    EmitPredicates(&out);
    out.Raw("\n}  // namespace longwire\n");
    return out.str();
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeCallIdsEmitter() { return std::make_unique<CallIdsEmitter>(); }

}  // namespace longwire::codegen
