#include "codegen/load.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "annotations.pb.h"
#include "codegen/options.h"

namespace longwire::codegen {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

template <class D>
Location LocationOf(const D* descriptor, const FileDescriptor* file) {
  google::protobuf::SourceLocation source;
  Location location{file->name(), 0};
  if (descriptor->GetSourceLocation(&source)) location.line = source.start_line + 1;
  return location;
}

// "calls/memory.proto" → "memory".
std::string ChapterOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  return file.substr(0, file.rfind('.'));
}

// The name without its "_v2".
std::string BaseName(const std::string& symbol) {
  const size_t at = symbol.rfind("_v");
  if (at == std::string::npos || at + 2 == symbol.size()) return symbol;
  const bool number = symbol.find_first_not_of("0123456789", at + 2) == std::string::npos;
  return number ? symbol.substr(0, at) : symbol;
}

Type Builtin(const FieldDescriptor* field) {
  switch (field->type()) {
    case FieldDescriptor::TYPE_INT32:
      return {"int", TypeKind::kScalar, "int", "i32", 0, {}};
    case FieldDescriptor::TYPE_UINT32:
      return {"unsigned int", TypeKind::kScalar, "unsigned int", "u32", 0, {}};
    case FieldDescriptor::TYPE_INT64:
      return {"long long", TypeKind::kScalar, "long long", "i64", 0, {}};
    case FieldDescriptor::TYPE_UINT64:
      return {"unsigned long long", TypeKind::kScalar, "unsigned long long", "u64", 0, {}};
    case FieldDescriptor::TYPE_FLOAT:
      return {"float", TypeKind::kScalar, "float", "f32", 0, {}};
    case FieldDescriptor::TYPE_DOUBLE:
      return {"double", TypeKind::kScalar, "double", "f64", 0, {}};
    case FieldDescriptor::TYPE_BOOL:
      return {"bool", TypeKind::kScalar, "bool", "bool", 0, {}};
    case FieldDescriptor::TYPE_STRING:
      return {"string", TypeKind::kString, "char", "", 0, {}};
    case FieldDescriptor::TYPE_BYTES:
      return {"bytes", TypeKind::kBytes, "void", "", 0, {}};
    default:
      return {};
  }
}

TypeKind KindOf(api::TypeKind kind) {
  switch (kind) {
    case api::SCALAR:
      return TypeKind::kScalar;
    case api::ENUM:
      return TypeKind::kEnum;
    case api::HANDLE:
      return TypeKind::kHandle;
    case api::DEVICE:
      return TypeKind::kDevice;
    case api::STRUCT:
      return TypeKind::kStruct;
    case api::RECORD:
      return TypeKind::kRecord;
    default:
      return TypeKind::kHasPointers;
  }
}

class Loader {
 public:
  Loader(const std::map<std::string, int>& numbers, Errors* errors)
      : numbers_(numbers), errors_(errors) {}

  void LoadTypes(const FileDescriptor* file) {
    if (!seen_.insert(file->name()).second) return;
    for (int i = 0; i < file->dependency_count(); ++i) LoadTypes(file->dependency(i));
    for (int i = 0; i < file->message_type_count(); ++i) {
      const Descriptor* message = file->message_type(i);
      if (!message->options().HasExtension(api::type)) continue;
      const api::Type& option = message->options().GetExtension(api::type);
      Type type{message->name(),
                KindOf(option.kind()),
                option.c(),
                option.wire(),
                static_cast<int>(option.bytes()),
                LocationOf(message, file)};
      if (type.c.empty()) type.c = type.name;
      if (option.kind() == api::TYPE_UNSPECIFIED) {
        errors_->Add(type.location, "type " + type.name + " has no kind");
      }
      api_.types[type.name] = type;
    }
  }

  void LoadCalls(const FileDescriptor* file) {
    for (int i = 0; i < file->message_type_count(); ++i) {
      const Descriptor* message = file->message_type(i);
      const Location location = LocationOf(message, file);
      if (message->options().HasExtension(api::type)) {
        if (message->options().GetExtension(api::type).kind() == api::RECORD) {
          api_.records.push_back({message->name(), Parameters(message), {}, location});
        }
      } else if (message->options().HasExtension(api::call)) {
        LoadCall(message, file, location);
      } else {
        errors_->Add(location, message->name() + " is neither a call nor a type");
      }
    }
  }

  Api Take() {
    std::sort(api_.calls.begin(), api_.calls.end(),
              [](const Call& a, const Call& b) { return a.number < b.number; });
    for (const auto& [symbol, number] : numbers_) {
      if (api_.Find(symbol) == nullptr) {
        errors_->Add({"wire_numbers.txt", number}, "no call is described under the name " + symbol);
      }
    }
    return std::move(api_);
  }

 private:
  void LoadCall(const Descriptor* message, const FileDescriptor* file, const Location& location) {
    const api::Call& option = message->options().GetExtension(api::call);
    Call call;
    call.symbol = message->name();
    call.location = location;
    call.is_private = call.symbol.starts_with("lw");
    call.chapter = ChapterOf(file->name());
    call.base = option.name().empty() ? BaseName(call.symbol) : option.name();
    if (!option.unsupported().empty()) {
      call.kind = Kind::kUnsupported;
      if (option.kind() != api::KIND_UNSPECIFIED || option.body() != api::GENERATED) {
        errors_->Add(location, call.symbol + " is unsupported: kind and body mean nothing");
      }
    } else if (option.kind() == api::AT_ONCE) {
      call.kind = Kind::kAtOnce;
    } else if (option.kind() == api::AFTER_REPLY) {
      call.kind = Kind::kAfterReply;
    } else if (option.kind() == api::LOCAL) {
      call.kind = Kind::kLocal;
    } else if (option.same_as().empty()) {
      errors_->Add(location, call.symbol + " has no kind");
    }
    call.body = static_cast<Body>(option.body());
    call.per_thread = static_cast<PerThread>(option.per_thread());
    call.unsupported = option.unsupported();
    call.same_as = option.same_as();
    call.destroys = option.destroys();
    call.without_session = option.without_session();
    call.introduced = option.introduced();
    call.introduced_per_thread = option.introduced_per_thread() != 0
                                     ? option.introduced_per_thread()
                                     : std::max(7000, call.introduced);
    call.runs_on = static_cast<RunsOn>(option.runs_on());
    call.held_until = static_cast<HeldUntil>(option.held_until());
    for (const Option& yes_or_no : BoolOptions()) {
      const auto* field = api::Call::descriptor()->FindFieldByName(yes_or_no.name);
      call.*yes_or_no.member = option.GetReflection()->GetBool(option, field);
    }
    call.parameters = Parameters(message);
    LoadReply(message, &call);
    const auto number = numbers_.find(call.symbol);
    if (number == numbers_.end()) {
      errors_->Add(location, call.symbol + " has no number in wire_numbers.txt");
    } else {
      call.number = number->second;
    }
    api_.calls.push_back(std::move(call));
  }

  void LoadReply(const Descriptor* message, Call* call) {
    for (int i = 0; i < message->nested_type_count(); ++i) {
      if (message->nested_type(i)->name() == "Reply" && call->is_private) {
        call->reply_parameters = Parameters(message->nested_type(i));
      } else {
        errors_->Add(call->location, call->symbol + ": only private calls have a nested Reply");
      }
    }
  }

  std::vector<Parameter> Parameters(const Descriptor* message) {
    std::vector<Parameter> parameters;
    for (int i = 0; i < message->field_count(); ++i) {
      const FieldDescriptor* field = message->field(i);
      Parameter parameter;
      parameter.name = field->name();
      parameter.location = LocationOf(field, message->file());
      parameter.type = TypeOf(field, parameter.location);
      parameter.repeated = field->is_repeated();
      parameter.in = field->options().GetExtension(api::in);
      parameter.out = field->options().GetExtension(api::out);
      parameter.inout = field->options().GetExtension(api::inout);
      parameter.nullable = field->options().GetExtension(api::nullable);
      SetCount(field->options().GetExtension(api::counted_by), &parameter);
      parameter.c_type = field->options().GetExtension(api::c_type);
      parameter.if_null = field->options().GetExtension(api::if_null);
      parameter.behind_pointers = field->options().GetExtension(api::behind_pointers);
      if (field->number() != i + 1) {
        errors_->Add(parameter.location, parameter.name + ": parameters are numbered in order");
      }
      parameters.push_back(std::move(parameter));
    }
    return parameters;
  }

  // "n" or "n-1".
  static void SetCount(const std::string& text, Parameter* parameter) {
    const size_t minus = text.find('-');
    parameter->count = text.substr(0, minus);
    if (minus != std::string::npos) parameter->count_minus = std::atoi(text.c_str() + minus + 1);
  }

  const Type* TypeOf(const FieldDescriptor* field, const Location& location) {
    std::string name;
    if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
      name = field->message_type()->name();
      if (api_.types.find(name) == api_.types.end()) {
        errors_->Add(location, name + " is not described as a type");
        api_.types[name] = Type{name, TypeKind::kHasPointers, name, "", 0, location};
      }
    } else {
      const Type type = Builtin(field);
      name = type.name;
      if (name.empty()) errors_->Add(location, field->name() + ": no rule for this protobuf type");
      api_.types.emplace(name, type);
    }
    return &api_.types[name];
  }

  const std::map<std::string, int>& numbers_;
  Errors* errors_;
  std::set<std::string> seen_;
  Api api_;
};

}  // namespace

std::map<std::string, int> ReadNumbers(const std::string& path, Errors* errors) {
  std::map<std::string, int> numbers;
  std::map<int, std::string> taken;
  std::ifstream file(path);
  if (!file) errors->Add({path, 0}, "cannot be read");
  std::string line;
  for (int at = 1; std::getline(file, line); ++at) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    int number = 0;
    std::string symbol;
    if (!(words >> number >> symbol) || number < 1 || number > 65535) {
      errors->Add({path, at}, "expected: number (1 to 65535) and symbol");
    } else if (!taken.emplace(number, symbol).second) {
      errors->Add({path, at}, "number " + std::to_string(number) + " is " + taken[number] +
                                  "'s already; numbers are never used again");
    } else if (!numbers.emplace(symbol, number).second) {
      errors->Add({path, at}, symbol + " has a number already");
    }
  }
  return numbers;
}

Api Load(const std::vector<const FileDescriptor*>& files, const std::map<std::string, int>& numbers,
         Errors* errors) {
  Loader loader(numbers, errors);
  for (const FileDescriptor* file : files) loader.LoadTypes(file);
  for (const FileDescriptor* file : files) loader.LoadCalls(file);
  return loader.Take();
}

}  // namespace longwire::codegen
