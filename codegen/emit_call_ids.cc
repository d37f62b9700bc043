#include "codegen/emitters.h"
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

std::string Flags(const Call& call) {
  std::string flags;
  const auto add = [&flags](bool on, const char* name) {
    if (on) flags += (flags.empty() ? "" : " | ") + std::string(name);
  };
  add(call.may_block, "kMayBlock");
  add(call.before_init, "kBeforeInit");
  add(call.capture_unsafe, "kCaptureUnsafe");
  add(call.stream_ordered, "kStreamOrdered");
  add(call.is_private, "kPrivate");
  return flags.empty() ? "0" : flags;
}

constexpr char kHeader[] = R"(#include <cstdint>

namespace longwire {

// When the client may return.
enum class CallKindValue : uint8_t { kAtOnce, kAfterReply, kLocal, kUnsupported };

// Published numbers: they never change meaning. 0 is no call.
enum class CallId : uint16_t {
  kNone = 0,
)";

constexpr char kHeaderEnd[] = R"(};

// "?" for a number that is no call.
const char* CallName(CallId id);
CallKindValue CallKind(CallId id);
// The driver can take long: to be run on the client thread's helper.
bool CallMayBlock(CallId id);
// May be called before cuInit.
bool CallBeforeInit(CallId id);
// "Potentially unsafe" while a stream is captured in a strict mode.
bool CaptureUnsafe(CallId id);
// Private calls that the stream in the record's header orders.
bool CallStreamOrdered(CallId id);
// One of Longwire's own calls; the others are functions of the driver.
bool CallIsPrivate(CallId id);
// Why an unsupported call is refused; "" for the others.
const char* CallRefusal(CallId id);

}  // namespace longwire
)";

constexpr char kSourceHead[] = R"(#include "longwire/call_ids.h"

#include <cstddef>

namespace longwire {
namespace {

enum : uint8_t { kMayBlock = 1, kBeforeInit = 2, kCaptureUnsafe = 4, kStreamOrdered = 8,
                 kPrivate = 16 };

struct Properties {
  const char* name;
  const char* refusal;
  CallKindValue kind;
  uint8_t flags;
};

constexpr Properties kCalls[] = {
)";

constexpr char kSourceEnd[] = R"(};

const Properties& Of(CallId id) {
  const size_t number = static_cast<size_t>(id);
  const size_t count = sizeof(kCalls) / sizeof(kCalls[0]);
  return kCalls[number < count ? number : 0];
}

}  // namespace

const char* CallName(CallId id) { return Of(id).name; }
CallKindValue CallKind(CallId id) { return Of(id).kind; }
bool CallMayBlock(CallId id) { return (Of(id).flags & kMayBlock) != 0; }
bool CallBeforeInit(CallId id) { return (Of(id).flags & kBeforeInit) != 0; }
bool CaptureUnsafe(CallId id) { return (Of(id).flags & kCaptureUnsafe) != 0; }
bool CallStreamOrdered(CallId id) { return (Of(id).flags & kStreamOrdered) != 0; }
bool CallIsPrivate(CallId id) { return (Of(id).flags & kPrivate) != 0; }
const char* CallRefusal(CallId id) { return Of(id).refusal; }

}  // namespace longwire
)";

class CallIdsEmitter : public Emitter {
 public:
  std::vector<File> Emit(const Api& api) const override {
    Text header;
    header.Raw(FileHead("Numbers, names and properties of the calls.", true));
    header.Raw(kHeader);
    Text source;
    source.Raw(FileHead("Numbers, names and properties of the calls.", false));
    source.Raw(kSourceHead);
    int last = 0;
    const char* empty = "  {\"?\", \"\", CallKindValue::kUnsupported, 0},";
    source.Line(empty);
    for (const Call& call : api.calls) {
      header.Line("  $name$ = $number$,",
                  {{"name", call.symbol}, {"number", std::to_string(call.number)}});
      while (++last < call.number) source.Line(empty);
      source.Line("  {\"$name$\", \"$refusal$\", CallKindValue::$kind$, $flags$},",
                  {{"name", call.symbol},
                   {"refusal", call.unsupported},
                   {"kind", KindName(call)},
                   {"flags", Flags(call)}});
    }
    header.Raw(kHeaderEnd);
    source.Raw(kSourceEnd);
    return {{"longwire/call_ids.h", header.str()}, {"longwire/call_ids.cc", source.str()}};
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeCallIdsEmitter() { return std::make_unique<CallIdsEmitter>(); }

}  // namespace longwire::codegen
