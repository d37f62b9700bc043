#include "codegen/emitters.h"
#include "codegen/text.h"

namespace longwire::codegen {
namespace {

const Parameter* Count(const Call& call, const Parameter& array) {
  for (const Parameter& parameter : call.parameters) {
    if (parameter.name == array.count) return &parameter;
  }
  return &array;  // rules.cc has refused this
}

Text::Values ValuesOf(const Call& call, const Parameter& parameter) {
  Text::Values values = {{"x", parameter.name},
                         {"type", parameter.type->c},
                         {"minus", std::to_string(parameter.count_minus)}};
  if (!parameter.count.empty())
    values.push_back({"count", "call_." + Count(call, parameter)->name});
  return values;
}

// The driver's arguments as local variables with the parameters' names.
void Declare(const Call& call, const Parameter& parameter, Text* out) {
  const Text::Values values = ValuesOf(call, parameter);
  const TypeKind kind = parameter.type->kind;
  switch (parameter.role) {
    case Role::kValue:
    case Role::kInOut:
      out->Line("  $type$ $x${};", values);
      out->Line(kind == TypeKind::kDevice ? "  LW_RESOLVE(context_.ResolveDevice(call_.$x$, &$x$));"
                                          : "  Convert(call_.$x$, &$x$);",
                values);
      break;
    case Role::kHandle:
      out->Line("  $type$ $x${};\n  LW_RESOLVE(context_.Resolve(call_.$x$, &$x$));", values);
      break;
    case Role::kIn:
      out->Line("  $type$ $x${};", values);
      out->Line(parameter.nullable ? "  if (call_.$x$) Convert(*call_.$x$, &$x$);"
                                   : "  Convert(call_.$x$, &$x$);",
                values);
      break;
    case Role::kInString:
      out->Line(parameter.nullable ? "  const std::string $x$(call_.$x$.value_or(\"\"));"
                                   : "  const std::string $x$(call_.$x$);",
                values);
      break;
    case Role::kInArray:
      out->Line(
          "  if (!CountFits(call_.$x$.size(), $count$, $minus$)) "
          "return CUDA_ERROR_INVALID_VALUE;",
          values);
      out->Line("  std::vector<$type$> $x$;", values);
      if (kind == TypeKind::kHandle) {
        out->Line(
            "  $x$.resize(call_.$x$.size());\n  for (size_t i_ = 0; i_ < $x$.size(); ++i_) {\n"
            "    LW_RESOLVE(context_.Resolve(call_.$x$[i_], &$x$[i_]));\n  }",
            values);
      } else {
        out->Line("  ConvertList(call_.$x$.data(), call_.$x$.size(), &$x$);", values);
      }
      break;
    case Role::kOut:
      out->Line("  $type$ $x${};", values);
      break;
    case Role::kOutArray:
      out->Line(
          "  if (!Elements(call_.want_$x$ ? &call_ : nullptr, $count$, $minus$, "
          "&elements_)) {\n    return CUDA_ERROR_INVALID_VALUE;\n  }\n"
          "  std::vector<$type$> $x$(elements_);",
          values);
      break;
    case Role::kOutString:
      out->Line(
          "  if (!Elements(&call_, $count$, 0, &elements_)) return CUDA_ERROR_INVALID_VALUE;\n"
          "  std::string $x$(elements_, '\\0');",
          values);
      break;
    default:
      break;
  }
}

std::string Argument(const Parameter& parameter) {
  const std::string& x = parameter.name;
  switch (parameter.role) {
    case Role::kStream:
      return "context_.driver_stream()";
    case Role::kOut:
    case Role::kInOut:
      return "&" + x;
    case Role::kIn:
      return parameter.nullable ? "call_." + x + " ? &" + x + " : nullptr" : "&" + x;
    case Role::kInString:
      return parameter.nullable ? "call_." + x + " ? " + x + ".c_str() : nullptr" : x + ".c_str()";
    case Role::kInArray:
      return x + ".empty() ? nullptr : " + x + ".data()";
    case Role::kOutArray:
      return "call_.want_" + x + " ? RoomIn(" + x + ") : nullptr";
    case Role::kOutString:
      return x + ".data()";
    default:
      return x;
  }
}

// The driver's results into the reply.
void Answer(const Call& call, const Parameter& parameter, Text* out) {
  const Text::Values values = ValuesOf(call, parameter);
  const TypeKind kind = parameter.type->kind;
  switch (parameter.role) {
    case Role::kOut:
    case Role::kInOut:
      out->Line(kind == TypeKind::kHandle   ? "  reply_->$x$ = context_.Publish($x$);"
                : kind == TypeKind::kDevice ? "  reply_->$x$ = context_.DeviceOrdinal($x$);"
                                            : "  Convert($x$, &reply_->$x$);",
                values);
      break;
    case Role::kOutArray:
      if (Count(call, parameter)->role == Role::kInOut) {
        out->Line("  $x$.resize(std::min<size_t>($x$.size(), $n$));",
                  {{"x", parameter.name}, {"n", Count(call, parameter)->name}});
      }
      out->Line(
          kind == TypeKind::kHandle
              ? "  for (const $type$ each_ : $x$) reply_->$x$.push_back(context_.Publish(each_));"
              : "  ConvertList($x$.data(), $x$.size(), &reply_->$x$);",
          values);
      break;
    case Role::kOutString:
      out->Line(
          "  $x$.resize(strnlen($x$.data(), $x$.size()));\n"
          "  reply_->$x$ = context_.Keep(std::move($x$));",
          values);
      break;
    default:
      break;
  }
}

bool NeedsElements(const Call& call) {
  for (const Parameter& parameter : call.parameters) {
    if (parameter.role == Role::kOutArray || parameter.role == Role::kOutString) return true;
  }
  return false;
}

// Names of generated variables end with _, so that no parameter has the same.
void DefineDo(const Call& call, Text* out) {
  out->Line(
      "CUresult Do_$symbol$([[maybe_unused]] CallContext& context_,\n"
      "    [[maybe_unused]] const calls::$symbol$& call_,\n"
      "    [[maybe_unused]] calls::$symbol$::Reply* reply_) {",
      {{"symbol", call.symbol}});
  if (NeedsElements(call)) out->Line("  size_t elements_ = 0;");
  std::string arguments;
  for (const Parameter& parameter : call.parameters) {
    Declare(call, parameter, out);
    arguments += (arguments.empty() ? "" : ", ") + Argument(parameter);
  }
  out->Line("  const CUresult result_ = context_.driver().$member$($arguments$);",
            {{"member", DriverMember(call)}, {"arguments", arguments}});
  if (!call.reply.empty() || !call.destroys.empty()) {
    out->Line("  if (result_ != CUDA_SUCCESS) return result_;");
  }
  for (const Parameter& parameter : call.parameters) {
    Answer(call, parameter, out);
    if (parameter.name == call.destroys) {
      out->Line("  context_.Forget<$type$>(call_.$x$);", ValuesOf(call, parameter));
    }
  }
  out->Line("  return result_;\n}\n");
}

constexpr char kDispatchHeader[] = R"(#include "longwire/call_ids.h"
#include "wire/buffer.h"

namespace longwire::worker {

class CallContext;

// Decodes one call's arguments, runs it and gives the result to the context. kFatal: these bytes
// are no call that travels, or more than that call; nothing was run then.
wire::WireResult Dispatch(CallContext& context, CallId id, wire::Reader& arguments);

}  // namespace longwire::worker
)";

constexpr char kTableHead[] = R"(#include "longwire/dispatch.h"

#include "longwire/worker_generated.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"

namespace longwire::worker {
namespace {

template <class Call, CUresult (*kDo)(CallContext&, const Call&, typename Call::Reply*)>
wire::WireResult Handle(CallContext& context, wire::Reader& arguments) {
  Call call;
  LW_TRY(call.Decode(arguments));
  if (arguments.remaining() != 0) return wire::WireResult::kFatal;
  typename Call::Reply reply;
  const CUresult result = kDo(context, call, &reply);
  if (CallKind(Call::kId) == CallKindValue::kAfterReply) {
    context.Return(result, reply);
  } else {
    context.Fail(result);
  }
  return wire::WireResult::kOk;
}

using Handler = wire::WireResult (*)(CallContext&, wire::Reader&);

}  // namespace

wire::WireResult Dispatch(CallContext& context, CallId id, wire::Reader& arguments) {
  static constexpr Handler kHandlers[] = {
      nullptr,
)";

constexpr char kTableEnd[] = R"(  };
  const size_t number = static_cast<size_t>(id);
  if (number >= sizeof(kHandlers) / sizeof(kHandlers[0]) || kHandlers[number] == nullptr) {
    return wire::WireResult::kFatal;
  }
  return kHandlers[number](context, arguments);
}

}  // namespace longwire::worker
)";

constexpr char kPartHead[] = R"(#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "codegen/runtime/convert.h"
#include "longwire/worker_generated.h"
#include "server/worker/calls/call_context.h"

#define LW_RESOLVE(expression)                                                     \
  do {                                                                             \
    if (const CUresult unresolved = (expression); unresolved != CUDA_SUCCESS) {    \
      return unresolved;                                                           \
    }                                                                              \
  } while (false)

namespace longwire::worker {

using calls::Convert;
using calls::ConvertList;
using calls::CountFits;
using calls::Elements;
using calls::RoomIn;

)";

class DispatchEmitter : public Emitter {
 public:
  std::vector<File> Emit(const Api& api) const override {
    Text header, declarations, table;
    header.Raw(FileHead("The worker's way from a record to a driver call.", true));
    header.Raw(kDispatchHeader);
    declarations.Raw(FileHead("The worker's generated calls.", true));
    declarations.Raw(
        "#include \"longwire/calls.h\"\n#include \"longwire/driver_table.h\"\n\n"
        "namespace longwire::worker {\n\nclass CallContext;\n\n");
    table.Raw(FileHead("The worker's way from a record to a driver call.", false));
    table.Raw(kTableHead);
    std::vector<Text> parts(kDispatchParts);
    for (Text& part : parts) {
      part.Raw(FileHead("The worker's generated calls.", false));
      part.Raw(kPartHead);
    }
    int last = 0;
    size_t next = 0;
    for (const Call& call : api.calls) {
      const Text::Values values = {{"symbol", call.symbol}};
      while (++last < call.number) table.Line("      nullptr,");
      table.Line(call.Travels() ? "      &Handle<calls::$symbol$, &Do_$symbol$>,"
                                : "      nullptr,  // $symbol$",
                 values);
      if (!call.Travels() || call.HasHandWorker()) continue;
      declarations.Line(
          "CUresult Do_$symbol$(CallContext& context, const calls::$symbol$& call,\n"
          "    calls::$symbol$::Reply* reply);",
          values);
      DefineDo(call, &parts[next++ % kDispatchParts]);
    }
    declarations.Raw("\n}  // namespace longwire::worker\n");
    table.Raw(kTableEnd);
    std::vector<File> files = {{"longwire/dispatch.h", header.str()},
                               {"longwire/worker_generated.h", declarations.str()},
                               {"longwire/dispatch.cc", table.str()}};
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].Raw("}  // namespace longwire::worker\n");
      files.push_back({"longwire/dispatch_" + std::to_string(i + 1) + ".cc", parts[i].str()});
    }
    return files;
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeDispatchEmitter() { return std::make_unique<DispatchEmitter>(); }

}  // namespace longwire::codegen
