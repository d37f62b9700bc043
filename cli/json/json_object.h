// One object for --json: names and values in the order in which they are added.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace longwire::cli {

class JsonObject {
 public:
  JsonObject& Add(std::string_view name, std::string_view text);
  JsonObject& Add(std::string_view name, const char* text) {
    return Add(name, std::string_view(text));
  }
  JsonObject& Add(std::string_view name, const std::vector<std::string>& texts);
  JsonObject& Add(std::string_view name, uint64_t number);
  JsonObject& Add(std::string_view name, bool value);
  // `json`: a value that is written already.
  JsonObject& AddValue(std::string_view name, std::string_view json);

  std::string Text() const { return "{" + fields_ + "}"; }
  void Print() const;

 private:
  std::string fields_;
};

}  // namespace longwire::cli
