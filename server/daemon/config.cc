// Reads the YAML file: every mistake is reported with its place and with what was expected.
#include "server/daemon/config.h"

#include <yaml-cpp/yaml.h>

#include <fstream>
#include <set>
#include <sstream>

namespace longwire::daemon {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

class ConfigReader {
 public:
  ConfigReader(const std::string& name, Config* config, std::string* error)
      : name_(name), config_(config), error_(error) {}

  bool Read(const std::string& text) {
    std::vector<YAML::Node> documents;
    try {
      documents = YAML::LoadAll(text);
    } catch (const YAML::Exception& problem) {
      return Fail(problem.mark, "not YAML: " + problem.msg);
    }
    if (documents.empty() || (documents.size() == 1 && documents[0].IsNull())) return true;
    if (documents.size() > 1) {
      return Fail(documents[1].Mark(), "a second document; expected one");
    }
    if (!documents[0].IsMap()) {
      return Fail(documents[0].Mark(),
                  "expected keys with values, such as 'listen: 127.0.0.1:7411'");
    }
    std::set<std::string> seen;
    for (const auto& pair : documents[0]) {
      if (!pair.first.IsScalar()) return Fail(pair.first.Mark(), "a key has to be a word");
      if (!seen.insert(pair.first.Scalar()).second) {
        return Fail(pair.first.Mark(), "'" + pair.first.Scalar() + "' stands here a second time");
      }
      if (!ReadPair(pair.first, pair.second)) return false;
    }
    return true;
  }

 private:
  bool Fail(const YAML::Mark& mark, const std::string& problem) {
    *error_ = name_ + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1) +
              ": " + problem;
    return false;
  }

  bool ReadPair(const YAML::Node& name, const YAML::Node& value) {
    for (const ConfigKey& key : ConfigKeys()) {
      if (key.name != name.Scalar()) continue;
      if (key.name == "listen") config_->listen.clear();
      return ReadValue(key, name, value);
    }
    std::string known;
    for (const ConfigKey& key : ConfigKeys()) {
      known += (known.empty() ? "" : ", ") + std::string(key.name);
    }
    return Fail(name.Mark(), "unknown key '" + name.Scalar() + "'; expected one of " + known);
  }

  bool ReadValue(const ConfigKey& key, const YAML::Node& name, const YAML::Node& value) {
    if (value.IsSequence() && key.list) {
      if (value.size() == 0) return Fail(value.Mark(), Expected(key, "an empty list"));
      for (const auto& element : value) {
        if (!element.IsScalar()) return Fail(element.Mark(), Expected(key, KindOf(element)));
        if (!ReadScalar(key, element)) return false;
      }
      return true;
    }
    // A missing value has no place of its own: the key's is the one to look at.
    if (value.IsNull()) return Fail(name.Mark(), Expected(key, "nothing"));
    if (!value.IsScalar()) return Fail(value.Mark(), Expected(key, KindOf(value)));
    return ReadScalar(key, value);
  }

  bool ReadScalar(const ConfigKey& key, const YAML::Node& value) {
    std::string problem;
    if (key.apply(value.Scalar(), config_, &problem)) return true;
    std::string text = Expected(key, "'" + value.Scalar() + "'");
    return Fail(value.Mark(), problem.empty() ? text : text + " (" + problem + ")");
  }

  static std::string KindOf(const YAML::Node& value) {
    return value.IsSequence() ? "a list" : value.IsMap() ? "keys with values" : "nothing";
  }

  static std::string Expected(const ConfigKey& key, const std::string& found) {
    return std::string(key.name) + ": expected " + std::string(key.expected) + ", found " + found;
  }

  const std::string& name_;
  Config* config_;
  std::string* error_;
};

}  // namespace

bool ApplyConfig(const std::string& name, const std::string& text, Config* config,
                 std::string* error) {
  return ConfigReader(name, config, error).Read(text);
}

bool LoadConfig(const std::string& path, Config* config, std::string* error) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (!file.is_open() || file.bad()) {
    *error = path + ": cannot be read";
    return false;
  }
  if (text.size() > kMaxFileBytes) {
    *error = path + ": larger than 1 MiB; that is no configuration file";
    return false;
  }
  return ApplyConfig(path, text, config, error);
}

}  // namespace longwire::daemon
