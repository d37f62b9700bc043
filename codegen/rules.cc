#include "codegen/rules.h"

#include <algorithm>

#include "codegen/options.h"

namespace longwire::codegen {
namespace {

bool IsValue(const Type& type) {
  return type.kind == TypeKind::kScalar || type.kind == TypeKind::kEnum ||
         type.kind == TypeKind::kStruct;
}

// One element of the type on the wire.
WireField Element(const Parameter& parameter) {
  const Type& type = *parameter.type;
  WireField field;
  field.name = parameter.name;
  switch (type.kind) {
    case TypeKind::kScalar:
      field.element = type.wire;
      break;
    case TypeKind::kEnum:
    case TypeKind::kDevice:
      field.element = "i32";
      break;
    case TypeKind::kHandle:
      field.element = "u64";
      break;
    case TypeKind::kStruct:
      field.element = "blob";
      field.bytes = type.bytes;
      break;
    case TypeKind::kRecord:
      field.element = "record";
      field.record = type.name;
      break;
    case TypeKind::kString:
      field.element = "string";
      break;
    case TypeKind::kBytes:
      field.element = "bytes";
      break;
    case TypeKind::kHasPointers:
      break;
  }
  return field;
}

Role RoleOf(const Parameter& parameter) {
  const Type& type = *parameter.type;
  if (!parameter.c_type.empty() || type.kind == TypeKind::kHasPointers) return Role::kNone;
  if (type.kind == TypeKind::kString) {
    if (!parameter.out) return parameter.count.empty() ? Role::kInString : Role::kNone;
    return parameter.count.empty() ? Role::kNone : Role::kOutString;
  }
  if (type.kind == TypeKind::kBytes || type.kind == TypeKind::kRecord) return Role::kNone;
  // A device's number is translated at both ends: as a value and as a result, nowhere else.
  if (type.kind == TypeKind::kDevice &&
      (!parameter.count.empty() || parameter.in || parameter.inout)) {
    return Role::kNone;
  }
  if (!parameter.count.empty()) return parameter.out ? Role::kOutArray : Role::kInArray;
  if (parameter.inout) return IsValue(type) ? Role::kInOut : Role::kNone;
  if (parameter.out) return Role::kOut;
  if (parameter.in) return type.kind == TypeKind::kHandle ? Role::kNone : Role::kIn;
  if (type.kind == TypeKind::kHandle) {
    return type.name == "CUstream" ? Role::kStream : Role::kHandle;
  }
  return Role::kValue;
}

// The name of the request's field that says whether the caller wants this output.
WireField Wanted(const Parameter& parameter) {
  return {"want_" + parameter.name, "bool", 0, "", false, false};
}

void AddFields(const Parameter& parameter, Call* call, Errors* errors) {
  WireField field = Element(parameter);
  switch (parameter.role) {
    case Role::kStream:
      break;
    case Role::kValue:
    case Role::kHandle:
      call->request.push_back(field);
      break;
    case Role::kIn:
    case Role::kInString:
      field.optional = parameter.nullable;
      call->request.push_back(field);
      break;
    case Role::kInArray:
      field.repeated = true;
      call->request.push_back(field);
      break;
    case Role::kOut:
      call->reply.push_back(field);
      break;
    case Role::kInOut:
      call->request.push_back(field);
      call->reply.push_back(field);
      break;
    case Role::kOutArray:
      field.repeated = true;
      call->request.push_back(Wanted(parameter));
      call->reply.push_back(field);
      break;
    case Role::kOutString:
      call->reply.push_back(field);
      break;
    case Role::kNone:
      errors->Add(parameter.location,
                  call->symbol + "." + parameter.name + " (" + parameter.CType() +
                      "): no rule forwards this parameter; annotate it, or write body: "
                      "HAND_WRITTEN or unsupported: \"reason\"");
  }
}

std::vector<WireField> PlainFields(const std::vector<Parameter>& parameters, Errors* errors) {
  std::vector<WireField> fields;
  for (const Parameter& parameter : parameters) {
    WireField field = Element(parameter);
    field.repeated = parameter.repeated;
    if (field.element.empty()) {
      errors->Add(parameter.location, parameter.name + ": no encoding for " + parameter.type->name);
    }
    fields.push_back(field);
  }
  return fields;
}

void CheckForwarded(const Call& call, Errors* errors) {
  const auto streams = std::count_if(call.parameters.begin(), call.parameters.end(),
                                     [](const Parameter& p) { return p.role == Role::kStream; });
  if (streams > 1) {
    errors->Add(call.location, call.symbol + " has two streams: no rule says which one orders it");
  }
  if (call.kind == Kind::kAtOnce && !call.reply.empty()) {
    errors->Add(call.location, call.symbol + " is AT_ONCE but has results");
  }
}

// The parameter of `call` with that name, or null.
const Parameter* FindParameter(const Call& call, const std::string& name) {
  for (const Parameter& parameter : call.parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

// What null means is said of pointers, and of handles and functions, for which null is a value.
void CheckNull(const Call& call, const Parameter& parameter, Errors* errors) {
  const auto refuse = [&](const char* sentence) {
    errors->Add(parameter.location, call.symbol + "." + parameter.name + ": " + sentence);
  };
  const bool points = parameter.CType().find('*') != std::string::npos;
  if (call.is_private && (parameter.nullable || !parameter.if_null.empty())) {
    refuse("private calls have no pointers that could be null");
  } else if (parameter.nullable && !points) {
    refuse("nullable is for pointers");
  } else if (parameter.nullable && !parameter.if_null.empty()) {
    refuse("if_null refuses null, which nullable allows");
  }
  if (parameter.behind_pointers && parameter.if_null.empty()) {
    refuse("behind_pointers says when if_null refuses, and there is no if_null");
  }
}

void CheckParameters(const Call& call, Errors* errors) {
  for (const Parameter& parameter : call.parameters) {
    if (parameter.in + parameter.out + parameter.inout > 1) {
      errors->Add(parameter.location, parameter.name + ": only one of in, out and inout");
    }
    CheckNull(call, parameter, errors);
    if (!call.is_private && parameter.repeated) {
      errors->Add(parameter.location, parameter.name + ": arrays are described with counted_by");
    }
    if (parameter.count.empty()) continue;
    const Parameter* count = FindParameter(call, parameter.count);
    if (count == nullptr || count->type->kind != TypeKind::kScalar ||
        (count->role != Role::kValue && count->role != Role::kInOut)) {
      errors->Add(parameter.location,
                  parameter.name + ": counted_by names no integer parameter: " + parameter.count);
    }
  }
  if (!call.destroys.empty()) {
    const Parameter* destroyed = FindParameter(call, call.destroys);
    if (destroyed == nullptr || destroyed->role != Role::kHandle) {
      errors->Add(call.location, call.symbol + ": destroys names no handle: " + call.destroys);
    }
  }
}

void CheckOptions(const Call& call, Errors* errors) {
  const auto check = [&](const char* option, Applies applies) {
    if (DoesApply(applies, call)) return;
    errors->Add(call.location, call.symbol + ": " + option + " is for " + WhichCalls(applies));
  };
  for (const Option& option : BoolOptions()) {
    if (call.*option.member) check(option.name, option.applies);
  }
  if (call.runs_on != RunsOn::kByKind) check("runs_on", Applies::kOutsideStreams);
  if (call.held_until != HeldUntil::kNothing) check("held_until", Applies::kOutsideStreams);
  if (!call.destroys.empty()) check("destroys", Applies::kForwarded);
  if (call.per_thread != PerThread::kNone) check("per_thread", Applies::kExported);
  if (call.introduced != 0) check("introduced", Applies::kExported);
  if (!call.without_session.empty()) check("without_session", Applies::kExported);
  if (!call.same_as.empty()) check("same_as", Applies::kExported);
  if (call.body != Body::kGenerated) check("body", Applies::kExported);
}

void CheckKind(const Call& call, Errors* errors) {
  if (call.kind == Kind::kLocal && call.Travels()) {
    errors->Add(call.location, call.symbol + " is LOCAL: write body: HAND_WRITTEN");
  }
  if (!call.without_session.empty() && call.kind != Kind::kLocal) {
    errors->Add(call.location, call.symbol + " is not LOCAL: it cannot be without a session");
  }
  if (call.is_private) {
    if (call.kind == Kind::kAtOnce && !call.reply.empty()) {
      errors->Add(call.location, call.symbol + " is AT_ONCE but has a Reply");
    }
    return;
  }
  if (call.introduced == 0) {
    errors->Add(call.location, call.symbol + " does not say in which version it was introduced");
  }
  if (call.implicit_stream && !call.HasHandBody() && call.same_as.empty() &&
      !call.IsUnsupported()) {
    errors->Add(call.location, call.symbol + ": only hand-written bodies take an implicit stream");
  }
}

// True if a value of 32 bits becomes one of 64 by C's own conversion.
bool Widens(const Parameter& from, const Parameter& to) {
  return from.role == Role::kValue && to.role == Role::kValue && from.type->wire == "u32" &&
         to.type->wire == "u64";
}

// A call that is the same as another one is of its kind.
void FollowSameAs(Api* api, Call* call, Errors* errors) {
  if (call->same_as.empty()) return;
  const Call* other = api->Find(call->same_as);
  if (other == nullptr || !other->same_as.empty()) {
    errors->Add(call->location, call->symbol + ": same_as names no call with a body");
    return;
  }
  bool same = call->parameters.size() == other->parameters.size();
  for (size_t i = 0; same && i < call->parameters.size(); ++i) {
    same = call->parameters[i].CType() == other->parameters[i].CType() ||
           Widens(call->parameters[i], other->parameters[i]);
  }
  if (!same) {
    errors->Add(call->location, call->symbol + ": " + other->symbol + " has other parameters");
  }
  call->kind = other->kind;
  call->unsupported = other->unsupported;
  call->before_init = other->before_init;
  call->without_session = other->without_session;
  call->capture_unsafe = other->capture_unsafe;
  call->implicit_stream = other->implicit_stream;
}

void FindNewest(Api* api, Errors* errors) {
  std::map<std::string, Call*> newest;
  for (Call& call : api->calls) {
    if (call.is_private) continue;
    Call*& best = newest[call.base];
    if (best != nullptr && best->introduced == call.introduced) {
      errors->Add(call.location,
                  call.symbol + " and " + best->symbol + " are introduced in the same version");
    }
    if (best == nullptr || best->introduced < call.introduced) best = &call;
  }
  for (auto& [base, call] : newest) call->newest = true;
}

}  // namespace

void ApplyRules(Api* api, Errors* errors) {
  for (Record& record : api->records) record.fields = PlainFields(record.parameters, errors);
  for (Call& call : api->calls) {
    for (Parameter& parameter : call.parameters) parameter.role = RoleOf(parameter);
    if (call.is_private) {
      call.request = PlainFields(call.parameters, errors);
      call.reply = PlainFields(call.reply_parameters, errors);
    } else if (call.Travels()) {
      for (const Parameter& parameter : call.parameters) AddFields(parameter, &call, errors);
      CheckForwarded(call, errors);
    }
  }
}

void Check(Api* api, Errors* errors) {
  for (Call& call : api->calls) {
    CheckOptions(call, errors);  // before it has what it takes over from another one
    FollowSameAs(api, &call, errors);
    CheckParameters(call, errors);
    CheckKind(call, errors);
  }
  FindNewest(api, errors);
}

}  // namespace longwire::codegen
