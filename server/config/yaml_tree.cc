#include "server/config/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <string_view>
#include <utility>

#include "server/config/text.h"
#include "wire/guards.h"

namespace longwire::config {
namespace {

// Ends the reading at once: what follows would only cost time.
struct GivenUp {
  Place place;
  std::string sentence;
};

Place PlaceOf(const std::string& name, const YAML::Mark& mark) {
  if (mark.is_null()) return {name, 1, 1};
  return {name, mark.line + 1, mark.column + 1};
}

// The parser takes the end of the file for a closing quote if a line ends before it.
bool QuoteIsClosed(std::string_view text, size_t at) {
  if (at >= text.size() || (text[at] != '"' && text[at] != '\'')) return true;
  const char quote = text[at];
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (text[i] == quote) {
      bool doubled = quote == '\'' && i + 1 < text.size() && text[i + 1] == quote;
      if (!doubled) return true;
      ++i;
    }
  }
  return false;
}

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& name, std::string_view text, Problems* problems)
      : name_(name), text_(text), problems_(problems) {}

  Node Take() { return std::move(root_); }
  const Place& document() const { return document_; }

  void OnDocumentStart(const YAML::Mark& mark) override { document_ = PlaceOf(name_, mark); }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RefuseAnchor(mark, anchor);
    Add({Node::Kind::kNothing, PlaceOf(name_, mark), {}, {}, {}});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Refuse(mark, "an alias (*name) is not allowed here: write the value itself");
    Add({Node::Kind::kRefused, PlaceOf(name_, mark), {}, {}, {}});
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    if (!QuoteIsClosed(text_, static_cast<size_t>(mark.pos))) {
      throw GivenUp{PlaceOf(name_, mark), "the quote that opens here is never closed"};
    }
    Add({Node::Kind::kText, PlaceOf(name_, mark), value, {}, {}});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Begin(Node::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { End(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Begin(Node::Kind::kKeys, mark, tag, anchor);
  }
  void OnMapEnd() override { End(); }

 private:
  void Refuse(const YAML::Mark& mark, const std::string& sentence) {
    problems_->Add(PlaceOf(name_, mark), sentence);
  }
  void RefuseAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) Refuse(mark, "an anchor (&name) is not allowed here: write the value alone");
  }
  void RefuseTag(const YAML::Mark& mark, const std::string& tag) {
    bool none = tag.empty() || tag == "?" || tag == "!";
    if (!none) Refuse(mark, "the tag " + Quoted(tag) + " is not allowed: write the value alone");
  }

  void Begin(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
             YAML::anchor_t anchor) {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    if (open_.size() >= kMaxDepth && !wire::GuardIsOff("config_depth")) {
      throw GivenUp{PlaceOf(name_, mark), "more than " + std::to_string(kMaxDepth) +
                                              " lists and mappings one within the other; that is "
                                              "no configuration file"};
    }
    open_.push_back({kind, PlaceOf(name_, mark), {}, {}, {}});
  }
  void End() {
    Node node = std::move(open_.back());
    open_.pop_back();
    Add(std::move(node));
  }
  void Add(Node node) {
    if (++count_ > kMaxNodes) {
      throw GivenUp{node.place, "more than " + std::to_string(kMaxNodes) +
                                    " values; that is no configuration file"};
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Node& parent = open_.back();
    bool is_key = parent.kind == Node::Kind::kKeys && parent.keys.size() == parent.children.size();
    (is_key ? parent.keys : parent.children).push_back(std::move(node));
  }

  const std::string& name_;
  const std::string_view text_;
  Problems* problems_;
  Place document_;
  Node root_;
  std::vector<Node> open_;
  size_t count_ = 0;
};

}  // namespace

bool CheckText(const std::string& name, const std::string& text, Problems* problems) {
  Place place{name, 1, 1};
  for (size_t at = 0; at < text.size();) {
    size_t bytes = CharacterBytes(text, at);
    if (bytes == 0) {
      problems->Add(place, "expected UTF-8, found a byte that is none");
      return false;
    }
    char c = text[at];
    bool line_end = c == '\n' || (c == '\r' && at + 1 < text.size() && text[at + 1] == '\n');
    if (IsControl(c) && c != '\t' && !line_end) {
      problems->Add(place, "expected text, found the control character " +
                               std::to_string(static_cast<int>(c)));
      return false;
    }
    place.column += static_cast<int>(bytes);
    if (c == '\n') place = {name, place.line + 1, 1};
    at += bytes;
  }
  return true;
}

std::optional<Node> ReadYaml(const std::string& name, const std::string& text, Problems* problems) {
  if (text.size() > kMaxFileBytes) {
    problems->Add({name, 0, 0}, "larger than 1 MiB; that is no configuration file");
    return std::nullopt;
  }
  if (!CheckText(name, text, problems)) return std::nullopt;
  // Places in the text and places of the parser are the same without it.
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const std::string plain = text.substr(text.starts_with(kByteOrderMark) ? 3 : 0);
  TreeBuilder builder(name, plain, problems);
  try {
    std::istringstream stream(plain);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder))
      return Node{Node::Kind::kNothing, {name, 1, 1}, {}, {}, {}};
    Node root = builder.Take();
    if (parser.HandleNextDocument(builder)) {
      problems->Add(builder.document(), "a second document begins; expected one");
    }
    return root;
  } catch (const YAML::Exception& problem) {
    problems->Add(PlaceOf(name, problem.mark),
                  "expected YAML, found something else: " + problem.msg);
  } catch (const GivenUp& problem) {
    problems->Add(problem.place, problem.sentence);
  }
  return std::nullopt;
}

}  // namespace longwire::config
