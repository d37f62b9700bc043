// A YAML file as a tree in which everything knows its place. Only what a configuration needs is let
// in: one document of words, lists and mappings; no anchors, aliases, tags or merge keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/config/problems.h"

namespace longwire::config {

struct Node {
  // kRefused: a problem already, about which nothing more is to be said.
  enum class Kind { kNothing, kText, kList, kKeys, kRefused };
  Kind kind = Kind::kNothing;
  Place place;
  std::string text;            // of kText
  std::vector<Node> keys;      // of kKeys: as many as there are children
  std::vector<Node> children;  // of kList: the elements; of kKeys: the values
};

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxDepth = 16;      // the schema needs four
constexpr size_t kMaxNodes = 200000;  // several thousand tenants

// The tree; there may be problems with parts of it. nullopt, with problems, when there is no tree.
// An empty file is a node of kNothing.
std::optional<Node> ReadYaml(const std::string& name, const std::string& text, Problems* problems);

// Whether the text is UTF-8 without control characters; else the first bad place is a problem.
bool CheckText(const std::string& name, const std::string& text, Problems* problems);

}  // namespace longwire::config
