// The schema as a commented file: deploy/longwired.yaml.
#include <sstream>

#include "server/config/config.h"
#include "server/config/schema.h"

namespace longwire::config {
namespace {

constexpr const char* kHead =
    R"(# longwired's configuration: every key with its default or with an example. To set one,
# remove the first # of its line and of the lines of the keys around it; lines that begin with
# a # and one blank are for reading. Sizes are written 512MiB or 40GiB, times 50us, 2ms or 30s.
# "longwire config check FILE" says what is wrong with a file, "longwire config show --effective
# FILE" what longwired would use; "longwire admin reload" and SIGHUP make it read its file again.
)";

class FileWriter {
 public:
  std::string Take() { return std::move(text_); }

  void WriteFields(const google::protobuf::Descriptor* message, const std::string& indent) {
    for (int i = 0; i < message->field_count(); ++i) {
      if (indent.empty()) text_ += "\n";
      Describe(message->field(i), indent);
      WriteField(message->field(i), indent);
    }
  }

 private:
  void Setting(const std::string& indent, const std::string& text) {
    text_ += "#" + indent + text + "\n";
  }
  void Remark(const std::string& indent, const std::string& text) {
    text_ += (indent.empty() ? "# " : "#" + indent + "# ") + text + "\n";
  }

  void Describe(const FieldDescriptor* field, const std::string& indent) {
    const Entry& entry = EntryOf(field);
    std::istringstream help(entry.help());
    for (std::string line; std::getline(help, line);) Remark(indent, line);
    if (entry.at_start_only()) Remark(indent, "Read at the start only.");
    if (entry.required()) {
      Remark(indent, "Required; an example:");
    } else if (entry.default_value().empty() && !IsBlock(field)) {
      Remark(indent, "An example:");
    }
  }

  void WriteField(const FieldDescriptor* field, const std::string& indent) {
    const Entry& entry = EntryOf(field);
    if (!IsBlock(field)) {
      const bool has_default = !entry.default_value().empty();
      Setting(indent,
              field->name() + ": " + (has_default ? entry.default_value() : entry.example()));
      return;
    }
    Setting(indent, field->name() + ":");
    if (field->is_repeated()) Setting(indent + "  ", "-");
    WriteFields(field->message_type(), indent + (field->is_repeated() ? "    " : "  "));
  }

  std::string text_ = kHead;
};

}  // namespace

std::string DefaultFile() {
  FileWriter writer;
  writer.WriteFields(Config::descriptor(), "");
  return writer.Take();
}

}  // namespace longwire::config
