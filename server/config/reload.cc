// Which changes a running daemon takes over.
#include <functional>
#include <memory>

#include "server/config/config.h"
#include "server/config/schema.h"
#include "server/config/text.h"
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

using Differing = std::function<void(const Message& running, const Message& next,
                                     const FieldDescriptor* field, const std::string& name)>;

// Calls `differs` for each key that differs, of blocks for the keys within.
void Compare(const Message& running, const Message& next, const std::string& outer,
             const Differing& differs) {
  for (int i = 0; i < running.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = running.GetDescriptor()->field(i);
    const auto* reflection = running.GetReflection();
    if (Alone(running, field) == Alone(next, field)) continue;
    bool in_both = IsBlock(field) && !field->is_repeated() && !EntryOf(field).at_start_only() &&
                   reflection->HasField(running, field) && reflection->HasField(next, field);
    if (in_both) {
      Compare(reflection->GetMessage(running, field), reflection->GetMessage(next, field),
              outer + field->name() + ".", differs);
    } else {
      differs(running, next, field, outer + field->name());
    }
  }
}

}  // namespace

void CheckReload(const Config& running, const Draft& next, Problems* problems) {
  if (wire::GuardIsOff("start_only")) return;
  Compare(running, next.config, "",
          [&](const Message& before, const Message& after, const FieldDescriptor* field,
              const std::string& name) {
            if (!EntryOf(field).at_start_only()) return;
            auto said = next.places.find(name);
            problems->Add(said != next.places.end() ? said->second : Place{"the defaults", 0, 0},
                          name + ": expected " + Shown(before, field) +
                              " as long as longwired runs, found " + Shown(after, field) +
                              "; this key is read at the start only: restart longwired to "
                              "change it");
          });
}

std::vector<std::string> Changes(const Config& running, const Config& next) {
  std::vector<std::string> changes;
  Compare(running, next, "",
          [&](const Message& before, const Message& after, const FieldDescriptor* field,
              const std::string& name) {
            changes.push_back(name + (IsBlock(field) ? ": changed"
                                                     : ": " + Shown(before, field) + " becomes " +
                                                           Shown(after, field)));
          });
  return changes;
}

}  // namespace longwire::config
