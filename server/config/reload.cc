// Which changes a running daemon takes over.
#include "server/config/config.h"
#include "server/config/schema.h"
#include "server/config/values.h"
#include "wire/guards.h"

namespace longwire::config {
namespace {

// The field's value in one line, for people.
std::string Shown(const Message& message, const FieldDescriptor* field) {
  const auto* reflection = message.GetReflection();
  int size = field->is_repeated()                   ? reflection->FieldSize(message, field)
             : reflection->HasField(message, field) ? 1
                                                    : 0;
  std::string text;
  for (int i = 0; i < size; ++i) {
    text += i == 0 ? "" : ", ";
    if (!IsBlock(field)) {
      text += ValueText(message, field, i);
    } else if (field->is_repeated()) {
      text += reflection->GetRepeatedMessage(message, field, i).ShortDebugString();
    } else {
      text += reflection->GetMessage(message, field).ShortDebugString();
    }
  }
  return size == 0 ? "nothing" : Quoted(text);
}

// The message with this field alone, for comparing.
std::string Alone(const Message& message, const FieldDescriptor* field) {
  std::unique_ptr<Message> copy(message.New());
  copy->CopyFrom(message);
  std::vector<const FieldDescriptor*> fields;
  copy->GetReflection()->ListFields(*copy, &fields);
  for (const FieldDescriptor* other : fields) {
    if (other != field) copy->GetReflection()->ClearField(copy.get(), other);
  }
  return copy->SerializeAsString();
}

class Comparison {
 public:
  Comparison(const Draft& next, Problems* problems) : next_(next), problems_(problems) {}

  void Compare(const Message& running, const Message& next, const std::string& outer) {
    for (int i = 0; i < running.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = running.GetDescriptor()->field(i);
      const std::string name = outer + field->name();
      if (EntryOf(field).at_start_only()) {
        CompareField(running, next, field, name);
      } else if (IsBlock(field) && !field->is_repeated()) {
        Compare(running.GetReflection()->GetMessage(running, field),
                next.GetReflection()->GetMessage(next, field), name + ".");
      }
    }
  }

 private:
  void CompareField(const Message& running, const Message& next, const FieldDescriptor* field,
                    const std::string& name) {
    if (Alone(running, field) == Alone(next, field)) return;
    auto said = next_.places.find(name);
    problems_->Add(said != next_.places.end() ? said->second : Place{"the defaults", 0, 0},
                   name + ": expected " + Shown(running, field) +
                       " as long as longwired runs, found " + Shown(next, field) +
                       "; this key is read at the start only: restart longwired to change it");
  }

  const Draft& next_;
  Problems* problems_;
};

}  // namespace

void CheckReload(const Config& running, const Draft& next, Problems* problems) {
  if (wire::GuardIsOff("start_only")) return;
  Comparison(next, problems).Compare(running, next.config, "");
}

}  // namespace longwire::config
