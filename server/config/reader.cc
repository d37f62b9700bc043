// YAML to a message, key by key as the schema says.
#include <cerrno>
#include <cstring>
#include <fstream>

#include "server/config/config.h"
#include "server/config/schema.h"
#include "server/config/text.h"
#include "server/config/values.h"
#include "server/config/yaml_tree.h"

namespace longwire::config {
namespace {

class Reader {
 public:
  Reader(Draft* draft, Problems* problems)
      : places_(&draft->places), warnings_(&draft->warnings), problems_(problems) {}

  // `path` names this message alone ("tenants[2]"), `name` stands in sentences ("tenants").
  void ReadKeys(const Node& node, const std::string& path, const std::string& name,
                Message* message) {
    std::map<std::string, const Node*> seen;
    for (size_t i = 0; i < node.keys.size(); ++i) {
      const Node& key = node.keys[i];
      if (key.kind != Node::Kind::kText) {
        Add(key, "expected a key, found " + KindOf(key));
        continue;
      }
      const FieldDescriptor* field = FieldOf(message->GetDescriptor(), key.text);
      auto [first, is_first] = seen.emplace(field == nullptr ? key.text : field->name(), &key);
      if (!is_first) {
        AddSecond(key, *first->second, field);
        continue;
      }
      if (field == nullptr) {
        AddUnknown(key, name, message->GetDescriptor());
        continue;
      }
      if (key.text != field->name()) {
        warnings_->push_back(key.place.Text() + ": " + Quoted(key.text) +
                             " is the former name of '" + field->name() + "': rename the key");
      }
      ReadField(key, node.children[i], {field, Inner(path, field->name()), Inner(name, key.text)},
                message);
    }
    AddMissing(node, seen, name, message->GetDescriptor());
  }

 private:
  struct Target {
    const FieldDescriptor* field;
    std::string path;
    std::string name;
  };

  static std::string Inner(const std::string& outer, const std::string& key) {
    return outer.empty() ? key : outer + "." + key;
  }

  static std::string KindOf(const Node& node) {
    switch (node.kind) {
      case Node::Kind::kText:
        return Quoted(node.text);
      case Node::Kind::kList:
        return node.children.empty() ? "an empty list" : "a list";
      case Node::Kind::kKeys:
        return node.keys.empty() ? "no keys" : "keys with values";
      default:
        return "nothing";
    }
  }

  void Add(const Node& node, const std::string& sentence) {
    if (node.kind != Node::Kind::kRefused) problems_->Add(node.place, sentence);
  }

  // The key, or another name of its field, came before as `first`.
  void AddSecond(const Node& key, const Node& first, const FieldDescriptor* field) {
    const std::string where = "in line " + std::to_string(first.place.line);
    if (key.text == first.text) {
      return Add(key, Quoted(key.text) +
                          " stands here a second time; expected it once (the first is " + where +
                          ")");
    }
    Add(key, "'" + EntryOf(field).former_name() + "' is the former name of '" + field->name() +
                 "'; expected one of the two (" + Quoted(first.text) + " is " + where + ")");
  }

  void AddUnknown(const Node& key, const std::string& name,
                  const google::protobuf::Descriptor* descriptor) {
    if (key.text == "<<") {
      Add(key, "a merge key (<<) is not allowed here: write the keys themselves");
      return;
    }
    std::vector<std::string> known = KeysOf(descriptor);
    std::string meant = Closest(key.text, known);
    Add(key, "unknown key " + Quoted(key.text) + (name.empty() ? "" : " in " + name) +
                 (meant.empty() ? "; expected one of " + Alternatives(known)
                                : "; did you mean '" + meant + "'?"));
  }

  void AddMissing(const Node& node, const std::map<std::string, const Node*>& seen,
                  const std::string& name, const google::protobuf::Descriptor* descriptor) {
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const FieldDescriptor* field = descriptor->field(i);
      if (!EntryOf(field).required() || seen.count(field->name()) != 0) continue;
      Add(node, name + ": '" + field->name() + "' is missing; expected " + Expected(field));
    }
  }

  void AddWrong(const Node& node, const Target& target, const std::string& expected,
                const std::string& hint = {}) {
    Add(node, target.name + ": expected " + expected + ", found " + KindOf(node) +
                  (hint.empty() ? "" : " (" + hint + ")"));
  }

  void ReadField(const Node& key, const Node& value, const Target& target, Message* message) {
    if (value.kind == Node::Kind::kNothing) {
      // A value that is not there has no place, so the problem is reported at the key's.
      Node nothing{Node::Kind::kNothing, key.place, {}, {}, {}};
      AddWrong(nothing, target, Expected(target.field));
      return;
    }
    (*places_)[target.path] = value.place;
    if (!target.field->is_repeated()) {
      ReadElement(value, target, message);
      return;
    }
    if (value.kind != Node::Kind::kList || value.children.empty()) {
      bool one_alone = value.kind == Node::Kind::kText && !IsBlock(target.field);
      if (!one_alone) return AddWrong(value, target, Expected(target.field));
      Target element{target.field, target.path + "[0]", target.name};
      (*places_)[element.path] = value.place;
      return ReadElement(value, element, message);
    }
    for (const Node& child : value.children) {
      if (child.kind == Node::Kind::kNothing) {
        // The element has no place either.
        size_t number = static_cast<size_t>(&child - value.children.data()) + 1;
        problems_->Add(value.place, target.name + ": expected " + ExpectedValue(target.field) +
                                        " as each element, found nothing as number " +
                                        std::to_string(number));
        continue;
      }
      int index = message->GetReflection()->FieldSize(*message, target.field);
      Target element{target.field, target.path + "[" + std::to_string(index) + "]", target.name};
      (*places_)[element.path] = child.place;
      ReadElement(child, element, message);
    }
  }

  void ReadElement(const Node& value, const Target& target, Message* message) {
    const auto* reflection = message->GetReflection();
    if (IsBlock(target.field)) {
      if (value.kind != Node::Kind::kKeys) {
        return AddWrong(value, target, ExpectedValue(target.field));
      }
      Message* inner = target.field->is_repeated()
                           ? reflection->AddMessage(message, target.field)
                           : reflection->MutableMessage(message, target.field);
      return ReadKeys(value, target.path, target.name, inner);
    }
    std::string hint;
    if (value.kind == Node::Kind::kText && SetValue(value.text, target.field, message, &hint)) {
      return;
    }
    AddWrong(value, target, ExpectedValue(target.field), hint);
  }

  std::map<std::string, Place>* places_;
  std::vector<std::string>* warnings_;
  Problems* problems_;
};

}  // namespace

void ReadText(const std::string& name, const std::string& text, Draft* draft, Problems* problems) {
  std::optional<Node> root = ReadYaml(name, text, problems);
  if (!root || root->kind == Node::Kind::kNothing) return;
  if (root->kind != Node::Kind::kKeys) {
    problems->Add(root->place, "expected keys with values, such as 'listen: 127.0.0.1:7411'");
    return;
  }
  Reader(draft, problems).ReadKeys(*root, "", "", &draft->config);
}

void ReadFile(const std::string& path, Draft* draft, Problems* problems) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (!file.is_open() || file.bad()) {
    std::string reason = errno == 0 ? "" : std::string(": ") + std::strerror(errno);
    problems->Add({path, 0, 0}, "cannot be read" + reason);
    return;
  }
  ReadText(path, text, draft, problems);
}

void SetKey(const std::string& key, const std::string& text, const Place& place, Draft* draft,
            Problems* problems) {
  Config* config = &draft->config;
  const FieldDescriptor* field = config->GetDescriptor()->FindFieldByName(key);
  auto said = draft->places.find(key);
  bool said_here = said != draft->places.end() && said->second.origin == place.origin;
  if (!said_here) config->GetReflection()->ClearField(config, field);
  draft->places[key] = place;
  if (field->is_repeated()) {
    int index = config->GetReflection()->FieldSize(*config, field);
    draft->places[key + "[" + std::to_string(index) + "]"] = place;
  }
  std::string hint;
  if (SetValue(text, field, config, &hint)) return;
  problems->Add(place, "expected " + ExpectedValue(field) + ", found " + Quoted(text) +
                           (hint.empty() ? "" : " (" + hint + ")"));
}

}  // namespace longwire::config
