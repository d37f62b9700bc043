#include "codegen/emitters.h"
#include "codegen/text.h"

namespace longwire::codegen {
namespace {

constexpr char kHead[] = R"(#include "client-shim/entry/forwarding.h"
#include "codegen/runtime/convert.h"
#include "longwire/calls.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::forward {

using calls::Convert;
using calls::ConvertList;
using calls::CopyText;
using calls::Elements;
using calls::FitsRoom;
using calls::RoomOf;

)";

const Parameter* Find(const Call& call, const std::string& name) {
  for (const Parameter& parameter : call.parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

// What the count parameter of an array holds before the call.
std::string CountValue(const Call& call, const Parameter& array) {
  const Parameter* count = Find(call, array.count);
  return (count->role == Role::kInOut ? "*" : "") + count->name;
}

// Whether the parameter says how much room a list has, and then how long it is.
bool CountsList(const Call& call, const Parameter& count) {
  for (const Parameter& parameter : call.parameters) {
    if (parameter.role == Role::kOutArray && parameter.count == count.name) return true;
  }
  return false;
}

Text::Values ValuesOf(const Call& call, const Parameter& parameter) {
  return {{"x", parameter.name},
          {"n", parameter.count},
          {"count", parameter.count.empty() ? "" : CountValue(call, parameter)},
          {"minus", std::to_string(parameter.count_minus)}};
}

constexpr char kCountElements[] =
    "  if (!Elements($x$, $count$, $minus$, &elements_)) return CUDA_ERROR_INVALID_VALUE;";

constexpr char kCheckRoom[] =
    "  if (!FitsRoom($x$, $count$, reply_.$n$)) return CUDA_ERROR_INVALID_VALUE;";

// One parameter into the request.
void PutParameter(const Call& call, const Parameter& parameter, Text* out) {
  const Text::Values values = ValuesOf(call, parameter);
  switch (parameter.role) {
    case Role::kValue:
      out->Line(parameter.type->kind == TypeKind::kDevice ? "  call_.$x$ = ToWireDevice($x$);"
                                                          : "  Convert($x$, &call_.$x$);",
                values);
      break;
    case Role::kHandle:
      out->Line("  call_.$x$ = ToWire($x$);", values);
      break;
    case Role::kInOut:
      out->Line(CountsList(call, parameter) ? "  Convert(RoomOf(*$x$), &call_.$x$);"
                                            : "  Convert(*$x$, &call_.$x$);",
                values);
      break;
    case Role::kIn:
      out->Line(parameter.nullable ? "  if ($x$ != nullptr) Convert(*$x$, &call_.$x$.emplace());"
                                   : "  Convert(*$x$, &call_.$x$);",
                values);
      break;
    case Role::kInString:
      out->Line(
          parameter.nullable ? "  if ($x$ != nullptr) call_.$x$ = $x$;" : "  call_.$x$ = $x$;",
          values);
      break;
    case Role::kInArray:
      out->Line(kCountElements, values);
      if (parameter.type->kind == TypeKind::kHandle) {
        out->Line(
            "  for (size_t i_ = 0; i_ < elements_; ++i_) {\n"
            "    call_.$x$.push_back(ToWire($x$[i_]));\n  }",
            values);
      } else {
        out->Line("  ConvertList($x$, elements_, &call_.$x$);", values);
      }
      break;
    case Role::kOutArray:
      out->Line("  call_.want_$x$ = $x$ != nullptr;", values);
      break;
    default:
      break;
  }
}

// One result out of the reply.
void GetParameter(const Call& call, const Parameter& parameter, Text* out) {
  const bool handle = parameter.type->kind == TypeKind::kHandle;
  const bool device = parameter.type->kind == TypeKind::kDevice;
  const Text::Values values = ValuesOf(call, parameter);
  switch (parameter.role) {
    case Role::kOut:
    case Role::kInOut:
      out->Line(std::string(parameter.nullable ? "  if ($x$ != nullptr) " : "  ") +
                    (handle   ? "FromWire(reply_.$x$, $x$);"
                     : device ? "FromWireDevice(reply_.$x$, $x$);"
                              : "Convert(reply_.$x$, $x$);"),
                values);
      break;
    case Role::kOutArray:
      // Where the count is a result, too, the driver clears the handles' room beyond it.
      if (Find(call, parameter.count)->role == Role::kInOut) {
        out->Line(kCheckRoom, values);
        if (handle) {
          out->Line("  for (size_t i_ = 0; $x$ != nullptr && i_ < $count$; ++i_) {", values);
          out->Line("    FromWire(i_ < reply_.$x$.size() ? reply_.$x$[i_] : 0, &$x$[i_]);\n  }",
                    values);
          break;
        }
        out->Line("  elements_ = $x$ == nullptr ? 0 : static_cast<size_t>($count$);", values);
      } else {
        out->Line(kCountElements, values);
      }
      out->Line("  elements_ = std::min(elements_, reply_.$x$.size());", values);
      out->Line("  for (size_t i_ = 0; i_ < elements_; ++i_) {", values);
      out->Line(handle ? "    FromWire(reply_.$x$[i_], &$x$[i_]);\n  }"
                       : "    Convert(reply_.$x$[i_], &$x$[i_]);\n  }",
                values);
      break;
    case Role::kOutString:
      out->Line("  CopyText(reply_.$x$, $x$, $count$);", values);
      break;
    default:
      break;
  }
}

std::string StreamOf(const Call& call) {
  for (const Parameter& parameter : call.parameters) {
    if (parameter.role == Role::kStream) return "ToWire(" + parameter.name + ")";
  }
  return "0";
}

// A call about a device goes to its server.
std::string DeviceOf(const Call& call) {
  for (const Parameter& parameter : call.parameters) {
    const bool names = parameter.role == Role::kValue && parameter.type->kind == TypeKind::kDevice;
    if (names) return ", " + parameter.name;
  }
  return "";
}

// Lists of handles whose count is a result, too, are filled up to the room that the program has.
bool FillsRoom(const Call& call, const Parameter& parameter) {
  return parameter.role == Role::kOutArray && parameter.type->kind == TypeKind::kHandle &&
         Find(call, parameter.count)->role == Role::kInOut;
}

bool CountsElements(const Call& call) {
  for (const Parameter& parameter : call.parameters) {
    const bool list = parameter.role == Role::kInArray || parameter.role == Role::kOutArray;
    if (list && !FillsRoom(call, parameter)) return true;
  }
  return false;
}

// Results in the order of the parameters, but counts that are read and written last: they still say
// how much room the arrays have.
void GetResults(const Call& call, Text* out) {
  for (const Parameter& parameter : call.parameters) {
    if (parameter.role != Role::kInOut) GetParameter(call, parameter, out);
  }
  for (const Parameter& parameter : call.parameters) {
    if (parameter.role == Role::kInOut) GetParameter(call, parameter, out);
  }
}

// Names of generated variables end with _, so that no parameter has the same.
void Define(const Call& call, Text* out) {
  const Text::Values values = {
      {"symbol", call.symbol}, {"stream", StreamOf(call)}, {"device", DeviceOf(call)}};
  out->Line("CUresult $symbol$($parameters$) {",
            {{"symbol", call.symbol}, {"parameters", ParameterList(call)}});
  if (CountsElements(call)) out->Line("  size_t elements_ = 0;");
  out->Line("  calls::$symbol$ call_;", values);
  for (const Parameter& parameter : call.parameters) PutParameter(call, parameter, out);
  if (call.kind == Kind::kAtOnce) {
    out->Line("  return Submit(call_, $stream$$device$);\n}\n", values);
    return;
  }
  out->Line("  calls::$symbol$::Reply reply_;\n  ReplyBytes bytes_;", values);
  if (call.reply.empty()) {
    out->Line("  return CallAndWait(call_, $stream$, &reply_, &bytes_$device$);\n}\n", values);
    return;
  }
  out->Line("  const CUresult result_ = CallAndWait(call_, $stream$, &reply_, &bytes_$device$);",
            values);
  out->Line("  if (result_ != CUDA_SUCCESS) return result_;");
  GetResults(call, out);
  out->Line("  return CUDA_SUCCESS;\n}\n");
}

class ForwardEmitter : public Emitter {
 public:
  std::vector<File> Emit(const Api& api) const override {
    std::vector<Text> sources(kForwardParts);
    for (Text& source : sources) {
      source.Raw(FileHead("The generated client's side of the calls that travel.", false));
      source.Raw(kHead);
    }
    size_t next = 0;
    for (const Call& call : api.calls) {
      if (call.IsForwarded()) Define(call, &sources[next++ % kForwardParts]);
    }
    std::vector<File> files;
    for (Text& source : sources) {
      source.Raw("}  // namespace longwire::shim::forward\n");
      files.push_back(
          {"longwire/shim_forward_" + std::to_string(files.size() + 1) + ".cc", source.str()});
    }
    return files;
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeForwardEmitter() { return std::make_unique<ForwardEmitter>(); }

}  // namespace longwire::codegen
